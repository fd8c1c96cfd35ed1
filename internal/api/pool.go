package api

import (
	"cmp"
	"context"
	"errors"

	"parley"
	"parley/internal/api/form"
	"parley/internal/media"
)

const (
	maxPoolItems    = 30
	maxPoolMessages = 100 // of all items together
	maxItemStrings  = 10  // messages of one item that lists strings
)

// pooling is the work of sending several messages in order.
func pooling(s *server) work {
	return work{
		do: func(ctx context.Context, r *request) (answer, error) {
			a, err := s.sendPool(ctx, r)
			return r.prefer.on(a), err
		},
		again: pooled,
	}
}

func (s *server) sendPool(ctx context.Context, r *request) (answer, error) {
	to := r.Contact("contact_id")
	parts := s.readPool(r.Form)
	channel, unpicked := s.pick(ctx, r, to)
	if unpicked == nil {
		for _, p := range parts {
			if err := s.checkReply(ctx, channel, p); err != nil {
				return answer{}, err
			}
		}
	}
	if err := r.Err(); err != nil {
		return answer{}, err
	}
	if errors.Is(unpicked, parley.ErrNotFound) {
		return unsent(parts)
	}
	if unpicked != nil {
		return answer{}, unpicked
	}
	drafts, err := s.drafts(ctx, r, to, parts)
	if err != nil {
		return answer{}, err
	}
	ms, err := s.accept(ctx, r, channel, drafts)
	if err != nil {
		return answer{}, err
	}
	return pooled(ctx, r, ms)
}

// pick chooses the channel: the one that the caller pinned, if it is working, else one that is. None
// is [parley.ErrNotFound], but where one works and may not write to the contact, that is the error.
func (s *server) pick(ctx context.Context, r *request, to parley.ContactID) (parley.ChannelCode, error) {
	if r.channel.Code == "" {
		code, err := s.Gateway.PickForPool(ctx, to)
		if errors.Is(err, parley.ErrNotFound) {
			err = cmp.Or(s.notAllowed(to), err)
		}
		return code, err
	}
	if r.channel.State.Status != parley.Working {
		return "", parley.ErrNotFound
	}
	return r.channel.Code, r.channel.Accepts(to)
}

// notAllowed is why a working channel does not write to a contact; nil: none works.
func (s *server) notAllowed(to parley.ContactID) error {
	for _, c := range s.Gateway.Channels() {
		if c.State.Status == parley.Working {
			return c.Accepts(to)
		}
	}
	return nil
}

// readPool reads the items: each has a type, and data that is an object with that type's fields or
// an array of strings, which are that many messages.
func (s *server) readPool(f form.Form) []part {
	var parts []part
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
			parts = append(parts, s.readStrings(item, kind)...)
		case !item.IsObject("data"):
			item.Fail("data", "must be an object, or an array of strings.")
		case kind != "":
			inside, _ := item.Object("data", true)
			parts = append(parts, s.poolReader(kind)(inside))
		}
	})
	if len(parts) > maxPoolMessages {
		f.Fail("pools", "must be at most %d messages in all; it has %d.", maxPoolMessages, len(parts))
	}
	return parts
}

func (s *server) poolReader(kind parley.Kind) func(form.Form) part {
	switch kind {
	case parley.KindImage:
		return s.readImage
	case parley.KindVideo:
		return s.readVideo
	case parley.KindFile:
		return s.readFile
	case parley.KindVoice:
		return s.readPoolVoice
	}
	return s.readText
}

// readStrings reads data that is an array of strings: texts, or addresses of files.
func (s *server) readStrings(item form.Form, kind parley.Kind) []part {
	var parts []part
	item.List("data", 1, maxItemStrings, true, func(f form.Form, index string) {
		p := part{form: f}
		if kind == parley.KindText || kind == "" {
			p.content = parley.Text{Body: f.Text(index, 1, 4096)}
			p.preview, p.highQuality = true, true
		} else {
			url := f.Text(index, 1, form.MaxURL)
			if url != "" {
				url = f.CheckAddress(index, url)
			}
			p.content = emptyFile(kind)
			p.source, p.field = &media.Source{URL: url}, f.Path(index)
		}
		parts = append(parts, p)
	})
	return parts
}

// emptyFile is the content of a file that is yet to be fetched.
func emptyFile(kind parley.Kind) parley.Content {
	switch kind {
	case parley.KindImage:
		return parley.Image{}
	case parley.KindVideo:
		return parley.Video{}
	case parley.KindVoice:
		return parley.Voice{}
	}
	return parley.File{}
}

// poolData is the answer to a pool, which has no envelope.
type poolData struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
	Pools   string `json:"pools"` // the JSON of []poolOutcome
}

// poolOutcome is what became of one message.
type poolOutcome struct {
	Type      parley.Kind `json:"type"`
	Status    string      `json:"status"`
	MessageID *string     `json:"message_id"` // null: it was not sent
	ID        *string     `json:"id"`
	Error     *sentError  `json:"error"`
}

// pooled says what became of the messages of a pool.
func pooled(_ context.Context, _ *request, ms []parley.Message) (answer, error) {
	outcomes := make([]poolOutcome, len(ms))
	failed := false
	for i := range ms {
		m := &ms[i]
		o := poolOutcome{Type: m.Content.Kind(), Status: m.Status.String(), Error: failureOf(m)}
		if o.Error == nil || o.Error.Code != parley.NotSent {
			full, bare := m.Ref().String(), string(m.ID)
			o.MessageID, o.ID = &full, &bare
		}
		failed = failed || m.Status == parley.FailedForGood
		outcomes[i] = o
	}
	return poolAnswer(outcomes, !failed)
}

// unsent is the answer to a pool that no channel could take.
func unsent(parts []part) (answer, error) {
	outcomes := make([]poolOutcome, len(parts))
	for i, p := range parts {
		outcomes[i] = poolOutcome{
			Type: p.content.Kind(), Status: parley.FailedForGood.String(),
			Error: &sentError{parley.NotSent, "No channel was WORKING."},
		}
	}
	return poolAnswer(outcomes, false)
}

func poolAnswer(outcomes []poolOutcome, success bool) (answer, error) {
	list, err := encode(outcomes)
	if err != nil {
		return answer{}, err
	}
	message := "OK"
	if !success {
		message = "Failed to send pool message"
	}
	return jsonAnswer(poolData{Success: success, Message: message, Pools: string(list)})
}
