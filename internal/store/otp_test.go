package store_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/internal/otp/rule"
	"parley/internal/store"
)

// newLedger makes a ledger with an open code, as a request for one leaves it.
func newLedger(channel parley.ChannelCode, contact parley.ContactID) rule.Ledger {
	return rule.Ledger{
		Code: parley.OTPCode{
			ID: parley.NewCodeID(), Channel: channel, Contact: contact, Hash: []byte{1, 2, 3}, Encrypted: []byte("encrypted"),
			CreatedAt: start, ExpiresAt: start.Add(5 * time.Minute),
		},
		Requests: []time.Time{start.Add(-time.Minute), start},
	}
}

func (e *env) putLedgers(ledgers ...rule.Ledger) {
	e.Helper()
	e.tx(func(tx *store.Tx) error {
		for _, l := range ledgers {
			if err := tx.PutLedger(e.Context(), l); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *env) ledger(channel parley.ChannelCode, contact parley.ContactID) rule.Ledger {
	e.Helper()
	l, err := e.store.Ledger(e.Context(), channel, contact)
	e.must(err)
	return l
}

// ended is a ledger whose code came to an end.
func ended(l rule.Ledger, status parley.OTPStatus, at time.Time) rule.Ledger {
	l.Code.Status, l.Code.EndedAt, l.Code.Encrypted = status, at, nil
	return l
}

var codeTests = map[string]func(*env){
	"nothing is known of a contact at first": func(e *env) {
		e.same("ledger", e.ledger(main, ann), rule.Ledger{Code: parley.OTPCode{Channel: main, Contact: ann}})
		all, err := e.store.Ledgers(e.Context(), ann)
		e.must(err)
		e.same("ledgers", len(all), 0)
		if _, err := e.store.Code(e.Context(), "otc_0"); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("code: %v", err)
		}
	},

	"a ledger reads as it was stored": func(e *env) {
		want := newLedger(main, ann)
		want.Code.Tries = 2
		want.Wrong = []time.Time{start.Add(-23 * time.Hour), start.Add(time.Second), start.Add(time.Second)}
		e.putLedgers(want)
		e.same("ledger", e.ledger(main, ann), want)
		e.tx(func(tx *store.Tx) error {
			got, err := tx.Ledger(e.Context(), main, ann)
			if err == nil && got.Code.ID != want.Code.ID {
				err = fmt.Errorf("inside a transaction: %+v", got)
			}
			return err
		})
		code, err := e.store.Code(e.Context(), want.Code.ID)
		e.must(err)
		e.same("code", code, want.Code)
	},

	"a new code replaces the old one": func(e *env) {
		first, second := newLedger(main, ann), newLedger(main, ann)
		e.putLedgers(first)
		second.Code.Hash, second.Code.Encrypted, second.Requests = []byte{4}, []byte("other"), append(first.Requests, start.Add(time.Second))
		e.putLedgers(second)
		e.same("ledger", e.ledger(main, ann), second)
		if _, err := e.store.Code(e.Context(), first.Code.ID); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("the old code: %v", err)
		}
		// A try that was made of the old code must not change the new one.
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.UpdateLedger(e.Context(), first) })
	},

	"contacts and channels are apart": func(e *env) {
		all := []rule.Ledger{newLedger(main, ann), newLedger(other, ann), newLedger(main, bob)}
		e.putLedgers(all...)
		for _, want := range all {
			e.same("ledger", e.ledger(want.Code.Channel, want.Code.Contact), want)
		}
		of, err := e.store.Ledgers(e.Context(), ann)
		e.must(err)
		e.same("ledgers of a contact", of, all[:2])
	},

	"a wrong try is counted, the last one ends the code": func(e *env) {
		l := newLedger(main, ann)
		e.putLedgers(l)
		for i := range 3 {
			l.Code.Tries++
			l.Wrong = append(l.Wrong, start.Add(time.Duration(i)*time.Second))
			e.tx(func(tx *store.Tx) error { return tx.UpdateLedger(e.Context(), l) })
			e.same("after a wrong try", e.ledger(main, ann), l)
		}
		l.Code.Status, l.Code.EndedAt = parley.OTPStatusLocked, start.Add(time.Minute)
		e.tx(func(tx *store.Tx) error { return tx.UpdateLedger(e.Context(), l) })
		e.same("locked, without its text", e.ledger(main, ann), ended(l, parley.OTPStatusLocked, start.Add(time.Minute)))
	},

	"tries that come together are all counted, and those that fail are not": func(e *env) {
		const many = 60
		e.putLedgers(newLedger(main, ann))
		undone := errors.New("undone")
		var wg sync.WaitGroup
		for i := range many {
			wg.Go(func() {
				err := e.store.Tx(e.Context(), func(tx *store.Tx) error {
					l, err := tx.Ledger(e.Context(), main, ann)
					if err != nil {
						return err
					}
					l.Code.Tries++
					if err := tx.UpdateLedger(e.Context(), l); err != nil {
						return err
					}
					if again, err := tx.Ledger(e.Context(), main, ann); err != nil || again.Code.Tries != l.Code.Tries {
						return fmt.Errorf("%d tries inside the transaction, want %d: %w", again.Code.Tries, l.Code.Tries, err)
					}
					if i%3 == 0 {
						return undone
					}
					return nil
				})
				if (i%3 == 0) != errors.Is(err, undone) || i%3 != 0 && err != nil {
					e.Errorf("try %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		e.same("tries", e.ledger(main, ann).Code.Tries, many*2/3)
		e.tx(func(tx *store.Tx) error {
			l, err := tx.Ledger(e.Context(), main, ann)
			if err == nil && l.Code.Tries != many*2/3 {
				err = fmt.Errorf("%d tries inside a transaction", l.Code.Tries)
			}
			return err
		})
	},

	"what expires or is removed is so inside transactions too": func(e *env) {
		e.putLedgers(newLedger(main, ann), newLedger(main, bob))
		status := func(contact parley.ContactID) (status parley.OTPStatus, id parley.OTPID) {
			e.tx(func(tx *store.Tx) error {
				l, err := tx.Ledger(e.Context(), main, contact)
				status, id = l.Code.Status, l.Code.ID
				return err
			})
			return status, id
		}
		status(ann) // fills a cache, if there is one
		e.tx(func(tx *store.Tx) error {
			return second(tx.ExpireCodes(e.Context(), main, start, start.Add(time.Hour), 10))
		})
		for _, contact := range []parley.ContactID{ann, bob} {
			if got, _ := status(contact); got != parley.OTPStatusExpired {
				e.Errorf("%s is %s", contact, got)
			}
		}
		e.tx(func(tx *store.Tx) error { return second(tx.PurgeOTPs(e.Context(), main, start.Add(time.Hour), 10)) })
		if _, id := status(ann); id != "" {
			e.Errorf("%s is there, though it was forgotten", id)
		}
		e.channel(main)
		e.putLedgers(newLedger(main, ann))
		status(ann)
		e.tx(func(tx *store.Tx) error { return tx.ClearChannel(e.Context(), main) })
		if _, id := status(ann); id != "" {
			e.Errorf("%s is there, though the channel was cleared", id)
		}
	},

	"open codes expire, the oldest first": func(e *env) {
		contacts := []parley.ContactID{ann, bob, "6281100000003@c.us", "6281100000004@c.us"}
		for i, contact := range contacts {
			l := newLedger(main, contact)
			l.Code.ExpiresAt = start.Add(time.Duration(i) * time.Minute)
			e.putLedgers(l)
		}
		used := ended(newLedger(main, "6281100000005@c.us"), parley.OTPStatusApproved, start)
		elsewhere := newLedger(other, ann)
		elsewhere.Code.ExpiresAt = start
		e.putLedgers(used, elsewhere)
		due, err := e.store.DueOTPs(e.Context(), start.Add(2*time.Minute))
		e.must(err)
		e.same("due", due, map[parley.ChannelCode]time.Time{main: start, other: start})
		future, err := e.store.FutureOTPs(e.Context(), elsewhere.Code.CreatedAt.Add(-time.Second))
		e.must(err)
		slices.Sort(future)
		e.same("of the future", future, []parley.ChannelCode{main, other})
		future, err = e.store.FutureOTPs(e.Context(), start.Add(time.Hour))
		e.must(err)
		e.same("not of the future", len(future), 0)
		for _, step := range []struct {
			limit int
			want  []parley.ContactID
		}{{2, contacts[:2]}, {2, contacts[2:3]}, {2, nil}} {
			var got []parley.ContactID
			e.tx(func(tx *store.Tx) error {
				codes, err := tx.ExpireCodes(e.Context(), main, start.Add(-time.Second), start.Add(2*time.Minute), step.limit)
				got = nil
				for _, c := range codes {
					if c.Status != parley.OTPStatusExpired || c.Encrypted != nil || !c.EndedAt.Equal(c.ExpiresAt) {
						return fmt.Errorf("expired: %+v", c)
					}
					got = append(got, c.Contact)
				}
				return err
			})
			e.same("expired", got, step.want)
		}
		e.same("its status", e.ledger(main, ann).Code.Status, parley.OTPStatusExpired)
		e.same("its text", e.ledger(main, ann).Code.Encrypted, []byte(nil))
		e.same("one that is not due", e.ledger(main, contacts[3]).Code.Status, parley.OTPStatusPending)
		e.same("one that was used", e.ledger(main, used.Code.Contact).Code.Status, parley.OTPStatusApproved)
		e.same("another channel's", e.ledger(other, ann).Code.Status, parley.OTPStatusPending)
	},

	"what ended long ago is forgotten": func(e *env) {
		e.putLedgers(newLedger(main, ann), ended(newLedger(main, bob), parley.OTPStatusApproved, start),
			ended(newLedger(other, bob), parley.OTPStatusLocked, start))
		purge := func(before time.Time) (n int) {
			e.tx(func(tx *store.Tx) (err error) {
				n, err = tx.PurgeOTPs(e.Context(), main, before, 10)
				return err
			})
			return n
		}
		e.same("too early", purge(start), 0)
		for before, want := range map[time.Time]int{start: 0, start.Add(time.Hour): 2} {
			old, err := e.store.OldOTPs(e.Context(), before)
			e.must(err)
			e.same("channels with old ones", len(old), want)
		}
		e.same("in time", purge(start.Add(time.Hour)), 1)
		e.same("forgotten", e.ledger(main, bob).Code.ID, parley.OTPID(""))
		if e.ledger(main, ann).Code.ID == "" || e.ledger(other, bob).Code.ID == "" {
			e.Error("an open code, or another channel's, is deleted")
		}
	},

	// The rows of a deleted channel stay for a while, and other channels read the codes of the same contact.
	"codes and links of a channel that is gone do not disturb others": func(e *env) {
		for what, end := range map[string]func(*store.Tx) error{
			"deleted": func(tx *store.Tx) error { return tx.DeleteChannel(e.Context(), main) },
			"reset":   func(tx *store.Tx) error { return tx.ClearChannel(e.Context(), main) },
		} {
			e.channel(main)
			gone, link := newLedger(main, ann), newLink(main, ann, 1)
			gone.Code.ID, link.ID = parley.OTPID("code-"+what), parley.OTPID("link-"+what)
			e.putLedgers(gone, newLedger(other, ann))
			e.addLinks(link)
			e.tx(end)
			ledgers, err := e.store.Ledgers(e.Context(), ann)
			e.must(err)
			if len(ledgers) != 1 || ledgers[0].Code.Channel != other {
				e.Errorf("%s: ledgers of the contact: %+v", what, ledgers)
			}
			_, err = e.store.Code(e.Context(), gone.Code.ID)
			e.same(what+": its code", err, parley.ErrNotFound)
			_, err = e.store.Link(e.Context(), link.ID)
			e.same(what+": its link", err, parley.ErrNotFound)
			links, err := e.store.ContactLinks(e.Context(), ann, 10)
			e.must(err)
			e.same(what+": links of the contact", len(links), 0)
		}
	},

	"codes and links are deleted with their channel": func(e *env) {
		e.channel(main, other)
		e.putLedgers(newLedger(main, ann), ended(newLedger(main, bob), parley.OTPStatusExpired, start), newLedger(other, ann))
		e.addLinks(newLink(main, ann, 1), newLink(other, ann, 2))
		e.tx(func(tx *store.Tx) error {
			if err := tx.AddLinkReply(e.Context(), main, ann, start); err != nil {
				return err
			}
			err := tx.DeleteChannel(e.Context(), main)
			return err
		})
		e.same("codes", e.ledger(main, ann).Code.ID+e.ledger(main, bob).Code.ID, parley.OTPID(""))
		e.same("links", e.linksByHash(main, []byte{1}), 0)
		replies, err := e.store.LinkReplies(e.Context(), main, ann, start)
		e.must(err)
		e.same("replies", len(replies), 0)
		e.same("links of another channel", e.linksByHash(other, []byte{2}), 1)
		if e.ledger(other, ann).Code.ID == "" {
			e.Error("another channel's code is deleted")
		}
	},
}
