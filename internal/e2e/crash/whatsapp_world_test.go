package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/wire"
)

// The beginnings of numbers: of channels' owners, and of their contacts.
const whatsappOwners, whatsappContacts = "62812", "62813"

// whatsappWorld is the program as a process of its own, with channels on a network that speaks WhatsApp's
// protocol. The network with its phones is in the test's process: it outlives the program, and knows what
// each phone could read and showed.
type whatsappWorld struct {
	*testServer
	t        *testing.T
	wa       *whatsapptest.Server
	channels []whatsappChannel
	chats    []whatsappChat
	watchers sync.WaitGroup
	crashes  int
}

type whatsappChannel struct {
	code  string
	owner *whatsapptest.Phone
	link  *whatsapptest.Link
}

// whatsappChat is a contact of a channel.
type whatsappChat struct {
	channel whatsappChannel
	contact *whatsapptest.Phone
}

// startWhatsApp starts network and program, and links channels, each with a number of contacts.
func startWhatsApp(t *testing.T, channels, contacts int) *whatsappWorld {
	t.Helper()
	w := &whatsappWorld{t: t, wa: whatsapptest.StartTest(t)}
	trust, err := json.Marshal(w.wa.Trust())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "trust.json")
	if err := os.WriteFile(file, trust, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.watchers.Wait) // the test's context ends them
	t.Cleanup(w.judgeLog)
	w.testServer = startServer(t, "--whatsapp-endpoint", w.wa.Endpoint(), "--whatsapp-trust", file)
	w.channels = make([]whatsappChannel, channels)
	begun := time.Now()
	var pairing sync.WaitGroup
	for i := range channels {
		pairing.Go(func() {
			if err := w.pair(i); err != nil {
				t.Errorf("pair channel %d: %v", i, err)
			}
		})
	}
	pairing.Wait()
	if t.Failed() {
		t.Fatalf("%s", readFile(t, w.data+".log"))
	}
	t.Logf("%d channels were paired in %s", channels, time.Since(begun).Round(time.Millisecond))
	for i, channel := range w.channels {
		for n := range contacts {
			w.chats = append(w.chats, whatsappChat{channel, w.wa.Phone(fmt.Sprintf("%s%04d%03d", whatsappContacts, i, n))})
		}
	}
	return w
}

// pair makes a channel without a pace, and has its owner's phone scan the code.
func (w *whatsappWorld) pair(i int) error {
	code := fmt.Sprintf("wa%d", i)
	owner := w.wa.Phone(fmt.Sprintf("%s%07d", whatsappOwners, i), whatsapptest.Named(code))
	w.channels[i] = whatsappChannel{code: code, owner: owner}
	body := `{"code":"` + code + `","network":"whatsapp","settings":{"pace":"0s"}}`
	if status, answer, err := w.manage("POST", "/api/manage/channels", body); err != nil || status != http.StatusCreated {
		return fmt.Errorf("make it: %d %s %w", status, answer, err)
	}
	if err := w.becomes(code, parley.ChannelScanQRCode); err != nil {
		return err
	}
	if status, answer, err := w.manage("POST", "/api/manage/channels/"+code+"/pair", `{}`); err != nil || status != http.StatusOK {
		return fmt.Errorf("begin: %d %s %w", status, answer, err)
	}
	var shown struct{ Data struct{ Code string } }
	if err := w.until(func() bool {
		return w.read("/api/manage/channels/"+code+"/pairing", &shown) == nil && shown.Data.Code != ""
	}); err != nil {
		return fmt.Errorf("no code is shown: %w", err)
	}
	link, err := owner.Scan(w.t.Context(), shown.Data.Code)
	if err != nil {
		return err
	}
	w.channels[i].link = link
	return w.becomes(code, parley.ChannelWorking)
}

func (w *whatsappWorld) becomes(code string, status parley.ChannelStatus) error {
	var is struct {
		Data struct {
			Status parley.ChannelStatus
			Reason string
		}
	}
	if err := w.until(func() bool {
		return w.read("/api/manage/channels/"+code, &is) == nil && is.Data.Status == status
	}); err != nil {
		return fmt.Errorf("it is %+v, not %s: %w", is.Data, status, err)
	}
	return nil
}

// until waits until something is so.
func (w *whatsappWorld) until(holds func() bool) error {
	deadline := time.After(waitLimit)
	for tick := time.Tick(20 * time.Millisecond); !holds(); {
		select {
		case <-tick:
		case <-deadline:
			return fmt.Errorf("not so after %s", waitLimit)
		}
	}
	return nil
}

func (w *whatsappWorld) manage(method, path, body string) (int, []byte, error) {
	return w.call(method, path, "", body, "", "Authorization", "Bearer "+w.admin)
}

// read reads something of the management API.
func (w *whatsappWorld) read(path string, into any) error {
	status, answer, err := w.manage("GET", path, "")
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("%d %s %w", status, answer, err)
	}
	return json.Unmarshal(answer, into)
}

// interrupt does something to the run again and again: each time that another part of the whole is done.
func (w *whatsappWorld) interrupt(done *counts, whole, times int, do func(i int)) {
	w.t.Helper()
	for i := range times {
		if err := done.await(whole * (i + 1) / (times + 1)); err != nil {
			w.t.Fatalf("interruption %d: %v\n%s", i, err, w.tail())
		}
		do(i)
	}
}

// wrongInLog finds signs of a broken program, and whole numbers of channels' owners and their contacts.
var wrongInLog = regexp.MustCompile(`DATA RACE|panic: |fatal error: |(` + whatsappOwners + `|` + whatsappContacts + `)\d{7}`)

// judgeLog looks for what must not be in the program's log.
func (w *whatsappWorld) judgeLog() {
	log := readFile(w.t, w.data+".log")
	if at := wrongInLog.FindIndex(log); at != nil {
		w.t.Errorf("the log has %q: %s", log[at[0]:at[1]], log[max(0, at[0]-200):min(len(log), at[0]+4000)])
	}
}

// crash ends the program and starts it again, and does other things in between. Every third time it dies once
// more while its channels connect and what waited is under way.
func (w *whatsappWorld) crash(between ...func()) {
	w.t.Helper()
	w.kill(w.t)
	for _, do := range between {
		do()
	}
	w.start(w.t)
	w.crashes++
	w.record.Times++
	if w.crashes%4 == 3 {
		<-time.After(rand.N(400 * time.Millisecond)) // any moment will do
		w.crash()
	}
}

// tail is the end of the program's log.
func (w *whatsappWorld) tail() []byte {
	log := readFile(w.t, w.data+".log")
	return log[max(0, len(log)-10_000):]
}

// history reads the texts of a chat, oldest first: what the program sent, which must have been sent by now, and
// what it received.
func (w *whatsappWorld) history(c whatsappChat) (sent, received []string) {
	w.t.Helper()
	for offset := 0; ; offset += 100 {
		path := fmt.Sprintf("/api/chat/detail?contact_id=%s@c.us&limit=100&offset=%d", c.contact.Number(), offset)
		status, answer, err := w.call("GET", path, c.channel.code, "", "")
		var page struct{ Data []wire.Message }
		if err == nil && status == http.StatusOK {
			err = json.Unmarshal(answer, &page)
		}
		if err != nil || status != http.StatusOK {
			w.t.Fatalf("history: %d %s %v", status, answer, err)
		}
		if len(page.Data) == 0 {
			slices.Reverse(sent)
			slices.Reverse(received)
			return sent, received
		}
		for _, r := range page.Data {
			switch r.Status {
			case parley.Sent.String(), parley.Delivered.String():
				sent = append(sent, r.Body)
			case parley.Received.String():
				received = append(received, r.Body)
			default:
				w.t.Errorf("%s is %s", r.MessageID, r.Status)
			}
		}
	}
}

// awaitFinal waits until nothing of a chat is pending.
func (w *whatsappWorld) awaitFinal(c whatsappChat) error {
	return w.until(func() bool {
		path := fmt.Sprintf("/api/chat/detail?contact_id=%s@c.us&limit=20", c.contact.Number())
		status, answer, err := w.call("GET", path, c.channel.code, "", "")
		return err == nil && status == http.StatusOK && !bytes.Contains(answer, []byte(`"PENDING"`))
	})
}

// received are the texts that the event log tells of, by the number of who wrote them. It is read beside the
// program.
func (w *whatsappWorld) received() map[string][]string {
	w.t.Helper()
	texts := map[string][]string{}
	w.eachEvent(w.t, 0, parley.EventFilter{Types: []parley.EventType{parley.MessageReceived}}, func(e parley.Event) {
		number := e.Message.Chat.Number()
		texts[number] = append(texts[number], e.Message.Content.Text())
	})
	return texts
}

// judgeSealing asks the network whether everybody could read what was sent to them.
func (w *whatsappWorld) judgeSealing() {
	w.t.Helper()
	if bare := w.wa.Unencrypted(); len(bare) > 0 {
		w.t.Errorf("%d messages came without a ciphertext for their recipient, such as %+v", len(bare), bare[0])
	}
	if dark := w.wa.Unreadable(); len(dark) > 0 {
		w.t.Errorf("%d messages could never be read, such as %s: %s", len(dark), dark[0].ID, dark[0].Deliveries[0].Why)
	}
}

// shown are the texts that a chat's contact saw, in order.
func (c whatsappChat) shown() (texts []string) {
	for _, m := range c.contact.Inbox() {
		texts = append(texts, m.Text)
	}
	return texts
}

// numbered are texts with the numbers from first, below end.
func numbered(word string, first, end, step int) (texts []string) {
	for n := first; n < end; n += step {
		texts = append(texts, fmt.Sprint(word, " ", n))
	}
	return texts
}

// counts counts what was done.
type counts struct {
	n     atomic.Int64
	moved chan struct{} // holds one: it counted
}

func newCounts() *counts { return &counts{moved: make(chan struct{}, 1)} }

func (c *counts) add() {
	c.n.Add(1)
	select {
	case c.moved <- struct{}{}:
	default:
	}
}

// await waits until it counted so far. Only one may wait at a time.
func (c *counts) await(least int) error {
	deadline := time.After(waitLimit)
	for c.n.Load() < int64(least) {
		select {
		case <-c.moved:
		case <-deadline:
			return fmt.Errorf("%d of %d after %s", c.n.Load(), least, waitLimit)
		}
	}
	return nil
}

// watch counts what the contact of a chat is shown. Each time after so many it answers; 0: never.
func (w *whatsappWorld) watch(c whatsappChat, shown *counts, answersAfter int) {
	ctx := w.t.Context()
	w.watchers.Go(func() {
		for n := 1; c.contact.AwaitCount(ctx, n) == nil; n++ {
			if answersAfter > 0 && n%answersAfter == 0 {
				if _, err := c.contact.Send(ctx, c.channel.owner, fmt.Sprint("a ", n)); err != nil {
					w.t.Errorf("a phone cannot answer: %v", err)
				}
			}
			shown.add()
		}
	})
}

// awaitFaults waits until every fault has happened.
func (w *whatsappWorld) awaitFaults() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), waitLimit)
	defer cancel()
	if err := w.wa.AwaitFaults(ctx); err != nil {
		w.t.Errorf("not every fault happened: %v", err)
	}
}
