package cluster_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/e2e/runs"
)

const (
	loadChannels = 9
	chatsEach    = 2 // contacts of a channel
)

// load is clients that send without end, each to one channel, at any node. A client repeats a request that got no answer or
// 503, with the same key.
type load struct {
	c      *nodes
	record *runs.Run
	stop   atomic.Bool
	// shown returns what a contact's phone showed, once there are as many as wanted.
	shown func(channel, number string, want int) []string
	wg    sync.WaitGroup

	mu       sync.Mutex
	acked    map[string][]string // texts by channel and contact, in order
	ids      map[string]bool     // of acknowledged messages
	slowest  time.Duration       // from the first try to the acknowledgement
	hook     map[string]bool     // ids of messages whose status the webhook received
	approved map[string]int      // by code
}

func channelCode(i int) string { return fmt.Sprint("c", i) }

// startLoad makes channels and a webhook and starts the clients.
func startLoad(t *testing.T, c *nodes) *load {
	t.Helper()
	var codes []string
	for i := range loadChannels {
		codes = append(codes, channelCode(i))
	}
	c.createChannels(codes...)
	l := newLoad(c)
	l.shown = l.arrived
	l.start()
	l.wg.Go(l.codes)
	return l
}

func newLoad(c *nodes) *load {
	return &load{c: c, record: runs.Begin(c.t),
		acked: map[string][]string{}, ids: map[string]bool{}, hook: map[string]bool{}, approved: map[string]int{}}
}

// start adds a webhook and starts the clients.
func (l *load) start() {
	receiver := httptest.NewUnstartedServer(http.HandlerFunc(l.receive))
	listener, err := net.Listen("tcp", net.JoinHostPort(l.c.host, "0"))
	if err != nil {
		l.c.t.Fatal(err)
	}
	receiver.Listener.Close()
	receiver.Listener = listener
	receiver.Start()
	l.c.t.Cleanup(receiver.Close)
	l.c.all[1].command("webhook", "add", receiver.URL)
	for i := range loadChannels {
		l.wg.Go(func() { l.client(i) })
	}
}

func contactNumber(channel, n int) string { return fmt.Sprintf("62813%04d%03d", channel, n) }

// receive is the webhook.
func (l *load) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var event struct {
		Type string
		Data struct {
			ID     string
			Status string
		}
	}
	if err := json.Unmarshal(body, &event); err != nil {
		l.c.t.Errorf("webhook: %v in %s", err, body)
	}
	if event.Type == "message.status" {
		l.mu.Lock()
		l.hook[event.Data.ID] = true
		l.mu.Unlock()
	}
}

// client sends to one channel until the load stops.
func (l *load) client(channel int) {
	for n := 0; !l.stop.Load(); n++ {
		contact := contactNumber(channel, n%chatsEach)
		text := fmt.Sprintf("m %d %d", channel, n)
		body := fmt.Sprintf(`{"contact_id":"%s@c.us","message":%q,"linkPreview":false}`, contact, text)
		began := time.Now()
		answer := l.insist("/api/send-message/text", channelCode(channel), body, "key "+text)
		if answer == nil {
			return
		}
		var sent struct{ Data struct{ ID string } }
		if err := json.Unmarshal(answer, &sent); err != nil {
			l.c.t.Error(err)
			return
		}
		l.mu.Lock()
		key := channelCode(channel) + " " + contact
		l.acked[key] = append(l.acked[key], text)
		l.ids[sent.Data.ID] = true
		l.slowest = max(l.slowest, time.Since(began))
		l.mu.Unlock()
	}
}

// insist posts at random nodes until there is an answer. Nil: the answer was wrong.
func (l *load) insist(path, channel, body, key string) []byte {
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); {
		node := l.c.all[rand.N(len(l.c.all))]
		status, answer, retryAfter, err := l.c.call(node, "POST", path, l.c.global, channel, body, key)
		switch {
		case err != nil:
		case status == http.StatusServiceUnavailable && retryAfter == "":
			l.c.t.Errorf("503 without Retry-After: %s", answer)
			return nil
		case status == http.StatusServiceUnavailable:
		case status == http.StatusOK && bytes.Contains(answer, []byte(`"success":true`)):
			return answer
		default:
			l.c.t.Errorf("%s: %d %s", path, status, answer)
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	l.c.t.Errorf("no answer to %s after %s", key, waitLimit)
	return nil
}

// codes requests one-time codes and validates each at two nodes at once: at most one may approve it.
func (l *load) codes() {
	for n := 0; !l.stop.Load(); n++ {
		channel := channelCode(n % loadChannels)
		contact := fmt.Sprintf("62899%07d", n)
		body := fmt.Sprintf(`{"contact_id":"%s@c.us"}`, contact)
		answer := l.insist("/api/otp/code/request", channel, body, fmt.Sprint("code ", n))
		if answer == nil {
			return
		}
		code, ok := l.codeOf(channel, contact)
		if !ok {
			l.c.t.Errorf("no code arrived at %s", contact)
			return
		}
		var both sync.WaitGroup
		for i := range 2 {
			both.Go(func() {
				body := fmt.Sprintf(`{"contact_id":"%s@c.us","code":%q}`, contact, code)
				status, answer, _, err := l.c.call(l.c.all[(n+i)%3], "POST", "/api/otp/code/validate", l.c.global, channel, body, "")
				if err == nil && status == http.StatusOK && bytes.Contains(answer, []byte(`"success":true`)) {
					l.mu.Lock()
					l.approved[channel+contact]++
					l.mu.Unlock()
				}
			})
		}
		both.Wait()
	}
}

// codeOf reads the code that a phone received.
func (l *load) codeOf(channel, contact string) (string, bool) {
	texts := l.arrived(channel, contact, 1)
	if len(texts) == 0 {
		return "", false
	}
	digits := strings.FieldsFunc(texts[0], func(r rune) bool { return r < '0' || r > '9' })
	i := slices.IndexFunc(digits, func(s string) bool { return len(s) >= 4 })
	if i < 0 {
		return "", false
	}
	return digits[i], true
}

// arrived lists what reached a phone, from the network's own record, once there are as many as wanted or no more come.
func (l *load) arrived(channel, number string, want int) (texts []string) {
	after := ""
	for {
		wait := 0
		if len(texts) < want {
			wait = 10
		}
		var page struct {
			Data []struct{ Body string }
			Meta struct{ Cursor string }
		}
		path := fmt.Sprintf("/api/sandbox/phones/%s/messages?limit=100&wait=%d&after=%s", number, wait, after)
		if !l.c.get(path, channel, &page) || len(page.Data) == 0 {
			return texts
		}
		for _, m := range page.Data {
			texts = append(texts, m.Body)
		}
		after = page.Meta.Cursor
	}
}

// progress waits until all channels have had some more messages acknowledged.
func (l *load) progress() {
	l.c.t.Helper()
	before := l.counts()
	l.c.eventually("every channel goes on", func() bool {
		if l.c.t.Failed() {
			l.c.t.FailNow()
		}
		now := l.counts()
		for i := range now {
			if now[i] < before[i]+4 {
				return false
			}
		}
		return true
	})
}

// counts is how many messages of each channel were acknowledged.
func (l *load) counts() (n [loadChannels]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, texts := range l.acked {
		var channel int
		fmt.Sscanf(key, "c%d ", &channel)
		n[channel] += len(texts)
	}
	return n
}

// times repeats something once, or as often as a variable says, and counts it in the record.
func (l *load) times(name string) iter.Seq[int] {
	n := 1
	if text, ok := os.LookupEnv(name); ok {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			l.c.t.Fatalf("%s: %v", name, err)
		}
	}
	return func(yield func(int) bool) {
		for i := 0; i < n && yield(i); i++ {
			l.record.Times++
		}
	}
}

// unheard counts the messages that the webhook does not know.
func (l *load) unheard() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record.Skipped = 0
	for id := range l.ids {
		if !l.hook[id] {
			l.record.Skipped++
		}
	}
	return l.record.Skipped
}

// judge stops the clients and compares what was acknowledged with the history, with what the phones received, and with
// what the webhook received.
func (l *load) judge() {
	t := l.c.t
	t.Helper()
	l.stop.Store(true)
	l.wg.Wait()
	l.record.Messages = len(l.ids)
	for _, n := range l.c.all {
		l.record.Watch(n.cmd.Process.Pid)
	}
	if t.Failed() {
		return
	}
	for key, want := range l.acked {
		channel, contact, _ := strings.Cut(key, " ")
		shown := l.shown(channel, contact, len(want))
		l.record.Compare(shown, want)
		if !l.compare("phone "+key, shown, want) {
			t.Logf("%s has %s", key, l.detail(channel, contact))
		}
		l.compare("history "+key, l.history(channel, contact), want)
	}
	for left := l.unheard(); left > 0; left = l.record.Skipped { // for as long as it gets more
		l.c.eventually("the webhook gets to know more messages", func() bool { return l.unheard() < left })
	}
	for code, n := range l.approved {
		if n > 1 {
			t.Errorf("the code of %s was approved %d times", code, n)
		}
	}
	if t.Failed() {
		return
	}
	t.Logf("%d messages acknowledged, %d codes approved: lost 0, shown twice 0, order breaks 0, approved twice 0, webhook events missing 0; "+
		"slowest send %s", len(l.ids), len(l.approved), l.slowest.Round(time.Millisecond))
}

// history reads the texts of a chat, oldest first.
func (l *load) history(channel, contact string) (texts []string) {
	for {
		var got struct {
			Data []struct{ Body string }
		}
		path := fmt.Sprintf("/api/chat/detail?contact_id=%s@c.us&offset=%d&limit=100", contact, len(texts))
		if !l.c.get(path, channel, &got) || len(got.Data) == 0 {
			slices.Reverse(texts)
			return texts
		}
		for _, m := range got.Data {
			texts = append(texts, m.Body)
		}
	}
}

// detail is the end of a chat as the gateway knows it, for a failed test.
func (l *load) detail(channel, contact string) string {
	var got struct{ Data json.RawMessage }
	l.c.get("/api/chat/detail?contact_id="+contact+"@c.us&limit=100", channel, &got)
	return string(got.Data)
}

func (l *load) compare(what string, got, want []string) (same bool) {
	l.c.t.Helper()
	same = len(got) == len(want)
	if !same {
		l.c.t.Errorf("%s: %d messages, %d were acknowledged", what, len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			l.c.t.Errorf("%s: message %d is %q, want %q", what, i, got[i], want[i])
			return false
		}
	}
	return same
}
