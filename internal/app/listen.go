package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"
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
