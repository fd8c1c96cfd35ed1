package crash_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/e2e/runs"
)

// TestSoak sends at a steady rate while a webhook and a stream listen, phones write, files are uploaded and sent, messages and
// channels are deleted, and messages are exported. Nothing may be lost, doubled, out of order or skipped, and the memory of the
// server must not grow.
//
// PARLEY_SOAK is how long, PARLEY_RATE how many messages per second: see "make soak".
func TestSoak(t *testing.T) {
	long, rate := 3*time.Second, number(t, "PARLEY_RATE", 50)
	if text, ok := os.LookupEnv("PARLEY_SOAK"); ok {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatalf("PARLEY_SOAK: %v", err)
		}
	}
	const clients, channels = 16, 5
	record := runs.Begin(t)
	s := startServer(t)
	s.record = record
	s.addChannels(t, channels)
	r := &soakRun{testServer: s, t: t, end: time.Now().Add(long)}
	hook := httptest.NewServer(http.HandlerFunc(r.hear))
	t.Cleanup(hook.Close)
	s.command(t, "webhook", "add", hook.URL)
	r.stream = followStream(t, s, &fuse{})

	var wg sync.WaitGroup
	counts := make([]int, clients)
	pace := steadyPace{next: time.Now(), every: time.Second / time.Duration(rate)}
	for client := range clients {
		wg.Go(func() {
			for ; r.goesOn(); counts[client]++ {
				pace.wait()
				channel, number := pickChat(client, counts[client], channels)
				body := fmt.Sprintf(`{"contact_id":"%s@c.us","message":"m %d %d","linkPreview":false}`, number, client, counts[client])
				if s.insist(t, "/api/send-message/text", channel, body, fmt.Sprintf("soak-%d-%d", client, counts[client])) == nil {
					return
				}
			}
		})
	}
	every := func(pause time.Duration, do func(n int)) {
		wg.Go(func() {
			for n := 0; r.goesOn(); n++ {
				do(n)
				time.Sleep(min(pause, time.Until(r.end)))
			}
		})
	}
	every(time.Second, r.phoneWrites)
	every(2*time.Second, r.sendsFile)
	every(5*time.Second, r.deletes)
	every(time.Minute, r.deletesChannel)
	every(10*time.Second, r.exports)
	var memory []int
	every(long/100, func(int) { memory = append(memory, runs.Memory(s.cmd.Process.Pid, "VmRSS")) })
	wg.Wait()

	record.Times = 1
	for _, n := range counts {
		record.Messages += n
	}
	record.Drift = drift(memory)
	if t.Failed() {
		return
	}
	(&killRun{server: s, t: t}).judge(channels, counts)
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(time.Second) {
		if record.Skipped = r.skipped(); record.Skipped == 0 || time.Now().After(deadline) {
			break
		}
	}
	r.mu.Lock()
	record.Breaks += r.breaks
	r.mu.Unlock()
	if record.Skipped > 0 {
		t.Errorf("%d events did not come to the webhook or the stream", record.Skipped)
	}
	if base := runs.Memory(s.cmd.Process.Pid, "VmRSS"); long >= 10*time.Minute && record.Drift > max(20, base/5) {
		t.Errorf("the server grew by %d MiB to %d MiB", record.Drift, base)
	}
	t.Logf("%s, %d messages, %.1f per second: %s, events skipped 0; memory drifted by %d MiB", long, record.Messages,
		float64(record.Messages)/long.Seconds(), record, record.Drift)
}

// steadyPace lets one caller through at a time, as often in the long run as it should. A ticker drops what nobody waits for, so a busy
// machine would slow the load down.
type steadyPace struct {
	every time.Duration

	mu   sync.Mutex
	next time.Time
}

func (p *steadyPace) wait() {
	p.mu.Lock()
	at := p.next
	p.next = at.Add(p.every)
	p.mu.Unlock()
	time.Sleep(time.Until(at))
}

// drift is how much more the last quarter has than the second, on average. In the first, caches fill.
func drift(values []int) int {
	quarter := len(values) / 4
	if quarter == 0 {
		return 0
	}
	before, after := 0, 0
	for i := range quarter {
		before += values[quarter+i]
		after += values[len(values)-1-i]
	}
	return (after - before) / quarter
}

type soakRun struct {
	*testServer
	t      *testing.T
	end    time.Time
	stream *streamReader

	mu     sync.Mutex
	heard  []uint64         // one bit for each event that the webhook received, by its place in the log
	last   map[string]int64 // the place of the last new event, by chat
	breaks int
}

func (r *soakRun) goesOn() bool { return time.Now().Before(r.end) && !r.t.Failed() }

// hear is the webhook. Bodies are not stored: there are millions.
func (r *soakRun) hear(_ http.ResponseWriter, req *http.Request) {
	var event heardEvent
	if err := json.NewDecoder(req.Body).Decode(&event); err != nil {
		return // the server repeats it
	}
	chat := event.chat()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hasHeard(event.Seq) {
		return
	}
	for int(event.Seq/64) >= len(r.heard) {
		r.heard = append(r.heard, 0)
	}
	r.heard[event.Seq/64] |= 1 << (event.Seq % 64)
	if r.last == nil {
		r.last = map[string]int64{}
	}
	if event.Seq < r.last[chat] {
		r.breaks++
		r.t.Errorf("event %d of %s came after %d", event.Seq, chat, r.last[chat])
	}
	r.last[chat] = event.Seq
}

func (r *soakRun) hasHeard(seq int64) bool {
	return int(seq/64) < len(r.heard) && r.heard[seq/64]&(1<<(seq%64)) != 0
}

// temporary begins the code of a channel that is deleted, with its events.
const temporary = "temp"

// skipped counts the events in the log that the webhook or the stream did not receive.
func (r *soakRun) skipped() (n int) {
	r.t.Helper()
	streamed := map[parley.EventID]bool{}
	for _, id := range r.stream.ids() {
		streamed[id] = true
	}
	r.eachEvent(r.t, r.stream.began, parley.EventFilter{}, func(e parley.Event) {
		seq, err := e.ID.Seq()
		if err != nil {
			r.t.Fatal(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if !strings.HasPrefix(string(e.Channel), temporary) && (!r.hasHeard(seq) || !streamed[e.ID]) {
			n++
		}
	})
	return n
}

func (r *soakRun) phoneWrites(n int) {
	r.insist(r.t, fmt.Sprintf("/api/sandbox/phones/62815%07d/send", n%50), "demo", fmt.Sprintf(`{"type":"text","message":"in %d"}`, n),
		fmt.Sprint("phone-", n))
}

// sendsFile uploads a file and sends it.
func (r *soakRun) sendsFile(n int) {
	file := bytes.Repeat(fmt.Appendf(nil, "file %08d\n", n), 2500)
	answer := r.insist(r.t, "/api/media", "demo", string(file), fmt.Sprint("upload-", n), "Content-Type", "application/octet-stream")
	var uploaded struct{ Data struct{ ID string } }
	if answer == nil || json.Unmarshal(answer, &uploaded) != nil {
		return
	}
	body := fmt.Sprintf(`{"contact_id":"62816%07d@c.us","file":{"filename":"f%d.bin","url":%q}}`, n%50, n, uploaded.Data.ID)
	r.insist(r.t, "/api/send-message/file", "demo", body, fmt.Sprint("file-", n))
}

// deletes sends a message and deletes it.
func (r *soakRun) deletes(n int) {
	body := fmt.Sprintf(`{"contact_id":"62817%07d@c.us","message":"away %d","linkPreview":false}`, n%50, n)
	answer := r.insist(r.t, "/api/send-message/text", "demo", body, fmt.Sprint("away-", n))
	var sent struct {
		Data struct {
			ID string `json:"message_id"`
		}
	}
	if answer == nil || json.Unmarshal(answer, &sent) != nil {
		return
	}
	status, answer, err := r.call("DELETE", "/api/send-message/delete?message_id="+sent.Data.ID, "demo", "", "")
	if err != nil || status != http.StatusOK {
		r.t.Errorf("delete %s: %d %s %v", sent.Data.ID, status, answer, err)
	}
}

// deletesChannel makes a channel, sends on it and deletes it.
func (r *soakRun) deletesChannel(n int) {
	code, admin := fmt.Sprint(temporary, n), []string{"Authorization", "Bearer " + r.admin}
	status, answer, err := r.call("POST", "/api/manage/channels", "", `{"code":"`+code+`","network":"sandbox"}`, "", admin...)
	if err != nil || status != http.StatusCreated {
		r.t.Errorf("create %s: %d %s %v", code, status, answer, err)
		return
	}
	for i := range 20 {
		body := fmt.Sprintf(`{"contact_id":"62818%07d@c.us","message":"m %d","linkPreview":false}`, i%5, i)
		r.insist(r.t, "/api/send-message/text", code, body, fmt.Sprint(code, " ", i), "Prefer", "respond-async")
	}
	status, answer, err = r.call("DELETE", "/api/manage/channels/"+code, "", "", "", admin...)
	if err != nil || status != http.StatusAccepted {
		r.t.Errorf("delete %s: %d %s %v", code, status, answer, err)
	}
}

// exports downloads the messages of the last minute.
func (r *soakRun) exports(int) {
	req, err := http.NewRequestWithContext(r.t.Context(), "GET", "http://"+r.addr+"/api/manage/messages/export?format=csv&after=1m", nil)
	if err != nil {
		r.t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+r.admin)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Error(err)
		return
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK || n == 0 {
		r.t.Errorf("export: %d, %d bytes, %v", resp.StatusCode, n, err)
	}
}
