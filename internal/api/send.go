package api

import (
	"cmp"
	"context"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/gateway"
	"parley/internal/store"
)

// submit passes the draft of a request to the outbox, and describes the result.
func (rt *route) submit(ctx context.Context, r *request) (response, error) {
	if err := r.channel.Usable(); err != nil {
		return response{}, err
	}
	draft, err := rt.draft(ctx, r)
	if err != nil {
		return response{}, err
	}
	ms, err := rt.accept(ctx, r, r.channel.Code, []gateway.Draft{draft})
	if err != nil {
		return response{}, err
	}
	a, err := rt.fromMessages(ctx, r, ms)
	return r.prefer.on(a), err
}

// changing is the work of changing a message or a chat.
func (s *server) changing(draft func(ctx context.Context, r *request) (gateway.Draft, error)) work {
	return work{draft: draft, fromMessages: operationResponse}
}

// sending is the work of sending a message of one kind.
func (s *server) sending(read func(form.Form) outgoing) work {
	return work{fromMessages: sendResponse, draft: func(ctx context.Context, r *request) (gateway.Draft, error) {
		to := r.Chat()
		p := read(r.Form)
		if err := cmp.Or(s.checkReply(ctx, r.channel.Code, p), r.Err()); err != nil {
			return gateway.Draft{}, err
		}
		if err := r.channel.Accepts(to); err != nil {
			return gateway.Draft{}, err
		}
		if !p.needsWork() { // the common case
			return gateway.Draft{To: to, Content: p.content, ReplyTo: p.replyTo}, nil
		}
		drafts, err := s.drafts(ctx, r, r.channel.Code, to, []outgoing{p})
		if err != nil {
			return gateway.Draft{}, err
		}
		return drafts[0], nil
	}}
}

// accept passes the drafts and the idempotency key to the gateway, and waits for the network as long as the
// caller prefers.
func (s *server) accept(ctx context.Context, r *request, channel parley.ChannelCode, drafts []gateway.Draft) ([]parley.Message, error) {
	for i := range drafts {
		drafts[i].Request, drafts[i].Token = r.id, r.tokenID()
	}
	options := gateway.SendOptions{Wait: r.prefer.wait, Key: r.key}
	if r.action != "" {
		options.Accepted = func(tx *store.Tx, ms []parley.Message) error { return r.auditMessages(ctx, tx, ms) }
	}
	ms, err := s.config.Gateway.Send(ctx, channel, drafts, options)
	if err != nil {
		s.discard(ctx, drafts)
		return nil, fullQueue(wasDeleted(channel, err))
	}
	r.accepted = true
	return ms, nil
}

func wasDeleted(code parley.ChannelCode, err error) error {
	if parley.ToCode(err) == parley.NotFound {
		return parley.Errorf(parley.BadRequest, "Channel %s was deleted.", code)
	}
	return err
}

func (p preference) on(a response) response {
	if p.applied != "" {
		a.header = append(a.header, field{"Preference-Applied", p.applied})
	}
	return a
}

func mayHoldLink(text string) bool { return strings.Contains(text, "://") }

type sentError struct {
	Code    parley.FailureCode `json:"code"`
	Message string             `json:"message"`
}

// sentFile describes a sent file; exactly one of its three addresses is set.
type sentFile struct {
	Caption string      `json:"caption"`
	Image   *string     `json:"image,omitempty"`
	Video   *string     `json:"video,omitempty"`
	File    *string     `json:"file,omitempty"`
	Details fileDetails `json:"details"`
}

// fileDetails are all strings, for compatibility.
type fileDetails struct {
	MIMEType   string `json:"mimetype"`
	Height     string `json:"height"`
	Width      string `json:"width"`
	MediaKey   string `json:"mediaKey"`
	FileSHA256 string `json:"fileSha256"`
	Timestamp  string `json:"timestamp"`
}

// sentData is the data of a response to a send.
type sentData struct {
	Status    string     `json:"status"`
	Message   any        `json:"message"` // a string, or sentFile
	Timestamp string     `json:"timestamp"`
	MessageID string     `json:"message_id"`
	ID        string     `json:"id"`
	Error     *sentError `json:"error,omitempty"`
}

// sendResponse describes the result of a send. It depends on the message alone, so that a lost response can be
// rebuilt.
func sendResponse(_ context.Context, _ *request, ms []parley.Message) (response, error) {
	m := &ms[0]
	return jsonResponse(envelope{
		Success: m.Status != parley.Failed,
		Message: outcome(m, "Message sent", "Message accepted; it will be sent"),
		Data: sentData{
			Status: m.Status.String(), Message: sentContent(m), Timestamp: parley.Stamp(m.CreatedAt),
			MessageID: m.Ref().String(), ID: string(m.ID), Error: toFailure(m),
		},
	})
}

func outcome(m *parley.Message, done, pending string) string {
	switch {
	case m.Status == parley.Pending:
		return pending
	case m.Status == parley.Failed && m.Failure != nil:
		return m.Failure.Message
	case m.Status == parley.Failed:
		return "The network rejected it."
	}
	return done
}

func toFailure(m *parley.Message) *sentError {
	if m.Status != parley.Failed || m.Failure == nil {
		return nil
	}
	return &sentError{m.Failure.Code, m.Failure.Message}
}

// sentContent is what was sent, as the response repeats it: a string or, of a file, an object.
func sentContent(m *parley.Message) any {
	switch c := m.Content.(type) {
	case parley.Image:
		return sentFile{Caption: c.Caption, Image: &c.Media.Source, Details: details(m, c.Media)}
	case parley.Video:
		return sentFile{Caption: c.Caption, Video: &c.Media.Source, Details: details(m, c.Media)}
	case parley.File:
		return sentFile{Caption: c.Caption, File: &c.Media.Source, Details: details(m, c.Media)}
	}
	return contentText(m.Content)
}

func contentText(c parley.Content) string {
	if f := parley.MediaIn(c); f != nil && c.Kind() != parley.KindTemplate {
		return f.Source
	}
	if place, ok := c.(parley.Location); ok && place.Title == "" {
		return place.Latitude + "," + place.Longitude
	}
	return c.Text()
}

func details(m *parley.Message, f parley.Media) fileDetails {
	return fileDetails{
		MIMEType:   f.MIME,
		Height:     strconv.Itoa(f.Height),
		Width:      strconv.Itoa(f.Width),
		MediaKey:   base64.StdEncoding.EncodeToString(f.MediaKey),
		FileSHA256: base64.StdEncoding.EncodeToString(f.SHA256),
		Timestamp:  parley.Stamp(m.CreatedAt),
	}
}

const (
	defaultWait = 10 * time.Second // for the network's confirmation
	maxWait     = 30 * time.Second // shorter than any sensible client's own time-out
)

// preference is what the header Prefer (RFC 7240) says of waiting for the network's confirmation.
type preference struct {
	wait    time.Duration
	applied string // for the header Preference-Applied; empty: none was asked for
}

// readPreference reads the header. Preferences that are not known, or not sensible, are ignored: that
// is what the header is for. With respond-async and wait=N together, the response comes at once unless
// it is there within N seconds.
func readPreference(h http.Header) preference {
	p := preference{wait: defaultWait}
	var async, waits bool
	for part := range strings.SplitSeq(strings.Join(h["Prefer"], ","), ",") {
		part, _, _ = strings.Cut(part, ";")
		name, value, _ := strings.Cut(part, "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "respond-async":
			async = true
		case "wait":
			n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 32)
			if err == nil && !waits { // of several, the first counts
				waits = true
				p.wait = min(time.Duration(n)*time.Second, maxWait)
			}
		}
	}
	switch seconds := strconv.Itoa(int(p.wait / time.Second)); {
	case async && waits:
		p.applied = "respond-async, wait=" + seconds
	case async:
		p.wait, p.applied = 0, "respond-async"
	case waits:
		p.applied = "wait=" + seconds
	}
	return p
}
