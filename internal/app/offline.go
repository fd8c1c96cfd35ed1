package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Offline is the API on a data directory without a server, in the process of a command. It opens no session, sends and
// delivers nothing, and no channel is WORKING. It has the lock of the directory until it is closed.
type Offline struct {
	http.Handler
	// AdminToken is valid only here.
	AdminToken string

	server *server
}

// OpenOffline opens the API on a data directory for a command. It creates what is missing and rejects a database of
// another version.
func OpenOffline(ctx context.Context, cfg Config, command string) (*Offline, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	dir := cfg.DataDir
	if cfg.Database != "" {
		return nil, &DataError{"No server runs on this data directory, and its data is in PostgreSQL. Start the server, or name a running one " +
			"with --url and a token."}
	}
	lock, err := dir.acquire(command, cfg.Log)
	if err != nil {
		return nil, dir.explain(err)
	}
	s := &server{cfg: cfg, lock: lock, log: cfg.Log, started: time.Now(), offline: true}
	o := &Offline{server: s}
	err = dir.checkVersion(ctx)
	if err == nil {
		err = s.openOffline(ctx)
	}
	if err != nil {
		return nil, errors.Join(dir.explain(err), o.Close())
	}
	o.AdminToken = s.admin
	o.Handler = s.newAPI()
	return o, nil
}

func (s *server) openOffline(ctx context.Context) error {
	s.limitAddresses()
	s.metrics = prometheus.NewRegistry()
	if err := s.openFiles(ctx); err != nil {
		return err
	}
	s.makeParts()
	return s.gateway.Refresh(ctx)
}

func (o *Offline) Close() error { return errors.Join(o.server.close(), o.server.lock.Close()) }
