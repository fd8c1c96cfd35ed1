package app

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

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
