package app

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateLook is how often, at most, it is looked whether the files of a certificate have changed.
const certificateLook = 10 * time.Second

// certificate is the one that the server shows. Whoever renews it writes the files anew, so they are read again
// when they have changed.
type certificate struct {
	cert, key string // the files
	log       *slog.Logger

	mu       sync.Mutex
	current  *tls.Certificate
	as       [2]fileState // as they were when they were last read
	lookedAt time.Time
}

// fileState is what tells that a file is another one than before.
type fileState struct {
	changed time.Time
	size    int64
}

// loadCertificate reads the certificate, or returns nil where none is configured.
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

// state looks at the files. One that is not there is as one that never was, and reading it says why.
func (c *certificate) state() (as [2]fileState) {
	for i, path := range []string{c.cert, c.key} {
		if info, err := os.Stat(path); err == nil {
			as[i] = fileState{info.ModTime(), info.Size()}
		}
	}
	return as
}

// get returns the certificate for a connection. One that cannot be read, as when only one of the files is
// written yet, does not replace the one that could be.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.lookedAt) >= certificateLook {
		c.lookedAt = now
		c.follow()
	}
	return c.current, nil
}

// follow reads the files if they have changed.
func (c *certificate) follow() {
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
