package api

import (
	"context"
	"strings"

	"parley"
	"parley/internal/api/form"
	"parley/internal/store"
)

const (
	maxOptOutWords = 20
	maxOptOuts     = 1000 // in one request or response
)

// optOutSettings reads how contacts ask a channel not to write to them.
func optOutSettings(f form.Form) *parley.OptOut {
	o := &parley.OptOut{Words: f.Texts("words", 1, maxOptOutWords, 1, 40), Reply: f.OptionalText("reply", 1, 4096)}
	for i, word := range o.Words {
		if o.Words[i] = strings.TrimSpace(word); strings.EqualFold(o.Words[i], parley.OptInWord) {
			f.Fail("words", "cannot contain %s, which takes a contact off the list.", parley.OptInWord)
		}
	}
	return o
}

type optOutRow struct {
	ContactID   parley.ContactID `json:"contact_id"`
	ContactName string           `json:"contact_name"`
	At          string           `json:"opted_out_at"`
}

func (s *server) optOutRows(ctx context.Context, r *request, some []store.OptOut) []optOutRow {
	names := s.config.Gateway.NewNameFinder().In(ctx)
	return mapped(some, func(o store.OptOut) optOutRow {
		return optOutRow{o.Contact, names(r.channel.Code, o.Contact), parley.Stamp(o.At)}
	})
}

// listOptOuts lists the contacts that want no messages, newest first.
func (s *server) listOptOuts(ctx context.Context, r *request) (any, error) {
	after, limit := chatCursor(r.Form, "cursor"), int(r.Whole("limit", 50, 1, maxOptOuts))
	if err := r.Err(); err != nil {
		return nil, err
	}
	some, err := s.config.Store.OptOuts(ctx, r.channel.Code, after, limit+1)
	var meta cursorMeta
	if len(some) > limit {
		some = some[:limit]
		meta.NextCursor = chatCursorText(some[limit-1].Cursor)
	}
	return envelope{Success: true, Message: "OK", Data: s.optOutRows(ctx, r, some), Meta: meta}, err
}

func (s *server) exportOptOuts(ctx context.Context, r *request) (response, error) {
	var after parley.ChatCursor
	return streamExport(ctx, s, r, export[optOutRow]{
		name: "opt-outs", object: string(r.channel.Code), columns: []string{"contact_id", "contact_name", "opted_out_at"},
		atMost: func(ctx context.Context) (int64, error) { return s.config.Store.CountOptOuts(ctx, r.channel.Code) },
		next: func(ctx context.Context) ([]optOutRow, bool, error) {
			some, err := s.config.Store.OptOuts(ctx, r.channel.Code, after, exportPage)
			if len(some) > 0 {
				after = some[len(some)-1].Cursor
			}
			return s.optOutRows(ctx, r, some), len(some) == exportPage, err
		},
	})
}

type optOutData struct {
	Changed int `json:"changed"` // the others were or were not on the list before
}

// addOptOuts takes one contact, or many to import a list.
func (s *server) addOptOuts(ctx context.Context, r *request) (any, error) {
	var contacts []parley.ContactID
	if r.Has("contact_ids") {
		r.List("contact_ids", 1, maxOptOuts, true, func(f form.Form, index string) { contacts = append(contacts, f.Contact(index)) })
		if r.Has("contact_id") {
			r.Fail("contact_ids", "cannot be sent together with contact_id.")
		}
	} else {
		contacts = append(contacts, r.Contact("contact_id"))
	}
	return s.setOptedOut(ctx, r, contacts, true, "Opted out")
}

func (s *server) removeOptOut(ctx context.Context, r *request) (any, error) {
	return s.setOptedOut(ctx, r, []parley.ContactID{r.Contact("contact_id")}, false, "Opted in")
}

func (s *server) setOptedOut(ctx context.Context, r *request, contacts []parley.ContactID, out bool, sentence string) (any, error) {
	if err := r.Err(); err != nil {
		return nil, err
	}
	n, err := s.config.Gateway.SetOptedOut(ctx, r.channel.Code, contacts, out)
	return ok(sentence, optOutData{n}), err
}
