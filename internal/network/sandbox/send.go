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

// Limits are how many messages a call of Send should carry, and how many calls are useful at once.
func (s *session) Limits() (int, int) { return burst, calls }

// Send gives messages and operations to the network: those it answers nil for are in the record.
func (s *session) Send(ctx context.Context, ms []*parley.Message) []error {
	d := dispatch{session: s, ms: ms, errs: make([]error, len(ms)), steps: make([]step, 0, len(ms))}
	if err := s.connected(); err != nil {
		d.failFrom(0, err)
		return d.errs
	}
	if err := s.world.knowPhones(ctx, ms); err != nil {
		d.failFrom(0, err)
		return d.errs
	}
	for i, m := range ms {
		d.add(ctx, i, m)
	}
	d.flush(ctx)
	return d.errs
}

// dispatch is one burst on its way into the record.
type dispatch struct {
	session *session
	ms      []*parley.Message
	errs    []error
	failed  map[parley.ContactID]bool // chats in which one failed; the later ones are held back
	steps   []step                    // what is to be written next
}

// step is one message or operation on its way into the record.
type step struct {
	index int // of the message
	phone *phone
	query string
	args  []any
	seq   int64 // the place in the record of a new message; else zero
	twice bool
}

// add makes a step of a message, or answers for it at once.
func (d *dispatch) add(ctx context.Context, i int, m *parley.Message) {
	if d.failed[m.Chat] {
		d.errs[i] = network.ErrHeldBack
		return
	}
	if err := d.session.connected(); err != nil { // a fault may have ended the connection
		d.fail(i, err)
		return
	}
	p, err := d.session.world.phone(ctx, m.Chat)
	if err != nil {
		d.fail(i, err)
		return
	}
	if fault, ok := d.session.world.faults.take(m.Chat, m.Content.Kind()); ok {
		d.flush(ctx) // what came before it is not to suffer from it
		d.addFaulty(ctx, i, p, fault)
		return
	}
	d.addPlain(i, p, false)
}

func (d *dispatch) addPlain(i int, p *phone, twice bool) {
	m := d.ms[i]
	if err := refusal(p.behaviour(), m.Content.Kind()); err != nil {
		d.fail(i, err)
		return
	}
	st := step{index: i, phone: p, twice: twice}
	var err error
	if m.Content.Kind().IsRecord() {
		err = st.record(m)
	} else {
		err = st.operate(m)
	}
	if err != nil {
		d.fail(i, err)
		return
	}
	d.steps = append(d.steps, st)
}

// refusal says whether the network refuses to carry something to a phone that behaves so.
func refusal(t traits, kind parley.Kind) error {
	switch {
	case kind != parley.KindReaction && !kind.IsRecord():
		return nil // the phone does not have to take it
	case !t.OnNetwork:
		return network.Refuse(parley.NotOnNetwork, "This number is not on the network.")
	case t.Blocks:
		return network.Refuse(parley.Blocked, "The recipient blocks this channel.")
	}
	return nil
}

const insertMessage = `INSERT INTO messages (seq, phone, from_phone, id, kind, body, data, reply_to, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

// insertCopy records a message from the channel; one whose id is known is another copy of it.
const insertCopy = insertMessage + ` ON CONFLICT (phone, from_phone, id) DO UPDATE SET copies = copies + 1`

// record has the step write a message. It is what the speed of the network hangs on: one statement,
// in a commit that is shared with others.
func (st *step) record(m *parley.Message) error {
	data, err := parley.EncodeContent(m.Content)
	if err != nil {
		return fmt.Errorf("record message: %w", err)
	}
	st.query = insertCopy
	st.args = []any{nil, st.phone.id, fromChannel, string(m.ID), string(m.Content.Kind()), m.Content.Text(), data, string(m.ReplyTo), time.Now().UnixMilli()}
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

// operate has the step do what an operation says. What it is about may have been forgotten: that is
// no error, as on the real network.
func (st *step) operate(m *parley.Message) error {
	switch c := m.Content.(type) {
	case parley.Reaction:
		st.query = `UPDATE messages SET reaction = $1 WHERE phone = $2 AND from_phone = $3 AND id = $4`
		st.args = []any{c.Emoji, st.phone.id, direction(c.Target.FromMe), string(c.Target.ID)}
	case parley.Seen:
		st.query = `UPDATE messages SET status = $1 WHERE phone = $2 AND from_phone = $3 AND id = $4 AND status = 0`
		st.args = []any{int64(parley.Read), st.phone.id, fromPhone, string(c.Target.ID)}
	case parley.Delete:
		st.query = deleteMessage
		st.args = []any{int64(parley.Deleted), "", nil, st.phone.id, fromChannel, string(c.Target.ID)}
	case parley.Star, parley.Archive: // for oneself: no phone sees it
	default:
		return network.ErrUnsupported
	}
	return nil
}

const deleteMessage = `UPDATE messages SET status = $1, body = $2, data = $3 WHERE phone = $4 AND from_phone = $5 AND id = $6`

// flush writes the steps and answers for their messages.
func (d *dispatch) flush(ctx context.Context) {
	if len(d.steps) == 0 {
		return
	}
	w := d.session.world
	err := w.net.db.Write(ctx, func(tx *sqldb.Tx) error {
		for i := range d.steps {
			if err := d.write(tx, &d.steps[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		d.failSteps(fmt.Errorf("record: %w", err))
		return
	}
	now := time.Now()
	for i := range d.steps {
		if st := &d.steps[i]; st.seq > 0 {
			m := d.ms[st.index]
			w.arrived(st.phone, arrival{seq: st.seq, id: m.ID, voice: m.Content.Kind() == parley.KindVoice, at: now})
		}
	}
	d.steps = d.steps[:0]
}

// failSteps answers for the steps that could not be written.
func (d *dispatch) failSteps(err error) {
	first := map[parley.ContactID]bool{}
	for i := range d.steps {
		index := d.steps[i].index
		chat := d.ms[index].Chat
		d.fail(index, err)
		if first[chat] {
			d.errs[index] = network.ErrHeldBack
		}
		first[chat] = true
	}
	d.steps = d.steps[:0]
}

func (d *dispatch) write(tx *sqldb.Tx, st *step) (err error) {
	if st.query == "" {
		return nil
	}
	if st.query != insertCopy {
		_, err := tx.Exec(st.query, st.args...)
		return err
	}
	w := d.session.world
	if st.seq, err = w.insert(tx, st.args); err != nil {
		return err
	}
	if t := st.phone.behaviour(); st.seq > 0 && t.Answers && t.Online {
		if _, err := w.say(tx, st.phone, answerTo(d.ms[st.index])); err != nil {
			return err
		}
	}
	if !st.twice {
		return nil
	}
	if _, err := w.insert(tx, st.args); err != nil {
		return err
	}
	again := parcel{Type: parcelReceipt, IDs: []parley.MessageID{d.ms[st.index].ID}, Status: int(parley.Delivered)}
	return w.post(tx, st.phone, again, nil)
}

// insert records a message and returns its place, or zero if it is a copy of one that is there.
func (w *world) insert(tx *sqldb.Tx, args []any) (int64, error) {
	seq := w.net.nextSeq()
	args[0] = seq
	result, err := tx.Exec(insertCopy, args...)
	if err != nil {
		return 0, err
	}
	// Asking the database to return what it did would double the cost. But the row that it inserted
	// last is this one only if it is new.
	last, err := result.LastInsertId()
	if last != seq {
		return 0, err
	}
	return seq, err
}

// answerTo is what a phone that answers every message says to one.
func answerTo(m *parley.Message) saying {
	text := fmt.Sprintf("I got your %s.", m.Content.Kind())
	if body := m.Content.Text(); body != "" {
		text = "You wrote: " + body
	}
	return saying{id: newPhoneMessageID(), content: parley.Text{Body: text}, replyTo: m.ID, at: time.Now()}
}

// fail answers for one message and holds back the later ones of its chat.
func (d *dispatch) fail(i int, err error) {
	if d.failed == nil {
		d.failed = map[parley.ContactID]bool{}
	}
	d.failed[d.ms[i].Chat] = true
	d.errs[i] = err
}

// failFrom answers for a message and all that follow it.
func (d *dispatch) failFrom(i int, err error) {
	for ; i < len(d.ms); i++ {
		if d.failed[d.ms[i].Chat] {
			d.errs[i] = network.ErrHeldBack
			continue
		}
		d.fail(i, err)
	}
}
