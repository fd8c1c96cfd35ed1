package app

import (
	"cmp"
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	readHeaderTimeout = 5 * time.Second  // a slow header is an attack
	readTimeout       = 30 * time.Second // 1 MiB over a slow connection
	writeTimeout      = 60 * time.Second // longer than any wait that a request can set
	idleTimeout       = 2 * time.Minute
	maxHeader         = 16 << 10
)

func listen(cfg Config) (net.Listener, error) {
	l, err := net.Listen("tcp", cfg.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use by another program. Stop it, or run: parley %s --listen %s", cfg.Listen, cfg.mode(),
			freeNear(cfg.Listen))
	}
	if errors.Is(err, os.ErrPermission) {
		return nil, configErrorf("This user may not listen on %s: ports below 1024 need a privilege. Use another port, or grant "+
			"CAP_NET_BIND_SERVICE.", cfg.Listen)
	}
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// freeNear finds the next free port, for the error message.
func freeNear(address string) string {
	host, port, _ := net.SplitHostPort(address)
	number, _ := strconv.Atoi(port)
	for next := number + 1; next <= number+50 && next < 1<<16; next++ {
		candidate := net.JoinHostPort(host, strconv.Itoa(next))
		if l, err := net.Listen("tcp", candidate); err == nil {
			l.Close()
			return candidate
		}
	}
	return net.JoinHostPort(host, "0")
}

func listenerURL(l net.Listener, secure bool) string {
	at := l.Addr().(*net.TCPAddr).AddrPort()
	host := at.Addr().Unmap()
	if host.IsUnspecified() {
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	scheme := "http"
	if secure {
		scheme = "https"
	}
	return scheme + "://" + netip.AddrPortFrom(host, at.Port()).String()
}

func secured(l net.Listener, shown *certificate) net.Listener {
	if shown == nil {
		return l
	}
	return tls.NewListener(l, &tls.Config{
		GetCertificate: shown.get,
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
	})
}

func newHTTPServer(ctx context.Context, handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withConnection,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader - 4<<10, // net/http adds 4 KiB

		DisableGeneralOptionsHandler: true,                                              // OPTIONS * is an ordinary request
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug), // errors of clients
	}
}

// certificateLook is the minimum interval between two checks of the files.
const certificateLook = 10 * time.Second

// certificate is the server's TLS certificate. It is reloaded when its files change, so a renewal needs no restart.
type certificate struct {
	cert, key string // the files
	log       *slog.Logger

	mu       sync.Mutex
	current  *tls.Certificate
	as       string // state at the last read
	lookedAt time.Time
}

// loadCertificate reads the certificate, or returns nil if none is configured.
func loadCertificate(cfg Config, log *slog.Logger) (*certificate, error) {
	if cfg.TLSCert == "" {
		return nil, nil
	}
	c := &certificate{cert: cfg.TLSCert, key: cfg.TLSKey, log: log, lookedAt: time.Now()}
	c.as = c.state()
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, configErrorf("The TLS certificate cannot be used: %v.", err)
	}
	c.current = &pair
	return c, nil
}

// state identifies the versions of the files. Reading a missing one reports the error.
func (c *certificate) state() (state string) {
	for _, path := range []string{c.cert, c.key} {
		if info, err := os.Stat(path); err == nil {
			state += fmt.Sprintln(path, info.ModTime().UnixNano(), info.Size())
		}
	}
	return state
}

// get returns the certificate for a connection. If the new files cannot be read, for example because only one is written
// yet, the last good one stays.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.lookedAt) >= certificateLook {
		c.lookedAt = now
		c.reload()
	}
	return c.current, nil
}

func (c *certificate) reload() {
	as := c.state()
	if as == c.as {
		return
	}
	c.as = as
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		c.log.Warn("the TLS certificate has changed and cannot be used; the one before it stays", "error", err)
		return
	}
	c.current = &pair
	c.log.Info("the TLS certificate has changed and is used from now on", "until", pair.Leaf.NotAfter)
}

// maxConnections bounds the connections of clients, unless the process may open few files.
const maxConnections = 10_000

// connectionLimit leaves half of the files that the process may open to databases, media and outgoing connections.
func connectionLimit() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur > 2*maxConnections {
		return maxConnections
	}
	return int(files.Cur / 2)
}

// connections bounds the connections of a listener. When it is full, a new connection takes the place of the oldest one that
// carried no valid token, whatever that one is doing: so strangers cannot keep others out, and a client has all the time that
// it takes to open as many connections again. One that carried a valid token is never closed for this.
type connections struct {
	net.Listener
	log    *slog.Logger
	places chan struct{} // one for each open connection
	closed atomic.Int64  // strangers that made room
	ended  chan struct{}
	end    sync.Once

	mu        sync.Mutex
	strangers *list.List // connections without a valid token so far, the oldest first
	warnedAt  time.Time
}

func (s *server) limitConnections(l net.Listener) *connections {
	most := cmp.Or(s.cfg.MaxConnections, connectionLimit())
	return &connections{Listener: l, log: s.log, places: make(chan struct{}, most), ended: make(chan struct{}), strangers: list.New()}
}

func (l *connections) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	select {
	case l.places <- struct{}{}:
	default:
		l.closeOldest()
		select {
		case l.places <- struct{}{}:
		case <-l.ended:
			raw.Close()
			return nil, net.ErrClosed
		}
	}
	c := &connection{Conn: raw, listener: l}
	l.mu.Lock()
	c.place = l.strangers.PushBack(c)
	l.mu.Unlock()
	return c, nil
}

func (l *connections) Close() error {
	l.end.Do(func() { close(l.ended) })
	return l.Listener.Close()
}

// closeOldest closes the oldest stranger. If there is none, a new connection waits until another one ends.
func (l *connections) closeOldest() {
	oldest, warn := l.takeOldest()
	if warn {
		l.log.Warn("there are too many connections: the oldest without a valid token are closed", "limit", cap(l.places))
	}
	if oldest != nil {
		l.closed.Add(1)
		oldest.Close()
	}
}

// takeOldest removes the oldest stranger, if there is one. warn: nobody was warned in the last minute.
func (l *connections) takeOldest() (oldest *connection, warn bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first := l.strangers.Front(); first != nil {
		oldest = l.strangers.Remove(first).(*connection)
		oldest.place = nil
	}
	if warn = time.Since(l.warnedAt) > time.Minute; warn {
		l.warnedAt = time.Now()
	}
	return oldest, warn
}

func (l *connections) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "parley_connections", Help: "Open connections of clients.",
		}, func() float64 { return float64(len(l.places)) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "parley_connections_closed_total", Help: "Connections without a valid token that were closed to make room for others.",
		}, func() float64 { return float64(l.closed.Load()) }),
	}
}

type connection struct {
	net.Conn
	listener *connections
	place    *list.Element // among the strangers, guarded by mu of the listener; nil: not one of them any more
	kept     atomic.Bool   // it carried a valid token
	end      sync.Once
}

func (c *connection) Close() error {
	c.end.Do(func() {
		c.leaveStrangers()
		<-c.listener.places
	})
	return c.Conn.Close()
}

func (c *connection) leaveStrangers() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.place != nil {
		c.listener.strangers.Remove(c.place)
		c.place = nil
	}
}

type connectionKey struct{}

// withConnection adds a connection to the context of its requests.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, c)
}

// keepConnection notes that the connection of a request carried a valid token.
func keepConnection(ctx context.Context) {
	if c, ok := ctx.Value(connectionKey{}).(*connection); ok && !c.kept.Swap(true) {
		c.leaveStrangers()
	}
}
