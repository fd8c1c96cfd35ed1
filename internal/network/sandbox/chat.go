package sandbox

import (
	"context"
	"fmt"
	"math"
	"time"

	"parley"
)

// Chat is what a phone's list of chats shows of the one with the channel: the only one there is, because
// every channel has a world of its own.
type Chat struct {
	Number      string   // the channel's
	Last        *Message // nil: nothing was said yet
	Unread      int      // at most maxUnread
	TypingUntil time.Time
}

// ChatPage is a part of a chat as the phone shows it.
type ChatPage struct {
	Messages []Message // of both sides, newest first
	Next     Cursor    // the position that older ones are before; empty: there are none
}

const maxUnread = 999 // no screen shows more

// Chats lists the chats of a phone.
func (n *Network) Chats(ctx context.Context, channel parley.ChannelCode, number string) ([]Chat, error) {
	w, p, err := n.find(ctx, channel, number)
	if err != nil {
		return nil, err
	}
	page, err := n.chat(ctx, p, math.MaxInt64, 1)
	if err != nil || len(page.Messages) == 0 {
		return nil, err
	}
	chat := Chat{Number: w.number, Last: &page.Messages[0], TypingUntil: p.view().TypingUntil}
	_, read := p.marks()
	err = n.db.Read(ctx).QueryRow(`SELECT count(*) FROM (SELECT 1 FROM messages
		WHERE phone = $1 AND seq > $2 AND seq <= $3 AND from_phone = 0 AND status = 0 LIMIT $4)`,
		[]any{p.id, read, p.shown(), maxUnread}, &chat.Unread)
	if err != nil {
		return nil, fmt.Errorf("count what is unread: %w", err)
	}
	return []Chat{chat}, nil
}

// Chat reads what a phone shows of its chat with the channel: what reached it and what it sent, newest
// first, before a position. What waits for a phone that is offline is not on its screen.
func (n *Network) Chat(ctx context.Context, channel parley.ChannelCode, number string, before Cursor, limit int) (ChatPage, error) {
	last := int64(math.MaxInt64)
	if before != "" {
		seq, err := before.seq()
		if err != nil {
			return ChatPage{}, parley.InvalidField("before", "before must be a cursor as this server gave it.")
		}
		last = seq
	}
	_, p, err := n.find(ctx, channel, number)
	if err != nil {
		return ChatPage{}, err
	}
	return n.chat(ctx, p, last, limit)
}

func (n *Network) chat(ctx context.Context, p *phone, before int64, limit int) (ChatPage, error) {
	if err := n.unpack(ctx); err != nil {
		return ChatPage{}, err
	}
	delivered, read := p.marks()
	rows, err := n.db.Read(ctx).Query(`SELECT `+messageColumns+` FROM messages
		WHERE phone = $1 AND seq < $2 AND (from_phone = 1 OR seq <= $3) ORDER BY seq DESC LIMIT $4`, p.id, before, p.shown(), limit+1)
	if err != nil {
		return ChatPage{}, fmt.Errorf("read chat: %w", err)
	}
	defer rows.Close()
	var page ChatPage
	for rows.Next() {
		if len(page.Messages) == limit { // one more than is wanted: there are older ones
			seq, err := page.Messages[limit-1].Cursor.seq()
			page.Next = cursorAt(seq)
			return page, err
		}
		m, err := scanMessage(rows, p, delivered, read)
		if err != nil {
			return ChatPage{}, fmt.Errorf("read chat: %w", err)
		}
		page.Messages = append(page.Messages, m)
	}
	return page, rows.Err()
}

// Message finds one message of a phone's chat by its full or bare id; there being none is
// [parley.ErrNotFound].
func (n *Network) Message(ctx context.Context, channel parley.ChannelCode, number, id string) (Message, error) {
	_, p, err := n.find(ctx, channel, number)
	if err != nil {
		return Message{}, err
	}
	m, err := n.target(ctx, p, "message_id", id)
	if parley.CodeOf(err) == parley.Invalid {
		return Message{}, parley.ErrNotFound
	}
	return m, err
}
