package whatsapp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"go.mau.fi/whatsmeow/proto/waE2E"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
)

// spy sees the requests that the driver makes for files.
type spy struct {
	http.RoundTripper
	mu   sync.Mutex
	seen []string // their methods
	on   func(*http.Request)
}

func (s *spy) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.seen = append(s.seen, r.Method)
	s.mu.Unlock()
	if s.on != nil {
		s.on(r)
	}
	return s.RoundTripper.RoundTrip(r)
}

// methods are those of the requests so far.
func (s *spy) methods() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// watch puts a spy on the driver, before it has a session.
func (w *world) watch(on func(*http.Request)) *spy {
	s := &spy{RoundTripper: w.driver.mediaLimits.RoundTripper, on: on}
	w.driver.mediaLimits.RoundTripper = s
	return s
}

// TestFileLargerThanItSays is not taken, however small the message says it is, nor asked for again.
func TestFileLargerThanItSays(t *testing.T) {
	for name, most := range map[string]int64{
		"announced": 1000,   // so small an answer has its length in its header
		"streamed":  20_000, // and this one does not
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.driver.mediaLimits.maxBytes = most
			requests := w.watch(nil)
			s, in := w.paired()
			before := len(requests.methods())
			send := func(caption string, size int64) {
				m := w.raw(t, parley.Image{Caption: caption, Media: parley.Media{MIME: "image/png"}},
					bytes.Repeat([]byte("x"), int(size)), "")
				m.ImageMessage.FileLength = new(uint64(1))
				_, err := w.friend.SendMessage(within(t), w.owner, m)
				must(t, err)
			}
			send("too large", most+encryptionOverhead)
			if data, err := w.fetch(s, in.said("too large")); network.ToClass(err) != network.Permanent {
				t.Errorf("%d bytes were taken, %v", len(data), err)
			}
			if got := requests.methods()[before:]; len(got) != 1 {
				t.Errorf("it was asked for by %v", got)
			}
			send("just so", most)
			if data := w.fetched(s, in.said("just so")); int64(len(data)) != most {
				t.Errorf("%d bytes were taken of %d", len(data), most)
			}
		})
	}
}

// TestAnswersAreBounded reads no more of an answer than may be, whatever it says of its length.
func TestAnswersAreBounded(t *testing.T) {
	const most = 5000
	for name, test := range map[string]struct {
		size      int
		announced bool
		large     bool
	}{
		"small": {10, true, false}, "full": {most + encryptionOverhead, true, false}, "streamed": {most + encryptionOverhead, false, false},
		"large": {most + encryptionOverhead + 1, true, true}, "large and streamed": {most + encryptionOverhead + 1, false, true},
		"huge": {1 << 20, false, true}, "none": {0, false, false},
	} {
		body := bytes.NewReader(make([]byte, test.size))
		answer := &http.Response{Body: io.NopCloser(iotest.HalfReader(body)), ContentLength: -1}
		if test.announced {
			answer.ContentLength = int64(test.size)
		}
		resp, err := (&limitedTransport{answering{answer}, most, downloadIdleTimeout}).RoundTrip(httptest.NewRequest(http.MethodGet, "/",
			nil))
		must(t, err)
		data, err := io.ReadAll(resp.Body)
		if errors.Is(err, errTooLarge) != test.large || isPermanent(err) != test.large || !test.large && len(data) != test.size {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
		if read := test.size - body.Len(); read > most+encryptionOverhead+1 {
			t.Errorf("%s: %d bytes were read", name, read)
		}
	}
}

// answering gives the same answer to every request.
type answering struct{ resp *http.Response }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a.resp, nil }

// TestIdleConnectionsEnd with the driver, which knows them only through what bounds them.
func TestIdleConnectionsEnd(t *testing.T) {
	idle := &idleCounter{}
	(&http.Client{Transport: &limitedTransport{idle, 1, downloadIdleTimeout}}).CloseIdleConnections()
	if idle.closed != 1 {
		t.Errorf("they were closed %d times", idle.closed)
	}
}

type idleCounter struct {
	http.RoundTripper
	closed int
}

func (i *idleCounter) CloseIdleConnections() { i.closed++ }

// TestUploadsStayInTheirFolder, which is emptied at a start, and go when they are done. A server may have no
// other folder that it can write to.
func TestUploadsStayInTheirFolder(t *testing.T) {
	w := newWorld(t)
	folder := t.TempDir()
	w.driver.config.TempDir = folder
	var during []int
	w.watch(func(r *http.Request) {
		if r.Method == http.MethodPost {
			copies, err := os.ReadDir(folder)
			if err != nil {
				t.Error(err)
			}
			during = append(during, len(copies))
		}
	})
	s, _ := w.paired()
	t.Setenv("TMPDIR", filepath.Join(folder, "missing"))
	file := w.keepFile(t, []byte("a file"), parley.Media{MIME: "application/pdf", Filename: "a.pdf"})
	w.sent(s, w.outgoing(friendID, parley.File{Media: file}))
	file.MediaKey = nil // as of a message from before there were keys
	w.sent(s, w.outgoing(friendID, parley.File{Media: file}))
	if !slices.Equal(during, []int{1, 1}) {
		t.Errorf("while they were uploaded the folder had %v copies", during)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestStrangersDoNotFillTheLog with the path of a file, which the sender wrote.
func TestStrangersDoNotFillTheLog(t *testing.T) {
	w := newWorld(t)
	var said safeBuffer
	w.driver.config.Log = slog.New(slog.NewTextHandler(&said, nil))
	_, in := w.paired()
	path := strings.Repeat("endless ", 2000)
	_, err := w.friend.SendMessage(within(t), w.owner, &waE2E.Message{ImageMessage: &waE2E.ImageMessage{
		Caption: new("odd"), Mimetype: new("image/png"), DirectPath: &path, MediaKey: make([]byte, 32), FileSHA256: make([]byte, 32),
		FileEncSHA256: make([]byte, 32)}})
	must(t, err)
	if m := in.said("odd"); m.File != nil {
		t.Errorf("it refers to %s", m.File)
	}
	if log := said.String(); !strings.Contains(log, "cannot be fetched") || strings.Count(log, "endless") > maxLogged/len("endless ") {
		t.Errorf("the log has %d bytes: %.1000s", len(log), log)
	}
}

// safeBuffer is a buffer that several may write to.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestFilesHoldNothingUp: while the media server takes the request for a file and never answers, another chat's
// text comes, and delivery receipts.
func TestFilesHoldNothingUp(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	w.HoldDownloads(true)
	_, err := w.friend.SendImage(within(t), w.owner, []byte("x"), "image/png", "a picture")
	must(t, err)
	picture := in.said("a picture")
	ctx, cancel := context.WithCancel(t.Context())
	file, err := os.CreateTemp(t.TempDir(), "file")
	must(t, err)
	defer file.Close()
	ended := make(chan error, 1)
	go func() { ended <- s.Fetch(ctx, picture.File, file) }()
	must(t, w.AwaitHeld(within(t), 1))

	_, err = w.other.Send(within(t), w.owner, "from another")
	must(t, err)
	in.said("from another")
	in.got(parley.Delivered, w.sent(s, w.text(friendID, "hello")).ID)
	select {
	case err := <-ended:
		t.Errorf("it did not wait: %v", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	w.HoldDownloads(false)
	if got := w.fetched(s, picture); string(got) != "x" {
		t.Errorf("there came %q", got)
	}
}

// TestDownloadsThatStall are given up, and can be tried again.
func TestDownloadsThatStall(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	_, err := w.friend.SendImage(within(t), w.owner, []byte("x"), "image/png", "a picture")
	must(t, err)
	picture := in.said("a picture")
	w.fetched(s, picture) // the connection and the list of servers are there
	w.driver.mediaLimits.idleTimeout = 50 * time.Millisecond
	w.HoldDownloads(true)
	if _, err := w.fetch(s, picture); !errors.Is(err, errIdle) || network.ToClass(err) != network.Temporary {
		t.Errorf("it ended with %v", err)
	}
	w.driver.mediaLimits.idleTimeout = downloadIdleTimeout
	w.HoldDownloads(false)
	if got := w.fetched(s, picture); string(got) != "x" {
		t.Errorf("there came %q", got)
	}
}

// TestOneTryIsOneRequest: the gateway decides when to try again, not whatsmeow, which would wait as long as the
// server says.
func TestOneTryIsOneRequest(t *testing.T) {
	w := newWorld(t)
	requests := w.watch(nil)
	s, in := w.paired()
	_, err := w.friend.SendImage(within(t), w.owner, []byte("x"), "image/png", "a picture")
	must(t, err)
	picture := in.said("a picture")
	for _, status := range []int{429, 500, 503, 507} {
		before := len(requests.methods())
		w.Inject(whatsapptest.FailDownload(status))
		if _, err := w.fetch(s, picture); err == nil || network.ToClass(err) != network.Temporary {
			t.Errorf("%d: it ended with %v", status, err)
		}
		if n := len(requests.methods()) - before; n != 1 {
			t.Errorf("%d: it was asked for %d times", status, n)
		}
	}
	if got := w.fetched(s, picture); string(got) != "x" {
		t.Errorf("there came %q", got)
	}
}

// TestLostFiles are uploaded again by the account's phone, as long as that has them.
func TestLostFiles(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	id, err := w.friend.SendImage(within(t), w.owner, []byte("x"), "image/png", "a picture")
	must(t, err)
	picture := in.said("a picture")
	w.owner.Expect(t, whatsapptest.ID(id))
	w.PurgeMedia()
	if got := w.fetched(s, picture); string(got) != "x" {
		t.Errorf("there came %q", got)
	}

	unknown := w.raw(t, parley.Image{Caption: "never uploaded", Media: parley.Media{MIME: "image/png"}}, []byte("y"), "")
	unknown.ImageMessage.FileEncSHA256 = make([]byte, 32)
	unknown.ImageMessage.DirectPath = new("/mms/phone/none?v=1")
	id, err = w.friend.SendMessage(within(t), w.owner, unknown)
	must(t, err)
	picture = in.said("never uploaded")
	w.owner.Expect(t, whatsapptest.ID(id))
	if _, err := w.fetch(s, picture); network.ToClass(err) != network.Permanent {
		t.Errorf("a file that neither the network nor the phone has: %v", err)
	}

	w.driver.reuploadTimeout = 10 * time.Millisecond
	w.link.HoldNotifications(true)
	w.PurgeMedia()
	_, err = w.friend.SendImage(within(t), w.owner, []byte("z"), "image/png", "the last")
	must(t, err)
	picture = in.said("the last")
	w.PurgeMedia()
	if _, err := w.fetch(s, picture); err == nil || network.ToClass(err) != network.Temporary {
		t.Errorf("a phone that does not answer: %v", err)
	}
	w.link.HoldNotifications(false)
}
