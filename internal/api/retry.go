package api

import (
	"context"
	"errors"
	"fmt"

	"parley"
)

// retryDelivery tries a waiting delivery now.
func (s *server) retryDelivery(ctx context.Context, r *request) (envelope[deliveryRow], error) {
	d, err := s.Callbacks.Retry(ctx, parley.DeliveryID(r.http.PathValue("id")))
	switch {
	case errors.Is(err, parley.ErrNotFound):
		return envelope[deliveryRow]{}, parley.Errorf(parley.NotFound, "There is no such delivery.")
	case err != nil:
		return envelope[deliveryRow]{}, err
	}
	addresses, err := s.addresses(ctx)
	if err != nil {
		return envelope[deliveryRow]{}, err
	}
	return ok("Trying now", deliveryOf(d, addresses)), nil
}

type retryData struct {
	Waiting int64 `json:"waiting"`
}

// retryWebhook tries everything that waits for a webhook now.
func (s *server) retryWebhook(ctx context.Context, r *request) (envelope[retryData], error) {
	n, err := s.Callbacks.RetryWebhook(ctx, r.webhookID())
	if err != nil {
		return envelope[retryData]{}, noWebhook(err)
	}
	return ok(fmt.Sprintf("Trying %d now", n), retryData{n}), nil
}
