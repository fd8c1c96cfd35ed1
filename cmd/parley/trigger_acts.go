package main

import (
	"context"
	"net/url"

	"parley"
)

// act does what makes an event happen and returns the id of the message or the code that it will be
// about; empty: of none.
type act func(ctx context.Context) (about string, err error)

// acts says how every event is made to happen. The sandbox has no pairing, and an attack takes too long.
func (t *trigger) acts() map[parley.EventType]act {
	return map[parley.EventType]act{
		parley.MessageReceived:      t.write,
		parley.MessageStatus:        t.send,
		parley.MessageReaction:      t.react,
		parley.MessageDeleted:       t.takeBack,
		parley.MessageMedia:         t.attach,
		parley.PollVoted:            t.vote,
		parley.ChannelStatusChanged: t.drop,
		parley.OTPApproved:          t.approve,
		parley.OTPFailed:            t.mistype,
		parley.OTPExpired:           t.expire,
	}
}

// write has the phone write to the channel.
func (t *trigger) write(ctx context.Context) (string, error) {
	return t.asPhone(ctx, map[string]any{"type": "text", "message": t.text})
}

// send has the channel write to the phone.
func (t *trigger) send(ctx context.Context) (string, error) {
	return t.toPhone(ctx, "text", map[string]any{"message": t.text})
}

// react has the phone react to what the channel wrote.
func (t *trigger) react(ctx context.Context) (string, error) {
	id, err := t.send(ctx)
	if err != nil {
		return "", err
	}
	_, err = t.asPhone(ctx, map[string]any{"type": "reaction", "message_id": id, "reaction": "👍"})
	return id, err
}

// attach has the phone send a file.
func (t *trigger) attach(ctx context.Context) (string, error) {
	file := map[string]any{"data": []byte(t.text), "filename": "parley.txt"} // in base64
	return t.asPhone(ctx, map[string]any{"type": "file", "caption": t.text, "file": file})
}

// takeBack has the phone write, and delete what it wrote.
func (t *trigger) takeBack(ctx context.Context) (string, error) {
	id, err := t.write(ctx)
	if err != nil {
		return "", err
	}
	_, err = t.asPhone(ctx, map[string]any{"type": "delete", "message_id": id})
	return id, err
}

// vote has the phone vote in a poll of the channel.
func (t *trigger) vote(ctx context.Context) (string, error) {
	id, err := t.toPhone(ctx, "poll", map[string]any{"title": t.text, "options": []string{"Ya", "Tidak"}})
	if err != nil {
		return "", err
	}
	_, err = t.asPhone(ctx, map[string]any{"type": "vote", "message_id": id, "options": []string{"Ya"}})
	return id, err
}

// drop has the channel lose its connection while it sends.
func (t *trigger) drop(ctx context.Context) (string, error) {
	if _, err := t.api.Post(ctx, "/api/sandbox/faults", map[string]any{"fault": "drop_socket", "times": 1}, nil); err != nil {
		return "", err
	}
	_, err := t.send(ctx)
	return "", err
}

// approve has a code asked for, read on the phone and used.
func (t *trigger) approve(ctx context.Context) (string, error) {
	var at position
	if _, err := t.api.Get(ctx, "/api/sandbox/cursor", nil, &at); err != nil {
		return "", err
	}
	id, err := t.requestCode(ctx)
	if err != nil {
		return "", err
	}
	var came []received
	query := url.Values{"after": {at.Cursor}, "wait": {"10"}}
	if _, err := t.api.Get(ctx, messagesPath(t.number), query, &came); err != nil {
		return "", err
	}
	for _, m := range came {
		for _, code := range m.Codes {
			if approved, err := t.validate(ctx, code); err != nil || approved {
				return id, err
			}
		}
	}
	return "", fail(exitNotSo, "no code reached the phone")
}

// mistype has a code asked for, and wrong ones tried until no more may be.
func (t *trigger) mistype(ctx context.Context) (string, error) {
	id, err := t.requestCode(ctx)
	if err != nil {
		return "", err
	}
	const tries = 5
	for range tries {
		if _, err := t.validate(ctx, "wrong"); err != nil { // a code has no such letters
			return "", err
		}
	}
	return id, nil
}

// expire has a code asked for, and moves the channel's clock past its end.
func (t *trigger) expire(ctx context.Context) (string, error) {
	id, err := t.requestCode(ctx)
	if err != nil {
		return "", err
	}
	_, err = t.api.Post(ctx, "/api/sandbox/clock", map[string]any{"advance": codeLife + 1}, nil)
	return id, err
}

// codeLife is how many seconds a code is asked to live: the least that there is.
const codeLife = 30

// requestCode asks for a code. Unless a phone is named it goes to a new one, which no limit holds back.
func (t *trigger) requestCode(ctx context.Context) (string, error) {
	if t.number == "" {
		var p phone
		if _, err := t.api.Post(ctx, "/api/sandbox/phones", map[string]string{}, &p); err != nil {
			return "", err
		}
		t.number = p.Number
	}
	var made struct {
		ID string `json:"id"`
	}
	_, err := t.api.Post(ctx, "/api/otp/code/request", map[string]any{"contact_id": t.contact(), "expires": codeLife}, &made)
	return made.ID, err
}

func (t *trigger) validate(ctx context.Context, code string) (approved bool, err error) {
	a, err := t.api.Post(ctx, "/api/otp/code/validate", map[string]any{"contact_id": t.contact(), "code": code}, nil)
	return err == nil && a.Success, err
}

// asPhone acts as the phone.
func (t *trigger) asPhone(ctx context.Context, body map[string]any) (messageID string, err error) {
	if err := t.choosePhone(ctx); err != nil {
		return "", err
	}
	var done struct {
		MessageID string `json:"message_id"`
	}
	_, err = t.api.Post(ctx, "/api/sandbox/phones/"+t.number+"/send", body, &done)
	return done.MessageID, err
}

// toPhone sends something to the phone.
func (t *trigger) toPhone(ctx context.Context, kind string, body map[string]any) (messageID string, err error) {
	if err := t.choosePhone(ctx); err != nil {
		return "", err
	}
	body["contact_id"] = t.contact()
	var done struct {
		MessageID string `json:"message_id"`
	}
	_, err = t.api.Post(ctx, "/api/send-message/"+kind, body, &done)
	return done.MessageID, err
}

// choosePhone takes the first phone that there is, or a new one.
func (t *trigger) choosePhone(ctx context.Context) error {
	if t.number != "" {
		return nil
	}
	var phones []phone
	if _, err := t.api.Get(ctx, "/api/sandbox/phones", nil, &phones); err != nil {
		return err
	}
	if len(phones) > 0 {
		t.number = phones[0].Number
		return nil
	}
	var p phone
	_, err := t.api.Post(ctx, "/api/sandbox/phones", map[string]string{}, &p)
	t.number = p.Number
	return err
}

func (t *trigger) contact() parley.ContactID { return parley.ContactOf(t.number) }
