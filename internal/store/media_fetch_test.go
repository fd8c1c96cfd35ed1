package store_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/internal/store"
)

// pictureFrom stores a picture from a contact whose file is to be fetched.
func (e *env) pictureFrom(channel parley.ChannelCode, chat parley.ContactID, id string, next time.Time) parley.Message {
	e.Helper()
	m := incoming(id)
	m.Channel, m.Chat = channel, chat
	m.Content = parley.Image{Caption: "caption", Media: parley.Media{ID: "k" + id, MIME: "image/png", Size: 3}}
	e.tx(func(tx *store.Tx) error {
		return errors.Join(tx.AddMessage(e.Context(), &m), tx.AddMediaFetch(e.Context(), parley.MediaFetch{
			Seq: m.Seq, Channel: channel, Chat: chat, Reference: []byte("ref " + id), NextAt: next, CreatedAt: start}))
	})
	return m
}

// dueFiles lists the files that are due, by their messages.
func (e *env) dueFiles(now time.Time, running ...int64) (seqs []int64) {
	e.Helper()
	due, err := e.store.DueMediaFetches(e.Context(), now, start.Add(24*time.Hour), running)
	e.must(err)
	for _, f := range due {
		seqs = append(seqs, f.Seq)
	}
	return seqs
}

func (e *env) mediaStatus(m parley.Message) parley.MediaStatus {
	e.Helper()
	now := e.message(m)
	return parley.MediaIn(now.Content).Status()
}

var mediaFetchTests = map[string]func(*env){
	"a message is read with the text that it replies to": func(e *env) {
		e.channel(main)
		e.channel(other)
		question, elsewhere := outgoing("B1"), outgoing("B1")
		elsewhere.Channel, elsewhere.Content = other, parley.Text{Body: "of another channel"}
		question.Content = parley.Image{Caption: "tea?", Media: parley.Media{Key: "k"}}
		answer := incoming("B2")
		answer.ReplyTo = question.ID
		toNobody := incoming("B3")
		toNobody.ReplyTo = "B9"
		event := parley.Event{Type: parley.MessageReceived, Channel: main, At: start, Message: &answer}
		e.tx(func(tx *store.Tx) error {
			return errors.Join(tx.AddMessage(e.Context(), &elsewhere), tx.AddMessage(e.Context(), &question), tx.AddMessage(e.Context(), &answer),
				tx.AddMessage(e.Context(), &toNobody), tx.AddEvent(e.Context(), &event))
		})
		quoted := func() []string {
			history, _, err := e.store.History(e.Context(), main, answer.Chat, parley.Page{Limit: 10})
			e.must(err)
			events, err := e.store.EventsAt(e.Context(), []int64{event.Seq})
			e.must(err)
			alone := []parley.Message{e.message(answer)}
			e.must(e.store.AddRelated(e.Context(), alone))
			at, err := e.store.MessageAt(e.Context(), answer.Seq)
			e.must(err)
			e.same("the message", at.Ref(), answer.Ref())
			return []string{history[0].QuotedBody, history[1].QuotedBody, events[0].Message.QuotedBody, alone[0].QuotedBody}
		}
		e.same("quoted", quoted(), []string{"", "tea?", "tea?", "tea?"})
		e.tx(func(tx *store.Tx) error { return tx.EraseMessage(e.Context(), main, question.Ref()) })
		e.same("quoted after it was erased", quoted(), []string{"", "", "", ""})
	},

	"files that messages and uploads name are found": func(e *env) {
		e.channel(main)
		e.pictureFrom(main, ann, "A1", start)
		sent := outgoing("A2")
		sent.Content = parley.Voice{Media: parley.Media{Key: "kA2", MIME: "audio/ogg"}}
		text := outgoing("A3")
		sticker := outgoing("A4")
		sticker.Content = parley.Sticker{Media: parley.Media{Key: "kA4", MIME: "image/webp"}}
		template := outgoing("A5")
		template.Content = parley.Template{Name: "hello", Language: "id", Media: &parley.Media{Key: "kA5", MIME: "image/png"}}
		for _, m := range []*parley.Message{&sent, &text, &sticker, &template} {
			e.tx(func(tx *store.Tx) error { return tx.AddMessage(e.Context(), m) })
		}
		e.tx(func(tx *store.Tx) error {
			return tx.AddUpload(e.Context(), store.Upload{Key: "u1", File: "kU", Channel: main, At: start})
		})
		named := func() []string {
			keys, err := e.store.NamedFiles(e.Context(), []string{"kA1", "kA2", "kA4", "kA5", "kU", "u1", "none"})
			e.must(err)
			slices.Sort(keys)
			return keys
		}
		e.same("named", named(), []string{"kA2", "kA4", "kA5", "kU"}) // that of A1 is not there yet
		e.tx(func(tx *store.Tx) error { return tx.EraseMessage(e.Context(), main, sent.Ref()) })
		e.same("after one was erased", named(), []string{"kA4", "kA5", "kU"})
	},

	"the oldest due file of each chat is first": func(e *env) {
		e.channel(main, other)
		later := start.Add(time.Minute)
		first := e.pictureFrom(main, ann, "A1", start)
		second := e.pictureFrom(main, ann, "A2", start)
		bobs := e.pictureFrom(main, bob, "B1", start)
		waits := e.pictureFrom(other, ann, "C1", later)

		e.same("due", e.dueFiles(start), []int64{first.Seq, bobs.Seq})
		e.same("due beside one that runs", e.dueFiles(start, first.Seq, bobs.Seq), []int64{second.Seq})
		wrong := e.pictureFrom(other, bob, "D1", start.Add(7*24*time.Hour)) // by a clock that was ahead
		e.same("due whatever the clock says", e.dueFiles(start), []int64{first.Seq, bobs.Seq, wrong.Seq})
		e.tx(func(tx *store.Tx) error { return tx.EraseMessage(e.Context(), other, wrong.Ref()) })
		e.same("due later", e.dueFiles(later), []int64{first.Seq, bobs.Seq, waits.Seq})
		next, err := e.store.NextMediaFetch(e.Context(), start)
		e.must(err)
		e.same("next", next, later)
		next, err = e.store.NextMediaFetch(e.Context(), later)
		e.must(err)
		e.same("no next", next, time.Time{})

		got, err := e.store.MediaFetch(e.Context(), bobs.Seq)
		e.must(err)
		e.same("file", got, parley.MediaFetch{Seq: bobs.Seq, Channel: main, Chat: bob, Reference: []byte("ref B1"),
			NextAt: start, CreatedAt: start, Media: *parley.MediaIn(bobs.Content)})
		_, err = e.store.MediaFetch(e.Context(), 1000)
		e.same("unknown file", err, parley.ErrNotFound)
	},

	"a file is pending until it is there or has failed": func(e *env) {
		e.channel(main)
		arrives, fails := e.pictureFrom(main, ann, "A1", start), e.pictureFrom(main, ann, "A2", start)
		e.same("pending", e.mediaStatus(arrives), parley.MediaPending)
		next := start.Add(time.Hour)
		e.tx(func(tx *store.Tx) error { return tx.DelayMediaFetch(e.Context(), arrives.Seq, 3, next) })
		delayed, err := e.store.MediaFetch(e.Context(), arrives.Seq)
		e.must(err)
		e.same("delayed", []any{delayed.Attempts, delayed.NextAt}, []any{3, next})
		m := e.message(arrives)
		e.same("delayed message", parley.MediaIn(m.Content).FetchAt, next)

		file := parley.Media{ID: "kA1", Key: "kA1", MIME: "image/jpeg", Size: 7, Width: 2, Height: 1}
		e.tx(func(tx *store.Tx) error {
			return second(tx.AddFile(e.Context(), store.StoredFile{Key: "kA1", Channel: main, SHA256: []byte("1"), Size: 7, At: start}))
		})
		var finished parley.Message
		e.tx(func(tx *store.Tx) (err error) {
			if finished, err = tx.FinishMediaFetch(e.Context(), arrives.Seq, file); err != nil {
				return err
			}
			_, err = tx.FinishMediaFetch(e.Context(), fails.Seq, parley.Media{Failure: "No."})
			return err
		})
		want := arrives
		want.Content = parley.Image{Caption: "caption", Media: file}
		e.same("finished", finished, want)
		e.same("stored", e.message(arrives), want)
		named := func() []string {
			keys, err := e.store.NamedFiles(e.Context(), []string{"kA1"})
			e.must(err)
			return keys
		}
		e.same("named", named(), []string{"kA1"})
		e.tx(func(tx *store.Tx) error {
			edited := want
			edited.Content, edited.EditedAt = parley.Image{Media: file, Caption: "edited"}, next
			return tx.EditMessage(e.Context(), &edited)
		})
		e.same("named by the edited message", named(), []string{"kA1"})
		e.same("failed", e.mediaStatus(fails), parley.MediaFailed)
		e.same("due", e.dueFiles(next), []int64(nil))
		for _, change := range []func(*store.Tx) error{
			func(tx *store.Tx) error { return tx.DelayMediaFetch(e.Context(), fails.Seq, 1, start) },
			func(tx *store.Tx) error { return second(tx.FinishMediaFetch(e.Context(), fails.Seq, file)) },
		} {
			e.wants(parley.ErrNotFound, change)
		}
	},

	"whatever erases a message ends the fetch of its file": func(e *env) {
		e.channel(main, other)
		for i, erase := range []func(*store.Tx, parley.Message) error{
			func(tx *store.Tx, m parley.Message) error { return tx.EraseMessage(e.Context(), main, m.Ref()) },
			func(tx *store.Tx, m parley.Message) error {
				_, _, err := tx.EraseOlder(e.Context(), main, start.Add(time.Minute), 10)
				return err
			},
			func(tx *store.Tx, m parley.Message) error {
				return tx.ArchiveChannel(e.Context(), main, parley.Channel{Code: "archive", Network: parley.Sandbox})
			},
			func(tx *store.Tx, m parley.Message) error { return tx.ClearChannel(e.Context(), main) },
			func(tx *store.Tx, m parley.Message) error { return tx.DeleteChannel(e.Context(), main) },
		} {
			m := e.pictureFrom(main, ann, fmt.Sprint("A", i), start)
			e.same("before", e.dueFiles(start), []int64{m.Seq})
			e.tx(func(tx *store.Tx) error { return erase(tx, m) })
			e.same(fmt.Sprint("after ", i), e.dueFiles(start), []int64(nil))
			e.purge()
			e.same(fmt.Sprint("after the purge ", i), e.dueFiles(start), []int64(nil))
			e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return second(tx.FinishMediaFetch(e.Context(), m.Seq, parley.Media{})) })
		}
	},
}
