package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley"
)

// Message is one entry of the network's own record.
type Message struct {
	ID        parley.MessageRef // its full id, as the gateway knows it
	Kind      parley.Kind
	Body      string // the text, caption or title; empty once it is deleted
	Content   parley.Content
	Codes     []string // one-time codes found in the body, the likeliest first
	Links     []string // http and https addresses found in the body
	Media     *parley.Media
	ReplyTo   parley.MessageID
	Status    parley.Status
	At        time.Time
	Copies    int      // how often the network was given it
	Reaction  string   // the channel's reaction to it
	Reactions []string // all that stand on it, the channel's first
	Votes     []string // what the phone chose, if it is a poll
	Cursor    Cursor   // the position just after it
}

// Cursor is a position in the record: URL-safe, opaque to callers. The empty one is the beginning.
type Cursor string

func cursorAt(seq int64) Cursor { return Cursor("c" + strconv.FormatInt(seq, 36)) }

// Check reports a cursor that this server cannot have given.
func (c Cursor) Check() error {
	_, err := c.seq()
	return err
}

func (c Cursor) seq() (int64, error) {
	if c == "" {
		return 0, nil
	}
	digits, ok := strings.CutPrefix(string(c), "c")
	seq, err := strconv.ParseInt(digits, 36, 64)
	if !ok || err != nil || seq < 0 || cursorAt(seq) != c {
		return 0, parley.InvalidField("after", "after must be a cursor as this server gave it.")
	}
	return seq, nil
}

// Query says which messages are wanted. The zero value is all that reached the phone, up to
// [DefaultLimit].
type Query struct {
	After    Cursor
	Kind     parley.Kind   // empty: every kind
	Contains string        // in the body or the file's name, in any case; empty: everything
	Limit    int           // zero: DefaultLimit
	Wait     time.Duration // how long to wait until one matches; zero: not at all
	Both     bool          // also what the phone itself sent
}

// DefaultLimit is how many messages one call returns unless it says otherwise.
const DefaultLimit = 50

// Page is what [Network.Messages] returns.
type Page struct {
	Messages []Message // oldest first
	Cursor   Cursor    // the position after the last of them, or the one asked for
}

// Cursor returns the position that everything later comes after.
func (n *Network) Cursor(ctx context.Context, channel parley.ChannelCode) (Cursor, error) {
	if _, err := n.world(ctx, channel); err != nil {
		return "", err
	}
	seq, err := lastSeq(n.db.Read(ctx))
	if err != nil {
		return "", err
	}
	return cursorAt(seq), nil
}

// Messages returns what reached a phone, oldest first: also what waits for it while it is offline,
// which its status tells. With a wait it returns as soon as one matches; if none does in time the
// error is a [*WaitTimeout].
func (n *Network) Messages(ctx context.Context, channel parley.ChannelCode, number string, q Query) (Page, error) {
	after, err := q.After.seq()
	if err != nil {
		return Page{}, err
	}
	if q.Limit <= 0 {
		q.Limit = DefaultLimit
	}
	timeout := time.NewTimer(q.Wait)
	defer timeout.Stop()
	for {
		_, p, err := n.find(ctx, channel, number)
		if err != nil {
			return Page{}, err
		}
		arrival := p.nextArrival() // asked for before reading, so that none is missed in between
		found, err := n.read(ctx, p, after, q)
		if err != nil {
			return Page{}, err
		}
		if len(found) > 0 {
			return Page{Messages: found, Cursor: found[len(found)-1].Cursor}, nil
		}
		if q.Wait <= 0 {
			return Page{Cursor: cursorAt(after)}, nil
		}
		select {
		case <-arrival:
		case <-timeout.C:
			return Page{}, n.timedOut(ctx, p, after, q)
		case <-ctx.Done():
			return Page{}, ctx.Err()
		}
	}
}

const messageColumns = `seq, from_phone, id, kind, body, data, reply_to, at, copies, status, reaction, phone_reaction, votes`

// read returns the messages of a phone after a position that match the query. What a text contains
// is decided here and not in the database, which does not know the letters of every language.
func (n *Network) read(ctx context.Context, p *phone, after int64, q Query) ([]Message, error) {
	delivered, read := p.marks()
	var list []Message
	err := n.scan(ctx, p, messageColumns, after, q.Both, func(row scanner) (bool, error) {
		m, err := scanMessage(row, p, delivered, read)
		if err != nil {
			return false, err
		}
		if (q.Kind == "" || q.Kind == m.Kind) && m.contains(q.Contains) {
			list = append(list, m)
		}
		return len(list) < q.Limit, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	return list, nil
}

// scan calls do for a phone's messages after a position, in order, until it returns false.
func (n *Network) scan(ctx context.Context, p *phone, columns string, after int64, both bool, do func(scanner) (more bool, err error)) error {
	if err := n.unpack(ctx); err != nil {
		return err
	}
	rows, err := n.db.Read(ctx).Query(`SELECT `+columns+` FROM messages
		WHERE phone = $1 AND seq > $2 AND from_phone <= $3 ORDER BY seq`, p.id, after, flag(both))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if more, err := do(rows); err != nil || !more {
			return err
		}
	}
	return rows.Err()
}

// scanner is a row of a result.
type scanner interface{ Scan(into ...any) error }

func scanMessage(row scanner, p *phone, delivered, read int64) (Message, error) {
	var m Message
	var seq, at int64
	var fromPhone bool
	var data []byte
	var phoneReaction, votes string
	err := row.Scan(&seq, &fromPhone, &m.ID.ID, &m.Kind, &m.Body, &data, &m.ReplyTo, &at, &m.Copies, &m.Status, &m.Reaction, &phoneReaction, &votes)
	if err != nil {
		return Message{}, err
	}
	m.ID.Chat, m.ID.FromMe = p.contact, !fromPhone
	m.At = time.UnixMilli(at).UTC()
	m.Cursor = cursorAt(seq)
	if m.Status == underived {
		m.Status = derivedStatus(seq, fromPhone, m.Kind, delivered, read)
	}
	if m.Content, err = parley.DecodeContent(m.Kind, m.Body, data); err != nil {
		return Message{}, err
	}
	if m.Status != parley.Deleted {
		m.Media = parley.MediaOf(m.Content)
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
	m.Links = Links(m.Body)
	m.Codes = Codes(m.Body)
	return m, nil
}

// underived is the status of a row that has none of its own: it follows from how far the phone was
// delivered and read, so that receipts need not touch every row.
const underived parley.Status = 0

func derivedStatus(seq int64, fromPhone bool, kind parley.Kind, delivered, read int64) parley.Status {
	switch {
	case fromPhone:
		return parley.Received
	case seq <= read && kind == parley.KindVoice:
		return parley.Played
	case seq <= read:
		return parley.Read
	case seq <= delivered:
		return parley.Delivered
	}
	return parley.Sent
}

func (m *Message) contains(text string) bool {
	if text == "" {
		return true
	}
	text = strings.ToLower(text)
	return strings.Contains(strings.ToLower(m.Body), text) ||
		m.Media != nil && strings.Contains(strings.ToLower(m.Media.Filename), text)
}
