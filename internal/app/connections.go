package app

import (
	"cmp"
	"container/list"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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
	most := cmp.Or(s.cfg.maxConnections, connectionLimit())
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
