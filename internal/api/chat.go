package api

import (
	"context"
	"errors"

	"parley"
	"parley/internal/gateway"
)

// history lists the messages of a chat, newest first.
func (s *server) history(ctx context.Context, r *request) (envelope[[]parley.MessageView], error) {
	contact, page := r.Contact("contact_id"), r.Page()
	if err := r.Err(); err != nil {
		return envelope[[]parley.MessageView]{}, err
	}
	return s.readHistory(ctx, r.channel, contact, page, "OK")
}

func (s *server) readHistory(
	ctx context.Context, c parley.Channel, chat parley.ContactID, page parley.Page, sentence string,
) (envelope[[]parley.MessageView], error) {
	ms, total, err := s.Gateway.History(ctx, c.Code, chat, page)
	if err != nil {
		return envelope[[]parley.MessageView]{}, err
	}
	records := make([]parley.MessageView, len(ms))
	for i := range ms {
		records[i] = parley.ViewOf(&ms[i])
		if !c.Settings.StoresText() { // a pending message still has its text
			records[i].Body = ""
		}
	}
	return okList(sentence, records, page, total), nil
}

type chatRow struct {
	ContactID parley.ContactID `json:"contact_id"`
	Messages  int64            `json:"messages"`
	Archived  bool             `json:"archived"`
	Timestamp string           `json:"timestamp"`
}

func (s *server) chats(ctx context.Context, r *request) (envelope[[]chatRow], error) {
	page := r.Page()
	if err := r.Err(); err != nil {
		return envelope[[]chatRow]{}, err
	}
	chats, total, err := s.Store.Chats(ctx, r.channel.Code, page)
	if err != nil {
		return envelope[[]chatRow]{}, err
	}
	return okList("OK", mapped(chats, func(c parley.Chat) chatRow {
		return chatRow{ContactID: c.Contact, Messages: c.Messages, Archived: c.Archived, Timestamp: parley.Stamp(c.LastAt)}
	}), page, total), nil
}

// chat reads the contact of an existing chat.
func (s *server) chat(ctx context.Context, r *request) (parley.ContactID, error) {
	contact := r.Contact("contact_id")
	if err := r.Err(); err != nil {
		return "", err
	}
	_, err := s.Store.Chat(ctx, r.channel.Code, contact)
	if errors.Is(err, parley.ErrNotFound) {
		return "", parley.InvalidField("contact_id", "contact_id has no chat on this channel yet. Send a message first.")
	}
	return contact, err
}

var archivePage = parley.Page{Limit: 50}

// archiving archives a chat and returns its newest messages.
func archiving(s *server) work {
	fromMessages := func(ctx context.Context, r *request, ms []parley.Message) (response, error) {
		m := &ms[0]
		list, err := s.readHistory(ctx, r.channel, m.Chat, archivePage, outcome(m, "Chat archived", "Accepted; the chat will be archived"))
		if err != nil {
			return response{}, err
		}
		list.Success = m.Status != parley.Failed
		return jsonResponse(list)
	}
	return work{
		do: func(ctx context.Context, r *request) (response, error) {
			if err := r.channel.Usable(); err != nil {
				return response{}, err
			}
			chat, err := s.chat(ctx, r)
			if err != nil {
				return response{}, err
			}
			ms, err := s.accept(ctx, r, r.channel.Code, []gateway.Draft{{To: chat, Content: parley.Archive{Archived: true}}})
			if err != nil {
				return response{}, err
			}
			a, err := fromMessages(context.WithoutCancel(ctx), r, ms)
			return r.prefer.on(a), err
		},
		fromMessages: fromMessages,
	}
}
