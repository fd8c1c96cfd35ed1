package api

import (
	"context"
	"slices"
	"time"

	"parley"
	"parley/internal/wire"
)

func (s *server) history(ctx context.Context, r *request) (any, error) {
	chat, page := r.Chat(), r.Page()
	if err := r.Err(); err != nil {
		return nil, err
	}
	return s.readHistory(ctx, r, chat, page)
}

func (s *server) readHistory(ctx context.Context, r *request, chat parley.ContactID, page parley.Page) (envelope, error) {
	ms, total, err := s.config.Gateway.History(ctx, r.channel.Code, chat, page)
	records := make([]wire.Message, len(ms))
	links, names := parley.MediaLinks{Base: s.baseURL(r.http)}, s.config.Gateway.NewNameFinder().In(ctx)
	for i := range ms {
		records[i] = wire.NewMessage(&ms[i], links.Plain, names)
		records[i].Waiting = wire.NewWaiting(s.config.Gateway.Waiting(ctx, &ms[i]))
		if !r.channel.Settings.StoresText() { // a pending message still has its content
			records[i].HideContent()
		}
	}
	return okPage(records, page, total), err
}

func (s *server) chats(ctx context.Context, r *request) (any, error) {
	page, after := r.Page(), chatCursor(r.Form, "cursor")
	byCursor := after != (parley.ChatCursor{})
	if byCursor && page.Offset > 0 {
		r.Fail("offset", "cannot be used with cursor: the page begins after the cursor.")
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	chats, next, total, err := s.config.Store.Chats(ctx, r.channel.Code, page, after)
	if err != nil {
		return nil, err
	}
	rows, err := s.chatRows(ctx, r, chats)
	list := okPage(rows, page, total)
	meta := chatMeta{list.Meta.(pageMeta), cursorMeta{chatCursorText(next)}}
	if byCursor { // where the page is in the list is not known
		meta.CurrentPage, meta.HasPrevPage, meta.HasNextPage = 0, true, meta.NextCursor != nil
	}
	list.Meta = meta
	return list, err
}

// chatRows shows chats with their names and last messages.
func (s *server) chatRows(ctx context.Context, r *request, chats []parley.Chat) ([]wire.Chat, error) {
	rows := make([]wire.Chat, len(chats))
	if len(chats) == 0 {
		return rows, nil
	}
	ids := mapped(chats, func(c parley.Chat) parley.ContactID { return c.Contact })
	found, err := s.config.Gateway.ListChats(ctx, parley.ChatQuery{Channel: r.channel.Code, Contacts: ids, Limit: len(ids)})
	if err != nil {
		return nil, err
	}
	names := s.config.Gateway.NewNameFinder().In(ctx)
	listed, err := s.listedChats(ctx, r, names, found)
	if err != nil {
		return nil, err
	}
	ends, err := s.config.Gateway.WindowEnds(ctx, r.channel, ids...)
	for i, c := range chats {
		rows[i] = wire.Chat{GroupID: c.Contact.Group(), Name: names(r.channel.Code, c.Contact), Messages: c.Messages, Archived: c.Archived,
			Timestamp: parley.Stamp(c.LastAt)}
		if rows[i].GroupID == "" {
			rows[i].ContactID = c.Contact
			rows[i].WindowUntil = windowUntil(ends, c.Contact)
		}
		if at := slices.IndexFunc(listed, func(l listedChat) bool { return l.ID == c.Contact }); at >= 0 {
			rows[i].Last = &listed[at].Last
		}
	}
	return rows, err
}

// windowUntil shows until when a contact can get more than templates; nil: the channel has no such limit.
func windowUntil(ends map[parley.ContactID]time.Time, contact parley.ContactID) *wire.Time {
	if ends == nil {
		return nil
	}
	return &wire.Time{Time: ends[contact]}
}

type chatMeta struct {
	pageMeta
	cursorMeta
}

// chat reads the contact or group of an existing chat.
func (s *server) chat(ctx context.Context, r *request) (parley.ContactID, error) {
	chat := r.Chat()
	if err := r.Err(); err != nil {
		return "", err
	}
	field := "contact_id"
	if chat.IsGroup() {
		field = "group_id"
	}
	_, err := s.config.Store.Chat(ctx, r.channel.Code, chat)
	return chat, notFoundAs(err, parley.InvalidField(field, field+" has no chat on this channel yet. Send a message first."))
}

var archivePage = parley.Page{Limit: 50}

func (s *server) archiveResponse(ctx context.Context, r *request, ms []parley.Message) (response, error) {
	m := &ms[0]
	list, err := s.readHistory(context.WithoutCancel(ctx), r, m.Chat, archivePage)
	if err != nil {
		return response{}, err
	}
	list.Success, list.Message = m.Status != parley.Failed, outcome(m, "Chat archived", "Accepted; the chat will be archived")
	return jsonResponse(list)
}
