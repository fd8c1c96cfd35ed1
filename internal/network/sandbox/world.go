package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// The phones of a new world, which are contacts of its channel.
var firstPhones = []NewPhone{
	{Number: "6281234567890", Name: "Ayu"},
	{Number: "6281234567891", Name: "Budi"},
}

const firstGroup = "Ayu & Budi"

// world is what one channel sees of the network. It outlives the channel's sessions.
type world struct {
	net    *Network
	id     int64
	code   parley.ChannelCode
	number string // the channel's own
	faults faults

	session   atomic.Pointer[session] // the open one, or nil
	loggedOut atomic.Bool
	searched  atomic.Bool // all phones of which the channel did not know everything are known

	mu     sync.RWMutex
	phones map[parley.ContactID]*phone // those that were named since the start

	work   work
	untold atomic.Int64 // arrivals that the phones keep for the session
}

// work is what waits for the session to tell the channel.
type work struct {
	mu     sync.Mutex
	phones []*phone
	soon   chan struct{} // something waits
	now    chan struct{} // something waits that should not be kept waiting for more
}

// world returns a channel's world, made on first use.
func (n *Network) world(ctx context.Context, code parley.ChannelCode) (*world, error) {
	n.mu.Lock()
	w, ok := n.worlds[code]
	n.mu.Unlock()
	if ok {
		return w, nil
	}
	w = &world{net: n, code: code, phones: map[parley.ContactID]*phone{}}
	w.work.soon, w.work.now = make(chan struct{}, 1), make(chan struct{}, 1)
	err := n.db.Write(ctx, func(tx *sqldb.Tx) error { return w.load(tx) })
	if err != nil {
		return nil, fmt.Errorf("sandbox channel %s: %w", code, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if other, ok := n.worlds[code]; ok {
		return other, nil // somebody else was faster
	}
	n.worlds[code] = w
	return w, nil
}

// load reads a world, or makes it with its first phones and group.
func (w *world) load(tx *sqldb.Tx) error {
	var loggedOut int64
	err := tx.QueryRow(`SELECT id, logged_out FROM worlds WHERE channel = $1`, []any{string(w.code)}, &w.id, &loggedOut)
	if errors.Is(err, sql.ErrNoRows) {
		err = tx.QueryRow(`INSERT INTO worlds (channel) VALUES ($1) RETURNING id`, []any{string(w.code)}, &w.id)
		if err == nil {
			err = furnish(tx, w.id)
		}
	}
	if err != nil {
		return err
	}
	w.loggedOut.Store(loggedOut != 0)
	// 999 is a country code that no country has: the number reaches nobody, whoever dials it.
	w.number = fmt.Sprintf("999%08d", w.id)
	return w.loadFaults(tx.Conn)
}

// furnish puts the first phones and their group into an empty world.
func furnish(tx *sqldb.Tx, world int64) error {
	var members []parley.ContactID
	for _, first := range firstPhones {
		p, err := findOrMake(tx, world, first.Number)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE phones SET name = $1 WHERE id = $2`, first.Name, p.id); err != nil {
			return err
		}
		members = append(members, p.contact)
	}
	_, err := makeGroup(tx, world, firstGroup, members, time.Now())
	return err
}

// setLoggedOut stores whether the channel's account is logged out.
func (w *world) setLoggedOut(ctx context.Context, out bool) error {
	if w.loggedOut.Load() == out {
		return nil
	}
	err := w.net.db.Write(ctx, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`UPDATE worlds SET logged_out = $1 WHERE id = $2`, flag(out), w.id)
		tx.OnCommit(func() { w.loggedOut.Store(out) })
		return err
	})
	if err != nil {
		return fmt.Errorf("sandbox channel %s: %w", w.code, err)
	}
	return nil
}

// cached returns a phone that was named before, or nil.
func (w *world) cached(contact parley.ContactID) *phone {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.phones[contact]
}

// phone returns a contact's phone, made if it was not there.
func (w *world) phone(ctx context.Context, contact parley.ContactID) (*phone, error) {
	if p := w.cached(contact); p != nil {
		return p, nil
	}
	var found *phone
	err := w.net.db.Write(ctx, func(tx *sqldb.Tx) error {
		p, err := findOrMake(tx, w.id, contact.Number())
		if err != nil {
			return err
		}
		tx.OnCommit(func() { found = w.keep(p) })
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find phone: %w", err)
	}
	return found, nil
}

// phonesOf returns the phones that messages go to. Those that are not known are found in one
// transaction.
func (w *world) phonesOf(ctx context.Context, ms []*parley.Message) ([]*phone, error) {
	list := make([]*phone, len(ms))
	missing := false
	w.mu.RLock()
	for i, m := range ms {
		list[i] = w.phones[m.Chat]
		missing = missing || list[i] == nil
	}
	w.mu.RUnlock()
	if !missing {
		return list, nil
	}
	err := w.net.db.Write(ctx, func(tx *sqldb.Tx) error {
		for i, m := range ms {
			if list[i] != nil {
				continue
			}
			p, err := findOrMake(tx, w.id, m.Chat.Number())
			if err != nil {
				return err
			}
			tx.OnCommit(func() { list[i] = w.keep(p) })
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find phones: %w", err)
	}
	return list, nil
}

// keep remembers a phone unless it is remembered already, and returns the one that is.
func (w *world) keep(p *phone) *phone {
	w.mu.Lock()
	defer w.mu.Unlock()
	if there, ok := w.phones[p.contact]; ok {
		return there
	}
	p.untold = &w.untold
	if w.searched.Load() {
		p.behind, p.posted = false, false // it would be known already
	}
	w.phones[p.contact] = p
	return p
}

// dropPhones forgets all phones and faults, and wakes those who wait for a message to one of them.
func (w *world) dropPhones() {
	w.faults.clear()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.phones {
		p.drop()
	}
	clear(w.phones)
}

// mark has the session serve phones: soon, after collecting more of the same, or now.
func (w *world) mark(now bool, phones ...*phone) {
	w.work.mu.Lock()
	first := len(w.work.phones) == 0
	for _, p := range phones {
		if !p.marked {
			p.marked = true
			w.work.phones = append(w.work.phones, p)
		}
	}
	first = first && len(w.work.phones) > 0
	w.work.mu.Unlock()
	if now {
		signal(w.work.now)
	} else if first {
		signal(w.work.soon)
	}
}

// takeMarked returns the phones that were marked since the last call.
func (w *world) takeMarked() []*phone {
	w.work.mu.Lock()
	defer w.work.mu.Unlock()
	taken := w.work.phones
	w.work.phones = nil
	for _, p := range taken {
		p.marked = false
	}
	return taken
}

// signal wakes whoever listens; one signal that nobody took yet is enough.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// flag is how the database is told of a truth.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
