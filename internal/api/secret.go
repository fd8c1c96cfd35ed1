package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"parley"
	"parley/internal/store"
)

// secretData is what signatures are made with.
type secretData struct {
	Secret   string  `json:"secret"`
	OldUntil *string `json:"old_until"`
}

func (s *server) readWebhookSecret(ctx context.Context, r *request) (envelope[secretData], error) {
	owner, err := s.webhookSecret(ctx, r)
	if err != nil {
		return envelope[secretData]{}, err
	}
	return s.showSecret(ctx, owner)
}

func (s *server) rotateWebhookSecret(ctx context.Context, r *request) (envelope[secretData], error) {
	owner, err := s.webhookSecret(ctx, r)
	if err != nil {
		return envelope[secretData]{}, err
	}
	return s.rotateSecret(ctx, r, owner)
}

// webhookSecret names the secret of the webhook that the path names.
func (s *server) webhookSecret(ctx context.Context, r *request) (parley.SecretOwner, error) {
	w, err := s.Store.Webhook(ctx, r.webhookID())
	return parley.WebhookSecret(w.ID), noWebhook(err)
}

func (s *server) readChannelSecret(ctx context.Context, r *request) (envelope[secretData], error) {
	owner, err := s.channelSecret(ctx, r)
	if err != nil {
		return envelope[secretData]{}, err
	}
	return s.showSecret(ctx, owner)
}

func (s *server) rotateChannelSecret(ctx context.Context, r *request) (envelope[secretData], error) {
	owner, err := s.channelSecret(ctx, r)
	if err != nil {
		return envelope[secretData]{}, err
	}
	return s.rotateSecret(ctx, r, owner)
}

// channelSecret names the secret of the channel that the path names.
func (s *server) channelSecret(ctx context.Context, r *request) (parley.SecretOwner, error) {
	c, err := s.Store.Channel(ctx, r.code())
	if errors.Is(err, parley.ErrNotFound) {
		err = parley.Errorf(parley.NotFound, "There is no such channel.")
	}
	return parley.ChannelSecret(c.Code), err
}

// readListenSecret shows what parley listen signs with the events that it forwards.
func (s *server) readListenSecret(ctx context.Context, _ *request) (envelope[secretData], error) {
	return s.showSecret(ctx, parley.ListenSecret)
}

// noOwner makes the error of a secret whose owner was deleted after it was looked for.
func noOwner(err error) error {
	if errors.Is(err, parley.ErrNotFound) {
		return parley.Errorf(parley.NotFound, "It was just deleted.")
	}
	return err
}

func (s *server) showSecret(ctx context.Context, owner parley.SecretOwner) (envelope[secretData], error) {
	keys, err := s.Callbacks.Secrets.KeysOf(ctx, owner)
	return ok("OK", secretData{keys.Secret, stampOrNil(keys.OldUntil)}), noOwner(err)
}

func (s *server) rotateSecret(ctx context.Context, r *request, owner parley.SecretOwner) (envelope[secretData], error) {
	keys, err := s.Callbacks.Secrets.Rotate(ctx, owner, func(tx *store.Tx, oldUntil time.Time) error {
		// Secrets are kept encrypted, so a retry with the same idempotency key does not learn it.
		before := ok("The secret was changed before. Read it where it is shown.", secretData{"", stampOrNil(oldUntil)})
		return r.storeKey(ctx, tx, http.StatusOK, before)
	})
	return ok("Secret changed. For 24 hours the old one signs too.", secretData{keys.Secret, stampOrNil(keys.OldUntil)}), noOwner(err)
}
