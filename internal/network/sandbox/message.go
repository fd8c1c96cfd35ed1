package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/safehttp"
	"parley/internal/store/sqldb"
)

// Message is a message in the chat of a phone and the channel.
type Message struct {
	ID        parley.MessageRef // its full id, as the gateway knows it
	Author    parley.ContactID  // the phone, or another member of the group; empty: the channel
	Kind      parley.Kind
	Body      string // the text, caption or title; empty once it is deleted
	Content   parley.Content
	Codes     []string // one-time codes found in the body, the likeliest first
	Links     []string // http and https addresses found in the body
	Media     *parley.Media
	ReplyTo   parley.MessageID
	Status    parley.Status
	At        time.Time
	EditedAt  time.Time // when its text was last changed; zero: never
	Copies    int       // how often the channel sent it
	Timer     int       // seconds after which it disappears; 0: it stays. The sandbox keeps it, so that tests can read it
	Reaction  string    // the channel's reaction to it
	Reactions []string  // of both sides, the channel's first
	Votes     []string  // what the phone chose, if it is a poll
	Cursor    Cursor    // the position just after it

	direction  int64
	group      int64
	unreadable parley.UnreadableReason // what the channel hears while it is being sent
}

// FromPhone reports whether the phone itself wrote it, not another member of the group or the channel.
func (m *Message) FromPhone() bool { return m.direction == fromPhone }

// Cursor is a position in the network's messages: URL-safe, opaque to callers. The empty one is the beginning.
type Cursor string

func cursorAt(seq int64) Cursor { return Cursor("c" + strconv.FormatInt(seq, 36)) }

// Check returns an error for a cursor that is not from this server.
func (c Cursor) Check() error {
	_, err := c.seq("after")
	return err
}

func (c Cursor) seq(field string) (int64, error) {
	if c == "" {
		return 0, nil
	}
	digits, ok := strings.CutPrefix(string(c), "c")
	seq, err := strconv.ParseInt(digits, 36, 64)
	if !ok || err != nil || seq < 0 || cursorAt(seq) != c {
		return 0, parley.InvalidField(field, field+" must be a cursor from this server.")
	}
	return seq, nil
}

// Query selects messages. The zero value selects everything that reached the phone.
type Query struct {
	After    Cursor
	Kind     parley.Kind   // empty: every kind
	Contains string        // in the body or the file's name, in any case; empty: everything
	Limit    int           // zero: none
	Wait     time.Duration // how long to wait for a match; 0: not at all
}

type Page struct {
	Messages []Message // oldest first
	Cursor   Cursor    // the position after the last of them, or the one asked for
}

// Cursor returns the current position: later messages come after it.
func (n *Network) Cursor(ctx context.Context, channel parley.ChannelCode) (Cursor, error) {
	w, err := n.world(ctx, channel)
	if err != nil {
		return "", err
	}
	seq, err := w.lastSeq(ctx)
	return cursorAt(seq), err
}

// Messages returns what reached a phone, oldest first. It includes what waits for an offline phone, with status SENT. With
// a wait it returns at the first match. If there is none in time the error is a [*WaitTimeout].
func (n *Network) Messages(ctx context.Context, channel parley.ChannelCode, number string, q Query) (Page, error) {
	after, err := q.After.seq("after")
	if err != nil {
		return Page{}, err
	}
	timeout := time.After(q.Wait)
	for {
		page, done, err := n.messages(ctx, channel, number, after, q, timeout)
		if done || err != nil {
			return page, err
		}
	}
}

// messages reads the messages that match once. If there are none it waits for the next one, and done is false.
func (n *Network) messages(
	ctx context.Context, channel parley.ChannelCode, number string, after int64, q Query, timeout <-chan time.Time,
) (page Page, done bool, err error) {
	w, p, err := n.find(ctx, channel, number)
	if err != nil {
		return Page{}, false, err
	}
	arrived, release := w.awaitMessage(p.id) // before the read, so none is missed in between
	defer release()
	var found []Message
	err = n.scan(ctx, p, after, func(m Message) bool {
		if (q.Kind == "" || q.Kind == m.Kind) && m.contains(q.Contains) {
			found = append(found, m)
		}
		return q.Limit == 0 || len(found) < q.Limit
	})
	if err != nil {
		return Page{}, false, err
	}
	if len(found) > 0 {
		return Page{Messages: found, Cursor: found[len(found)-1].Cursor}, true, nil
	}
	if q.Wait <= 0 {
		return Page{Cursor: cursorAt(after)}, true, nil
	}
	select {
	case <-arrived:
		if w.dropped.Load() {
			return Page{}, false, errMoved()
		}
		return Page{}, false, nil
	case <-timeout:
		return Page{}, false, n.timedOut(ctx, channel, number, after, q)
	case <-ctx.Done():
		return Page{}, false, ctx.Err()
	}
}

const messageColumns = `seq, from_phone, id, kind, body, data, reply_to, at, copies, status, reaction, phone_reaction, votes, grp, author,
	edited_at, timer`

// scan calls do for a phone's messages after a position, in order, until it returns false.
func (n *Network) scan(ctx context.Context, p *phone, after int64, do func(Message) (more bool)) error {
	const atOnce = 200 // PostgreSQL sends all rows of a query, read or not
	for {
		list, err := sqldb.Collect(n.db.Read(ctx), p.scanMessage, `SELECT `+messageColumns+` FROM messages
			WHERE phone = $1 AND seq > $2 AND from_phone = 0 ORDER BY seq LIMIT $3`, p.id, after, atOnce)
		if err != nil {
			return fmt.Errorf("read messages: %w", err)
		}
		for _, m := range list {
			if !do(m) {
				return nil
			}
		}
		if len(list) < atOnce {
			return nil
		}
		if after, err = list[atOnce-1].Cursor.seq("after"); err != nil {
			return err
		}
	}
}

type scanner = sqldb.Scanner

func (p *phone) scanMessage(row scanner) (Message, error) {
	var m Message
	var seq, at, edited int64
	var author string
	var data []byte
	var phoneReaction, votes string
	err := row.Scan(&seq, &m.direction, &m.ID.ID, &m.Kind, &m.Body, &data, &m.ReplyTo, &at, &m.Copies, &m.Status, &m.Reaction,
		&phoneReaction, &votes, &m.group, &author, &edited, &m.Timer)
	if err != nil {
		return Message{}, err
	}
	m.ID.Chat, m.ID.FromMe = network.ToChat(p.idAt(seq), toGroupID(m.group)), m.direction == fromChannel
	switch m.direction {
	case fromPhone:
		m.Author = p.idAt(seq)
	case fromMember:
		m.Author = parley.NewContactID(author)
	}
	m.At = time.UnixMilli(at).UTC()
	if edited != 0 {
		m.EditedAt = time.UnixMilli(edited).UTC()
	}
	m.Cursor = cursorAt(seq)
	if m.Status == 0 { // then it follows from the phone's cursors: receipts change no rows
		m.Status = p.toStatus(seq, m.direction != fromChannel, m.Kind)
	}
	if m.Content, err = parley.DecodeContent(m.Kind, m.Body, data); err != nil {
		return Message{}, err
	}
	if m.Status != parley.Deleted {
		m.Media = parley.MediaIn(m.Content)
	}
	if votes != "" {
		if err := json.Unmarshal([]byte(votes), &m.Votes); err != nil {
			return Message{}, err
		}
	}
	for _, emoji := range []string{m.Reaction, phoneReaction} {
		if emoji != "" {
			m.Reactions = append(m.Reactions, emoji)
		}
	}
	m.Links = safehttp.Links(m.Body)
	m.Codes = Codes(m.Body)
	return m, nil
}

func (p *phone) toStatus(seq int64, received bool, kind parley.Kind) parley.Status {
	switch {
	case received:
		return parley.Received
	case seq <= p.read && kind == parley.KindVoice:
		return parley.Played
	case seq <= p.read:
		return parley.Read
	case seq <= p.delivered:
		return parley.Delivered
	}
	return parley.Sent
}

// contains is not part of the query, because the database does not know the letters of every language.
func (m *Message) contains(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(strings.ToLower(m.Body), text) ||
		m.Media != nil && strings.Contains(strings.ToLower(m.Media.Filename), text)
}

// Chat is an entry of a phone's list of chats. The list has one entry, because every channel has its own world. Groups are not
// listed.
type Chat struct {
	Number      string   // the channel's
	Last        *Message // nil: the chat is empty
	Unread      int      // at most maxUnread
	TypingUntil time.Time
}

type ChatPage struct {
	Messages []Message // of both sides, newest first
	Next     Cursor    // for older messages; empty: there are none
}

const maxUnread = 999 // no screen shows more

func (n *Network) Chats(ctx context.Context, channel parley.ChannelCode, number string) ([]Chat, error) {
	w, p, err := n.find(ctx, channel, number)
	if err != nil {
		return nil, err
	}
	page, err := n.chat(ctx, p, 0, math.MaxInt64, 1)
	if err != nil || len(page.Messages) == 0 {
		return nil, err
	}
	chat := Chat{Number: w.number, Last: &page.Messages[0], TypingUntil: w.view(p).TypingUntil}
	err = n.db.Read(ctx).QueryRow(`SELECT count(*) FROM (SELECT 1 FROM messages
		WHERE phone = $1 AND seq > $2 AND seq <= $3 AND from_phone = 0 AND grp = 0 AND status = 0 LIMIT $4) AS unread`,
		[]any{p.id, p.read, p.shownUpTo(), maxUnread}, &chat.Unread)
	return []Chat{chat}, err
}

// Chat reads a phone's chat with the channel, or in a group, before a position, newest message first. What waits for an offline
// phone is not shown.
func (n *Network) Chat(
	ctx context.Context, channel parley.ChannelCode, number string, group parley.GroupID, before Cursor, limit int,
) (ChatPage, error) {
	last, err := before.seq("cursor")
	if err != nil {
		return ChatPage{}, err
	}
	_, p, err := n.find(ctx, channel, number)
	if err != nil {
		return ChatPage{}, err
	}
	if before == "" {
		last = math.MaxInt64
	}
	row, ok := groupRow(group)
	if group != "" && !ok {
		return ChatPage{}, nil
	}
	return n.chat(ctx, p, row, last, limit)
}

func (n *Network) chat(ctx context.Context, p *phone, group, before int64, limit int) (page ChatPage, err error) {
	page.Messages, err = sqldb.Collect(n.db.Read(ctx), p.scanMessage, `SELECT `+messageColumns+` FROM messages
		WHERE phone = $1 AND grp = $5 AND seq < $2 AND (from_phone = 1 OR seq <= $3) ORDER BY seq DESC LIMIT $4`,
		p.id, before, p.shownUpTo(), limit+1, group)
	if err != nil {
		return ChatPage{}, fmt.Errorf("read chat: %w", err)
	}
	if len(page.Messages) > limit { // one more was read: there are older ones
		page.Messages = page.Messages[:limit]
		page.Next = page.Messages[limit-1].Cursor
	}
	return page, nil
}

// Message finds one message of a phone's chat by its full or bare id. If there is none the error is [parley.ErrNotFound].
func (n *Network) Message(ctx context.Context, channel parley.ChannelCode, number, id string) (Message, error) {
	_, p, err := n.find(ctx, channel, number)
	if err != nil {
		return Message{}, err
	}
	m, err := n.target(ctx, p, "message_id", id)
	if parley.ToCode(err) == parley.Invalid {
		return Message{}, parley.ErrNotFound
	}
	return m, err
}

// WaitTimeout is the error of a wait without a match. Its text contains nothing of the messages, so it can be logged.
// [WaitTimeout.Sentence] does.
type WaitTimeout struct {
	Number  string
	Query   Query
	Arrived []Message // what reached the phone after the cursor, the last maxArrived of it
	Total   int       // the number of all of these
}

const maxArrived = 10 // messages listed when a wait times out

func (e *WaitTimeout) Error() string {
	return fmt.Sprintf("no message matched within %s (%d arrived)", e.Query.Wait, e.Total)
}

// Sentence says what was expected and what arrived instead.
func (e *WaitTimeout) Sentence() string {
	kind, containing := "message", ""
	if e.Query.Kind != "" {
		kind = string(e.Query.Kind) + " message"
	}
	if e.Query.Contains != "" {
		containing = fmt.Sprintf(" containing %q", e.Query.Contains)
	}
	missing := fmt.Sprintf("No %s to %s%s within %s.", kind, e.Number, containing, e.Query.Wait)
	if e.Total == 0 {
		return missing + " Nothing arrived at that phone after the cursor."
	}
	arrived := "1 message"
	if e.Total > 1 {
		arrived = fmt.Sprintf("%d messages", e.Total)
	}
	last := ""
	if e.Total > len(e.Arrived) {
		last = fmt.Sprintf(", the last %d", len(e.Arrived))
	}
	var list []string
	for _, m := range e.Arrived {
		list = append(list, fmt.Sprintf("%s %s %s %s", m.At.Format(time.TimeOnly), m.Kind, m.brief(), m.Status))
	}
	return fmt.Sprintf("%s %s did arrive at that phone after the cursor%s: %s.", missing, arrived, last, strings.Join(list, "; "))
}

func (m *Message) brief() string {
	const most = 60
	text := m.Body
	if text == "" && m.Media != nil {
		text = m.Media.Filename
	}
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
}

func (n *Network) timedOut(ctx context.Context, channel parley.ChannelCode, number string, after int64, q Query) error {
	_, p, err := n.find(ctx, channel, number) // its cursors may have moved
	if err != nil {
		return err
	}
	e := &WaitTimeout{Number: p.Number, Query: q}
	err = n.scan(ctx, p, after, func(m Message) bool {
		e.Arrived = append(e.Arrived, m)
		if len(e.Arrived) > maxArrived {
			e.Arrived = e.Arrived[1:]
		}
		e.Total++
		return true
	})
	if err != nil {
		return err
	}
	return e
}
