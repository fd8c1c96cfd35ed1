package whatsapp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"parley"
	"parley/internal/network"
	"parley/internal/network/networktest"
	"parley/internal/network/whatsapp/whatsapptest"
)

func TestContract(t *testing.T) {
	networktest.Run(t, func(t *testing.T) networktest.Harness {
		w := newWorld(t)
		s, _ := w.paired()
		must(t, s.Close())
		d := &watched{Driver: w.driver, w: w}
		phones := []*contractPhone{{w: w, d: d, Phone: w.friend}, {w: w, d: d, Phone: w.other}}
		return networktest.Harness{
			Driver:       d,
			Channel:      parley.Channel{Code: code, Name: "Test", Network: parley.WhatsApp},
			Phone:        func(_ *testing.T, number int) networktest.Phone { return phones[number] },
			Absent:       parley.ContactOf(absentNumber),
			Keep:         w.keepFile,
			Pair:         d.pair,
			SilentBlocks: true,
			Disconnect:   func(*testing.T, network.Session) { w.link.End(whatsapptest.Cut) },
		}
	})
}

// keepFile puts a file where the driver looks for it.
func (w *world) keepFile(t *testing.T, data []byte, m parley.Media) parley.Media {
	t.Helper()
	sum := sha256.Sum256(data)
	m.Size, m.SHA256, m.Key = int64(len(data)), sum[:], hex.EncodeToString(sum[:16])
	m.MediaKey = sum[:] // any 32 bytes
	must(t, os.WriteFile(filepath.Join(w.dir, m.Key), data, 0o600))
	return m
}

// watched is the driver with a look at what its sessions tell and send, which the suite does not pass on.
type watched struct {
	network.Driver
	w *world

	mu sync.Mutex
	s  *watchedSession
	in *inbox
}

type watchedSession struct {
	network.Session
	d *watched
}

func (d *watched) Open(ctx context.Context, c parley.Channel, sink network.Sink) (network.Session, error) {
	in := newInbox(d.w.t)
	s, err := d.Driver.Open(ctx, c, func(ctx context.Context, e network.Event) error {
		if err := sink(ctx, e); err != nil {
			return err
		}
		return in.sink(ctx, e)
	})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.s, d.in = &watchedSession{s, d}, in
	return d.s, nil
}

func (s *watchedSession) Send(ctx context.Context, ms []*parley.Message) []error {
	s.d.w.keep(ms...)
	return s.Session.Send(ctx, ms)
}

// pair does what the owner of the phone does.
func (d *watched) pair(t *testing.T, s network.Session) {
	t.Helper()
	skip := d.in.count()
	must(t, s.Pair(t.Context()))
	d.w.scan(d.in, skip)
}

// sync waits until the network has handled everything that the session sent: it handles in order.
func (d *watched) sync(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	s := d.s
	d.mu.Unlock()
	_, _, _ = s.Groups(t.Context(), parley.Page{Limit: 1}) // without a connection there is nothing to wait for
}
