package sandbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
)

const maxEvents = 16 // read at once

// event is something that a phone did, stored until the sink accepted it.
type event struct {
	Type eventType `json:"type"`

	Target parley.MessageID `json:"target,omitempty"` // the message it is about; of a message, its own id
	FromMe bool             `json:"from_me,omitempty"`
	Group  int64            `json:"group,omitempty"` // its row; 0: the chat of the phone with the channel
	Phone  int64            `json:"phone,omitempty"` // of the author, in a group

	Change *parley.GroupChange `json:"change,omitempty"` // of a group

	Kind    parley.Kind      `json:"kind,omitempty"` // the rest of a message or an edit
	Text    string           `json:"text,omitempty"`
	Data    []byte           `json:"data,omitempty"`
	ReplyTo parley.MessageID `json:"reply_to,omitempty"`

	Emoji   string             `json:"emoji,omitempty"`
	Options []string           `json:"options,omitempty"`
	IDs     []parley.MessageID `json:"ids,omitempty"`
	Status  int                `json:"status,omitempty"`

	seq    int64
	sender parley.ContactID // empty: the channel
	at     time.Time
}

type eventType string

const (
	messageEvent  eventType = "message"
	receiptEvent  eventType = "receipt"
	reactionEvent eventType = "reaction"
	deletionEvent eventType = "deletion"
	editEvent     eventType = "edit"
	voteEvent     eventType = "vote"
	groupEvent    eventType = "group"
)

// addEvent stores an event of a phone; nil: of the channel itself. Events of a group have a queue of their own, whose number
// is the group's row, negative: members must not overtake each other.
func (w *world) addEvent(tx *sqldb.Tx, p *phone, e event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	seq, err := w.net.nextSeq(tx)
	if err != nil {
		return err
	}
	var queue int64
	var sender parley.ContactID
	if p != nil {
		queue, sender = p.id, p.contactID()
	}
	if e.Group != 0 {
		queue = -e.Group
	}
	tx.OnCommit(func() { w.schedule(queue, eventWork) })
	return tx.Do(`INSERT INTO events (seq, phone, sender, body, at) VALUES ($1, $2, $3, $4, $5)`,
		seq, queue, string(sender), string(body), time.Now().UnixMilli())
}

// reportEvents reports the events of a queue. A member of a group that is offline acts when it is online again.
func (s *session) reportEvents(ctx context.Context, queue int64, j *job) error {
	for {
		list, err := sqldb.Collect(s.world.net.db.Read(ctx), scanEvent, `SELECT seq, sender, body, at FROM events
			WHERE phone = $1 AND (phone > 0 OR EXISTS (SELECT 1 FROM groups WHERE id = -events.phone AND world = $2) AND (sender = '' OR
				EXISTS (SELECT 1 FROM phones WHERE world = $2 AND number || '@c.us' = events.sender AND online = 1)))
			ORDER BY seq LIMIT `+strconv.Itoa(maxEvents), queue, s.world.id.Load())
		if err != nil {
			return fmt.Errorf("read what a phone did: %w", err)
		}
		for _, e := range list {
			if err := s.reportEvent(ctx, e, j); err != nil {
				return err
			}
		}
		if len(list) < maxEvents {
			j.work &^= eventWork
			return nil
		}
	}
}

// reportEvent reports one event and deletes it once the sink accepted it.
func (s *session) reportEvent(ctx context.Context, e event, j *job) error {
	reported, err := e.networkEvent(j.phone)
	if err != nil {
		return err
	}
	if err := s.report(ctx, reported); err != nil && (e.Type == messageEvent || !s.givesUp(j, err)) {
		return err
	}
	return s.world.net.db.Write(context.WithoutCancel(ctx), func(tx *sqldb.Tx) error {
		return tx.Do(`DELETE FROM events WHERE seq = $1`, e.seq)
	})
}

func scanEvent(row scanner) (e event, err error) {
	var body string
	var at int64
	if err := row.Scan(&e.seq, &e.sender, &body, &at); err != nil {
		return event{}, err
	}
	e.at = time.UnixMilli(at).UTC()
	return e, json.Unmarshal([]byte(body), &e)
}

// networkEvent converts an event; p is nil in a group.
func (e event) networkEvent(p *phone) (network.Event, error) {
	from, group := e.sender, groupOf(e.Group)
	switch e.Type {
	case messageEvent:
		content, err := parley.DecodeContent(e.Kind, e.Text, e.Data)
		if err != nil {
			return nil, err
		}
		m := network.Message{From: from, Group: group, ID: e.Target, Content: content, ReplyTo: e.ReplyTo, At: e.at}
		if parley.MediaOf(content) != nil {
			owner := e.Phone
			if p != nil {
				owner = p.id
			}
			m.File, err = json.Marshal(fileReference{owner, e.Target})
		}
		return m, err
	case receiptEvent:
		return network.Receipt{From: from, Group: group, IDs: e.IDs, Status: parley.Status(e.Status), At: e.at}, nil
	case reactionEvent:
		target := parley.MessageRef{FromMe: e.FromMe, Chat: network.ChatOf(from, group), ID: e.Target}
		return network.Reaction{From: from, Target: target, Emoji: e.Emoji, At: e.at}, nil
	case deletionEvent:
		return network.Deletion{From: from, Group: group, Target: e.Target, At: e.at}, nil
	case editEvent:
		content, err := parley.DecodeContent(e.Kind, e.Text, e.Data)
		return network.Edit{From: from, Group: group, Target: e.Target, Content: content, At: e.at}, err
	case voteEvent:
		return network.Vote{From: from, Group: group, Poll: e.Target, Options: e.Options, At: e.at}, nil
	case groupEvent:
		return network.GroupChange{GroupChange: *e.Change, At: e.at}, nil
	}
	return nil, fmt.Errorf("unknown event %q", e.Type)
}

type fileReference struct {
	Phone   int64            `json:"phone"`
	Message parley.MessageID `json:"message"`
}

// file reads a file. If there is none the error is sql.ErrNoRows.
func (n *Network) file(ctx context.Context, r fileReference) (content []byte, err error) {
	err = n.db.Read(ctx).QueryRow(`SELECT content FROM files WHERE phone = $1 AND message = $2`,
		[]any{r.Phone, string(r.Message)}, &content)
	return content, err
}

func (s *session) Fetch(ctx context.Context, reference []byte, to *os.File) error {
	if err := s.connected(); err != nil {
		return err
	}
	var r fileReference
	if err := json.Unmarshal(reference, &r); err != nil {
		return network.Refuse(parley.Refused, "The file has no address.")
	}
	content, err := s.world.net.file(ctx, r)
	if errors.Is(err, sql.ErrNoRows) {
		return network.Refuse(parley.Refused, "The network does not have the file any more.")
	}
	if err != nil {
		return fmt.Errorf("read a file: %w", err)
	}
	_, err = to.Write(content)
	return err
}

// SentFile returns the file of a message that a phone sent. After the retention the error is [parley.ErrNotFound]: then only
// the channel has the file.
func (n *Network) SentFile(ctx context.Context, channel parley.ChannelCode, number string, id parley.MessageID) ([]byte, error) {
	_, p, err := n.find(ctx, channel, number)
	if err != nil {
		return nil, err
	}
	owner := p.id
	if m, err := n.target(ctx, p, "message_id", string(id)); err == nil && m.Author != p.contactID() {
		_, author, err := n.find(ctx, channel, m.Author.Number())
		if err != nil {
			return nil, err
		}
		owner = author.id
	}
	content, err := n.file(ctx, fileReference{owner, id})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, parley.ErrNotFound
	}
	return content, err
}
