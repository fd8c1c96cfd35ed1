package callback

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley"
	"parley/internal/safehttp"
)

func secretOwner(d *parley.Delivery) parley.SecretOwner {
	if d.Webhook == "" {
		return parley.ChannelSecret(d.Channel)
	}
	return parley.WebhookSecret(d.Webhook)
}

func (e *Engine) newRequest(
	ctx context.Context, w *parley.Webhook, d *parley.Delivery, event *parley.Event, keys Keys, at time.Time,
) (*http.Request, error) {
	if d.Webhook == "" {
		return callbackRequest(ctx, d, event, keys, at)
	}
	return e.webhookRequest(ctx, w, event, keys, at)
}

func (e *Engine) webhookRequest(
	ctx context.Context, w *parley.Webhook, event *parley.Event, keys Keys, at time.Time,
) (*http.Request, error) {
	linkTo := e.config.Links.Plain
	if w.SignedMedia {
		linkTo = e.config.Links.Signed(at)
	}
	body, err := e.config.Render(event, linkTo)
	if err != nil {
		return nil, fmt.Errorf("write event %s: %w", event.ID, err)
	}
	u, err := safehttp.CheckURL(w.URL)
	if err != nil {
		return nil, err
	}
	req := (&http.Request{Method: http.MethodPost, URL: u, Header: http.Header{}, ContentLength: int64(len(body)),
		Body: io.NopCloser(bytes.NewReader(body))}).WithContext(ctx)
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Header.Set("Content-Type", "application/json")
	return req, keys.SignRequest(req.Header, event.ID, at, body)
}

// callbackRequest makes the request for the outcome of a login link. The address keeps its own query unchanged; the
// parameters follow it.
func callbackRequest(ctx context.Context, d *parley.Delivery, event *parley.Event, keys Keys, at time.Time) (*http.Request, error) {
	params, err := callbackParams(d.Chat, event, at)
	if err != nil {
		return nil, err
	}
	signature, err := keys.signParams(params)
	if err != nil {
		return nil, err
	}
	u, err := safehttp.CheckURL(d.URL)
	if err != nil {
		return nil, err
	}
	var query strings.Builder
	query.WriteString(strings.ReplaceAll(u.RawQuery, " ", "%20")) // a blank would end the request line
	for _, p := range append(params, param{"signature", signature}) {
		if query.Len() > 0 {
			query.WriteByte('&')
		}
		query.WriteString(p.key + "=" + url.QueryEscape(p.value))
	}
	u.RawQuery = query.String()
	req := (&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}).WithContext(ctx)
	req.Header.Set(headerSignature, signature)
	return req, nil
}

// callbackParams are the query parameters of a callback, sorted.
func callbackParams(contact parley.ContactID, event *parley.Event, at time.Time) ([]param, error) {
	var data struct {
		ID     string `json:"id"`
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal(event.Data, &data); err != nil {
		return nil, fmt.Errorf("read event %s: %w", event.ID, err)
	}
	status := "failed"
	if event.Type == parley.OTPApproved {
		status = "success"
	}
	params := []param{{"contact_id", string(contact)}, {"event_id", string(event.ID)}, {"id", data.ID}}
	if data.Reason != "" {
		params = append(params, param{"reason", data.Reason})
	}
	return append(params, param{"status", status}, param{"timestamp", parley.Stamp(at)}), nil
}

// DeliveryBody is the body of a delivery, without texts that are only stored encrypted and without signed links; nil: it has
// none, or its event was purged.
func (e *Engine) DeliveryBody(ctx context.Context, d parley.Delivery) (*string, error) {
	if d.Webhook == "" {
		return nil, nil
	}
	events, err := e.config.Store.EventsAt(ctx, []int64{d.Event})
	if err != nil || len(events) == 0 {
		return nil, err
	}
	events[0].Encrypted = nil
	body, err := e.config.Render(&events[0], e.config.Links.Plain)
	return new(string(body)), err
}

// LastRequest is the request of a delivery's last attempt, signed for that time with the current secrets; nil: there was
// no request, or its event was purged.
func (e *Engine) LastRequest(ctx context.Context, w parley.Webhook, d parley.Delivery) (*http.Request, error) {
	if d.TriedAt.IsZero() {
		return nil, nil
	}
	events, err := e.config.Store.EventsAt(ctx, []int64{d.Event})
	if err != nil || len(events) == 0 {
		return nil, err
	}
	keys, err := e.Secrets.Keys(ctx, secretOwner(&d))
	if err != nil {
		return nil, err
	}
	req, err := e.newRequest(ctx, &w, &d, &events[0], keys, d.TriedAt)
	if _, isBad := errors.AsType[*safehttp.BadURL](err); isBad {
		return nil, nil // so no request was sent
	}
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "parley/"+e.config.Version)
	return req, nil
}

// toRequestID is the X-Request-Id of a delivery: that of the request that sent the event's message, else a new one. It is
// in the logs of both sides.
func toRequestID(event *parley.Event) string {
	if event.Message != nil && event.Message.Request != "" {
		return event.Message.Request
	}
	return newRequestID()
}

func newRequestID() string {
	b := make([]byte, 12)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
