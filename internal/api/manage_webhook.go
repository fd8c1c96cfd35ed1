package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/doctor"
	"parley/internal/store"
	"parley/internal/wire"
)

func (s *server) toWebhook(w parley.Webhook) wire.Webhook {
	row := wire.Webhook{
		ID: w.ID, URL: w.URL, Channel: wire.Text(w.Channel), Events: w.Types, MediaLinks: mediaLinks[w.SignedMedia],
		Enabled: w.IsEnabled(), Reason: w.Reason, DisabledAt: wire.At(w.DisabledAt),
		FailingSince: wire.At(w.FailingSince), Failures: w.Failures, Warning: addressWarning(w.URL), CreatedAt: wire.At(w.CreatedAt),
	}
	if s.config.Refuses != nil && s.config.Refuses(w.URL) {
		row.Warning = "The address is private, so Parley does not call it. " +
			"Start the server with --allow-private and its range, or use a public address."
	}
	return row
}

// mediaLinks says whether the links to files in the events of a webhook need a token, or are signed.
var mediaLinks = map[bool]string{false: "token", true: "signed"}

func signedMedia(f form.Form) bool {
	return f.Choice("media_links", false, mediaLinks[false], mediaLinks[true]) == mediaLinks[true]
}

func addressWarning(address string) string {
	if doctor.IsUnencrypted(address) {
		return "The address is not encrypted: anyone on the network path can read it. Use https."
	}
	return ""
}

func (s *server) listWebhooks(ctx context.Context, r *request) (any, error) {
	webhooks, err := s.config.Store.Webhooks(ctx)
	return ok("OK", mapped(webhooks, func(w parley.Webhook) wire.Webhook { return s.shown(r, w) })), err
}

// shown is a webhook as the caller may see it.
func (s *server) shown(r *request, w parley.Webhook) wire.Webhook {
	row := s.toWebhook(w)
	row.URL = r.shownAddress(row.URL)
	return row
}

func (r *request) webhookID() parley.WebhookID { return parley.WebhookID(r.http.PathValue("id")) }

func (s *server) readWebhook(ctx context.Context, r *request) (any, error) {
	w, err := s.config.Store.Webhook(ctx, r.webhookID())
	return ok("OK", s.shown(r, w)), notFoundAs(err, errNoWebhook)
}

var errNoWebhook = parley.Errorf(parley.NotFound, "This webhook does not exist.")

func (s *server) createWebhook(ctx context.Context, r *request) (any, error) {
	w := parley.Webhook{
		ID: parley.NewWebhookID(), URL: r.Address("url"), Channel: parley.ChannelCode(r.OptionalText("channel", 1, 32)),
		Types: eventTypes(r.Form, "events"), SignedMedia: signedMedia(r.Form), CreatedAt: time.Now(),
	}
	if err := cmp.Or(s.channelField(ctx, r, w.Channel), r.Err()); err != nil {
		return nil, err
	}
	var secret string
	err := s.tx(ctx, func(tx *store.Tx) (err error) {
		if w.Channel != "" { // it may have been deleted meanwhile
			if err := tx.CheckChannel(ctx, w.Channel, 0); err != nil {
				return notFoundAs(err, parley.InvalidField("channel", "channel "+namesNoChannel))
			}
		}
		if err := tx.AddWebhook(ctx, w); err != nil {
			return err
		}
		if secret, err = s.config.Callbacks.Secrets.Add(ctx, tx, parley.WebhookSecret(w.ID)); err != nil {
			return err
		}
		// The stored response must not contain the secret, so a retry gets only the webhook.
		before := "The webhook already exists. Its secret is at " + r.http.URL.Path + "/" + string(w.ID) + "/secret."
		return errors.Join(r.auditTx(ctx, tx, change{object: string(w.ID), after: auditWebhook(w)}),
			r.storeKey(ctx, tx, http.StatusCreated, ok(before, wire.NewWebhook{Webhook: s.toWebhook(w)})))
	})
	s.config.Callbacks.Reload(w.ID)
	return ok("Webhook created", wire.NewWebhook{Webhook: s.toWebhook(w), Secret: secret}), err
}

// channelField fails the field channel if the channel does not exist. An empty one means all channels.
func (s *server) channelField(ctx context.Context, r *request, code parley.ChannelCode) error {
	if code == "" {
		return nil
	}
	_, err := s.config.Store.Channel(ctx, code)
	if errors.Is(err, parley.ErrNotFound) {
		r.Fail("channel", namesNoChannel)
		return nil
	}
	return err
}

const namesNoChannel = "names a channel that does not exist."

func (s *server) changeWebhook(ctx context.Context, r *request) (any, error) {
	url := ""
	if r.Has("url") {
		url = r.Address("url")
	}
	types, changesTypes := eventTypes(r.Form, "events"), r.Has("events")
	signed, changesLinks := signedMedia(r.Form), r.Has("media_links")
	enabled, switches := r.Bool("enabled", true), r.Has("enabled")
	if r.Has("channel") {
		r.Fail("channel", "cannot be changed. Create another webhook for another channel.")
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	var changed envelope
	err := s.tx(ctx, func(tx *store.Tx) error {
		w, err := tx.Webhook(ctx, r.webhookID())
		if err != nil {
			return err
		}
		before := auditWebhook(w)
		if changesTypes {
			w.Types = types
		}
		if changesLinks {
			w.SignedMedia = signed
		}
		moved := url != "" && url != w.URL
		if moved {
			w.URL = url
			w.ClearFailures() // the old address failed, not this one
		}
		switch {
		case switches && enabled:
			w.Enable()
		case switches && w.IsEnabled():
			w.Disable(time.Now(), switchedOff)
			w.ClearFailures() // who switched it off knows
		}
		if moved || switches && enabled {
			err = tx.RetryDeliveries(ctx, w.ID, time.Now())
		}
		changed = ok("Webhook changed", s.toWebhook(w))
		return errors.Join(err, tx.UpdateWebhook(ctx, w), r.auditTx(ctx, tx, change{string(w.ID), before, auditWebhook(w)}),
			r.storeKey(ctx, tx, http.StatusOK, changed))
	})
	s.config.Callbacks.Reload(r.webhookID())
	return changed, notFoundAs(err, errNoWebhook)
}

const switchedOff = "It was switched off by hand."

func (s *server) deleteWebhook(ctx context.Context, r *request) (any, error) {
	deleted := ok("Webhook deleted", struct{}{})
	err := s.tx(ctx, func(tx *store.Tx) error {
		w, err := tx.Webhook(ctx, r.webhookID())
		if err != nil {
			return err
		}
		return errors.Join(tx.DeleteWebhook(ctx, w.ID), r.auditTx(ctx, tx, change{object: string(w.ID), before: auditWebhook(w)}),
			r.storeKey(ctx, tx, http.StatusOK, deleted))
	})
	s.config.Callbacks.Reload(r.webhookID())
	return deleted, notFoundAs(err, errNoWebhook)
}

func (s *server) testWebhook(ctx context.Context, r *request) (any, error) {
	w, err := s.config.Store.Webhook(ctx, r.webhookID())
	if err != nil {
		return nil, notFoundAs(err, errNoWebhook)
	}
	a, err := s.config.Callbacks.SendTest(ctx, w)
	if err != nil {
		return nil, err
	}
	e := ok("The webhook accepted the event", wire.Attempt{Result: toResult(a.Code, a.Took, a.Problem), Answer: a.Response})
	if !a.Succeeded() {
		e.Success, e.Message = false, "The webhook did not accept the event. "+a.Problem
	}
	return e, nil
}

// ofSecret is the work of showing or rotating the secret of an owner.
func ofSecret(
	owner func(ctx context.Context, r *request) (parley.SecretOwner, error),
	do func(ctx context.Context, r *request, owner parley.SecretOwner) (any, error),
) work {
	return handle(func(ctx context.Context, r *request) (any, error) {
		of, err := owner(ctx, r)
		if err != nil {
			return nil, err
		}
		return do(ctx, r, of)
	})
}

func (s *server) webhookSecret(ctx context.Context, r *request) (parley.SecretOwner, error) {
	w, err := s.config.Store.Webhook(ctx, r.webhookID())
	return parley.WebhookSecret(w.ID), notFoundAs(err, errNoWebhook)
}

func (s *server) channelSecret(ctx context.Context, r *request) (parley.SecretOwner, error) {
	c, err := s.config.Store.Channel(ctx, r.code())
	return parley.ChannelSecret(c.Code), notFoundAs(err, errNoChannel)
}

// listenSecret is the secret of parley listen, which signs forwarded events.
func listenSecret(context.Context, *request) (parley.SecretOwner, error) {
	return parley.ListenSecret, nil
}

var errNoOwner = parley.Errorf(parley.NotFound, "It was just deleted.")

func (s *server) showSecret(ctx context.Context, _ *request, owner parley.SecretOwner) (any, error) {
	keys, err := s.config.Callbacks.Secrets.Keys(ctx, owner)
	return ok("OK", wire.Secret{Secret: keys.Secret, OldUntil: wire.At(keys.OldUntil)}), notFoundAs(err, errNoOwner)
}

func (s *server) rotateSecret(ctx context.Context, r *request, owner parley.SecretOwner) (any, error) {
	keys, err := s.config.Callbacks.Secrets.Rotate(ctx, owner, func(tx *store.Tx, oldUntil time.Time) error {
		// The stored response must not contain the secret.
		before := ok("The secret was already rotated. Read it with GET.", wire.Secret{OldUntil: wire.At(oldUntil)})
		object := r.http.PathValue("id") + r.http.PathValue("code")
		return errors.Join(r.auditTx(ctx, tx, change{object: object}), r.storeKey(ctx, tx, http.StatusOK, before))
	})
	data := wire.Secret{Secret: keys.Secret, OldUntil: wire.At(keys.OldUntil)}
	return ok("Secret rotated. The old one also signs for 24 hours.", data), notFoundAs(err, errNoOwner)
}

const maxTypes = 100 // far above the number of types

func eventTypes(f form.Form, name string) []parley.EventType {
	var types []parley.EventType
	f.List(name, 0, maxTypes, false, func(f form.Form, index string) {
		t, known := parley.ParseEventType(f.Choice(index, true, typeNames()...))
		if known && !slices.Contains(types, t) {
			types = append(types, t)
		}
	})
	return types
}

func typeNames() []string {
	return mapped(parley.EventTypes, func(t parley.EventType) string { return string(t) })
}
