package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"parley"
	"parley/internal/client"
	"parley/internal/wire"
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
			Channel parley.ChannelCode `json:"channel"`
			Data    wire.Message       `json:"data"`
		}
		if err := json.Unmarshal(body, &event); err != nil {
			return waitOut{}, err
		}
		if slices.Contains(ids, string(cmp.Or(event.Data.GroupID.Chat(), event.Data.ContactID))) {
			event.Data.Channel = event.Channel
			return waitOut{Replies: []message{newMessage(&event.Data, string(event.Channel))}}, nil
		}
	}
}
