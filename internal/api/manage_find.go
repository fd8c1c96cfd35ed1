package api

import (
	"cmp"
	"context"

	"parley"
)

// maxSameID is how many messages with one id are listed. The network makes ids unique; only tests repeat them.
const maxSameID = 20

// foundRow is one thing that has an id.
type foundRow struct {
	Kind    string             `json:"kind"` // message, event or delivery
	ID      string             `json:"id"`
	Channel parley.ChannelCode `json:"channel"`
	Type    *string            `json:"type"`    // of an event or of the event of a delivery
	Message *messageRow        `json:"message"` // the message, or that of the event
}

// findByID finds a message, an event or a delivery by its id, on any channel.
func (s *server) findByID(ctx context.Context, r *request) (any, error) {
	id := r.Text("id", 1, 200)
	channel := parley.ChannelCode(r.OptionalText("channel", 1, 100))
	if err := r.Err(); err != nil {
		return nil, err
	}
	found, err := s.findMessage(ctx, id, channel)
	if err != nil {
		return nil, err
	}
	if seq, err := parley.EventID(id).Seq(); err == nil {
		events, err := s.config.Store.EventsAt(ctx, []int64{seq})
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if string(e.ID) == id {
				found = append(found, s.foundEvent(ctx, e))
			}
		}
	}
	deliveries, _, err := s.deliveries(ctx, r, parley.DeliveryQuery{IDs: []parley.DeliveryID{parley.DeliveryID(id)}}, parley.Page{Limit: 1})
	if err != nil {
		return nil, err
	}
	for _, d := range deliveries {
		found = append(found, foundRow{Kind: "delivery", ID: id, Channel: d.Channel, Type: textOrNil(d.Type)})
	}
	return ok("OK", onChannel(found, channel)), nil
}

// onChannel returns those of a channel; empty: all.
func onChannel(found []foundRow, channel parley.ChannelCode) []foundRow {
	rows := []foundRow{}
	for _, row := range found {
		if channel == "" || row.Channel == channel {
			rows = append(rows, row)
		}
	}
	return rows
}

func (s *server) findMessage(ctx context.Context, id string, channel parley.ChannelCode) (found []foundRow, err error) {
	ref, err := parley.ParseMessageRef(id)
	if err != nil {
		return nil, nil // it is another kind of id
	}
	messages, err := s.config.Gateway.MessagesNamed(ctx, channel, ref, maxSameID)
	if err != nil {
		return nil, err
	}
	names := s.newNameFinder()
	for i := range messages {
		m := &messages[i]
		if m.Content.Kind().InHistory() {
			row := s.messageRow(m, names.name(ctx, m.Channel, cmp.Or(m.Author, m.Chat)))
			found = append(found, foundRow{Kind: "message", ID: row.MessageID, Channel: m.Channel, Message: &row})
		}
	}
	return found, nil
}

func (s *server) foundEvent(ctx context.Context, e parley.Event) foundRow {
	row := foundRow{Kind: "event", ID: string(e.ID), Channel: e.Channel, Type: textOrNil(e.Type)}
	if m := e.Message; m != nil {
		shown := s.messageRow(m, s.newNameFinder().name(ctx, m.Channel, cmp.Or(m.Author, m.Chat)))
		row.Message = &shown
	}
	return row
}
