package api

import (
	"context"
	"slices"

	"parley"
	"parley/internal/wire"
)

// maxSameID is how many messages with one id are listed. The network makes ids unique; only tests repeat them.
const maxSameID = 20

// foundRow is one thing that has an id.
type foundRow struct {
	Kind    string             `json:"kind"` // message, event or delivery
	ID      string             `json:"id"`
	Channel parley.ChannelCode `json:"channel"`
	Type    *string            `json:"type"`    // of an event or of the event of a delivery
	Message *wire.Message      `json:"message"` // the message, or that of the event
}

// findByID finds a message, an event or a delivery by its id, on any channel.
func (s *server) findByID(ctx context.Context, r *request) (any, error) {
	id := r.Text("id", 1, 200)
	channel := parley.ChannelCode(r.OptionalText("channel", 1, 100))
	if err := r.Err(); err != nil {
		return nil, err
	}
	found, err := s.findMessage(ctx, r, id, channel)
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
				row := foundRow{Kind: "event", ID: id, Channel: e.Channel, Type: textOrNil(e.Type)}
				if e.Message != nil {
					rows, err := s.messageRows(ctx, r, []parley.Message{*e.Message})
					if err != nil {
						return nil, err
					}
					row.Message = &rows[0]
				}
				found = append(found, row)
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

func (s *server) findMessage(ctx context.Context, r *request, id string, channel parley.ChannelCode) (found []foundRow, err error) {
	ref, err := parley.ParseMessageRef(id)
	if err != nil {
		return nil, nil // it is another kind of id
	}
	messages, err := s.config.Gateway.MessagesNamed(ctx, channel, ref, maxSameID)
	if err != nil {
		return nil, err
	}
	rows, err := s.messageRows(ctx, r, slices.DeleteFunc(messages, func(m parley.Message) bool { return !m.Content.Kind().InHistory() }))
	for i, row := range rows {
		found = append(found, foundRow{Kind: "message", ID: row.MessageID, Channel: row.Channel, Message: &rows[i]})
	}
	return found, err
}
