package cluster_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"parley/internal/postgrestest"
)

// link is a way from a node to the database that can be cut: nothing passes any more, and no connection ends.
type link struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	whole  *sync.Cond
	broken bool
}

// newLink makes a way to the database of an address, and returns the address at its other end.
func newLink(t *testing.T, address string) (*link, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l := &link{target: u.Host}
	l.whole = sync.NewCond(&l.mu)
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.listener.Close()
		l.set(false)
	})
	go func() {
		for {
			conn, err := l.listener.Accept()
			if err != nil {
				return
			}
			go l.serve(conn)
		}
	}()
	u.Host = l.listener.Addr().String()
	return l, u.String()
}

func (l *link) serve(conn net.Conn) {
	defer conn.Close()
	l.pass()
	to, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	defer to.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{conn, to}, {to, conn}} {
		go func() {
			l.copy(way[1], way[0])
			done <- struct{}{}
		}()
	}
	<-done
}

// copy copies while the link is whole. What was read when it broke arrives when it is whole again.
func (l *link) copy(to io.Writer, from io.Reader) {
	buffer := make([]byte, 4096) // small, so that a transaction is cut in the middle
	for {
		n, err := from.Read(buffer)
		l.pass()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits until the link is whole.
func (l *link) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.broken {
		l.whole.Wait()
	}
}

func (l *link) set(broken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = broken
	l.whole.Broadcast()
}

// TestNodeWithoutDatabase cuts the way from a node to the database under load, for longer than its membership lasts.
// PARLEY_NODE_CUTS is how often.
func TestNodeWithoutDatabase(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	address := server.Schema(t)
	way, behind := newLink(t, address)
	c := startNodesOn(t, address)
	n := c.all[0]
	n.terminate()
	n.address = behind
	n.start()
	l := startLoad(t, c)
	l.progress()
	for range l.times("PARLEY_NODE_CUTS") {
		way.set(true)
		time.Sleep(12 * time.Second) // what the test is about: the others take over meanwhile
		way.set(false)
		l.progress()
	}
	l.judge()
}
