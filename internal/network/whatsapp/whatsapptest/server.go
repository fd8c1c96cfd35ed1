package whatsapptest

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// Server is one network: accounts, their phones and linked devices, groups and media, all in memory.
type Server struct {
	cert     *certificate
	trust    Trust
	listener *pausableListener
	http     *http.Server
	ahead    atomic.Int64 // of the server's clock, in seconds
	mangler  atomic.Pointer[func(waBinary.Node) waBinary.Node]

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	once   sync.Once

	changed notifier // rings when anything that can be waited for may have changed

	mu            sync.Mutex
	byNumber      map[string]*account
	aliases       map[string]*account // by other spellings of their numbers
	byLID         map[string]*account
	groups        map[string]*Group
	blobs         map[string][]byte        // encrypted media by the hash in their path
	downloads     chan struct{}            // closed when downloads are released; nil: not held
	held          int                      // downloads without a response
	phoneMedia    map[string][]byte        // media that the server forgot and phones still have
	registrations map[string]*registration // by the reference in their QR code
	codes         map[string]*codePairing  // by number
	faults        []*Fault
	asked         map[string]int // requests by namespace
	wrongHashes   bool
	traces        traceLog
	violations    []string
	closed        bool
	refuse        int    // HTTP status for new connections; 0: welcome
	leastVersion  uint32 // of clients; older ones are refused with 405
	mute          bool   // takes connections, and says nothing
	muted         int    // connections that hear nothing
	webVersion    uint32 // that the page of WhatsApp Web names
	versionsAsked int
	serial        uint64
}

// Start starts a server. Its owner closes it.
func Start() (*Server, error) {
	now := time.Now()
	cert, err := newCertificate(processRoot(), now)
	if err != nil {
		return nil, err
	}
	pair, ca, err := newTLS(now)
	if err != nil {
		return nil, err
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s := &Server{
		cert:     cert,
		listener: &pausableListener{Listener: tcp},
		trust:    Trust{Address: tcp.Addr().String(), Root: *processRoot().Pub, CA: ca},
		byNumber: map[string]*account{}, aliases: map[string]*account{}, byLID: map[string]*account{}, groups: map[string]*Group{},
		blobs: map[string][]byte{}, phoneMedia: map[string][]byte{}, registrations: map[string]*registration{},
		codes:  map[string]*codePairing{},
		asked:  map[string]int{},
		traces: traceLog{byID: map[string]*Trace{}},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ws/chat", s.serveChat)
	mux.HandleFunc("POST /mms/{type}/{token}", s.serveUpload)
	mux.HandleFunc("GET /mms/{type}/{token}", s.serveDownload)
	mux.HandleFunc("GET /{$}", s.serveWebPage)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.violate("request %s %s", r.Method, r.URL.Path)
		http.NotFound(w, r)
	})
	// A client that goes away in the middle of a TLS handshake is an everyday event here.
	s.http = &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	l := tls.NewListener(s.listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	s.wg.Go(func() { _ = s.http.Serve(l) }) // ends with Close, with the error that says so
	return s, nil
}

// Close ends every connection and goroutine. It may be called twice.
func (s *Server) Close() {
	s.once.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.cancel()
		_ = s.http.Close()
		s.listener.closeAll()
	})
	s.wg.Wait()
}

// enter counts a goroutine that Close waits for: http.Server does not track hijacked connections. It returns false once
// the server is closing.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Add(1)
	return true
}

// spawn starts a goroutine that Close waits for. The caller holds the lock.
func (s *Server) spawn(f func()) {
	if !s.closed {
		s.wg.Go(f)
	}
}

func (s *Server) Endpoint() string { return s.trust.Address }

// Trust is what a client needs to accept this server as its network.
func (s *Server) Trust() Trust { return s.trust }

// SetClock sets how far the server's times are ahead of this machine's clock; negative: behind.
func (s *Server) SetClock(ahead time.Duration) { s.ahead.Store(int64(ahead / time.Second)) }

// unix is the server's own time.
func (s *Server) unix() int64 { return unix() + s.ahead.Load() }

// Down cuts every connection, media included, and accepts none until Up.
func (s *Server) Down() {
	s.listener.paused.Store(true)
	s.listener.closeAll()
}

func (s *Server) Up() { s.listener.paused.Store(false) }

// Refuse responds to new websocket connections with an HTTP status; 0 accepts them again.
func (s *Server) Refuse(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = status
}

// Mute takes connections and never responds to them.
func (s *Server) Mute() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = true
}

// Muted counts the connections that were made since.
func (s *Server) Muted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.muted
}

func (s *Server) isMute() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mute {
		s.muted++
	}
	return s.mute
}

// RequireVersion refuses clients whose version has a lower last number. The page of WhatsApp Web names current.
func (s *Server) RequireVersion(least, current uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leastVersion, s.webVersion = least, current
}

// Asked is how many requests came in a namespace ("usync", "encrypt", "privacy", …), or how much telemetry ("unified_session").
func (s *Server) Asked(namespace string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[namespace]
}

// WrongHashes makes every confirmation of a message name other devices than the server has.
func (s *Server) WrongHashes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrongHashes = true
}

// VersionsAsked is how often the page of WhatsApp Web was read.
func (s *Server) VersionsAsked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.versionsAsked
}

func (s *Server) serveWebPage(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	s.versionsAsked++
	version := s.webVersion
	s.mu.Unlock()
	fmt.Fprintf(w, `<html><script>{"client_revision":%d,"x":1}</script></html>`, version)
}

// Violations lists stanzas and requests that this network does not know.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.violations...)
}

func (s *Server) violate(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.violateLocked(format, args...)
}

func (s *Server) violateLocked(format string, args ...any) {
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// serveChat is one connection from its handshake to its end.
func (s *Server) serveChat(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	refuse := s.refuse
	s.mu.Unlock()
	if refuse != 0 {
		http.Error(w, http.StatusText(refuse), refuse)
		return
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has responded
	}
	defer func() { _ = ws.CloseNow() }()
	if !s.enter() {
		return
	}
	defer s.wg.Done()
	c := newConn(s.ctx, ws)
	c.mangle = s.mangle
	defer c.cancel()
	if s.isMute() {
		for err == nil {
			_, err = c.bytes(1)
		}
		return
	}
	if c.handshake(s.cert) != nil {
		return
	}
	var writer sync.WaitGroup
	writer.Go(func() { c.write(c.keys.write) })
	defer writer.Wait()
	defer c.cancel()
	defer s.disconnected(c)
	s.login(c)
	for {
		node, err := c.receive()
		if err != nil || !c.awaitFlow() {
			return
		}
		s.handle(c, node)
	}
}

// pausableListener stops accepting connections without closing its port.
type pausableListener struct {
	net.Listener
	paused atomic.Bool

	mu   sync.Mutex
	open map[net.Conn]struct{}
}

func (g *pausableListener) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if g.paused.Load() {
			_ = c.Close()
			continue
		}
		g.mu.Lock()
		if g.open == nil {
			g.open = map[net.Conn]struct{}{}
		}
		g.open[c] = struct{}{}
		g.mu.Unlock()
		return &trackedConn{Conn: c, listener: g}, nil
	}
}

func (g *pausableListener) closeAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.open {
		_ = c.Close()
	}
}

// trackedConn removes itself from its listener when it is closed.
type trackedConn struct {
	net.Conn
	listener *pausableListener
}

func (c *trackedConn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c.Conn)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// testTimeout is how long a test waits for something. Only a program that hangs reaches it.
const testTimeout = 2 * time.Minute

// StartTest starts a server that ends with the test, and fails the test if a client sent something that the
// network does not know.
func StartTest(t testing.TB) *Server {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatalf("start loopback server: %v", err)
	}
	t.Cleanup(func() {
		s.Close()
		for _, v := range s.Violations() {
			t.Errorf("violation: %s", v)
		}
	})
	return s
}

// Expect waits for a message that matches everything, and fails the test without it.
func (p *Phone) Expect(t testing.TB, matches ...Match) Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	m, err := p.Await(ctx, matches...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

// ExpectReceipt waits for a receipt of one of the types, and fails the test without it.
func (p *Phone) ExpectReceipt(t testing.TB, id string, kinds ...types.ReceiptType) Receipt {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	r, err := p.AwaitReceipt(ctx, id, kinds...)
	if err != nil {
		t.Fatalf("no receipt %q for %s: %v", kinds, id, err)
	}
	return r
}

// notifier lets any number of goroutines wait for a change.
type notifier struct {
	mu sync.Mutex
	ch chan struct{}
}

func (b *notifier) changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *notifier) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// await calls look after every change until it returns true or ctx ends.
func await[V any](ctx context.Context, b *notifier, look func() (V, bool)) (V, error) {
	for {
		rung := b.changed()
		if v, ok := look(); ok {
			return v, nil
		}
		select {
		case <-rung:
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		}
	}
}

// await waits for a condition, which is evaluated with the lock held.
func (s *Server) await(ctx context.Context, isMet func() bool) error {
	_, err := await(ctx, &s.changed, func() (struct{}, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return struct{}{}, isMet()
	})
	return err
}
