package whatsapptest

import (
	"bytes"
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	waBinary "go.mau.fi/whatsmeow/binary"

	"parley/internal/wait"
)

const (
	frameHeader = 3       // bytes of big-endian length before each frame
	maxFrame    = 1 << 24 // the limit of three bytes; the first upload of keys exceeds websocket's default
)

// closeGrace is how long a connection stays open after a final stanza. A client that sees the end of the socket drops
// stanzas that it has not handled, the final one included.
const closeGrace = 300 * time.Millisecond

// prologue opens the first message of a client: "WA", the protocol's version and its dictionary's.
var prologue = []byte{'W', 'A', 6, 3}

// conn is one encrypted connection. The goroutine that serves it reads; any goroutine may send.
type conn struct {
	ws    *websocket.Conn
	left  []byte // received bytes that no frame has claimed yet
	keys  *handshakeResult
	count uint32 // frames read

	device       *device       // after login; guarded by Server.mu
	registration *registration // before it

	mu      sync.Mutex
	out     []queuedFrame
	pending chan struct{} // has a token while out may hold something
	ended   bool          // a final stanza was queued: nothing may follow it

	stalled atomic.Bool // the network carries nothing, though the socket is open

	mangle func(waBinary.Node) waBinary.Node // changes outgoing stanzas

	ctx    context.Context // done when the connection is
	cancel context.CancelFunc
}

// queuedFrame is a plaintext; the last one ends the connection.
type queuedFrame struct {
	plain []byte
	last  bool
}

func newConn(ctx context.Context, ws *websocket.Conn) *conn {
	ws.SetReadLimit(maxFrame)
	c := &conn{ws: ws, pending: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

func (c *conn) handshake(cert *certificate) error {
	head, err := c.bytes(len(prologue))
	if err != nil {
		return err
	}
	if !bytes.Equal(head, prologue) {
		return errors.New("this is no client")
	}
	r, err := newResponder(head)
	if err != nil {
		return err
	}
	hello, err := c.frame()
	if err != nil {
		return err
	}
	answer, ephemeral, err := r.answer(hello, cert)
	if err != nil {
		return err
	}
	if err := c.writeFrame(answer); err != nil {
		return err
	}
	finish, err := c.frame()
	if err != nil {
		return err
	}
	c.keys, err = r.finish(finish, ephemeral)
	return err
}

func (c *conn) receive() (*waBinary.Node, error) {
	sealed, err := c.frame()
	if err != nil {
		return nil, err
	}
	plain, err := c.keys.read.Open(nil, nonce(c.count), sealed, nil)
	if err != nil {
		return nil, fmt.Errorf("open frame %d: %w", c.count, err)
	}
	c.count++
	data, err := waBinary.Unpack(plain)
	if err != nil {
		return nil, fmt.Errorf("unpack stanza: %w", err)
	}
	node, err := waBinary.Unmarshal(data)
	if err != nil {
		return nil, fmt.Errorf("read stanza: %w", err)
	}
	return node, nil
}

func (c *conn) frame() ([]byte, error) {
	head, err := c.bytes(frameHeader)
	if err != nil {
		return nil, err
	}
	return c.bytes(int(head[0])<<16 | int(head[1])<<8 | int(head[2]))
}

// bytes returns the next n bytes whatever websocket messages they came in.
func (c *conn) bytes(n int) ([]byte, error) {
	for len(c.left) < n {
		_, data, err := c.ws.Read(c.ctx)
		if err != nil {
			return nil, err
		}
		c.left = append(c.left, data...)
	}
	taken := c.left[:n:n]
	c.left = c.left[n:]
	return taken, nil
}

func (c *conn) send(n waBinary.Node) { c.queue(n, false) }

// end queues a final stanza; the connection closes some time after it has left, unless the client was quicker.
func (c *conn) end(n waBinary.Node) { c.queue(n, true) }

func (c *conn) queue(n waBinary.Node, last bool) {
	if c.mangle != nil {
		n = c.mangle(n)
	}
	plain, err := waBinary.Marshal(n)
	if err != nil {
		c.cancel() // we wrote a stanza that cannot be: a test that waits for it shall not wait for ever
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = last
	c.out = append(c.out, queuedFrame{plain, last})
	wait.Notify(c.pending)
}

// write sends queued frames in order until the connection ends.
func (c *conn) write(encrypt cipher.AEAD) {
	defer c.cancel()
	for count := uint32(0); ; count++ {
		next, ok := c.next()
		if !ok || !c.awaitFlow() {
			return
		}
		if c.writeFrame(encrypt.Seal(nil, nonce(count), next.plain, nil)) != nil {
			return
		}
		if next.last {
			wait.Sleep(c.ctx, closeGrace)
			return
		}
	}
}

func (c *conn) next() (queuedFrame, bool) {
	for {
		c.mu.Lock()
		if len(c.out) > 0 {
			next := c.out[0]
			c.out = c.out[1:]
			c.mu.Unlock()
			return next, true
		}
		c.mu.Unlock()
		select {
		case <-c.pending:
		case <-c.ctx.Done():
			return queuedFrame{}, false
		}
	}
}

// awaitFlow reports whether the connection carries data. A stalled one blocks until it ends.
func (c *conn) awaitFlow() bool {
	if c.stalled.Load() {
		<-c.ctx.Done()
	}
	return c.ctx.Err() == nil
}

// writeFrame sends one frame in one websocket message: the client miscounts a split frame.
func (c *conn) writeFrame(body []byte) error {
	if len(body) >= maxFrame {
		return errors.New("frame is too long")
	}
	frame := make([]byte, 0, frameHeader+len(body))
	frame = append(frame, byte(len(body)>>16), byte(len(body)>>8), byte(len(body)))
	return c.ws.Write(c.ctx, websocket.MessageBinary, append(frame, body...))
}
