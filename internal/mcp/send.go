package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/client"
	"parley/internal/wire"
)

type sendIn struct {
	Contact string `json:"contact" jsonschema:"the contact's phone number with its country code, or the id of a group"`
	Text    string `json:"text" jsonschema:"the text"`
	Channel string `json:"channel,omitempty" jsonschema:"the code of the channel, if the token is for several"`
	ReplyTo string `json:"reply_to,omitempty" jsonschema:"the id of a message to reply to"`
	Key     string `json:"idempotency_key,omitempty" jsonschema:"any text: sending again with the same key does not send twice"`
}

type sendOut struct {
	ID     string `json:"id" jsonschema:"the full id of the message, for wait_for_reply"`
	Status string `json:"status" jsonschema:"SENT: the network has it; PENDING: it will be sent in the background"`
}

func (t *tools) sendMessage(ctx context.Context, in sendIn) (out sendOut, err error) {
	chat, err := chatID(in.Contact)
	if err != nil {
		return out, err
	}
	if t.config.Sending == SandboxOnly {
		if err := t.checkSandbox(ctx, in.Channel); err != nil {
			return out, err
		}
	}
	body := map[string]string{toField(chat): string(chat), "message": in.Text}
	if in.ReplyTo != "" {
		body["reply_to"] = in.ReplyTo
		if ref, err := parley.ParseMessageRef(in.ReplyTo); err == nil {
			body["reply_to"] = string(ref.ID)
		}
	}
	header := http.Header{}
	if in.Key != "" {
		header.Set("Idempotency-Key", in.Key)
	}
	var sent wire.Message
	if _, err := t.ofChannel(in.Channel).CallWith(ctx, http.MethodPost, "/api/send-message/text", nil, header, body, &sent); err != nil {
		return out, err
	}
	if sent.Error != nil {
		return out, fmt.Errorf("the message was not sent: %s", sent.Error)
	}
	return sendOut{sent.MessageID, sent.Status}, nil
}

func (t *tools) checkSandbox(ctx context.Context, channel string) error {
	found, err := t.channelHealth(ctx, healthIn{channel})
	if err == nil && !found.Channels[0].Simulated {
		err = errors.New("this channel is on a real network, where sending is off. " +
			"The operator can allow it: --allow-send of parley mcp, --mcp-allow-send of the server")
	}
	return err
}

const (
	defaultWait = 30
	longestWait = 45 // seconds; less than the longest call
	maxReplies  = 50 // messages that are looked through for those after a message
)

type waitIn struct {
	Contact string `json:"contact" jsonschema:"the contact's phone number with its country code, or the id of a group"`
	Channel string `json:"channel,omitempty" jsonschema:"the code of the channel, if the token is for several"`
	After   string `json:"after,omitempty" jsonschema:"the full id of a message: what the contact wrote after it counts too"`
	Seconds int    `json:"seconds,omitempty" jsonschema:"how long to wait (default 30)"`
}

type waitOut struct {
	Replies  []message `json:"replies" jsonschema:"what the contact wrote, oldest first"`
	TimedOut bool      `json:"timed_out" jsonschema:"nothing came in time; call again to wait longer"`
}

func (t *tools) waitForReply(ctx context.Context, in waitIn) (waitOut, error) {
	chat, err := chatID(in.Contact)
	if err != nil {
		return waitOut{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(cmp.Or(in.Seconds, defaultWait))*time.Second)
	defer cancel()
	api, path, ids := t.ofChannel(in.Channel), client.EventsPath, []string{string(chat)}
	if t.config.Admin {
		path = client.AllEventsPath
	} else if !chat.IsGroup() {
		ids = api.Spellings(ctx, string(chat))
	}
	// The stream begins before the history is read, so nothing is missed in between.
	resp, err := api.Events(ctx, path, newQuery("channel", in.Channel, "types", string(parley.MessageReceived)), "")
	if err != nil {
		return waitOut{}, err
	}
	defer resp.Body.Close()
	if in.After != "" {
		if replies, err := t.repliesAfter(ctx, in, chat); err != nil || len(replies) > 0 {
			return waitOut{Replies: replies}, err
		}
	}
	return t.nextMessage(ctx, resp.Body, ids)
}

// repliesAfter returns what others wrote in a chat after a message, oldest first.
func (t *tools) repliesAfter(ctx context.Context, in waitIn, chat parley.ContactID) (replies []message, err error) {
	recent, _, err := t.history(ctx, in.Channel, chat, maxReplies, 0)
	if err != nil {
		return nil, err
	}
	for _, m := range recent {
		switch {
		case m.ID == in.After || strings.HasSuffix(m.ID, "_"+in.After):
			slices.Reverse(replies)
			return replies, nil
		case !m.Outgoing:
			replies = append(replies, m)
		}
	}
	return nil, fmt.Errorf("%s is not among the last %d messages of this chat", in.After, maxReplies)
}
