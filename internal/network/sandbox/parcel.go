package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
)

// parcel is something that a phone did, kept until the channel took it.
type parcel struct {
	Type parcelType `json:"type"`

	Target parley.MessageID `json:"target,omitempty"` // what it is about; of a message, its own id
	FromMe bool             `json:"from_me,omitempty"`

	Kind    parley.Kind      `json:"kind,omitempty"` // the rest of a message
	Text    string           `json:"text,omitempty"`
	Data    []byte           `json:"data,omitempty"`
	ReplyTo parley.MessageID `json:"reply_to,omitempty"`

	Emoji   string             `json:"emoji,omitempty"`
	Options []string           `json:"options,omitempty"`
	IDs     []parley.MessageID `json:"ids,omitempty"`
	Status  int                `json:"status,omitempty"`
}

type parcelType string

const (
	parcelMessage  parcelType = "message"
	parcelReceipt  parcelType = "receipt"
	parcelReaction parcelType = "reaction"
	parcelDeletion parcelType = "deletion"
	parcelVote     parcelType = "vote"
)

// post leaves a parcel for the channel.
func (w *world) post(tx *sqldb.Tx, p *phone, what parcel) error {
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO events (seq, phone, sender, body, at) VALUES ($1, $2, $3, $4, $5)`,
		w.net.nextSeq(), p.id, p.sender(), string(body), time.Now().UnixMilli())
	tx.OnCommit(func() {
		p.setPosted()
		w.mark(true, p)
	})
	return err
}

func (p *phone) setPosted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.posted = !p.gone
}

// The network gives every phone a LID too: a name that says nothing of the number.
const (
	lidServer = "@lid"
	lidBase   = 200_000_000_000_000
)

// sender is how the network names the phone to the channel.
func (p *phone) sender() string {
	if p.behaviour().LIDOnly {
		return strconv.FormatInt(lidBase+p.id, 10) + lidServer
	}
	return string(p.contact)
}

// contactOf maps the network's name of a sender to the contact that the gateway knows.
func (w *world) contactOf(ctx context.Context, sender string) (parley.ContactID, error) {
	lid, ok := strings.CutSuffix(sender, lidServer)
	if !ok {
		return parley.ContactID(sender), nil
	}
	id, err := strconv.ParseInt(lid, 10, 64)
	if err != nil {
		return "", fmt.Errorf("bad LID: %w", err)
	}
	var number string
	err = w.net.db.Read(ctx).QueryRow(`SELECT number FROM phones WHERE id = $1 AND world = $2`, []any{id - lidBase, w.id}, &number)
	if err != nil {
		return "", fmt.Errorf("map LID: %w", err)
	}
	return parley.ContactOf(number), nil
}

// letter is a parcel as it lies in the record.
type letter struct {
	seq    int64
	sender string
	parcel parcel
	at     time.Time
}

// letters reads the next things that a phone did, oldest first.
func (w *world) letters(ctx context.Context, p *phone, limit int) ([]letter, error) {
	rows, err := w.net.db.Read(ctx).Query(`SELECT seq, sender, body, at FROM events WHERE phone = $1 ORDER BY seq LIMIT $2`, p.id, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []letter
	for rows.Next() {
		var l letter
		var body string
		var at int64
		if err := rows.Scan(&l.seq, &l.sender, &body, &at); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(body), &l.parcel); err != nil {
			return nil, err
		}
		l.at = time.UnixMilli(at).UTC()
		list = append(list, l)
	}
	return list, rows.Err()
}

// event makes the event that the sink is given.
func (l letter) event(phone int64, from parley.ContactID) (network.Event, error) {
	what := l.parcel
	switch what.Type {
	case parcelMessage:
		content, err := parley.DecodeContent(what.Kind, what.Text, what.Data)
		if err != nil {
			return nil, err
		}
		m := network.Message{From: from, ID: what.Target, Content: content, ReplyTo: what.ReplyTo, At: l.at}
		if parley.MediaOf(content) != nil {
			m.File, err = json.Marshal(fileReference{phone, what.Target})
		}
		return m, err
	case parcelReceipt:
		return network.Receipt{From: from, IDs: what.IDs, Status: parley.Status(what.Status), At: l.at}, nil
	case parcelReaction:
		target := parley.MessageRef{FromMe: what.FromMe, Chat: from, ID: what.Target}
		return network.Reaction{From: from, Target: target, Emoji: what.Emoji, At: l.at}, nil
	case parcelDeletion:
		return network.Deletion{From: from, Target: what.Target, At: l.at}, nil
	case parcelVote:
		return network.Vote{From: from, Poll: what.Target, Options: what.Options, At: l.at}, nil
	}
	return nil, fmt.Errorf("unknown parcel %q", what.Type)
}
