package whatsapptest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"go.mau.fi/whatsmeow/types/events"

	"parley/internal/network/whatsapp/whatsapptest"
)

// TestManyAccounts has a thousand phones on one server and some linked clients that all write at once.
func TestManyAccounts(t *testing.T) {
	const phones, clients, each = 1000, 10, 5
	s := whatsapptest.StartTest(t)
	var all []*whatsapptest.Phone
	for i := range phones {
		all = append(all, s.Phone(fmt.Sprintf("62810%08d", i)))
	}
	var wg sync.WaitGroup
	for i := range clients {
		c := newClient(t, s)
		c.pair(all[i])
		wg.Go(func() {
			for n := range each {
				to := all[clients+i*each+n]
				r := c.text(to.JID(), fmt.Sprint("hello ", n))
				if to.Expect(t, whatsapptest.ID(r.ID)).Text != fmt.Sprint("hello ", n) {
					t.Error("another text arrived")
				}
			}
		})
	}
	wg.Wait()
	if got := len(s.Unencrypted()); got != 0 {
		t.Errorf("%d messages came without a ciphertext", got)
	}
}

// TestEveryGoroutineEnds looks for goroutines of a server that was closed.
func TestEveryGoroutineEnds(t *testing.T) {
	s := must[*whatsapptest.Server](t)(whatsapptest.Start())
	owner, friend := s.Phone("6281234567890"), s.Phone("6289876543210")
	c := newClient(t, s)
	c.pair(owner)
	c.text(friend.JID(), "hello")
	c.Disconnect()
	c.ended = true
	s.Close()
	s.Close()
	// A goroutine reports its end a moment before it is gone.
	var left []byte
	for range 1000 {
		if left = ours(); left == nil {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("left is\n%s", left)
}

// ours finds a goroutine that runs code of this package's server.
func ours() []byte {
	buf := make([]byte, 1<<20)
	for g := range bytes.SplitSeq(buf[:runtime.Stack(buf, true)], []byte("\n\n")) {
		if bytes.Contains(g, []byte("whatsapptest.(*")) && !bytes.Contains(g, []byte("whatsapptest_test.")) {
			return g
		}
	}
	return nil
}

// TestStrangeCallers sends the server what no client sends: it hangs up and serves the others.
func TestStrangeCallers(t *testing.T) {
	s := must[*whatsapptest.Server](t)(whatsapptest.Start())
	t.Cleanup(s.Close)
	h := must[*http.Client](t)(s.Trust().HTTPClient())
	for _, first := range [][]byte{{}, []byte("GET / HTTP/1.1\r\n\r\n"), {'W', 'A', 6, 3, 0, 0, 2, 1, 2},
		{'W', 'A', 6, 3, 0xff, 0xff, 0xff}} {
		ws, _, err := websocket.Dial(within(t), "wss://web.whatsapp.com/ws/chat", &websocket.DialOptions{HTTPClient: h})
		if err != nil {
			t.Fatal(err)
		}
		if err := ws.Write(within(t), websocket.MessageBinary, first); err != nil {
			t.Fatal(err)
		}
		if len(first) > 10 || len(first) == 9 { // long enough to be judged; the others wait for more
			if _, _, err := ws.Read(within(t)); err == nil {
				t.Errorf("%q was answered", first)
			}
		}
		_ = ws.CloseNow()
	}
	r := must[*http.Response](t)(h.Get("https://mmg.whatsapp.net/elsewhere"))
	_ = r.Body.Close()
	if r.StatusCode != http.StatusNotFound || len(s.Violations()) != 1 {
		t.Errorf("an unknown path: %d, %v", r.StatusCode, s.Violations())
	}
	newClient(t, s).pair(s.Phone("6281234567890"))
}

// TestNothingCame says what is there instead, without its text.
func TestNothingCame(t *testing.T) {
	s := whatsapptest.StartTest(t)
	a, b := s.Phone("6281234567890"), s.Phone("6289876543210")
	id := must[string](t)(a.Send(within(t), b, "a secret"))
	b.Expect(t, whatsapptest.ID(id))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.Await(ctx, whatsapptest.Text("another"))
	if err == nil || !strings.Contains(err.Error(), id) || strings.Contains(err.Error(), "secret") ||
		strings.Contains(err.Error(), b.Number()) {
		t.Errorf("waiting in vain says %v", err)
	}
}

// TestTrustTravels hands what a client needs to another process as text.
func TestTrustTravels(t *testing.T) {
	s := whatsapptest.StartTest(t)
	raw := must[[]byte](t)(json.Marshal(s.Trust()))
	var trust whatsapptest.Trust
	if err := json.Unmarshal(raw, &trust); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, s)
	if err := trust.Apply(c.Client); err != nil {
		t.Fatal(err)
	}
	c.pair(s.Phone("6281234567890"))
	other := trust
	other.Root[0] ^= 1
	if err := other.Apply(c.Client); err == nil {
		t.Error("a process trusts two roots")
	}
}

// TestManyMessagesInOrder sends a burst each way and compares what came with what was sent. The bursts are not
// at the same time: whatsmeow does not guard a session against being used by a send and a receipt at once.
func TestManyMessagesInOrder(t *testing.T) {
	const burst = 50
	w := newWorld(t)
	w.greet()
	for i := range burst {
		w.client.text(w.friend.JID(), fmt.Sprint("out ", i))
	}
	if err := w.friend.AwaitCount(within(t), 1+burst); err != nil {
		t.Fatal(err)
	}
	for i, m := range w.friend.Inbox()[1:] {
		if want := fmt.Sprint("out ", i); m.Text != want || m.Copies != 1 {
			t.Fatalf("place %d shows %q, %d copies", i, m.Text, m.Copies)
		}
	}
	for i := range burst {
		must[string](t)(w.friend.Send(within(t), w.owner, fmt.Sprint("in ", i)))
	}
	w.client.message(fmt.Sprint("in ", burst-1))
	var came []string
	w.client.mu.Lock()
	for _, e := range w.client.events {
		if m, ok := e.(*events.Message); ok && m.Info.Chat == w.friend.LID() && m.Message.GetConversation() != greeting {
			came = append(came, m.Message.GetConversation())
		}
	}
	w.client.mu.Unlock()
	for i, text := range came {
		if want := fmt.Sprint("in ", i); text != want {
			t.Fatalf("place %d came as %q", i, text)
		}
	}
	if bad := w.Unreadable(); len(came) != burst || len(bad) != 0 {
		t.Errorf("%d of %d came, unreadable were %+v", len(came), burst, bad)
	}
}
