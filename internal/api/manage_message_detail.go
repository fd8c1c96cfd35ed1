package api

import (
	"context"

	"parley"
	"parley/internal/wire"
)

type messageDetail struct {
	wire.Message `json:",inline"`
	Timeline     []statusAt `json:"timeline"`
}

// operatorDetail adds what only an operator sees: webhooks may belong to others.
type operatorDetail struct {
	messageDetail  `json:",inline"`
	Deliveries     []wire.Delivery `json:"deliveries"`
	IdempotencyKey *string         `json:"idempotency_key"`
	SentBy         *sender         `json:"sent_by"`
}

type statusAt struct {
	Status parley.Status `json:"status"`
	At     string        `json:"at"`
	Edited bool          `json:"edited,omitzero"` // its text was changed then
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
	rows, err := s.messageRows(ctx, r, []parley.Message{m})
	if err != nil {
		return nil, err
	}
	d := messageDetail{rows[0], newTimeline(&m, events)}
	if r.channel.Code != "" { // the token is not the operator's
		return ok("OK", d), nil
	}
	senders, err := s.findSenders(ctx, []parley.Message{m})
	if err != nil {
		return nil, err
	}
	deliveries, err := s.findDeliveries(ctx, r, events)
	return ok("OK", operatorDetail{d, deliveries, textOrNil(m.IdempotencyKey), senders[m.ID]}), err
}

// newTimeline lists the statuses and edits of a message, from acceptance until now. Purged events are missing in between.
func newTimeline(m *parley.Message, events []parley.Event) []statusAt {
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

func (s *server) findDeliveries(ctx context.Context, r *request, events []parley.Event) ([]wire.Delivery, error) {
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
