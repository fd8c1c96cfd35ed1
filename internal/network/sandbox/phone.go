package sandbox

import (
	"database/sql"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// phone is a phone as the running network knows it. No lock of it is held while the database writes,
// because the writer takes them too.
type phone struct {
	id      int64
	number  string
	contact parley.ContactID
	untold  *atomic.Int64 // how much all phones of the world keep to tell
	marked  bool          // in the world's list of work; guarded by its lock
	retryAt time.Time     // not to be served before; used by the session's goroutine only
	tries   int           // how often the channel refused in a row; used by whoever serves the phone only

	mu        sync.Mutex
	traits    traits
	delivered int64     // the channel was told that messages up to this seq were delivered
	read      int64     // messages up to this seq are read
	fresh     []arrival // what to tell the channel of, oldest first; changed by keepFresh only
	behind    bool      // there is more than that in the record
	posted    bool      // there may be something that the phone did
	gone      bool      // its world was forgotten
	typing    time.Time // until when the channel is seen typing
	arrival   chan struct{}
}

// traits are how a phone behaves.
type traits struct {
	Name      string
	Online    bool
	Reads     Reads
	Delay     time.Duration
	Blocks    bool
	OnNetwork bool
	LIDOnly   bool
	Answers   bool
	SeenAt    time.Time
}

// arrival is a message to the phone of which the channel is to be told.
type arrival struct {
	seq   int64
	id    parley.MessageID
	voice bool
	at    time.Time
}

func arrivalOf(m *parley.Message, seq int64, at time.Time) arrival {
	return arrival{seq: seq, id: m.ID, voice: m.Content.Kind() == parley.KindVoice, at: at}
}

// maxUntold bounds what the phones of a world keep in memory for the session, about 10 MB; what is
// beyond is read from the record.
const maxUntold = 100_000

// traitsOf returns how the phone of a number behaves at first. Numbers that begin with 999, a country
// code that no country has, are magic: their last digit says what goes wrong with them.
func traitsOf(number string) traits {
	t := traits{Online: true, Reads: WhenOpen, OnNetwork: parley.ContactOf(number).CanExist()}
	if !strings.HasPrefix(number, "999") {
		return t
	}
	switch number[len(number)-1] {
	case '0':
		t.OnNetwork = false
	case '1':
		t.Online = false
	case '2':
		t.Blocks = true
	case '3':
		t.Answers, t.Reads = true, AtOnce
	case '4':
		t.Reads = Never
	}
	return t
}

const phoneColumns = `id, number, name, online, reads, delay_ms, blocks, on_network, lid_only, answers, seen_at, delivered, read`

func scanPhone(row scanner) (*phone, error) {
	p := &phone{behind: true, posted: true} // until somebody looked, there may be something
	var delay, seen int64
	t := &p.traits
	err := row.Scan(&p.id, &p.number, &t.Name, &t.Online, &t.Reads, &delay, &t.Blocks, &t.OnNetwork, &t.LIDOnly, &t.Answers, &seen, &p.delivered, &p.read)
	p.contact = parley.ContactOf(p.number)
	t.OnNetwork = t.OnNetwork && p.contact.CanExist()
	t.Delay = time.Duration(delay) * time.Millisecond
	if seen > 0 {
		t.SeenAt = time.UnixMilli(seen).UTC()
	}
	return p, err
}

// findOrMake returns the phone with a number, made if it was not there.
func findOrMake(tx *sqldb.Tx, world int64, number string) (*phone, error) {
	p, err := queryPhone(tx.Conn, `SELECT `+phoneColumns+` FROM phones WHERE world = $1 AND number = $2`, world, number)
	if err == nil || !errors.Is(err, sql.ErrNoRows) {
		return p, err
	}
	t := traitsOf(number)
	p, err = queryPhone(tx.Conn, `INSERT INTO phones (world, number, online, reads, blocks, on_network, answers)
		VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING `+phoneColumns,
		world, number, flag(t.Online), string(t.Reads), flag(t.Blocks), flag(t.OnNetwork), flag(t.Answers))
	if err != nil {
		return nil, err
	}
	p.behind, p.posted = false, false // it is new
	return p, nil
}

func queryPhone(c *sqldb.Conn, query string, args ...any) (*phone, error) {
	rows, err := c.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return nil, err
		}
		return nil, sql.ErrNoRows
	}
	return scanPhone(rows)
}

// view returns the phone as callers see it.
func (p *phone) view() Phone {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.traits
	v := Phone{Number: p.number, Name: t.Name, Online: t.Online, Reads: t.Reads, Delay: t.Delay, Blocks: t.Blocks,
		OnNetwork: t.OnNetwork, LIDOnly: t.LIDOnly, Answers: t.Answers, LastSeenAt: t.SeenAt}
	now := time.Now()
	if p.typing.After(now) {
		v.TypingUntil = p.typing.UTC()
	}
	if t.Online && t.OnNetwork {
		v.LastSeenAt = now.UTC().Truncate(time.Millisecond)
	}
	return v
}

func (p *phone) behaviour() traits {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.traits
}

func (p *phone) isGone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone
}

// behave makes the phone behave otherwise.
func (p *phone) behave(t traits) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.traits = t
	if !t.Online {
		p.keepFresh(nil)
		p.behind = true // it is told once the phone is back
	}
}

func (p *phone) marks() (delivered, read int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delivered, p.read
}

// shown returns up to where somebody who holds the phone can see messages.
func (p *phone) shown() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.traits.Online {
		return math.MaxInt64
	}
	return p.delivered
}

func (p *phone) markRead(seq int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read = max(p.read, seq)
}

// arrived takes note of a message that was recorded for the phone and wakes those who wait for one.
// It reports whether the channel is to be told of it.
func (p *phone) arrived(a arrival) (tell bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.typing = time.Time{}
	p.wake()
	switch {
	case p.gone:
		return false
	case !p.traits.Online:
		p.behind = true
		return false
	case p.behind || p.untold.Load() >= maxUntold:
		p.behind = true
		return true
	}
	p.keepFresh(append(p.fresh, a))
	return true
}

// keepFresh sets what the phone keeps to tell the channel of.
func (p *phone) keepFresh(list []arrival) {
	p.untold.Add(int64(len(list) - len(p.fresh)))
	p.fresh = list
}

// nextArrival returns a channel that is closed when the next message is there.
func (p *phone) nextArrival() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		looked := make(chan struct{})
		close(looked) // look again: the number is another phone now
		return looked
	}
	if p.arrival == nil {
		p.arrival = make(chan struct{})
	}
	return p.arrival
}

func (p *phone) wake() {
	if p.arrival != nil {
		close(p.arrival)
		p.arrival = nil
	}
}

// drop takes note that the phone's world was forgotten.
func (p *phone) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keepFresh(nil)
	p.gone, p.behind, p.posted = true, false, false
	p.wake()
}

func (p *phone) setTyping(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.typing = until
}
