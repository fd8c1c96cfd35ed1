package sandbox

import (
	"fmt"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

const insertMessage = `INSERT INTO messages (seq, phone, from_phone, id, kind, body, data, reply_to, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

// insertCopy records a message from the channel; one whose id is known is another copy of it.
const insertCopy = insertMessage + ` ON CONFLICT (phone, from_phone, id) DO UPDATE SET copies = copies + 1`

// converse has a message written to a phone that answers. It is never packed: it must be known at once
// whether it is a copy, which is not answered again.
func (d *dispatch) converse(m *parley.Message, p *phone, twice bool) error {
	data, err := parley.EncodeContent(m.Content)
	if err != nil {
		return fmt.Errorf("record message: %w", err)
	}
	w, at := d.session.world, time.Now()
	args := []any{nil, p.id, fromChannel, string(m.ID), string(m.Content.Kind()), m.Content.Text(), data, string(m.ReplyTo), at.UnixMilli()}
	d.others = append(d.others, func(tx *sqldb.Tx) error {
		seq, err := w.insert(tx, args)
		if err != nil {
			return err
		}
		if seq > 0 {
			tx.OnCommit(func() {
				if p.arrived(arrivalOf(m, seq, at)) {
					w.mark(false, p)
				}
			})
			if p.behaviour().Online {
				if _, err := w.say(tx, p, answerTo(m)); err != nil {
					return err
				}
			}
		}
		if !twice {
			return nil
		}
		if _, err := w.insert(tx, args); err != nil {
			return err
		}
		return w.confirmAgain(tx, p, m)
	})
	return nil
}

// insert records a message and returns its place, or zero if it is a copy of one that is there.
func (w *world) insert(tx *sqldb.Tx, args []any) (int64, error) {
	seq := w.net.nextSeq()
	args[0] = seq
	// Asking the database to return what it did would double the cost. But the row that it inserted
	// last is this one only if it is new.
	last, err := tx.Insert(insertCopy, args...)
	if last != seq {
		return 0, err
	}
	return seq, err
}

// confirmAgain has the channel told a second time that a message was delivered.
func (w *world) confirmAgain(tx *sqldb.Tx, p *phone, m *parley.Message) error {
	return w.post(tx, p, parcel{Type: parcelReceipt, IDs: []parley.MessageID{m.ID}, Status: int(parley.Delivered)})
}

// answerTo is what a phone that answers every message says to one.
func answerTo(m *parley.Message) saying {
	text := fmt.Sprintf("I got your %s.", m.Content.Kind())
	if body := m.Content.Text(); body != "" {
		text = "You wrote: " + body
	}
	return saying{id: newPhoneMessageID(), content: parley.Text{Body: text}, replyTo: m.ID, at: time.Now()}
}
