package store_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/internal/store"
)

var messageTests = map[string]func(*env){
	"a message that the network repeats is stored once, with one event": func(e *env) {
		e.channel(main)
		e.channel("other")
		receive := func(tx *store.Tx, code parley.ChannelCode, id parley.MessageID) (*parley.Message, error) {
			m := &parley.Message{Channel: code, Chat: ann, ID: id, Content: parley.Text{Body: "Hi"}, Status: parley.Received, CreatedAt: start}
			tx.WhenStored(m, func() error {
				return tx.AddMediaFetch(e.Context(), parley.MediaFetch{Seq: m.Seq, Reference: []byte("r"), NextAt: start, CreatedAt: start})
			})
			return m, errors.Join(tx.ReceiveMessage(e.Context(), m, true),
				tx.AddEvent(e.Context(), &parley.Event{Type: parley.MessageReceived, Channel: code, At: start, Message: m}))
		}
		for _, ids := range [][]parley.MessageID{{"A", "B", "A"}, {"C", "A", "D"}} { // twice at once, and again later
			all := make([]*parley.Message, len(ids)+1)
			e.tx(func(tx *store.Tx) (err error) {
				for i, id := range ids {
					if all[i], err = receive(tx, main, id); err != nil {
						return err
					}
				}
				all[len(ids)], err = receive(tx, "other", ids[0]) // the id of a group's message is the same for every member
				return err
			})
			for i, m := range all {
				known := i > 0 && i < len(ids) && m.ID == "A"
				if (m.Seq == 0) != known {
					e.Errorf("%v: message %d of %s has the seq %d", ids, i, m.Channel, m.Seq)
				}
			}
		}
		var got []string
		for _, ev := range e.events(0) {
			got = append(got, string(ev.Channel)+" "+string(ev.Message.ID))
		}
		e.same("events", got, []string{"main A", "main B", "other A", "main C", "main D", "other C"})
		page, total, err := e.store.History(e.Context(), main, ann, parley.Page{Limit: 10})
		e.must(err)
		e.same("history", [2]int{len(page), int(total)}, [2]int{4, 4})
		counts, err := e.store.Counters(e.Context(), time.Now().Add(-time.Hour))
		e.must(err)
		e.same("counted", counts[store.CountReceived], int64(6))
		e.tx(func(tx *store.Tx) error {
			return tx.ReceiveMessage(e.Context(), &parley.Message{Channel: main, Chat: bob, ID: "E", Content: parley.Text{Body: "secret"},
				Status: parley.Received, CreatedAt: start}, false)
		})
		page, _, err = e.store.History(e.Context(), main, bob, parley.Page{Limit: 10})
		e.must(err)
		e.same("text", page[0].Content.Text(), "")
	},

	"a message comes back as it was stored": func(e *env) {
		want := outgoing("A1")
		want.ReplyTo, want.Request, want.Priority, want.Pool = "B1", "req_1", parley.PriorityKnown, "pool_1"
		want.Token = "tok_1"
		e.add(&want)
		if want.Seq == 0 {
			e.Error("it has no seq")
		}
		e.same("message", e.message(want), want)
	},

	"a message is found by its id": func(e *env) {
		own, foreign, elsewhere := outgoing(""), outgoing("C1"), outgoing("")
		elsewhere.Chat = bob
		e.add(&own, &foreign, &elsewhere)
		for _, want := range []parley.Message{own, foreign, elsewhere} {
			e.same("by its full id", e.message(want), want)
			got, err := e.store.Message(e.Context(), main, parley.MessageRef{ID: want.ID})
			e.must(err)
			e.same("by its bare id", got, want)
		}
		for name, ref := range map[string]parley.MessageRef{
			"in another chat": {FromMe: true, Chat: bob, ID: own.ID}, "of the other side": {Chat: ann, ID: own.ID},
		} {
			if _, err := e.store.Message(e.Context(), main, ref); !errors.Is(err, parley.ErrNotFound) {
				e.Errorf("%s: %v", name, err)
			}
		}
		if _, err := e.store.Message(e.Context(), other, parley.MessageRef{ID: own.ID}); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("on another channel: %v", err)
		}
		e.tx(func(tx *store.Tx) error { // long ago
			_, err := tx.AdvanceMessage(e.Context(), main, own.Ref(), parley.Sent, nil, start)
			return err
		})
		e.same("status", e.message(own).Status, parley.Sent)
	},

	"every kind of content comes back": func(e *env) {
		media := parley.Media{Key: "k", Source: "https://example.com/a.jpg", MIME: "image/jpeg", Filename: "a.jpg", Size: 5,
			SHA256: []byte{1}, MediaKey: []byte{2}, Width: 3, Height: 4, Seconds: 5, Waveform: []byte{6}, Thumbnail: []byte{7}}
		target := parley.MessageRef{FromMe: true, Chat: ann, ID: "A1"}
		for i, content := range []parley.Content{
			parley.Text{Body: "plain"}, parley.Secret{Shown: "••••", OTP: "otc_1", Encrypted: []byte{8}},
			parley.Text{Body: "with a link", Preview: &parley.Preview{URL: "https://example.com", Title: "T"}},
			parley.Image{Caption: "c", Media: media}, parley.Video{Caption: "c", Media: media}, parley.File{Media: media},
			parley.Voice{Media: media}, parley.Location{Title: "t", Latitude: "1.50", Longitude: "-2"},
			parley.Poll{Title: "t", Options: []string{"a", "b"}, Multiple: true},
			parley.Reaction{Emoji: "👍", Target: target}, parley.Seen{Target: target}, parley.Delete{Target: target},
			parley.Star{Target: target, Starred: true}, parley.Archive{Archived: true},
		} {
			m := outgoing(fmt.Sprint("A", i))
			m.Content = content
			e.add(&m)
			e.same(string(content.Kind()), e.message(m).Content, content)
		}
	},

	"text of any kind comes back": func(e *env) {
		for i, text := range []string{"", "Grüße 👩‍👩‍👧 \u202e", "a'b\"c;--", "line\nline\r\n", "$1 ? :x"} {
			m := outgoing(fmt.Sprint("A", i))
			m.Content = parley.Text{Body: text}
			e.add(&m)
			e.same("text", e.message(m).Content, parley.Content(parley.Text{Body: text}))
		}
	},

	"records count, operations do not": func(e *env) {
		one, op, two, elsewhere := outgoing("A1"), outgoing("A2"), incoming("A3"), outgoing("A4")
		op.Content = parley.Seen{Target: one.Ref()}
		elsewhere.Chat = bob
		e.add(&one, &op, &two, &elsewhere)
		for chat, want := range map[parley.ContactID][]parley.Message{ann: {two, one}, bob: {elsewhere}} {
			page, total, err := e.store.History(e.Context(), main, chat, parley.Page{Limit: 10})
			e.must(err)
			e.same("history", page, want)
			e.same("total", total, int64(len(want)))
		}
		if !(one.Seq < op.Seq && op.Seq < two.Seq && two.Seq < elsewhere.Seq) {
			e.Errorf("seqs do not rise: %d %d %d %d", one.Seq, op.Seq, two.Seq, elsewhere.Seq)
		}
		e.same("operation", e.message(op), op)
	},

	"a message is stored once": func(e *env) {
		first, again, next := incoming("A1"), incoming("A1"), incoming("A2")
		again.CreatedAt = start.Add(time.Hour)
		e.add(&first)
		// A caller may go on after this error: nothing of the copy may be left.
		e.tx(func(tx *store.Tx) error {
			if err := tx.AddMessage(e.Context(), &again); !errors.Is(err, parley.ErrExists) {
				return fmt.Errorf("got %w, want it to be there already", err)
			}
			return nil
		})
		chat, err := e.store.Chat(e.Context(), main, ann)
		e.must(err)
		e.same("chat", chat, parley.Chat{Contact: ann, Messages: 1, LastAt: start})
		e.add(&next)
		page, total, err := e.store.History(e.Context(), main, ann, parley.Page{Limit: 10})
		e.must(err)
		e.same("history", page, []parley.Message{next, first})
		e.same("total", total, int64(2))
		e.wants(parley.ErrExists, func(tx *store.Tx) error { return tx.AddMessage(e.Context(), &again) })
	},

	"a copy of an operation is refused and makes no chat": func(e *env) {
		op := outgoing("A1")
		op.Content = parley.Archive{Archived: true}
		e.add(&op)
		record := outgoing("A1")
		for _, m := range []parley.Message{op, record} {
			e.tx(func(tx *store.Tx) error {
				if err := tx.AddMessage(e.Context(), &m); !errors.Is(err, parley.ErrExists) {
					return fmt.Errorf("got %w", err)
				}
				return nil
			})
		}
		if _, err := e.store.Chat(e.Context(), main, ann); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("chat: got %v", err)
		}
	},

	"the same id in another chat, direction or channel is another message": func(e *env) {
		mine, theirs, bobs, others := outgoing("A1"), incoming("A1"), incoming("A1"), incoming("A1")
		bobs.Chat = bob
		others.Channel = other
		e.add(&mine, &theirs, &bobs, &others)
		for _, m := range []parley.Message{mine, theirs, bobs, others} {
			e.same("message", e.message(m), m)
		}
		if _, err := e.store.Message(e.Context(), main, parley.MessageRef{ID: "A1"}); !errors.Is(err, parley.ErrAmbiguous) {
			e.Errorf("bare id: got %v", err)
		}
		got, err := e.store.Message(e.Context(), other, parley.MessageRef{ID: "A1"})
		e.must(err)
		e.same("by bare id", got, others)
	},

	"an unknown message is not found": func(e *env) {
		m := outgoing("A1")
		e.add(&m)
		for _, ref := range []parley.MessageRef{
			{ID: "A2"}, {FromMe: false, Chat: ann, ID: "A1"}, {FromMe: true, Chat: bob, ID: "A1"}, {FromMe: true, Chat: ann, ID: "a1"},
		} {
			if _, err := e.store.Message(e.Context(), main, ref); !errors.Is(err, parley.ErrNotFound) {
				e.Errorf("%s: got %v", ref, err)
			}
		}
		if _, err := e.store.Message(e.Context(), other, m.Ref()); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("of another channel: got %v", err)
		}
		none := parley.MessageRef{FromMe: true, Chat: ann, ID: "A2"}
		for name, write := range map[string]func(*store.Tx) error{
			"advance": func(tx *store.Tx) error {
				_, err := tx.AdvanceMessage(e.Context(), main, none, parley.Sent, nil, start)
				return err
			},
			"delay":  func(tx *store.Tx) error { return tx.DelayMessage(e.Context(), main, none, 1, start) },
			"erase":  func(tx *store.Tx) error { return tx.EraseMessage(e.Context(), main, none) },
			"react":  func(tx *store.Tx) error { return tx.SetReaction(e.Context(), main, none, ann, "👍") },
			"redact": func(tx *store.Tx) error { return tx.SetReaction(e.Context(), main, none, ann, "") },
			"star":   func(tx *store.Tx) error { return tx.SetStarred(e.Context(), main, none, true) },
		} {
			if err := e.store.Tx(e.Context(), write); !errors.Is(err, parley.ErrNotFound) {
				e.Errorf("%s: got %v", name, err)
			}
		}
	},

	"status moves as the rule says": func(e *env) {
		why := &parley.Failure{Code: parley.Restricted, Message: "Not now.", Until: start.Add(time.Hour)}
		for _, from := range parley.Statuses {
			for _, to := range parley.Statuses {
				m := outgoing(fmt.Sprintf("A%d-%d", from, to))
				m.FromMe, m.Status = from != parley.Received, from
				e.add(&m)
				var moved bool
				e.tx(func(tx *store.Tx) (err error) {
					moved, err = tx.AdvanceMessage(e.Context(), main, m.Ref(), to, why, start.Add(time.Minute))
					return err
				})
				want := m
				if to.CanFollow(from) {
					want.Status, want.UpdatedAt, want.Failure = to, start.Add(time.Minute), why
				}
				e.same(fmt.Sprintf("%s to %s", from, to), []any{moved, e.message(m)}, []any{to.CanFollow(from), want})
			}
		}
	},

	"what arrived after all has no failure": func(e *env) {
		m := outgoing("A1")
		e.add(&m)
		e.tx(func(tx *store.Tx) error {
			_, err := tx.AdvanceMessage(e.Context(), main, m.Ref(), parley.Failed, &parley.Failure{Code: parley.GaveUp}, start)
			return err
		})
		e.same("failure", e.message(m).Failure, &parley.Failure{Code: parley.GaveUp})
		e.tx(func(tx *store.Tx) error {
			_, err := tx.AdvanceMessage(e.Context(), main, m.Ref(), parley.Delivered, nil, start)
			return err
		})
		if f := e.message(m).Failure; f != nil {
			e.Errorf("failure is %+v", f)
		}
	},

	"stars come and go": func(e *env) {
		m := incoming("A1")
		e.add(&m)
		for _, starred := range []bool{true, true, false} {
			e.tx(func(tx *store.Tx) error { return tx.SetStarred(e.Context(), main, m.Ref(), starred) })
			e.same("starred", e.message(m).Starred, starred)
		}
	},

	"history has no holes under concurrency": func(e *env) {
		const writers, each = 16, 40 // more than are filed at once
		sent := make([][]parley.MessageID, writers)
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					m := outgoing(fmt.Sprintf("A%d-%d", w, i))
					err := e.store.Tx(e.Context(), func(tx *store.Tx) error {
						if err := tx.AddMessage(e.Context(), &m); err != nil {
							return err
						}
						if i%5 == 0 {
							return errRefused // undone
						}
						return nil
					})
					if err == nil {
						sent[w] = append(sent[w], m.ID)
					} else if !errors.Is(err, errRefused) {
						e.Error(err)
					}
				}
			})
		}
		wg.Wait()
		var history []parley.Message
		for offset := int64(0); ; offset += 50 {
			page, total, err := e.store.History(e.Context(), main, ann, parley.Page{Limit: 50, Offset: offset})
			e.must(err)
			e.same("total", total, int64(writers*each*4/5))
			if len(page) == 0 {
				break
			}
			history = append(history, page...)
		}
		slices.Reverse(history)
		e.same("messages", len(history), writers*each*4/5)
		if !slices.IsSortedFunc(history, func(a, b parley.Message) int { return cmp.Compare(a.Seq, b.Seq) }) {
			e.Error("history is not in the order of acceptance")
		}
		for w, own := range sent {
			var got []parley.MessageID
			for _, m := range history {
				if slices.Contains(own, m.ID) {
					got = append(got, m.ID)
				}
			}
			e.same(fmt.Sprint("of writer ", w), got, own)
		}
	},

	"many are moved at once": func(e *env) {
		var ids []parley.MessageID
		for i := range 70 { // several statements' worth
			m := outgoing(fmt.Sprint("A", i))
			e.add(&m)
			ids = append(ids, m.ID)
		}
		advance := func(to parley.Status, ids ...parley.MessageID) (moved, unknown []parley.MessageID) {
			got := e.advance(receipt(ann, to, start.Add(time.Minute), ids...))
			return got[0].IDs, got[0].Unknown
		}
		moved, unknown := advance(parley.Delivered, ids...)
		e.same("moved", moved, ids)
		e.same("unknown", len(unknown), 0)
		moved, _ = advance(parley.Delivered, ids[:3]...)
		e.same("moved twice", len(moved), 0)
		e.tx(func(tx *store.Tx) error {
			_, err := tx.AdvanceMessage(e.Context(), main, parley.MessageRef{FromMe: true, Chat: ann, ID: ids[1]}, parley.Read, nil, start)
			return err
		})
		moved, unknown = advance(parley.Read, ids[0], "UNKNOWN", ids[1], ids[2])
		e.same("moved of some", moved, []parley.MessageID{ids[0], ids[2]})
		e.same("unknown of some", unknown, []parley.MessageID{"UNKNOWN"})
		for i, want := range []parley.Status{parley.Read, parley.Read, parley.Read, parley.Delivered} {
			e.same("status", e.message(outgoing(string(ids[i]))).Status, want)
		}
		elsewhere := e.advance(receipt(bob, parley.Read, start, ids[3])) // a receipt of another contact changes nothing
		e.same("another contact's receipt", elsewhere, []store.Advanced{{Unknown: ids[3:4]}})
	},

	"receipts of several chats and channels are applied together": func(e *env) {
		e.channel(other)
		one, two, far := outgoing("A1"), outgoing("A2"), outgoing("A1")
		two.Chat, far.Channel = bob, other
		e.add(&one, &two, &far)
		later := start.Add(time.Minute)
		inOther := receipt(ann, parley.Delivered, start, "A1", "A2")
		inOther.Channel = other
		gone := receipt(ann, parley.Delivered, start, "A1")
		gone.Channel = "gone"
		got := e.advance(
			receipt(ann, parley.Read, later, "A1"), // the same message twice, the later status first
			receipt(ann, parley.Delivered, start, "A1"),
			receipt(bob, parley.Delivered, start, "A2", "A1"),
			inOther, gone,
			receipt(bob, parley.Delivered, start, "A2"),
			receipt(bob, parley.Delivered, start),
		)
		changed := func(m parley.Message, unknown ...parley.MessageID) store.Advanced {
			return store.Advanced{IDs: []parley.MessageID{m.ID}, Seqs: []int64{m.Seq}, Unknown: unknown}
		}
		e.same("results", got, []store.Advanced{changed(one), changed(one), changed(two, "A1"), changed(far, "A2"),
			{Unknown: []parley.MessageID{"A1"}}, {}, {}})
		e.same("statuses", []parley.Status{e.message(one).Status, e.message(two).Status, e.message(far).Status},
			[]parley.Status{parley.Read, parley.Delivered, parley.Delivered})
		e.same("story", e.timeline(0), []string{
			fmt.Sprint(one.Seq, " SENT message.status"), fmt.Sprint(one.Seq, " DELIVERED message.status"),
			fmt.Sprint(two.Seq, " SENT message.status"), fmt.Sprint(two.Seq, " DELIVERED message.status"),
			fmt.Sprint(far.Seq, " SENT message.status"), fmt.Sprint(far.Seq, " DELIVERED message.status"),
			fmt.Sprint(one.Seq, " READ message.status"),
		})
	},

	"what failed and arrived all the same is not failed": func(e *env) {
		m := outgoing("A1")
		e.add(&m)
		e.tx(func(tx *store.Tx) error {
			why := parley.Failure{Code: parley.GaveUp, Message: "No."}
			_, err := tx.AdvanceMessage(e.Context(), main, m.Ref(), parley.Failed, &why, start)
			return err
		})
		e.same("moved", e.advance(receipt(ann, parley.Delivered, start, m.ID)),
			[]store.Advanced{{IDs: []parley.MessageID{m.ID}, Seqs: []int64{m.Seq}}})
		if got := e.message(m); got.Status != parley.Delivered || got.Failure != nil {
			e.Errorf("it is %s, %+v", got.Status, got.Failure)
		}
	},

	"confirming moves only what is pending": func(e *env) {
		var seqs []int64
		for i := range 40 {
			m := outgoing(fmt.Sprint("A", i))
			e.add(&m)
			seqs = append(seqs, m.Seq)
		}
		e.tx(func(tx *store.Tx) error {
			_, err := tx.AdvanceMessage(e.Context(), main, parley.MessageRef{FromMe: true, Chat: ann, ID: "A7"}, parley.Read, nil, start)
			return err
		})
		e.tx(func(tx *store.Tx) error { return tx.ConfirmMessages(e.Context(), main, append(seqs, 1<<40), start) })
		for i := range 40 {
			want := parley.Sent
			if i == 7 {
				want = parley.Read
			}
			e.same(fmt.Sprint("status of ", i), e.message(outgoing(fmt.Sprint("A", i))).Status, want)
		}
		pending, err := e.store.Queue(e.Context(), main)
		e.must(err)
		e.same("pending", len(pending), 0)
	},
}

var errRefused = errors.New("refused by the test")

func receipt(chat parley.ContactID, status parley.Status, at time.Time, ids ...parley.MessageID) store.Receipt {
	return store.Receipt{Channel: main, Chat: chat, IDs: ids, Status: status, At: at}
}

func (e *env) advance(receipts ...store.Receipt) (got []store.Advanced) {
	e.tx(func(tx *store.Tx) (err error) {
		got, err = tx.AdvanceMessages(e.Context(), receipts...)
		return err
	})
	return got
}
