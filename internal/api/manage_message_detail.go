package api

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"parley"
)

type messageDetail struct {
	messageRow `json:",inline"`
	Timeline   []statusAt           `json:"timeline"`
	ReplyTo    *string              `json:"reply_to"`
	Quoted     *parley.QuotedView   `json:"quoted"`
	Media      *messageFile         `json:"media"`
	Location   *parley.LocationView `json:"location"`
	Contacts   []parley.ContactCard `json:"contacts"`
	Poll       *messagePoll         `json:"poll"`
	Reactions  []string             `json:"reactions"`
}

// operatorDetail adds what only an operator sees: webhooks may belong to others.
type operatorDetail struct {
	messageDetail  `json:",inline"`
	Deliveries     []deliveryRow `json:"deliveries"`
	IdempotencyKey *string       `json:"idempotency_key"`
	SentBy         *sender       `json:"sent_by"`
}

type statusAt struct {
	Status parley.Status `json:"status"`
	At     string        `json:"at"`
	Edited bool          `json:"edited,omitzero"` // its text was changed then
}

type messageFile struct {
	ID       parley.MediaID     `json:"id"`
	URL      string             `json:"url"`
	MIMEType string             `json:"mimetype"`
	Filename string             `json:"filename"`
	Bytes    int64              `json:"bytes"`
	Status   parley.MediaStatus `json:"status"`
}

type messagePoll struct {
	Title    string       `json:"title"`
	Options  []pollOption `json:"options"`
	Multiple bool         `json:"multiple"`
}

type pollOption struct {
	Name  string `json:"name"`
	Votes int    `json:"votes"`
}

const maxCaused = 100 // deliveries in one response

func (s *server) readMessage(ctx context.Context, r *request) (any, error) {
	m, err := s.messageNamed(ctx, r)
	if err != nil {
		return nil, err
	}
	events, err := s.config.Store.EventsAbout(ctx, &m)
	if err != nil {
		return nil, err
	}
	d := messageDetail{
		messageRow: s.messageRow(&m, s.newNameFinder().name(ctx, m.Channel, cmp.Or(m.Author, m.Chat))),
		Timeline:   toTimeline(&m, events), ReplyTo: textOrNil(m.ReplyTo),
	}
	if err := s.config.Store.AddQuoted(ctx, &m); err != nil {
		return nil, err
	}
	s.addContent(&d, &m, events, parley.MediaLinks{Base: s.baseURL(r.http)})
	if d.Reactions, err = s.config.Store.Reactions(ctx, m.Seq); err != nil {
		return nil, err
	}
	if r.channel.Code != "" { // the token is not the operator's
		return ok("OK", d), nil
	}
	senders, err := s.sendersOf(ctx, []parley.Message{m})
	if err != nil {
		return nil, err
	}
	deliveries, err := s.deliveriesOf(ctx, r, events)
	return ok("OK", operatorDetail{d, deliveries, textOrNil(m.IdempotencyKey), senders[m.ID]}), err
}

// toTimeline lists the statuses and edits of a message, from acceptance until now. Purged events are missing in between.
func toTimeline(m *parley.Message, events []parley.Event) []statusAt {
	first := parley.Pending
	if !m.FromMe {
		first = parley.Received
	}
	line := []statusAt{{Status: first, At: parley.Stamp(m.CreatedAt)}}
	for _, e := range events {
		switch e.Type {
		case parley.MessageStatus, parley.MessageDeleted, parley.MessageEdited:
			line = append(line, statusAt{e.Message.Status, parley.Stamp(e.At), e.Type == parley.MessageEdited})
		}
	}
	if line[len(line)-1].Status != m.Status {
		line = append(line, statusAt{Status: m.Status, At: parley.Stamp(m.UpdatedAt)})
	}
	return line
}

// addContent adds the content beside the text, if it may be shown.
func (s *server) addContent(d *messageDetail, m *parley.Message, events []parley.Event, links parley.MediaLinks) {
	if _, shown := s.showsContent(m); !shown {
		return
	}
	view := parley.ViewOf(m, links.Plain)
	if f := view.Media; f != nil {
		d.Media = &messageFile{f.ID, f.URL, f.MIMEType, f.Filename, f.Size, f.Status}
	}
	d.Quoted, d.Location, d.Contacts = view.Quoted, view.Location, view.Contacts
	if c, ok := m.Content.(parley.Poll); ok && len(c.Options) > 0 {
		d.Poll = toPoll(c, lastVotes(events))
	}
}

// toPoll counts the votes, each of which lists the options that somebody chose.
func toPoll(c parley.Poll, votes [][]string) *messagePoll {
	p := &messagePoll{Title: c.Title, Multiple: c.Multiple}
	for _, name := range c.Options {
		count := 0
		for _, chosen := range votes {
			if slices.Contains(chosen, name) {
				count++
			}
		}
		p.Options = append(p.Options, pollOption{name, count})
	}
	return p
}

// lastVotes returns the last vote of everybody who voted.
func lastVotes(events []parley.Event) [][]string {
	last := map[parley.ContactID][]string{}
	for _, e := range events {
		var data struct {
			Vote struct {
				ContactID parley.ContactID `json:"contact_id"`
				Options   []string         `json:"options"`
			} `json:"vote"`
		}
		if e.Type == parley.PollVoted && json.Unmarshal(e.Data, &data) == nil {
			last[data.Vote.ContactID] = data.Vote.Options
		}
	}
	return slices.Collect(maps.Values(last))
}

func (s *server) deliveriesOf(ctx context.Context, r *request, events []parley.Event) ([]deliveryRow, error) {
	if len(events) == 0 {
		return nil, nil
	}
	var q parley.DeliveryQuery
	for _, e := range events[max(0, len(events)-maxCaused):] {
		q.Events = append(q.Events, e.Seq)
	}
	rows, _, err := s.deliveries(ctx, r, q, parley.Page{Limit: maxCaused})
	return rows, err
}
