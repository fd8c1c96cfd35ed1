package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/internal/store"
)

// short are limits that a test can wait for.
var short = &stopLimits{requests: 50 * time.Millisecond, parts: 100 * time.Millisecond, files: 50 * time.Millisecond}

// TestStoppingIsBounded: after 30 s they kill what is still there.
func TestStoppingIsBounded(t *testing.T) {
	if total := usualLimits.parts + usualLimits.files; total >= 30*time.Second || usualLimits.requests >= usualLimits.parts {
		t.Errorf("stopping may take %s, of which %s are for requests", total, usualLimits.requests)
	}
}

// get asks for a path and returns status and body.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// send sends a text and returns status and body.
func (r *running) send(t *testing.T) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, r.url+"/api/send-message/text",
		strings.NewReader(`{"contact_id":"6281234567890@c.us","message":"Hello"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.env[EnvToken])
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// lockDatabase holds the write lock of a database, as another process could.
func lockDatabase(t *testing.T, dir Dir) (release func()) {
	t.Helper()
	other, err := store.Open(t.Context(), dir.Database())
	if err != nil {
		t.Fatal(err)
	}
	began, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for locked := false; !locked; { // the server may be writing
			other.Tx(context.Background(), func(tx *store.Tx) error {
				if _, err := tx.Revision(context.Background()); err != nil {
					return err
				}
				locked = true
				close(began)
				<-end
				return nil
			})
		}
	}()
	<-began
	return func() {
		close(end)
		<-ended
		other.Close()
	}
}

// TestLockedDatabase has another process hold the lock: requests and /readyz are refused, and the server stops all the
// same.
func TestLockedDatabase(t *testing.T) {
	t.Parallel() // much of it is waiting for the lock
	dir := Dir(t.TempDir())
	r := start(t, Config{DataDir: dir, Dev: true, limits: short})
	release := lockDatabase(t, dir)
	defer release()
	eventually(t, "/readyz is 503 and says why", func() bool { // what was written a moment ago counts for a moment
		status, body := get(t, r.url+"/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "locked")
	})
	if status, body := r.send(t); status != http.StatusServiceUnavailable || !strings.Contains(body, "locked") {
		t.Errorf("a send is answered %d %s", status, body)
	}
	r.stop()
	<-r.ended // in whatever way
}

// TestHangingReaders has all connections for reading be in use for ever.
// stuckContext blocks callers of Deadline, as a read does once it has a connection.
type stuckContext struct {
	context.Context
	once    sync.Once
	began   func()
	release chan struct{}
}

func (c *stuckContext) Deadline() (time.Time, bool) {
	c.once.Do(c.began)
	<-c.release
	return time.Time{}, false
}

func TestHangingReaders(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	var held *server
	r := start(t, Config{DataDir: Dir(t.TempDir()), Dev: true, limits: short, opened: func(s *server) { held = s }})
	if status, body := r.send(t); status != http.StatusOK {
		t.Fatalf("a send is answered %d %s", status, body)
	}
	eventually(t, "/readyz is 503", func() bool {
		var began sync.WaitGroup // one more: some may hang before they get a connection, because a loop of the server has it
		began.Add(1)
		go held.data.Store.Channels(&stuckContext{Context: context.Background(), began: began.Done, release: release})
		began.Wait()
		status, _ := get(t, r.url+"/readyz")
		return status == http.StatusServiceUnavailable
	})
	r.stop()
	<-r.ended
}

// TestFullDisk has every write to a file fail, as on a full disk.
func TestFullDisk(t *testing.T) {
	r := start(t, Config{DataDir: Dir(t.TempDir()), Dev: true})
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	room := func(bytes uint64) {
		t.Helper()
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
	}
	room(1)
	defer room(was.Cur)
	status, body := r.send(t)
	readyStatus, readyBody := get(t, r.url+"/readyz")
	room(was.Cur)
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "disk full?") {
		t.Errorf("a send is answered %d %s", status, body)
	}
	if readyStatus != http.StatusServiceUnavailable || !strings.Contains(readyBody, "disk full?") {
		t.Errorf("/readyz answers %d %s", readyStatus, readyBody)
	}
	eventually(t, "it is ready again", func() bool {
		status, _ := get(t, r.url+"/readyz")
		return status == http.StatusOK
	})
	if status, body := r.send(t); status != http.StatusOK {
		t.Errorf("with room again a send is answered %d %s", status, body)
	}
	r.end(t)
}

// TestHandlersAreWaitedFor: what a request uses is not closed before it ends, though its connection is.
func TestHandlersAreWaitedFor(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	h := &handlers{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(began)
		<-end
	})}
	go h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	<-began
	if within(10*time.Millisecond, h.stop) {
		t.Error("it does not wait for a request")
	}
	late := httptest.NewRecorder()
	h.ServeHTTP(late, httptest.NewRequest(http.MethodGet, "/", nil))
	if late.Code != http.StatusServiceUnavailable || late.Header().Get("Retry-After") != "5" ||
		!strings.Contains(late.Body.String(), `"code":"unavailable"`) {
		t.Errorf("a request that comes later is answered %d %s", late.Code, late.Body)
	}
	close(end)
	h.stop()
}

// TestExplain puts what the system says into sentences.
func TestExplain(t *testing.T) {
	dir := Dir(t.TempDir())
	for err, want := range map[error]string{
		&wrapped{syscall.ENOSPC}: "is full (no space left on device). Free some space",
		errors.New("else"):       "else",
	} {
		if got := dir.explain(err); !strings.Contains(got.Error(), want) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

type wrapped struct{ error }

func (w *wrapped) Unwrap() error { return w.error }
