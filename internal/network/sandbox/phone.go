package sandbox

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
)

type Phone struct {
	Number    string           // digits
	ContactID parley.ContactID // by which the channel knows it
	Name      string           // a phone with a name is a contact of the channel
	Online    bool
	Reads     Reads
	Delay     time.Duration // before it confirms that something was delivered
	Blocks    bool          // refuses the channel's messages
	Blocked   bool          // by the channel
	OnNetwork bool
	LIDOnly   bool // the network names it by a LID, which the session maps to its number: the channel sees no difference
	// NumberHidden: the channel knows it by an id without the number, until the number is shown or the channel writes to it.
	NumberHidden bool
	Replies      bool // replies to every message
	Timer        int  // seconds after which new messages of its chat with the channel disappear; 0: they stay

	TypingUntil time.Time // until when it shows that the channel is typing; zero: it does not
	LastSeenAt  time.Time // zero: not known
}

// Reads says when a phone reads what it gets.
type Reads string

const (
	AtOnce   Reads = "at_once"   // as soon as it is delivered
	WhenOpen Reads = "when_open" // when the chat is opened: [Network.Read]
	Never    Reads = "never"     // not even then: read receipts are off
)

// PhonePatch says what to change about a phone; nil: no change. The caller has checked the values.
type PhonePatch struct {
	Name      *string
	Online    *bool
	Reads     *Reads
	Delay     *time.Duration
	Blocks    *bool
	OnNetwork *bool
	LIDOnly   *bool
	Timer     *int
	// NumberHidden cannot be set again once the channel knows the number.
	NumberHidden *bool
}

// Free numbers are chosen from here upwards: 62812-9000-0001 and so on.
const (
	freeFrom = "6281290000000"
	freeTo   = "6281290999999"
)

// phone is a row of the table phones, with the newest cursors.
type phone struct {
	Phone
	id, world int64
	hidden    int64 // the position after which its number was hidden; 0: never
	known     known // whether the channel knows the number again
	cursors
}

type known int

const (
	unknown  known = iota
	revealed       // the channel is to hear of it before anything else of the phone
	reported
)

// contactID is the phone's by its number. The channel may know another one: see idAt.
func (p *phone) contactID() parley.ContactID { return parley.NewContactID(p.Number) }

// idAt is the id by which the channel knows the phone in its chat, for a message at a position.
func (p *phone) idAt(seq int64) parley.ContactID {
	if p.hidden > 0 && seq > p.hidden && p.known != reported {
		return hiddenID(p.id)
	}
	return p.contactID()
}

const hiddenPrefix = "5" // no LID begins with 0

func hiddenID(row int64) parley.ContactID {
	return parley.NewHiddenContactID(fmt.Sprintf(hiddenPrefix+"%014d", row))
}

// byNumber is the condition for the phone of a world with a number, or with the digits of a hidden id.
func byNumber(number string) (where string, key any) {
	row, err := strconv.ParseInt(strings.TrimPrefix(number, "0"+hiddenPrefix), 10, 64)
	if err == nil && hiddenID(row).Number() == number {
		return `world = $1 AND id = $2 AND hidden > 0`, row
	}
	return `world = $1 AND number = $2`, number
}

// shownUpTo returns the position of the last message that the phone's screen can show.
func (p *phone) shownUpTo() int64 {
	if p.Online {
		return math.MaxInt64
	}
	return p.delivered
}

// newPhone returns a new phone. 999 is not the code of a country: the last digit of such a number selects a fault of the
// phone.
func newPhone(number string) Phone {
	p := Phone{Number: number, ContactID: parley.NewContactID(number),
		Online: true, Reads: WhenOpen, OnNetwork: parley.NewContactID(number).CanExist()}
	if !strings.HasPrefix(number, "999") {
		return p
	}
	switch number[len(number)-1] {
	case '0':
		p.OnNetwork = false
	case '1':
		p.Online = false
	case '2':
		p.Blocks = true
	case '3':
		p.Replies, p.Reads = true, AtOnce
	case '4':
		p.Reads = Never
	}
	return p
}

const phoneColumns = `id, world, number, name, online, reads, delay_ms, blocks, blocked, on_network, lid_only, answers, seen_at,
	delivered, read, timer, hidden, known`

func scanPhone(row scanner) (*phone, error) {
	var p phone
	var delay, seen int64
	err := row.Scan(&p.id, &p.world, &p.Number, &p.Name, &p.Online, &p.Reads, &delay, &p.Blocks, &p.Blocked, &p.OnNetwork, &p.LIDOnly,
		&p.Replies, &seen, &p.delivered, &p.read, &p.Timer, &p.hidden, &p.known)
	p.ContactID, p.NumberHidden = p.idAt(math.MaxInt64), p.hidden > 0 && p.known == unknown
	p.OnNetwork = p.OnNetwork && p.contactID().CanExist()
	p.Delay = time.Duration(delay) * time.Millisecond
	if seen > 0 {
		p.LastSeenAt = time.UnixMilli(seen).UTC()
	}
	return &p, err
}

// queryPhone reads one phone. If there is none the error is sql.ErrNoRows.
func queryPhone(c *sqldb.Conn, where string, args ...any) (*phone, error) {
	return first(sqldb.Collect(c, scanPhone, `SELECT `+phoneColumns+` FROM phones WHERE `+where, args...))
}

// first returns the first row of a result. If there is none the error is sql.ErrNoRows.
func first[T any](list []T, err error) (row T, _ error) {
	switch {
	case err != nil:
		return row, err
	case len(list) == 0:
		return row, sql.ErrNoRows
	}
	return list[0], nil
}

// createPhone creates the phone of a number that has none yet. Its id is zero if another node did so meanwhile.
func createPhone(tx *sqldb.Tx, world int64, number string) (*phone, error) {
	p := phone{Phone: newPhone(number), world: world}
	var err error
	p.id, err = tx.Insert(`INSERT INTO phones (world, number, online, reads, blocks, on_network, answers, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
		world, number, p.Online, string(p.Reads), p.Blocks, p.OnNetwork, p.Replies, time.Now().UnixMilli())
	return &p, err
}

// phone is find inside a transaction.
func (w *world) phone(tx *sqldb.Tx, number string) (*phone, error) {
	where, key := byNumber(number)
	p, err := queryPhone(tx.Conn, where, w.id.Load(), key)
	if errors.Is(err, sql.ErrNoRows) {
		var world int64 // a reset in the same commit may have replaced it
		if err := tx.QueryRow(`SELECT id FROM worlds WHERE channel = $1`, []any{string(w.code)}, &world); err != nil {
			return nil, err
		}
		if p, err = createPhone(tx, world, number); err == nil && p.id == 0 { // another node was faster, or a reset
			p, err = queryPhone(tx.Conn, `world = $1 AND number = $2`, world, number)
		}
	}
	return w.current(p), err
}

// lookUp returns the phone of a number. If there is none the error is sql.ErrNoRows.
func (w *world) lookUp(ctx context.Context, number string) (*phone, error) {
	where, key := byNumber(number)
	p, err := queryPhone(w.net.db.Read(ctx), where, w.id.Load(), key)
	return w.current(p), err
}

// current brings a phone's cursors up to date: memory may have newer ones than the row.
func (w *world) current(p *phone) *phone {
	if p != nil {
		w.mu.Lock()
		p.cursors = p.cursors.max(w.cursors[p.id])
		w.mu.Unlock()
	}
	return p
}

func (w *world) view(p *phone) Phone {
	v, now := p.Phone, time.Now()
	w.mu.Lock()
	if until := w.typing[p.id]; until.After(now) {
		v.TypingUntil = until.UTC()
	}
	w.mu.Unlock()
	if v.Online && v.OnNetwork {
		v.LastSeenAt = now.UTC().Truncate(time.Millisecond)
	}
	return v
}

// find returns the world and the phone that a caller names. The phone is created if it does not exist.
func (n *Network) find(ctx context.Context, channel parley.ChannelCode, number string) (*world, *phone, error) {
	digits, err := parley.ParseNumber(number)
	if err != nil {
		return nil, nil, parley.InvalidField("number", NumberSentence)
	}
	w, err := n.world(ctx, channel)
	if err != nil {
		return nil, nil, err
	}
	p, err := w.find(ctx, digits)
	return w, p, err
}

// find returns the phone of a number, created if it does not exist.
func (w *world) find(ctx context.Context, number string) (*phone, error) {
	p, err := w.lookUp(ctx, number)
	if errors.Is(err, sql.ErrNoRows) {
		err = w.tx(ctx, func(tx *sqldb.Tx) (err error) {
			p, err = w.phone(tx, number)
			return err
		})
	}
	return p, err
}

// Phones lists the phones of a channel's world in the order in which they were created.
func (n *Network) Phones(ctx context.Context, channel parley.ChannelCode) ([]Phone, error) {
	w, err := n.world(ctx, channel)
	if err != nil {
		return nil, err
	}
	return sqldb.Collect(n.db.Read(ctx), w.scanView, `SELECT `+phoneColumns+` FROM phones WHERE world = $1 ORDER BY id`, w.id.Load())
}

func (w *world) scanView(row scanner) (Phone, error) {
	p, err := scanPhone(row)
	return w.view(p), err
}

// Phone returns one phone, created if it does not exist.
func (n *Network) Phone(ctx context.Context, channel parley.ChannelCode, number string) (Phone, error) {
	w, p, err := n.find(ctx, channel, number)
	if err != nil {
		return Phone{}, err
	}
	return w.view(p), nil
}

// CreatePhone creates a phone; an empty number: a free one. One that exists is renamed if a name is given.
func (n *Network) CreatePhone(ctx context.Context, channel parley.ChannelCode, number, name string) (_ Phone, err error) {
	if number == "" {
		if number, err = n.createFreeNumber(ctx, channel); err != nil {
			return Phone{}, err
		}
	}
	if name == "" {
		return n.Phone(ctx, channel, number)
	}
	return n.UpdatePhone(ctx, channel, number, PhonePatch{Name: &name})
}

func (n *Network) createFreeNumber(ctx context.Context, channel parley.ChannelCode) (number string, err error) {
	w, err := n.world(ctx, channel)
	if err != nil {
		return "", err
	}
	err = w.write(ctx, "choose a number", func(tx *sqldb.Tx) error {
		var highest string // all have the same length
		err := tx.QueryRow(`SELECT coalesce(max(number), $2) FROM phones
			WHERE world = $1 AND length(number) = 13 AND number BETWEEN $2 AND $3`, []any{w.id.Load(), freeFrom, freeTo}, &highest)
		if err != nil {
			return err
		}
		last, err := strconv.ParseInt(highest, 10, 64)
		if err == nil {
			number = strconv.FormatInt(last+1, 10)
			_, err = w.phone(tx, number)
		}
		return err
	})
	return number, err
}

// UpdatePhone changes a phone. One that comes online receives its waiting messages. One that begins to read at once reads
// all its messages.
func (n *Network) UpdatePhone(ctx context.Context, channel parley.ChannelCode, number string, patch PhonePatch) (Phone, error) {
	w, p, err := n.find(ctx, channel, number)
	if err != nil {
		return Phone{}, err
	}
	err = w.write(ctx, "update phone", func(tx *sqldb.Tx) error {
		if p, err = w.phone(tx, p.Number); err != nil { // again, in case the world was reset
			return err
		}
		groups, err := sqldb.Collect(tx.Conn, sqldb.ScanOne[int64], `SELECT DISTINCT phone FROM events WHERE sender = $1 AND
			phone IN (SELECT -id FROM groups WHERE world = $2)`, string(p.contactID()), p.world)
		if err != nil {
			return err
		}
		tx.OnUnknown(w.clearPhones)
		tx.OnCommit(func() {
			w.clearPhones()
			w.schedule(p.id, receiptWork|eventWork)
			for _, queue := range groups { // what it did in them while it was offline
				w.schedule(queue, eventWork)
			}
		})
		return cmp.Or(w.setHidden(tx, p, patch.NumberHidden), patch.apply(tx, p.id))
	})
	if err != nil {
		return Phone{}, err
	}
	if patch.Reads != nil && *patch.Reads == AtOnce {
		if _, err := n.Read(ctx, channel, number, ""); err != nil {
			return Phone{}, err
		}
	}
	return n.Phone(ctx, channel, number)
}

// setHidden hides the number of a phone, or shows it; nil: no change.
func (w *world) setHidden(tx *sqldb.Tx, p *phone, hide *bool) error {
	switch {
	case hide == nil || *hide == p.NumberHidden:
		return nil
	case !*hide:
		return reveal(tx, p)
	case p.hidden > 0:
		return parley.InvalidField("number_hidden",
			"number_hidden cannot be true again: the channel knows this number by now. Use another phone, or reset the sandbox.")
	}
	seq, err := w.net.nextSeq(tx)
	if err == nil {
		err = tx.Do(`UPDATE phones SET hidden = $2 WHERE id = $1`, p.id, seq)
	}
	return err
}

// reveal lets the channel know the number of a phone that hid it.
func reveal(tx *sqldb.Tx, p *phone) error {
	p.known = revealed
	return tx.Do(`UPDATE phones SET known = $2 WHERE id = $1 AND known = $3`, p.id, int64(revealed), int64(unknown))
}

// reportNumber reports the number of a phone that hid it, before anything else is reported under that number.
func (s *session) reportNumber(ctx context.Context, p *phone) error {
	if err := s.report(ctx, 0, network.Alias{Asked: hiddenID(p.id), Contact: p.contactID()}); err != nil {
		return err
	}
	p.known, p.ContactID = reported, p.contactID()
	return s.world.net.db.Write(context.WithoutCancel(ctx), func(tx *sqldb.Tx) error {
		tx.OnCommit(s.world.clearPhones)
		return tx.Do(`UPDATE phones SET known = $2 WHERE id = $1`, p.id, int64(reported))
	})
}

func (patch PhonePatch) apply(tx *sqldb.Tx, id int64) error {
	var delay any
	if patch.Delay != nil {
		delay = patch.Delay.Milliseconds()
	}
	return tx.Do(`UPDATE phones SET name = coalesce($2, name), online = coalesce($3, online), reads = coalesce($4, reads),
		delay_ms = coalesce($5, delay_ms), blocks = coalesce($6, blocks), on_network = coalesce($7, on_network),
		lid_only = coalesce($8, lid_only), changed = 1, timer = coalesce($10, timer),
		seen_at = CASE WHEN $3 IS NULL OR $3 = online THEN seen_at ELSE $9 END
		WHERE id = $1`,
		id, optional(patch.Name), optional(patch.Online), optional(patch.Reads), delay,
		optional(patch.Blocks), optional(patch.OnNetwork), optional(patch.LIDOnly), time.Now().UnixMilli(),
		optional(patch.Timer))
}

// optional returns a value for the database, or nil for no change.
func optional[T any](value *T) any {
	if value == nil {
		return nil
	}
	return *value
}

// NumberSentence says what is wrong with a number that cannot be parsed.
const NumberSentence = "number must be a phone number in digits, for example 6281234567890."

// maxCachedPhones bounds the memory of a session.
const maxCachedPhones = 2000

// phoneCache holds phones as their rows are, so that sends do not read them, which is a round trip on PostgreSQL. Only the node
// that has the session changes phones. Entries are added and removed in the order of the commits.
type phoneCache struct {
	mu  sync.Mutex
	all map[string]phone // by number
}

// take returns copies of the phones of a world that are known, by number.
func (c *phoneCache) take(world int64, numbers []string) map[string]*phone {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]*phone{}
	for _, number := range numbers {
		if p, ok := c.all[number]; ok && p.world == world {
			found[number] = &p
		}
	}
	return found
}

func (c *phoneCache) add(phones []phone) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all)+len(phones) > maxCachedPhones {
		c.all = map[string]phone{}
	}
	for _, p := range phones {
		c.all[p.Number] = p
	}
}

// cached is a phone that the session knows, with cursors that may be old; nil: it does not know it.
func (w *world) cached(number string) *phone {
	if s := w.session.Load(); s != nil {
		return s.phones.take(w.id.Load(), []string{number})[number]
	}
	return nil
}

// clearPhones empties the cache of the session, because a phone was changed or deleted.
func (w *world) clearPhones() {
	if s := w.session.Load(); s != nil {
		s.phones.mu.Lock()
		defer s.phones.mu.Unlock()
		s.phones.all = nil
	}
}
