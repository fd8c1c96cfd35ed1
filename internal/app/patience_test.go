package app

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// unwatched is a patient listener at which only the test looks, whenever it wants.
func unwatched(t *testing.T) *patient {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &patient{Listener: l, done: make(chan struct{}), conns: map[*patientConn]struct{}{}}
	t.Cleanup(func() { p.Close() })
	return p
}

// connected returns both ends of a connection.
func connected(t *testing.T, p *patient) (server *patientConn, client net.Conn) {
	t.Helper()
	client, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); c.Close() })
	return c.(*patientConn), client
}

// becomes waits until the watch over a connection is in a state.
func becomes(c *patientConn, want watching) {
	for {
		c.mu.Lock()
		is := c.watching
		c.mu.Unlock()
		if is == want {
			return
		}
		runtime.Gosched()
	}
}

func TestDeadlinesAreKept(t *testing.T) {
	p := unwatched(t)
	server, client := connected(t, p)
	now := time.Now()
	in := make([]byte, 10)
	read := func() error {
		_, err := server.Read(in)
		return err
	}
	if err := server.SetReadDeadline(now.Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	p.lookAt(now.Add(4 * time.Second))
	if _, err := client.Write([]byte("Halo")); err != nil {
		t.Fatal(err)
	}
	if err := read(); err != nil {
		t.Errorf("before its time: %v", err)
	}
	p.lookAt(now.Add(6 * time.Second))
	if err := read(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after its time: %v", err)
	}
	if err := server.SetReadDeadline(now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Write([]byte("Halo")); err != nil {
		t.Fatal(err)
	}
	if err := read(); err != nil {
		t.Errorf("with a new deadline: %v", err)
	}
	if err := server.SetDeadline(now.Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	p.lookAt(now.Add(6 * time.Second))
	if _, err := server.Write(in); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a write after its time: %v", err)
	}
	if err := server.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Write(in); err != nil {
		t.Errorf("a write without a deadline: %v", err)
	}
}

func TestWatchIsHeldBack(t *testing.T) {
	watch := func(c *patientConn) <-chan error {
		result := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 1))
			result <- err
		}()
		becomes(c, heldBack)
		return result
	}
	p := unwatched(t)

	t.Run("and broken off", func(t *testing.T) {
		server, client := connected(t, p)
		result := watch(server)
		if _, err := client.Write([]byte("next")); err != nil {
			t.Fatal(err)
		}
		server.SetReadDeadline(over)
		if err := <-result; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		server.SetReadDeadline(time.Time{})
		in := make([]byte, 10)
		if n, err := io.ReadAtLeast(server, in, 4); err != nil || string(in[:n]) != "next" {
			t.Errorf("then read %q: %v", in[:n], err)
		}
	})
	t.Run("for a moment only", func(t *testing.T) {
		server, client := connected(t, p)
		result := watch(server)
		p.lookAt(time.Now())
		becomes(server, heldLong)
		p.lookAt(time.Now())
		client.Close()
		if err := <-result; !errors.Is(err, io.EOF) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("and broken off once it has begun", func(t *testing.T) {
		server, _ := connected(t, p)
		result := watch(server)
		p.lookAt(time.Now())
		p.lookAt(time.Now())
		becomes(server, notWatching)
		server.SetReadDeadline(over)
		if err := <-result; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("until the deadline", func(t *testing.T) {
		server, _ := connected(t, p)
		server.SetReadDeadline(time.Now().Add(time.Second))
		result := watch(server)
		p.lookAt(time.Now().Add(2 * time.Second))
		if err := <-result; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("until the connection is closed", func(t *testing.T) {
		server, _ := connected(t, p)
		result := watch(server)
		server.Close()
		if err := <-result; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestServerOnPatientConnections(t *testing.T) {
	p := unwatched(t)
	arrived, left := make(chan struct{}), make(chan error, 1)
	handler := http.NewServeMux()
	handler.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	handler.HandleFunc("GET /wait", func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		for r.Context().Err() == nil { // the watch begins at the second look
			p.lookAt(time.Now())
			runtime.Gosched()
		}
		left <- r.Context().Err()
	})
	handler.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		control.SetWriteDeadline(time.Now().Add(time.Minute))
		control.Flush()
		<-r.Context().Done() // nobody looks meanwhile
		left <- r.Context().Err()
	})
	server := &http.Server{Handler: handler, ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: time.Minute}
	go server.Serve(p)
	defer server.Close()
	url := "http://" + p.Addr().String()
	for range 200 {
		answer, err := http.Post(url+"/echo", "text/plain", strings.NewReader("Halo"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || string(body) != "Halo" {
			t.Fatalf("got %q: %v", body, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/wait", nil)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() {
		_, err := http.DefaultClient.Do(request)
		gone <- err
	}()
	<-arrived
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for range 50 {
		answer, err := http.Get(url + "/stream")
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func TestPatientEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &patient{Listener: l, done: make(chan struct{}), conns: map[*patientConn]struct{}{}}
	ended := make(chan struct{})
	go func() {
		p.watch()
		close(ended)
	}()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p.Close() // once more
	<-ended
}
