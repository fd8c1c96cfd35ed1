package api

import (
	"context"
	"errors"

	"parley"
	"parley/internal/api/form"
)

const (
	maxPoolItems    = 30
	maxPoolMessages = 100 // of all items together
	maxItemStrings  = 10  // messages of one item that lists strings
)

func pooling(s *server) work {
	return work{
		do: func(ctx context.Context, r *request) (response, error) {
			a, err := s.sendPool(ctx, r)
			return r.prefer.on(a), err
		},
		fromMessages: pooled,
	}
}

func (s *server) sendPool(ctx context.Context, r *request) (response, error) {
	to := r.Contact("contact_id")
	items := readPool(r.Form)
	channel, unpicked := s.pick(ctx, r, to)
	if unpicked == nil {
		for _, p := range items {
			if err := s.checkReply(ctx, channel, p); err != nil {
				return response{}, err
			}
		}
	}
	if err := r.Err(); err != nil {
		return response{}, err
	}
	if errors.Is(unpicked, parley.ErrNotFound) {
		return unsent(items)
	}
	if unpicked != nil {
		return response{}, unpicked
	}
	if err := s.checkPoolOwner(ctx, channel); err != nil {
		return response{}, err
	}
	drafts, err := s.drafts(ctx, r, channel, to, items)
	if err != nil {
		return response{}, err
	}
	ms, err := s.accept(ctx, r, channel, drafts)
	if err != nil {
		return response{}, err
	}
	return pooled(ctx, r, ms)
}

// checkPoolOwner returns nil if this node serves the chosen channel.
func (s *server) checkPoolOwner(ctx context.Context, code parley.ChannelCode) error {
	c, _ := s.config.Gateway.Channel(code)
	err := s.checkChannelOwner(ctx, c)
	if e, ok := errors.AsType[*otherNode](err); ok {
		e.channel = code
	}
	return err
}

// pick returns the channel of X-Channel if it is WORKING, without the header any WORKING one. The error is
// [parley.ErrNotFound] if none works, or why the working one may not write to the contact.
func (s *server) pick(ctx context.Context, r *request, to parley.ContactID) (parley.ChannelCode, error) {
	if r.channel.Code == "" {
		return s.config.Gateway.PickForPool(ctx, to)
	}
	if r.channel.State.Status != parley.ChannelWorking {
		return "", parley.ErrNotFound
	}
	return r.channel.Code, r.channel.Accepts(to)
}

// readPool reads the items. The data of an item is an object with the fields of its type, or an array of strings,
// one message each.
func readPool(f form.Form) []outgoing {
	var items []outgoing
	f.List("pools", 1, maxPoolItems, true, func(f form.Form, index string) {
		item, isObject := f.Object(index, true)
		if !isObject {
			return
		}
		kind := parley.Kind(item.Choice("type", true, "image", "text", "video", "file", "voice"))
		switch {
		case !item.Has("data"):
			item.Fail("data", "is required: an object, or an array of strings.")
		case item.IsArray("data"):
			items = append(items, readStrings(item, kind)...)
		case !item.IsObject("data"):
			item.Fail("data", "must be an object, or an array of strings.")
		case kind != "":
			inside, _ := item.Object("data", true)
			items = append(items, readers[kind](inside))
		}
	})
	if len(items) > maxPoolMessages {
		f.Fail("pools", "must have at most %d messages in total; it has %d.", maxPoolMessages, len(items))
	}
	return items
}

// readStrings reads data that is an array of strings: texts, or addresses of files.
func readStrings(item form.Form, kind parley.Kind) []outgoing {
	var items []outgoing
	item.List("data", 1, maxItemStrings, true, func(f form.Form, index string) {
		p := outgoing{form: f}
		if kind == parley.KindText || kind == "" {
			p.content = parley.Text{Body: f.Text(index, 1, maxText)}
			p.preview, p.highQuality = true, true
		} else {
			p.content = notFetched[kind]
			p.source, p.field = fileSource(f, index), f.Path(index)
		}
		items = append(items, p)
	})
	return items
}

var notFetched = map[parley.Kind]parley.Content{
	parley.KindImage: parley.Image{}, parley.KindVideo: parley.Video{}, parley.KindFile: parley.File{}, parley.KindVoice: parley.Voice{},
}

// poolData is the response to a pool, which has no envelope.
type poolData struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
	Pools   string `json:"pools"` // the JSON of []poolOutcome
}

type poolOutcome struct {
	Type      parley.Kind `json:"type"`
	Status    string      `json:"status"`
	MessageID *string     `json:"message_id"` // null: not sent
	ID        *string     `json:"id"`
	Error     *sentError  `json:"error"`
}

func pooled(_ context.Context, _ *request, ms []parley.Message) (response, error) {
	outcomes := make([]poolOutcome, len(ms))
	failed := false
	for i := range ms {
		m := &ms[i]
		o := poolOutcome{Type: m.Content.Kind(), Status: m.Status.String(), Error: toFailure(m)}
		if o.Error == nil || o.Error.Code != parley.NotSent {
			full, bare := m.Ref().String(), string(m.ID)
			o.MessageID, o.ID = &full, &bare
		}
		failed = failed || m.Status == parley.Failed
		outcomes[i] = o
	}
	return poolResponse(outcomes, !failed)
}

func unsent(items []outgoing) (response, error) {
	outcomes := make([]poolOutcome, len(items))
	for i, p := range items {
		outcomes[i] = poolOutcome{
			Type: p.content.Kind(), Status: parley.Failed.String(),
			Error: &sentError{parley.NotSent, "No channel was WORKING."},
		}
	}
	return poolResponse(outcomes, false)
}

func poolResponse(outcomes []poolOutcome, success bool) (response, error) {
	list, err := encode(outcomes)
	if err != nil {
		return response{}, err
	}
	message := "OK"
	if !success {
		message = "Failed to send pool message"
	}
	return jsonResponse(poolData{Success: success, Message: message, Pools: string(list)})
}
