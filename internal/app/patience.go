package app

import (
	"net"
	"os"
	"sync"
	"time"
)

// look is how often connections are looked at, and so how late a deadline may be.
const look = time.Second

// patient is a listener whose connections keep their deadlines themselves. The server sets several for each
// request, and hardly any is ever reached: a timer for each is work for nothing. So a deadline is only
// noted, and one look a second at all connections finds those whose time is over.
type patient struct {
	net.Listener
	close sync.Once
	done  chan struct{}

	mu    sync.Mutex
	conns map[*patientConn]struct{}
}

func newPatient(l net.Listener) *patient {
	p := &patient{Listener: l, done: make(chan struct{}), conns: map[*patientConn]struct{}{}}
	go p.watch()
	return p
}

func (p *patient) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	own := &patientConn{Conn: c, listener: p}
	own.released.L = &own.mu
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[own] = struct{}{}
	return own, nil
}

// Close stops listening. Connections that are open are looked after until they are closed.
func (p *patient) Close() error {
	err := p.Listener.Close()
	p.close.Do(func() { close(p.done) })
	return err
}

// watch looks after the connections until there is neither a listener nor a connection any more.
func (p *patient) watch() {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for done := p.done; ; {
		select {
		case <-done:
			done = nil
		case <-tick.C:
		}
		if p.lookAt(time.Now()) == 0 && done == nil {
			return
		}
	}
}

// lookAt ends what has taken too long and returns how many connections there are.
func (p *patient) lookAt(now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.look(now)
	}
	return len(p.conns)
}

// patientConn is a connection of a patient listener.
type patientConn struct {
	net.Conn
	listener *patient

	mu       sync.Mutex
	read     deadline
	write    deadline
	watching watching
	stream   bool      // the handler takes time: it set a deadline for writing after the watch was to begin
	released sync.Cond // of watching
}

// deadline is one of a connection.
type deadline struct {
	at  time.Time // zero: none
	set bool      // the connection itself has it, and it is over
}

// watching is the state of net/http's watch over the connection while a handler runs.
type watching int

const (
	notWatching watching = iota
	heldBack             // it has not begun
	heldLong             // it was so at the last look
	begun                // it reads
	brokenOff            // the handler was faster
)

// Read reads. A read of one byte is net/http's watch for the end of the connection while a handler runs,
// which is broken off when the handler has answered. Mostly that is in a moment, and nothing was read: so it
// begins only when the handler has not answered at the next look but one, or says itself that it takes time.
func (c *patientConn) Read(b []byte) (int, error) {
	if len(b) == 1 && !c.holdBack() {
		return 0, os.ErrDeadlineExceeded
	}
	return c.Conn.Read(b)
}

// holdBack waits until the watch is to begin, or returns false if it is broken off before.
func (c *patientConn) holdBack() (begin bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read.set || c.stream { // what it hears may be that the time is over
		return true
	}
	for c.watching = heldBack; c.watching == heldBack || c.watching == heldLong; {
		c.released.Wait()
	}
	begin = c.watching == begun
	c.watching = notWatching
	return begin
}

// release ends the holding back, if there is any.
func (c *patientConn) release(to watching) (was bool) {
	if c.watching != heldBack && c.watching != heldLong {
		return false
	}
	c.watching = to
	c.released.Signal()
	return true
}

// look ends what has taken too long.
func (c *patientConn) look(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watching == heldBack {
		c.watching = heldLong
	} else {
		c.release(begun)
	}
	if c.read.isOver(now) {
		c.Conn.SetReadDeadline(over)
		c.release(begun)
	}
	if c.write.isOver(now) {
		c.Conn.SetWriteDeadline(over)
	}
}

// isOver reports whether the deadline has passed since the last look.
func (d *deadline) isOver(now time.Time) bool {
	over := !d.at.IsZero() && !d.set && now.After(d.at)
	d.set = d.set || over
	return over
}

func (c *patientConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stream = false // a watch begins by taking the deadline for reading away
	if longAgo(t) && c.release(brokenOff) {
		return nil
	}
	return c.read.change(t, c.Conn.SetReadDeadline)
}

func (c *patientConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stream = true
	c.release(begun)
	return c.write.change(t, c.Conn.SetWriteDeadline)
}

func (c *patientConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// change notes a deadline. One that is over at once, by which a read is broken off, goes to the connection
// now, and is taken back by the next.
func (d *deadline) change(t time.Time, set func(time.Time) error) error {
	d.at = t
	switch {
	case longAgo(t):
		d.set = true
		return set(t)
	case d.set:
		d.set = false
		return set(time.Time{})
	}
	return nil
}

// over is a deadline that has passed.
var over = time.Unix(1, 0)

// longAgo reports whether a deadline was over before anything began, as the one that breaks off a read.
func longAgo(t time.Time) bool { return !t.IsZero() && t.Unix() <= over.Unix() }

func (c *patientConn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.conns, c)
	c.listener.mu.Unlock()
	c.mu.Lock()
	c.release(begun) // and hears that it is closed
	c.mu.Unlock()
	return c.Conn.Close()
}
