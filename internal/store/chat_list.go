package store

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"parley"
)

// unreadOf is SQL for the number of received messages at the end of a chat that were not read. It looks at the last
// MaxUnread messages only. The joined message is the chat's last one.
const unreadOf = `(SELECT count(*) FROM message AS late WHERE late.chat = chat.id AND late.position > greatest(message.position - $1,
	coalesce((SELECT max(position) FROM message AS known WHERE known.chat = chat.id AND known.position > message.position - $1
		AND NOT (known.from_me = 0 AND known.status = 7)), 0)))`

// ListChats reads chats with their last messages, newest first: by when their last active minute began, so that an index has the
// order of the list and every page costs the same.
func (r Reader) ListChats(ctx context.Context, q parley.ChatQuery) ([]parley.ChatSummary, error) {
	r = r.with(ctx)
	if len(q.Contacts) == 0 && q.Number == "" && q.Ending == "" {
		return r.chatPage(q, `chat`)
	}
	var all []parley.ChatSummary
	if q.Number != "" {
		found, err := r.chatPage(q, someChats(`contact >= $2 AND contact < $3`), q.Number, afterNumber(q.Number))
		if err != nil {
			return nil, err
		}
		all = found
	}
	if q.Ending != "" {
		found, err := r.chatPage(q, someChats(endsWith(`$2`, `$3`)), lastDigits(q.Ending)...)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for some := range slices.Chunk(q.Contacts, maxList) {
		in, args := inList(2, texts(some))
		found, err := r.chatPage(q, someChats(`contact IN `+in), args...)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b parley.ChatSummary) int {
		return b.Cursor.Compare(a.Cursor)
	})
	all = slices.CompactFunc(all, func(a, b parley.ChatSummary) bool { return a.Cursor == b.Cursor })
	return all[:min(len(all), q.Limit)], nil
}

// ChatsWith lists the chats with a contact, by any spelling of its number, newest first.
func (r Reader) ChatsWith(ctx context.Context, contact parley.ContactID, limit int) ([]parley.ChatSummary, error) {
	with := strings.ReplaceAll(withContact, `$1`, `$2`)
	return r.with(ctx).chatPage(parley.ChatQuery{Limit: limit}, someChats(with), string(contact))
}

const summaryColumns = `id, channel, contact, archived, last_at`

// someChats is SQL for up to maxChats chats that match a condition. The limit makes the database find them by it first, and not
// walk over all chats in the order of the list.
func someChats(condition string) string {
	return `(SELECT ` + summaryColumns + ` FROM chat WHERE ` + condition + ` LIMIT ` + strconv.Itoa(maxChats) + `) AS chat`
}

// chatPage reads the chats of a query, newest first, from SQL for chats. The parameters of that SQL begin with the second.
func (r Reader) chatPage(q parley.ChatQuery, chats string, args ...any) ([]parley.ChatSummary, error) {
	s := search{args: append([]any{int64(parley.MaxUnread)}, args...)}
	s.and(`last_at > 0`)
	if q.Channel != "" {
		s.and(`channel = `+channelIDFrom(`?`), string(q.Channel))
	} else {
		s.and(`EXISTS (SELECT 1 FROM channel WHERE channel.id = chat.channel)`) // not of a deleted one
	}
	s.after(q.After)
	return list(r, `SELECT chat.id, chat.last_at, chat.archived, `+messagesOf+`, `+unreadOf+`, `+messageColumns+`
		FROM (SELECT `+summaryColumns+` FROM `+chats+` WHERE `+s.where+`
			ORDER BY last_at DESC, id DESC LIMIT `+param(len(s.args)+1)+`) AS chat
		JOIN channel ON channel.id = chat.channel
		JOIN message ON message.chat = chat.id
			AND message.position = (SELECT max(position) FROM message AS newest WHERE newest.chat = chat.id)
		ORDER BY chat.last_at DESC, chat.id DESC`, append(s.args, int64(q.Limit)), scanSummary)
}

// after is the condition of the chats that follow a cursor in the list; zero: all do.
func (s *search) after(at parley.ChatCursor) {
	if at != (parley.ChatCursor{}) {
		s.and(`last_at <= ? AND (last_at < ? OR id < ?)`, at.At, at.At, at.ID)
	}
}

func scanSummary(row scanner) (c parley.ChatSummary, err error) {
	c.Last, err = scanMessage(&prefixed{row, []any{&c.Cursor.ID, &c.Cursor.At, &c.Archived, &c.Messages, &c.Unread}})
	c.Channel, c.Chat = c.Last.Channel, c.Last.Chat
	return c, err
}

// prefixed is a row whose first columns are read besides.
type prefixed struct {
	row   scanner
	first []any
}

func (p *prefixed) Scan(into ...any) error { return p.row.Scan(append(p.first, into...)...) }

// HistoryAt reads up to limit messages of a chat from a position down, newest first, with their reactions; position 0 is the
// newest. It also returns the position of the first one and the number of messages in the chat.
func (r Reader) HistoryAt(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID, newest int64, limit int) (
	messages []parley.Message, from, total int64, err error) {
	r = r.with(ctx)
	var id, first, last int64
	err = r.row(`SELECT id, `+firstPosition+`, `+lastPosition+` FROM chat
		WHERE id = `+chatIDFrom(`$1`, channelIDFrom(`$2`))+` AND last_at > 0`, []any{string(chat), string(channel)}, &id, &first, &last)
	if err != nil {
		return nil, 0, 0, err
	}
	if newest <= 0 || newest > last {
		newest = last
	}
	messages, err = r.historyTo(id, newest, limit)
	return messages, newest, max(last-first+1, 0), err
}

// Position returns the position of a message in its chat.
func (r Reader) Position(ctx context.Context, seq int64) (position int64, err error) {
	err = r.with(ctx).row(`SELECT coalesce(position, 0) FROM message WHERE seq = $1`, []any{seq}, &position)
	return position, err
}

// ContactLinks lists the login links of a contact on all channels, newest first.
func (r Reader) ContactLinks(ctx context.Context, contact parley.ContactID, limit int) ([]parley.OTPLink, error) {
	return list(r.with(ctx), readLinks+`contact = $1 ORDER BY created_at DESC LIMIT $2`,
		[]any{string(contact), int64(limit)}, scanLink)
}

// Senders returns who sent messages from the console, by the bare ids of the messages.
func (r Reader) Senders(ctx context.Context, ids []parley.MessageID) (map[parley.MessageID]Actor, error) {
	senders := map[parley.MessageID]Actor{}
	_, err := listIn(r.with(ctx), `SELECT object, actor_kind, actor, actor_name, role FROM audit WHERE action = '`+AuditSend+
		`' AND object IN `, ``, nil, texts(ids), func(row scanner) (id parley.MessageID, err error) {
		var a Actor
		if err = row.Scan(&id, &a.Kind, &a.ID, &a.Name, &a.Role); err == nil {
			senders[id] = a
		}
		return id, err
	})
	return senders, err
}
