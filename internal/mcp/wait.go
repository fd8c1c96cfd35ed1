package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"parley/internal/client"
)

// nextMessage reads a stream until there is a message in a chat, which has one of the ids, or until ctx ends. What a contact
// writes in a group is not in the chat with the contact.
func (t *tools) nextMessage(ctx context.Context, stream io.Reader, ids []string) (waitOut, error) {
	for events := client.NewEventReader(stream); ; {
		body, err := events.Next()
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return waitOut{Replies: []message{}, TimedOut: true}, nil
		case err != nil:
			return waitOut{}, fmt.Errorf("the event stream ended: %w. Call again", err)
		}
		var event struct {
			Channel string     `json:"channel"`
			Data    apiMessage `json:"data"`
		}
		if err := json.Unmarshal(body, &event); err != nil {
			return waitOut{}, err
		}
		if slices.Contains(ids, event.Data.chat()) {
			event.Data.Channel = event.Channel
			return waitOut{Replies: []message{event.Data.view("")}}, nil
		}
	}
}
