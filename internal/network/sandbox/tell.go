package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
)

const (
	maxReceipt = 500 // ids in one receipt
	maxLetters = 16  // things that a phone did, read at once

	// A receipt for a message that the gateway does not know may have overtaken the message, so it is
	// given again. After a few refusals each id is given alone, so that one does not hold up the rest;
	// one that stays unknown for about half a minute never was the gateway's, and is given up.
	aloneAfter  = 3
	giveUpAfter = 20
)

// tellArrivals tells the channel which messages reached the phone, and that they were read if the
// phone reads at once. It returns when there will be more to tell; zero: not known.
func (s *session) tellArrivals(ctx context.Context, p *phone) (again time.Time, err error) {
	for {
		t, err := s.world.undelivered(ctx, p)
		if err != nil || len(t.due) == 0 {
			return t.again, err
		}
		due := t.due
		if p.tries >= aloneAfter {
			due = due[:1]
		}
		reads := p.behaviour().Reads == AtOnce
		err = s.tellReceipts(ctx, p.contact, due, reads)
		if err != nil && !s.givesUp(p, err) {
			p.putBack(t.due, t.recorded)
			return time.Time{}, err
		}
		p.told(due[len(due)-1].seq, reads)
		if rest := t.due[len(due):]; len(rest) > 0 {
			p.putBack(rest, t.recorded)
		}
		p.tries = min(p.tries, aloneAfter)
	}
}

// tidings are messages of which the channel can be told now.
type tidings struct {
	due      []arrival
	recorded bool      // they were read from the record, and can be again
	again    time.Time // when there will be more; zero: not known
}

// undelivered takes what there is to tell of a phone now.
func (w *world) undelivered(ctx context.Context, p *phone) (tidings, error) {
	t, delay, delivered := p.takeFresh()
	if t.recorded {
		err := w.net.scan(ctx, p, arrivalColumns, delivered, false, func(row scanner) (bool, error) {
			a, err := scanArrival(row)
			t.due = append(t.due, a)
			return len(t.due) <= maxReceipt, err
		})
		if err != nil {
			p.putBack(nil, true)
			return tidings{}, fmt.Errorf("read what reached a phone: %w", err)
		}
	}
	count := min(len(t.due), maxReceipt)
	if delay > 0 {
		now := time.Now()
		if early := slices.IndexFunc(t.due[:count], func(a arrival) bool { return a.at.Add(delay).After(now) }); early >= 0 {
			count, t.again = early, t.due[early].at.Add(delay)
		}
	}
	if rest := t.due[count:]; len(rest) > 0 {
		p.putBack(rest, t.recorded)
	}
	t.due = t.due[:count:count]
	return t, nil
}

// tellReceipts gives the sink the receipts for messages to one phone.
func (s *session) tellReceipts(ctx context.Context, from parley.ContactID, batch []arrival, read bool) error {
	at := time.Now().UTC()
	tell := func(list []parley.MessageID, status parley.Status) error {
		if len(list) == 0 {
			return nil
		}
		return s.give(ctx, network.Receipt{From: from, IDs: list, Status: status, At: at})
	}
	all := ids(batch)
	if err := tell(all, parley.Delivered); err != nil || !read {
		return err
	}
	if err := tell(all, parley.Read); err != nil {
		return err
	}
	return tell(voices(batch), parley.Played)
}

// givesUp says whether a refusal is to be taken for good: the gateway was asked often enough and
// does not know the message.
func (s *session) givesUp(p *phone, err error) bool {
	if p.tries < giveUpAfter || !errors.Is(err, parley.ErrNotFound) {
		return false
	}
	s.world.net.log.LogAttrs(s.ctx, slog.LevelWarn, "sandbox: gave up telling of a message that the gateway does not know",
		slog.String("channel", string(s.world.code)))
	p.tries = aloneAfter // the next one gets its own time
	return true
}

// tellParcels gives the sink what the phone did, in order, unless the phone is offline.
func (s *session) tellParcels(ctx context.Context, p *phone) error {
	for p.takePosted() {
		list, err := s.world.letters(ctx, p, maxLetters)
		if err != nil {
			p.setPosted()
			return fmt.Errorf("read what a phone did: %w", err)
		}
		for _, l := range list {
			if err := s.tellParcel(ctx, p, l); err != nil {
				p.setPosted()
				return err
			}
		}
		if len(list) == maxLetters {
			p.setPosted()
		}
	}
	return nil
}

// tellParcel gives the sink one thing that a phone did, and forgets it once it is taken.
func (s *session) tellParcel(ctx context.Context, p *phone, l letter) error {
	from, err := s.world.contactOf(ctx, l.sender)
	if err != nil {
		return err
	}
	event, err := l.event(p.id, from)
	if err != nil {
		return err
	}
	if err := s.give(ctx, event); err != nil && (l.parcel.Type == parcelMessage || !s.givesUp(p, err)) {
		return err
	}
	return s.world.net.db.Write(context.WithoutCancel(ctx), func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`DELETE FROM events WHERE seq = $1`, l.seq)
		return err
	})
}

// errRefused marks an event that the sink did not take.
var errRefused = errors.New("refused by the sink")

func (s *session) give(ctx context.Context, e network.Event) error {
	if err := s.sink(ctx, e); err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return nil
}

// takeFresh takes what is known to be told of a phone. If the phone does not know it all, the record
// is to be read instead; what arrives from then on is kept in memory again.
func (p *phone) takeFresh() (t tidings, delay time.Duration, delivered int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.traits.Online || p.gone {
		return tidings{}, 0, 0
	}
	t.due, t.recorded = p.fresh, p.behind
	p.keepFresh(nil)
	p.behind = false
	if t.recorded {
		t.due = nil
	}
	// The record may have been read between the commit of a message and its arrival here.
	t.due = slices.DeleteFunc(t.due, func(a arrival) bool { return a.seq <= p.delivered })
	slices.SortFunc(t.due, func(a, b arrival) int { return cmp.Compare(a.seq, b.seq) })
	return t, p.traits.Delay, p.delivered
}

// putBack returns what was taken and not told.
func (p *phone) putBack(rest []arrival, recorded bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.gone:
	case recorded:
		p.keepFresh(nil)
		p.behind = true
	case len(rest) > 0 && !p.behind:
		p.keepFresh(append(slices.Clip(rest), p.fresh...))
	}
}

// told moves the marks: the channel knows of everything up to seq.
func (p *phone) told(seq int64, read bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delivered = max(p.delivered, seq)
	if read {
		p.read = max(p.read, seq)
	}
}

// takePosted reports whether the phone may have done something that can be told now.
func (p *phone) takePosted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.posted || !p.traits.Online || p.gone {
		return false
	}
	p.posted = false
	return true
}

const arrivalColumns = `seq, id, kind, at`

func scanArrival(row scanner) (arrival, error) {
	var a arrival
	var kind parley.Kind
	var at int64
	err := row.Scan(&a.seq, &a.id, &kind, &at)
	a.voice, a.at = kind == parley.KindVoice, time.UnixMilli(at)
	return a, err
}

func ids(list []arrival) []parley.MessageID {
	all := make([]parley.MessageID, len(list))
	for i, a := range list {
		all[i] = a.id
	}
	return all
}

func voices(list []arrival) []parley.MessageID {
	var some []parley.MessageID
	for _, a := range list {
		if a.voice {
			some = append(some, a.id)
		}
	}
	return some
}
