package callback

import (
	"context"
	"errors"
	"net/http"

	"parley"
	"parley/internal/safehttp"
)

// DeliveryBody is what a delivery sends, for people who look at it; nil: it sends no body, or nobody knows it
// any more. A text that is not kept is not shown.
func DeliveryBody(ctx context.Context, store interface {
	EventsAt(ctx context.Context, seqs []int64) ([]parley.Event, error)
}, d parley.Delivery) (*string, error) {
	if d.Webhook == "" {
		return nil, nil
	}
	events, err := store.EventsAt(ctx, []int64{d.Event})
	if err != nil || len(events) == 0 {
		return nil, err
	}
	body, err := events[0].Body()
	if err != nil {
		return nil, err
	}
	text := string(body)
	return &text, nil
}

// LastRequest is the request of a delivery's last attempt, for people who look at it: signed for the time of
// that attempt with the secrets of now. Nil: none was made, or nobody knows any more what it told.
func (e *Engine) LastRequest(ctx context.Context, webhookURL string, d parley.Delivery) (*http.Request, error) {
	if d.TriedAt.IsZero() {
		return nil, nil
	}
	events, err := e.Store.EventsAt(ctx, []int64{d.Event})
	if err != nil || len(events) == 0 {
		return nil, err
	}
	owner := parley.WebhookSecret(d.Webhook)
	if d.Webhook == "" {
		owner = parley.ChannelSecret(d.Channel)
	}
	keys, err := e.Secrets.KeysOf(ctx, owner)
	if err != nil {
		return nil, err
	}
	var req *http.Request
	if d.Webhook == "" {
		req, err = callbackRequest(ctx, &d, &events[0], keys, d.TriedAt)
	} else {
		req, err = e.webhookRequest(ctx, webhookURL, &events[0], keys, d.TriedAt)
	}
	if _, isBad := errors.AsType[*safehttp.BadURL](err); isBad {
		return nil, nil // so none was made
	}
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "parley/"+e.Version)
	return req, nil
}
