package callback

import (
	"context"

	"parley"
)

// BodyOf is what a delivery sends, for people who look at it; nil: it sends no body, or nobody knows it
// any more. A text that is not kept is not shown.
func BodyOf(ctx context.Context, store parley.EventReader, d parley.Delivery) (*string, error) {
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
