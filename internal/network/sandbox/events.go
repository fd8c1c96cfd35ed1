package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
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
	// Hidden: of a phone whose number was hidden in this chat.
	Hidden bool  `json:"hidden,omitempty"`
	Group  int64 `json:"group,omitempty"` // its row; 0: the chat of the phone with the channel

	Change *parley.GroupChange `json:"change,omitempty"` // of a group
	Video  bool                `json:"video,omitempty"`  // of a call
	Ended  parley.CallEnd      `json:"ended,omitempty"`  // of a call; empty: it begins

	Reason parley.UnreadableReason `json:"reason,omitempty"` // of a message that cannot be read

	Own bool             `json:"own,omitempty"` // a message of the owner
	To  parley.ContactID `json:"to,omitempty"`  // whom it went to; empty: to the group

	Kind    parley.Kind      `json:"kind,omitempty"` // the rest of a message or an edit
	Text    string           `json:"text,omitempty"`
	Data    []byte           `json:"data,omitempty"`
	ReplyTo parley.MessageID `json:"reply_to,omitempty"`

	Emoji   string             `json:"emoji,omitempty"`
	Options []string           `json:"options,omitempty"`
	IDs     []parley.MessageID `json:"ids,omitempty"`
	Status  int                `json:"status,omitempty"`

	early  bool // about a message from before the phone hid its number
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
	callEvent     eventType = "call"

	unreadableEvent eventType = "unreadable"
)

// addEvent stores an event of a phone; nil: of the channel itself. Events of a group have a queue of their own, whose number
// is the group's row, negative: members must not overtake each other.
func (w *world) addEvent(tx *sqldb.Tx, p *phone, e event) error {
	e.Hidden = p != nil && !e.Own && p.idAt(math.MaxInt64).IsHidden() && !e.early
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
	if e.Own {
		sender = ""
	}
	if e.Group != 0 {
		queue = -e.Group
	}
	tx.OnCommit(func() { w.schedule(queue, eventWork) })
	return tx.Do(`INSERT INTO events (seq, phone, sender, body, at) VALUES ($1, $2, $3, $4, $5)`,
		seq, queue, string(sender), string(body), time.Now().UnixMilli())
}

// reportOwn reports what the owner wrote to a phone, before the receipts for it.
func (s *session) reportOwn(ctx context.Context, queue int64, j *job) error {
	list, err := sqldb.Collect(s.world.net.db.Read(ctx), scanEvent, `SELECT seq, sender, body, at FROM events
		WHERE phone = $1 AND sender = '' ORDER BY seq`, queue)
	if err != nil {
		return fmt.Errorf("read what the owner wrote: %w", err)
	}
	return sqldb.Each(list, func(e event) error { return s.reportEvent(ctx, e, j) })
}

// reportEvents reports the events of a queue. A phone that is offline acts when it is online again: it may have gone offline after its
// job began.
func (s *session) reportEvents(ctx context.Context, queue int64, j *job) error {
	for {
		list, err := sqldb.Collect(s.world.net.db.Read(ctx), scanEvent, `SELECT seq, sender, body, at FROM events
			WHERE phone = $1 AND (EXISTS (SELECT 1 FROM phones WHERE id = events.phone AND online = 1) OR
				EXISTS (SELECT 1 FROM groups WHERE id = -events.phone AND world = $2) AND (sender = '' OR
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
	if e.Hidden {
		p, err := s.world.lookUp(ctx, e.sender.Number())
		if err != nil {
			return err
		}
		e.sender = p.ContactID
	}
	reported, err := e.networkEvent()
	if err != nil {
		return err
	}
	if err := s.report(ctx, e.Group, reported); err != nil && (e.Type == messageEvent || !s.givesUp(j, err)) {
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

func (e event) networkEvent() (network.Event, error) {
	from, group := e.sender, toGroupID(e.Group)
	switch e.Type {
	case messageEvent:
		content, err := parley.DecodeContent(e.Kind, e.Text, e.Data)
		if err != nil {
			return nil, err
		}
		m := network.Message{From: from, Group: group, ID: e.Target, Content: content, ReplyTo: e.ReplyTo, At: e.at}
		if e.Own {
			m.Own, m.From = true, e.To
		}
		if file := parley.MediaIn(content); file != nil {
			m.File, err = json.Marshal(fileReference{file.Key})
		}
		return m, err
	case receiptEvent:
		return network.Receipt{From: from, Group: group, IDs: e.IDs, Status: parley.Status(e.Status), At: e.at}, nil
	case reactionEvent:
		target := parley.MessageRef{FromMe: e.FromMe, Chat: network.ToChat(from, group), ID: e.Target}
		return network.Reaction{From: from, Target: target, Emoji: e.Emoji, At: e.at}, nil
	case deletionEvent:
		return network.Deletion{From: from, Group: group, Target: e.Target, At: e.at}, nil
	case editEvent:
		content, err := parley.DecodeContent(e.Kind, e.Text, e.Data)
		return network.Edit{From: from, Group: group, Target: e.Target, Content: content, At: e.at}, err
	case voteEvent:
		return network.Vote{From: from, Group: group, Poll: e.Target, Options: e.Options, At: e.at}, nil
	case callEvent:
		return network.PhoneCall{ID: string(e.Target), From: from, Video: e.Video, Ended: e.Ended, At: e.at}, nil
	case unreadableEvent:
		return network.Unreadable{From: from, Group: group, ID: e.Target, Reason: e.Reason, At: e.at}, nil
	case groupEvent:
		return network.GroupChange{GroupChange: *e.Change, At: e.at}, nil
	}
	return nil, fmt.Errorf("unknown event %q", e.Type)
}

type fileReference struct {
	Key string `json:"key"`
}

func (s *session) Fetch(ctx context.Context, reference []byte, to *os.File) error {
	if err := s.connected(); err != nil {
		return err
	}
	var r fileReference
	if err := json.Unmarshal(reference, &r); err != nil {
		return network.Refuse(parley.Refused, "The file has no address.")
	}
	f, err := s.world.net.OpenFile(ctx, r.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return network.Refuse(parley.Refused, "The network no longer has the file.")
	}
	if err != nil {
		return fmt.Errorf("open a file: %w", err)
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}
