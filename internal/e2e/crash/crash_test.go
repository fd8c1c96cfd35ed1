package crash_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/app"
	"parley/internal/e2e/runs"
	"parley/internal/store"
)

// TestKillLoop ends the server with SIGKILL again and again while clients send, and then asks the
// sandbox network, which keeps a record of its own, what reached whom. Clients do as clients should:
// they repeat a request that got no answer, with the same idempotency key.
//
// PARLEY_KILLS and PARLEY_MESSAGES make it longer: see "make kills" and "make torture".
func TestKillLoop(t *testing.T) {
	kills, messages := number(t, "PARLEY_KILLS", 6), number(t, "PARLEY_MESSAGES", 1200)
	const clients, channels = 16, 5
	each := (messages + clients - 1) / clients
	record := runs.Begin(t)
	s := startServer(t)
	s.record = record
	s.addChannels(t, channels)

	var acked atomic.Int64
	reached := make(chan struct{}, 1) // tells the killer to look at acked
	run := &killRun{server: s, t: t, acked: &acked, reached: reached}
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { run.client(i, channels, each) })
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()

	total := int64(each * clients)
	for k := range int64(kills) {
		threshold := total * (k + 1) / int64(kills+1)
		for acked.Load() < threshold {
			select {
			case <-reached:
			case <-done:
				t.Fatalf("clients ended after %d of %d messages", acked.Load(), total)
			}
		}
		s.kill(t)
		record.Times++
		s.start(t)
	}
	<-done
	record.Messages = int(acked.Load())
	if t.Failed() {
		return
	}
	run.judge(channels, slices.Repeat([]int{each}, clients))
	t.Logf("%d messages, %d kills: %s; slowest recovery %s", total, kills, record, s.slowest)
}

type killRun struct {
	server  *testServer
	t       *testing.T
	acked   *atomic.Int64
	reached chan struct{}
}

// pickChat is where a client's n-th message goes: each client has two contacts on one channel, and two more after 10,000 messages,
// because a simulated phone stores no more than that.
func pickChat(client, n, channels int) (channel, contact string) {
	code := "demo"
	if c := client % channels; c > 0 {
		code = fmt.Sprint("c", c)
	}
	return code, fmt.Sprintf("62813%04d%03d", client, n/10_000*2+n%2)
}

// client sends its messages one after the other, each until it is answered.
func (r *killRun) client(client, channels, messages int) {
	for n := range messages {
		channel, number := pickChat(client, n, channels)
		body := fmt.Sprintf(`{"contact_id":"%s@c.us","message":"m %d %d","linkPreview":false}`, number, client, n)
		if r.server.insist(r.t, "/api/send-message/text", channel, body, fmt.Sprintf("key-%d-%d", client, n)) == nil {
			return
		}
		r.acked.Add(1)
		select {
		case r.reached <- struct{}{}:
		default:
		}
	}
}

// judge compares what was acknowledged, so many messages of each client, with what the network says arrived, in order.
func (r *killRun) judge(channels int, counts []int) {
	for client, messages := range counts {
		want := map[[2]string][]string{} // by channel and contact
		for n := range messages {
			channel, contact := pickChat(client, n, channels)
			want[[2]string{channel, contact}] = append(want[[2]string{channel, contact}], fmt.Sprintf("m %d %d", client, n))
		}
		for chat, texts := range want {
			record := r.server.record
			before := record.Sum()
			record.Compare(r.server.arrived(r.t, chat[0], chat[1], len(texts)), texts)
			if record.Sum() != before {
				r.t.Errorf("%s on %s: so far %s", chat[1], chat[0], record)
			}
		}
	}
}

// testServer is the program as a process of its own.
type testServer struct {
	data, addr   string
	args         []string // more than every server gets
	token, admin string   // the first is global
	cmd          *exec.Cmd
	slowest      time.Duration
	record       *runs.Run // nil: nothing is recorded

	mu sync.Mutex
	up chan struct{} // closed while it is ready
}

// startServer starts "parley dev" on an empty data directory and ends it with the test.
func startServer(t *testing.T, args ...string) *testServer {
	t.Helper()
	dir := t.TempDir()
	s := &testServer{data: filepath.Join(dir, "data"), addr: freeAddress(t), args: args, up: make(chan struct{})}
	s.start(t)
	t.Cleanup(func() { s.kill(t) })
	for line := range strings.Lines(string(readFile(t, filepath.Join(s.data, "dev.env")))) {
		switch name, token, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case app.EnvGlobalToken:
			s.token = token
		case app.EnvAdminToken:
			s.admin = token
		}
	}
	return s
}

func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (s *testServer) start(t *testing.T) {
	t.Helper()
	begun := time.Now()
	s.cmd = exec.Command(program, append([]string{"dev", "--data", s.data, "--listen", s.addr, "--no-open"}, s.args...)...)
	log, err := os.OpenFile(s.data+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.awaitReady(t)
	s.slowest = max(s.slowest, time.Since(begun))
	s.mu.Lock()
	close(s.up)
	s.mu.Unlock()
}

func (s *testServer) awaitReady(t *testing.T) {
	t.Helper()
	deadline := time.After(waitLimit)
	for tick := time.Tick(2 * time.Millisecond); ; {
		if status, _, err := s.call("GET", "/readyz", "", "", ""); err == nil && status == http.StatusOK {
			return
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("not ready after %s\n%s", waitLimit, readFile(t, s.data+".log"))
		}
	}
}

// kill ends the process as a power cut would, but for the disk's cache.
func (s *testServer) kill(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	s.up = make(chan struct{})
	s.mu.Unlock()
	s.record.Watch(s.cmd.Process.Pid)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	s.cmd.Wait()
}

func (s *testServer) awaitUp() { <-s.whenUp() }

// whenUp returns what is closed while the server is ready.
func (s *testServer) whenUp() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up
}

// eachEvent reads the event log after a place, beside the server.
func (s *testServer) eachEvent(t *testing.T, after int64, filter parley.EventFilter, do func(parley.Event)) {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(s.data, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for {
		events, reached, err := db.Events(t.Context(), after, filter, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if reached == after {
			return
		}
		after = reached
		for _, e := range events {
			do(e)
		}
	}
}

// command runs another command of the program on the same data.
func (s *testServer) command(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(program, append(args, "--data", s.data)...).CombinedOutput()
	if err != nil {
		t.Fatalf("parley %s: %v\n%s\n%s", strings.Join(args, " "), err, out, readFile(t, s.data+".log"))
	}
	return out
}

// addChannels adds channels until there are so many with demo: c1, c2 and so on.
func (s *testServer) addChannels(t *testing.T, total int) {
	t.Helper()
	for i := 1; i < total; i++ {
		s.command(t, "channel", "create", fmt.Sprint("c", i))
	}
	for i := 1; i < total; i++ {
		s.awaitChannel(t, fmt.Sprint("c", i))
	}
}

// awaitChannel waits until the server has noticed a channel that another process made.
func (s *testServer) awaitChannel(t *testing.T, code string) {
	t.Helper()
	deadline := time.After(waitLimit)
	for tick := time.Tick(20 * time.Millisecond); ; {
		status, answer, err := s.call("GET", "/api/channel/health", code, "", "")
		if err == nil && status == http.StatusOK && bytes.Contains(answer, []byte(`"WORKING"`)) {
			return
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("channel %s does not work after %s: %d %s %v", code, waitLimit, status, answer, err)
		}
	}
}

// call makes a request on a channel, with more headers by name and value.
func (s *testServer) call(method, path, channel, body, key string, headers ...string) (int, []byte, error) {
	u := url.URL{Scheme: "http", Host: s.addr}
	req, err := http.NewRequest(method, u.String()+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("X-Channel", channel)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// insist posts until it is answered, as clients should: with the same idempotency key. Nil: the answer
// was not good.
func (s *testServer) insist(t *testing.T, path, channel, body, key string, headers ...string) []byte {
	deadline := time.Now().Add(waitLimit)
	for time.Now().Before(deadline) {
		status, answer, err := s.call("POST", path, channel, body, key, headers...)
		switch {
		case err != nil || status == http.StatusServiceUnavailable:
			s.awaitUp() // it was killed; come back when it is there
		case status == http.StatusOK && bytes.Contains(answer, []byte(`"success":true`)):
			return answer
		default:
			t.Errorf("answer %d: %s", status, answer)
			return nil
		}
	}
	t.Errorf("no answer to %s after %s", key, waitLimit)
	return nil
}

// arrived lists what reached a phone, from the network's own record, once there are as many as
// wanted or no more come.
func (s *testServer) arrived(t *testing.T, channel, number string, want int) (texts []string) {
	t.Helper()
	after := ""
	for {
		wait := 0
		if len(texts) < want {
			wait = 10
		}
		path := fmt.Sprintf("/api/sandbox/phones/%s/messages?limit=100&wait=%d&after=%s", number, wait, after)
		status, answer, err := s.call("GET", path, channel, "", "")
		if err != nil {
			t.Fatal(err)
		}
		if status == http.StatusNotFound { // nothing more in time
			return texts
		}
		if status != http.StatusOK {
			t.Fatalf("answer %d: %s", status, answer)
		}
		var page struct {
			Data []struct{ Body string }
			Meta struct{ Cursor string }
		}
		if err := json.Unmarshal(answer, &page); err != nil {
			t.Fatal(err)
		}
		if len(page.Data) == 0 {
			return texts
		}
		for _, m := range page.Data {
			texts = append(texts, m.Body)
		}
		after = page.Meta.Cursor
	}
}

func number(t *testing.T, name string, byDefault int) int {
	text, ok := os.LookupEnv(name)
	if !ok {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
