package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
)

// picture has a contact send a picture whose file is to be fetched by a reference.
func (b *bench) picture(code parley.ChannelCode, from parley.ContactID, id parley.MessageID, reference string) {
	b.t.Helper()
	file := parley.Media{MIME: "image/png", Filename: "a.png", Size: 9, Thumbnail: []byte("\xff\xd8\xff\xe0")}
	m := network.Message{From: from, ID: id, Content: parley.Image{Caption: "look", Media: file}, File: []byte(reference), At: time.Now()}
	if err := b.driver.session(code).sink(b.t.Context(), m); err != nil {
		b.t.Fatal(err)
	}
}

// mediaOf reads the file of a message that came in.
func (b *bench) mediaOf(code parley.ChannelCode, from parley.ContactID, id parley.MessageID) parley.Media {
	b.t.Helper()
	m, err := b.store.Message(b.t.Context(), code, parley.MessageRef{Chat: from, ID: id})
	if err != nil {
		b.t.Fatal(err)
	}
	return *parley.MediaIn(m.Content)
}

func (b *bench) wantMedia(from parley.ContactID, id parley.MessageID, want parley.MediaStatus) parley.Media {
	b.t.Helper()
	m := b.mediaOf("demo", from, id)
	if m.Status() != want {
		b.t.Errorf("the file of %s is %s, want %s", id, m.Status(), want)
	}
	return m
}

// mediaEvents lists the messages that message.media was published for, with the status of the file.
func (b *bench) mediaEvents(after int64) (events []string) {
	b.t.Helper()
	for _, e := range b.events(after) {
		if e.Type == parley.MessageMedia {
			events = append(events, fmt.Sprint(e.Message.ID, " ", parley.MediaIn(e.Message.Content).Status()))
		}
	}
	return events
}

// host is a server of files that does not answer until it is let to.
type host struct {
	mu      sync.Mutex
	running map[string]int // by channel
	most    map[string]int
	asked   []string
	answer  chan struct{}
}

func newHost() *host {
	return &host{running: map[string]int{}, most: map[string]int{}, answer: make(chan struct{})}
}

func (h *host) fetch(ctx context.Context, code parley.ChannelCode, reference string) (string, error) {
	h.count(code, 1, reference)
	defer h.count(code, -1, "")
	select {
	case <-h.answer:
		return "content of " + reference, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (h *host) count(code parley.ChannelCode, n int, reference string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range []string{string(code), "in all"} {
		h.running[key] += n
		h.most[key] = max(h.most[key], h.running[key])
	}
	if n > 0 {
		h.asked = append(h.asked, reference)
	}
}

func (h *host) requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked)
}

// TestFilesDelayNoOther: while the server of files never answers, and a stranger's pictures wait, what others
// say, receipts and login links are handled.
func TestFilesDelayNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		issuer := b.verify()
		h := newHost()
		b.driver.fetch = h.fetch
		m := b.await(ayu, "halo", time.Second)
		link, prompt := b.link(issuer)
		start, before := time.Now(), b.lastEvent()
		for i := range 20 {
			b.picture("demo", budi, parley.MessageID(fmt.Sprint("P", i)), fmt.Sprint("budi ", i))
		}
		sink := b.driver.session("demo").sink
		for _, e := range []network.Event{
			network.Message{From: budi, ID: "B1", Content: parley.Text{Body: "hi"}, At: time.Now()},
			network.Receipt{From: ayu, IDs: []parley.MessageID{m.ID}, Status: parley.Delivered, At: time.Now()},
			network.Message{From: ayu, ID: "A1", Content: parley.Text{Body: prompt}, At: time.Now()},
		} {
			if err := sink(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if now, err := b.store.Link(t.Context(), link.ID); err != nil || now.Status != parley.OTPStatusApproved {
			t.Errorf("the link is %+v, %v", now, err)
		}
		if got := b.load(m).Status; got != parley.Delivered {
			t.Errorf("the message is %s", got)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %s", took)
		}
		if asked := h.requests(); len(asked) != 2 { // the stranger takes two places and no more
			t.Errorf("asked for %v", asked)
		}
		b.wantMedia(budi, "P0", parley.MediaPending)
		if got := b.mediaEvents(before); len(got) != 0 {
			t.Errorf("published %v", got)
		}

		// The first file of another contact comes before the stranger's eighteen others.
		b.picture("demo", ayu, "A2", "ayu")
		h.answer <- struct{}{}
		synctest.Wait()
		if asked := h.requests(); len(asked) != 3 || asked[2] != "ayu" {
			t.Errorf("asked for %v", asked)
		}
		close(h.answer)
		synctest.Wait()
		for i := range 20 {
			m := b.wantMedia(budi, parley.MessageID(fmt.Sprint("P", i)), parley.MediaReady)
			if m.Size != int64(len(fmt.Sprint("content of budi ", i))) || string(m.Thumbnail) != "\xff\xd8\xff\xe0" {
				t.Errorf("file %d is %+v", i, m)
			}
		}
		if got := b.mediaEvents(before); len(got) != 21 {
			t.Errorf("published %v", got)
		}
	})
}

// TestFetchesAreBounded: per channel and in all, and every channel has its turn.
func TestFetchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		h := newHost()
		b.driver.fetch = h.fetch
		var codes []parley.ChannelCode
		for i := range 6 {
			code := parley.ChannelCode(fmt.Sprint("c", i))
			if _, err := b.g.CreateChannel(t.Context(), parley.Channel{Code: code, Network: parley.Sandbox, Enabled: true}); err != nil {
				t.Fatal(err)
			}
			codes = append(codes, code)
		}
		for i := range 5 {
			for _, code := range codes {
				b.picture(code, ayu, parley.MessageID(fmt.Sprint("P", i)), string(code))
			}
		}
		synctest.Wait()
		for range 2 { // the two channels that got no place at first are next
			h.answer <- struct{}{}
			synctest.Wait()
		}
		seen := map[string]bool{}
		for _, code := range h.requests() {
			seen[code] = true
		}
		if len(seen) != len(codes) {
			t.Errorf("only %v had a turn", slices.Sorted(maps.Keys(seen)))
		}
		close(h.answer)
		synctest.Wait()
		if len(h.requests()) != 30 || h.most["in all"] != 8 {
			t.Errorf("%d were fetched, at most %d at once", len(h.requests()), h.most["in all"])
		}
		for _, code := range codes {
			if h.most[string(code)] > 2 {
				t.Errorf("%s had %d at once", code, h.most[string(code)])
			}
		}
	})
}

// TestFilesAreRetried, also after a restart, until the server of files works.
func TestFilesAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var tries atomic.Int32
		var works atomic.Bool
		b.driver.fetch = func(_ context.Context, _ parley.ChannelCode, reference string) (string, error) {
			if tries.Add(1); !works.Load() {
				return "", errors.New("the server of files answers 507")
			}
			return "content of " + reference, nil
		}
		before := b.lastEvent()
		b.picture("demo", ayu, "A1", "secret reference")
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := tries.Load(); n < 8 || n > 20 {
			t.Errorf("it was tried %d times in the first hour", n)
		}
		pending := b.wantMedia(ayu, "A1", parley.MediaPending)
		if pending.MIME != "image/png" || pending.Size != 9 || pending.ID == "" || pending.Key != "" {
			t.Errorf("while it is pending: %+v", pending)
		}
		stored, err := b.store.DueMediaFetches(t.Context(), time.Now().Add(time.Hour), time.Now().Add(time.Hour), nil)
		if err != nil || len(stored) != 1 {
			t.Fatal(stored, err)
		}
		if one, err := b.store.MediaFetch(t.Context(), stored[0].Seq); err != nil || strings.Contains(string(one.Reference), "secret") {
			t.Errorf("stored as %q, %v", one.Reference, err)
		}

		b.restart()
		works.Store(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		ready := b.wantMedia(ayu, "A1", parley.MediaReady)
		if ready.ID != pending.ID || ready.Key == "" {
			t.Errorf("its id was %s and is %+v", pending.ID, ready)
		}
		if got := b.mediaEvents(before); !slices.Equal(got, []string{"A1 ready"}) {
			t.Errorf("published %v", got)
		}
	})
}

// TestFilesFailAfterADay, or when the network says that there is nothing to fetch; also while the channel is
// not connected.
func TestFilesFailAfterADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var tries atomic.Int32
		b.driver.fetch = func(_ context.Context, _ parley.ChannelCode, reference string) (string, error) {
			tries.Add(1)
			switch reference {
			case "gone":
				return "", network.Refuse(parley.Refused, "The network no longer has the file.")
			case "cut off":
				return "", network.NotConnected(nil)
			}
			return "", errors.New("503")
		}
		before := b.lastEvent()
		b.picture("demo", ayu, "A1", "gone")
		synctest.Wait()
		b.wantMedia(ayu, "A1", parley.MediaFailed)
		if n := tries.Load(); n != 1 {
			t.Errorf("it was tried %d times", n)
		}

		b.picture("demo", ayu, "A2", "flaky")
		time.Sleep(23 * time.Hour)
		b.wantMedia(ayu, "A2", parley.MediaPending)
		b.driver.session("demo").tell(network.State{Status: parley.ChannelReconnecting})
		time.Sleep(time.Minute)
		synctest.Wait()
		tries.Store(0)
		b.picture("demo", ayu, "A3", "never asked for")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		b.wantMedia(ayu, "A2", parley.MediaFailed)
		b.wantMedia(ayu, "A3", parley.MediaPending)
		if n := tries.Load(); n != 0 {
			t.Errorf("without a connection it was tried %d times", n)
		}
		time.Sleep(23 * time.Hour)
		synctest.Wait()
		b.wantMedia(ayu, "A3", parley.MediaFailed)
		if got := b.mediaEvents(before); !slices.Equal(got, []string{"A1 failed", "A2 failed", "A3 failed"}) {
			t.Errorf("published %v", got)
		}

		b.driver.session("demo").tell(network.State{Status: parley.ChannelWorking})
		b.picture("demo", ayu, "A4", "cut off")
		time.Sleep(time.Minute)
		synctest.Wait()
		b.wantMedia(ayu, "A4", parley.MediaPending)
		due, err := b.store.DueMediaFetches(t.Context(), time.Now().Add(time.Hour), time.Now().Add(time.Hour), nil)
		if err != nil || len(due) != 1 || due[0].Attempts != 0 {
			t.Errorf("a lost connection counts: %+v, %v", due, err)
		}
	})
}

// TestErasedWhileFetched leaves nothing of a file whose message was taken back, or whose channel was deleted,
// while it was being fetched.
func TestErasedWhileFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		h := newHost()
		b.driver.fetch = h.fetch
		before := b.lastEvent()
		b.picture("demo", ayu, "A1", "first")
		b.picture("demo", ayu, "A2", "second")
		synctest.Wait()
		if err := b.driver.session("demo").sink(t.Context(), network.Deletion{From: ayu, Target: "A1", At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		h.answer <- struct{}{}
		synctest.Wait()
		if _, err := b.g.DeleteChannel(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}
		close(h.answer)
		synctest.Wait()
		if files, err := b.media.Older(t.Context(), time.Now().Add(1e6*time.Hour), "", 10); len(files) != 0 || err != nil {
			t.Errorf("files that are there: %v, %v", files, err)
		}
		if got := b.mediaEvents(before); len(got) != 0 {
			t.Errorf("published %v", got)
		}
	})
}

// TestTwoNodesFetchAFile has the former node of a channel finish a fetch after the next one did: the file stays.
func TestTwoNodesFetchAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		h := newHost()
		b.driver.fetch = h.fetch
		b.picture("demo", ayu, "A1", "one")
		synctest.Wait()
		b.wantMedia(ayu, "A1", parley.MediaPending)

		next := *b
		next.driver = &driver{sessions: map[parley.ChannelCode]*session{}}
		next.driver.fetch = func(context.Context, parley.ChannelCode, string) (string, error) { return "content of one", nil }
		next.start()
		defer next.stop()
		synctest.Wait()
		m := b.wantMedia(ayu, "A1", parley.MediaReady)
		close(h.answer)
		synctest.Wait()
		f, err := b.media.Open(t.Context(), m.Key)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if data, err := io.ReadAll(f); err != nil || string(data) != "content of one" {
			t.Errorf("%q, %v", data, err)
		}
	})
}

// TestFilesOfUnknownContacts: files of contacts that never got a message are limited, by contact and by channel.
func TestFilesOfUnknownContacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.limits = store.StorageLimits{PerContact: 10, PerChannel: 15}
		b.restart()
		in := func(from parley.ContactID, id parley.MessageID, claimed int64, file string, want parley.MediaStatus, reason string) {
			t.Helper()
			m := network.Message{From: from, ID: id, Content: parley.File{Caption: "look", Media: parley.Media{Size: claimed}}, File: []byte(file),
				At: time.Now()}
			if err := b.driver.session("demo").sink(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := b.wantMedia(from, id, want); !strings.Contains(got.Failure, reason) || reason == "" && got.Failure != "" {
				t.Errorf("the reason of %s: %q", id, got.Failure)
			}
			page, _, err := b.store.History(t.Context(), "demo", from, parley.Page{Limit: 1})
			if err != nil || page[0].Content.Text() != "look" {
				t.Errorf("%s is stored as %+v, %v", id, page, err)
			}
		}
		in(ayu, "A1", 8, "12345678", parley.MediaReady, "")
		in(ayu, "A2", 3, "abc", parley.MediaFailed, "This contact sent more than")
		in(ayu, "A3", 1, "a lie about its size", parley.MediaFailed, "This contact sent more than")
		if files, err := b.media.Older(t.Context(), time.Now().Add(1e6*time.Hour), "", 10); len(files) != 1 || err != nil {
			t.Errorf("files that are there: %v, %v", files, err)
		}
		in(budi, "B1", 7, "1234567", parley.MediaReady, "")
		in(budi, "B2", 1, "x", parley.MediaFailed, "Contacts that this channel never wrote to")
		b.await(ayu, "halo", time.Minute)
		in(ayu, "A4", 20, "one from a contact that got a message", parley.MediaReady, "")
		time.Sleep(25 * time.Hour)
		in(budi, "B3", 9, "123456789", parley.MediaReady, "")
	})
}

// TestNoTextNoFiles: of a channel that keeps no text no file is fetched.
func TestNoTextNoFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		h := newHost()
		b.driver.fetch = h.fetch
		if _, err := b.g.UpdateChannel(t.Context(), "demo", func(c *parley.Channel) { c.Settings.Retention = new(parley.Duration) }); err != nil {
			t.Fatal(err)
		}
		b.picture("demo", ayu, "A1", "first")
		synctest.Wait()
		if asked := h.requests(); len(asked) != 0 {
			t.Errorf("asked for %v", asked)
		}
		if m := b.mediaOf("demo", ayu, "A1"); !m.IsZero() {
			t.Errorf("stored %+v", m)
		}
	})
}
