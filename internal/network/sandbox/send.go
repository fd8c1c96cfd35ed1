package sandbox

import (
	"context"
	"fmt"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
)

// A burst shares one commit; several bursts at once share one too. More gained nothing.
const (
	burst = 256
	calls = 2
)

const packedSize = 128 // bytes that most messages need less than in a bundle

// Limits are how many messages a call of Send should carry, and how many calls are useful at once.
func (s *session) Limits() (int, int) { return burst, calls }

// Send gives messages and operations to the network: those it answers nil for are in the record.
func (s *session) Send(ctx context.Context, ms []*parley.Message) []error {
	d := dispatch{session: s, ms: ms, errs: make([]error, len(ms))}
	err := s.connected()
	if err == nil {
		d.phones, err = s.world.phonesOf(ctx, ms)
	}
	if err != nil {
		d.failAll(err)
		return d.errs
	}
	d.bundle.body, d.packed = make([]byte, 0, packedSize*len(ms)), make([]int, 0, len(ms))
	for i := range ms {
		d.add(ctx, i)
	}
	d.flush(ctx, len(ms))
	return d.errs
}

// dispatch is one burst on its way into the record.
type dispatch struct {
	session *session
	ms      []*parley.Message
	phones  []*phone // whom they go to
	errs    []error
	failed  map[parley.ContactID]bool // chats in which one failed; the later ones are held back

	// What is to be written next. It is taken from the messages since the last time, those without an
	// error.
	from   int                     // the first of these messages
	bundle bundle                  // the plain ones
	packed []int                   // which those are
	others []func(*sqldb.Tx) error // what else is to be done, after the bundle
	looks  bool                    // some of that needs messages that may be packed
}

// add takes a message for the next write, or answers for it at once.
func (d *dispatch) add(ctx context.Context, i int) {
	m := d.ms[i]
	if d.failed[m.Chat] {
		d.errs[i] = network.ErrHeldBack
		return
	}
	if err := d.session.connected(); err != nil { // a fault may have ended the connection
		d.fail(i, err)
		return
	}
	if fault, ok := d.session.world.faults.take(m.Chat, m.Content.Kind()); ok {
		d.flush(ctx, i) // what came before it is not to suffer from it
		d.addFaulty(ctx, i, fault)
		return
	}
	d.addPlain(ctx, i, false)
}

func (d *dispatch) addPlain(ctx context.Context, i int, twice bool) {
	if err := d.take(ctx, i, twice); err != nil {
		d.fail(i, err)
	}
}

// take has a message written next.
func (d *dispatch) take(ctx context.Context, i int, twice bool) error {
	m, p := d.ms[i], d.phones[i]
	if p.isGone() { // the world was reset meanwhile
		var err error
		if p, err = d.session.world.phone(ctx, m.Chat); err != nil {
			return err
		}
		d.phones[i] = p
	}
	kind, traits := m.Content.Kind(), p.behaviour()
	if err := refusal(m.Chat, traits, kind); err != nil {
		return err
	}
	switch {
	case !kind.IsRecord():
		return d.operate(m, p)
	case traits.Answers:
		return d.converse(m, p, twice)
	}
	return d.pack(m, p, i, twice)
}

// pack has a message written as part of the bundle. It is what the speed of the network hangs on: it
// costs no statement of its own.
func (d *dispatch) pack(m *parley.Message, p *phone, i int, twice bool) error {
	if err := d.bundle.add(p, m); err != nil {
		return err
	}
	d.packed = append(d.packed, i)
	if !twice {
		return nil
	}
	if err := d.bundle.add(p, m); err != nil {
		return err
	}
	d.packed = append(d.packed, i)
	d.others = append(d.others, func(tx *sqldb.Tx) error { return d.session.world.confirmAgain(tx, p, m) })
	return nil
}

// refusal says whether the network refuses to carry something to a phone that behaves so.
func refusal(to parley.ContactID, t traits, kind parley.Kind) error {
	switch {
	case kind != parley.KindReaction && !kind.IsRecord():
		return nil // the phone does not have to take it
	case !to.CanExist():
		return network.ErrImpossibleNumber
	case !t.OnNetwork:
		return network.Refuse(parley.NotOnNetwork, "This number is not on the network.")
	case t.Blocks:
		return network.Refuse(parley.Blocked, "The recipient blocks this channel.")
	}
	return nil
}

// The directions of a message.
const (
	fromChannel int64 = 0
	fromPhone   int64 = 1
)

func direction(fromMe bool) int64 {
	if fromMe {
		return fromChannel
	}
	return fromPhone
}

// operate has an operation written. What it is about may have been forgotten: that is no error, as on
// the real network.
func (d *dispatch) operate(m *parley.Message, p *phone) error {
	switch c := m.Content.(type) {
	case parley.Reaction:
		d.change(c.Target.FromMe, `UPDATE messages SET reaction = $1 WHERE phone = $2 AND from_phone = $3 AND id = $4`,
			c.Emoji, p.id, direction(c.Target.FromMe), string(c.Target.ID))
	case parley.Seen:
		d.change(false, `UPDATE messages SET status = $1 WHERE phone = $2 AND from_phone = $3 AND id = $4 AND status = 0`,
			int64(parley.Read), p.id, fromPhone, string(c.Target.ID))
	case parley.Delete:
		d.change(true, deleteMessage, int64(parley.Deleted), "", nil, p.id, fromChannel, string(c.Target.ID))
	case parley.Star, parley.Archive: // for oneself: no phone sees it
	default:
		return network.ErrUnsupported
	}
	return nil
}

// change has a statement run that changes one message; only the channel's own are ever packed.
func (d *dispatch) change(own bool, query string, args ...any) {
	d.looks = d.looks || own
	d.others = append(d.others, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	})
}

const deleteMessage = `UPDATE messages SET status = $1, body = $2, data = $3 WHERE phone = $4 AND from_phone = $5 AND id = $6`

// flush writes what was taken of the messages before one and answers for them.
func (d *dispatch) flush(ctx context.Context, before int) {
	if d.bundle.count > 0 || len(d.others) > 0 {
		if err := d.write(ctx); err != nil {
			d.failTaken(before, fmt.Errorf("record: %w", err))
		}
		d.bundle = bundle{}
		d.packed, d.others, d.looks = d.packed[:0], nil, false
	}
	d.from = before
}

// write records everything in one transaction. The bundle comes first: an operation may be about a
// message that is in it.
func (d *dispatch) write(ctx context.Context) error {
	w := d.session.world
	if d.looks {
		if err := w.net.unpack(ctx); err != nil { // most of it, so that others wait less
			return err
		}
	}
	var first int64
	now := time.Now()
	err := w.net.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		if d.bundle.count > 0 {
			if first, err = w.net.pack(tx, &d.bundle, now); err != nil {
				return err
			}
		}
		if d.looks {
			if err := w.net.unpackAll(tx); err != nil {
				return err
			}
		}
		for _, do := range d.others {
			if err := do(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		d.arrived(first, now)
	}
	return err
}

// arrived tells the phones of what was packed for them; the first of it has the place first.
func (d *dispatch) arrived(first int64, at time.Time) {
	tell := make([]*phone, 0, len(d.packed))
	for place, i := range d.packed {
		if place > 0 && d.packed[place-1] == i {
			continue // the second copy of it
		}
		if p := d.phones[i]; p.arrived(arrivalOf(d.ms[i], first+int64(place), at)) {
			tell = append(tell, p)
		}
	}
	d.session.world.mark(false, tell...)
}

// failTaken answers for what was taken of the messages before one and could not be written.
func (d *dispatch) failTaken(before int, err error) {
	first := map[parley.ContactID]bool{}
	for i := d.from; i < before; i++ {
		if d.errs[i] != nil {
			continue
		}
		chat := d.ms[i].Chat
		d.fail(i, err)
		if first[chat] {
			d.errs[i] = network.ErrHeldBack
		}
		first[chat] = true
	}
}

// fail answers for one message and holds back the later ones of its chat.
func (d *dispatch) fail(i int, err error) {
	if d.failed == nil {
		d.failed = map[parley.ContactID]bool{}
	}
	d.failed[d.ms[i].Chat] = true
	d.errs[i] = err
}

// failAll answers for all messages when none could be sent.
func (d *dispatch) failAll(err error) {
	for i, m := range d.ms {
		if d.failed[m.Chat] {
			d.errs[i] = network.ErrHeldBack
			continue
		}
		d.fail(i, err)
	}
}
