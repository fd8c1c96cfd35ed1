package store_test

import (
	"errors"
	"fmt"
	"time"

	"parley"
	"parley/internal/store"
)

// fullWebhook has a value in every field.
func fullWebhook(id parley.WebhookID) parley.Webhook {
	return parley.Webhook{
		ID: id, URL: "https://crm.example.com/hook?a=1", Channel: main,
		Types: []parley.EventType{parley.MessageReceived, parley.OTPFailed}, CreatedAt: start, Cursor: 7,
		DisabledAt: start.Add(time.Hour), Reason: "a reason", FailingSince: start.Add(time.Minute), FailingFor: time.Second, Failures: 12,
		SignedMedia: true,
	}
}

func (e *env) webhook(w parley.Webhook) {
	e.Helper()
	e.tx(func(tx *store.Tx) error { return tx.AddWebhook(e.Context(), w) })
}

var webhookTests = map[string]func(*env){
	"webhooks and channels that exist are found at once": func(e *env) {
		e.webhook(fullWebhook("whk_1"))
		e.tx(func(tx *store.Tx) error {
			existing, err := tx.LockWebhooks([]parley.WebhookID{"whk_0", "whk_1"})
			if err != nil || len(existing) != 1 || existing[0] != "whk_1" {
				return fmt.Errorf("webhooks: %v, %w", existing, err)
			}
			if err := tx.FindChannels(e.Context(), []parley.ChannelCode{other, "", main, "none", main}); err != nil {
				return err
			}
			return errors.Join(tx.CheckChannel(e.Context(), main, 0), tx.CheckChannel(e.Context(), other, 0))
		})
		channels, err := e.store.ChannelsOf(e.Context(), []parley.ChannelCode{main, "none"})
		e.must(err)
		e.same("channels", []any{len(channels), channels[0].Code}, []any{1, main})
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error {
			if err := tx.FindChannels(e.Context(), []parley.ChannelCode{main, "none"}); err != nil {
				return err
			}
			return tx.CheckChannel(e.Context(), "none", 0)
		})
	},

	"a webhook comes back as it was stored": func(e *env) {
		want := fullWebhook("whk_1")
		e.webhook(want)
		got, err := e.store.Webhook(e.Context(), want.ID)
		e.must(err)
		e.same("webhook", got, want)
		plain := parley.Webhook{ID: "whk_2", URL: "http://example.com", CreatedAt: start, Cursor: 1}
		e.webhook(plain)
		all, err := e.store.Webhooks(e.Context())
		e.must(err)
		e.same("webhooks", all, []parley.Webhook{want, plain})
		e.wants(parley.ErrExists, func(tx *store.Tx) error { return tx.AddWebhook(e.Context(), want) })
	},

	"a webhook without a cursor begins at the end of the log": func(e *env) {
		e.channel(main)
		ev := parley.Event{Type: parley.ChannelPairing, Channel: main, At: start}
		e.tx(func(tx *store.Tx) error { return tx.AddEvent(e.Context(), &ev) })
		e.tx(func(tx *store.Tx) error { return tx.AddWebhook(e.Context(), parley.Webhook{ID: "whk_1"}) })
		got, err := e.store.Webhook(e.Context(), "whk_1")
		e.must(err)
		if got.Cursor != ev.Seq || got.Cursor == 0 {
			e.Errorf("cursor is %d, the log is at %d", got.Cursor, ev.Seq)
		}
	},

	"an update stores everything but the cursor": func(e *env) {
		w := fullWebhook("whk_1")
		e.webhook(w)
		want := parley.Webhook{ID: w.ID, URL: "http://other.example", CreatedAt: start, Cursor: w.Cursor}
		e.tx(func(tx *store.Tx) error {
			changed := want
			changed.Cursor = 99
			return tx.UpdateWebhook(e.Context(), changed)
		})
		got, err := e.store.Webhook(e.Context(), w.ID)
		e.must(err)
		e.same("webhook", got, want)
	},

	"cursor and health are stored by themselves": func(e *env) {
		want := fullWebhook("whk_1")
		e.webhook(want)
		want.Cursor, want.FailingSince, want.FailingFor, want.Failures = 8, start.Add(time.Second), time.Minute, 13
		e.tx(func(tx *store.Tx) error {
			return errors.Join(tx.SetWebhookCursor(e.Context(), want.ID, 8), tx.SetWebhookHealth(e.Context(), want),
				tx.SetWebhookCursor(e.Context(), "whk_gone", 8),
				tx.SetWebhookHealth(e.Context(), parley.Webhook{ID: "whk_gone", FailingSince: start, Failures: 1}))
		})
		got, err := e.store.Webhook(e.Context(), want.ID)
		e.must(err)
		e.same("webhook", got, want)
	},

	"an unknown webhook is not found": func(e *env) {
		if _, err := e.store.Webhook(e.Context(), "whk_1"); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("got %v", err)
		}
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.UpdateWebhook(e.Context(), fullWebhook("whk_1")) })
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.DeleteWebhook(e.Context(), "whk_1") })
	},

	"a deleted webhook leaves nothing": func(e *env) {
		for _, id := range []parley.WebhookID{"whk_1", "whk_2"} {
			e.webhook(fullWebhook(id))
			e.deliver(id, ann, 1)
			e.tx(func(tx *store.Tx) error {
				return tx.SetSecret(e.Context(), parley.SigningSecret{Owner: parley.WebhookSecret(id), Encrypted: []byte{1}})
			})
		}
		e.tx(func(tx *store.Tx) error { return tx.DeleteWebhook(e.Context(), "whk_1") })
		if _, err := e.store.Secret(e.Context(), parley.WebhookSecret("whk_1")); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("its secret: %v", err)
		}
		for _, when := range []string{"at once", "after the purge"} {
			left, total, err := e.store.Deliveries(e.Context(), parley.DeliveryQuery{}, parley.Page{Limit: 10})
			e.must(err)
			if total != 1 || len(left) != 1 || left[0].Webhook != "whk_2" {
				e.Errorf("%s left are %d deliveries: %+v", when, total, left)
			}
			e.same("of it "+when, e.countDeliveries(parley.DeliveryQuery{Webhook: "whk_1"}), 0)
			e.purge()
		}
		_, err := e.store.Secret(e.Context(), parley.WebhookSecret("whk_2"))
		e.must(err)
	},

	"the deliveries of a deleted webhook are purged in batches": func(e *env) {
		e.webhook(fullWebhook("whk_1"))
		for n := range int64(450) {
			e.deliver("whk_1", ann, n+1)
		}
		e.tx(func(tx *store.Tx) error { return tx.DeleteWebhook(e.Context(), "whk_1") })
		steps := 0
		for more := true; more; steps++ {
			e.tx(func(tx *store.Tx) (err error) {
				_, more, err = tx.PurgeChannels(e.Context())
				return err
			})
		}
		e.same("transactions", steps, 11) // nine of 50, one that finds no more, and one that finds no webhook
		e.same("left", e.countDeliveries(parley.DeliveryQuery{}), 0)
	},

	"a secret is replaced": func(e *env) {
		owner := parley.ChannelSecret(main)
		for _, want := range []parley.SigningSecret{
			{Owner: owner, Encrypted: []byte("new")},
			{Owner: owner, Encrypted: []byte("newer"), OldEncrypted: []byte("new"), OldUntil: start.Add(24 * time.Hour)},
			{Owner: owner, Encrypted: []byte("newest")},
		} {
			e.tx(func(tx *store.Tx) error { return tx.SetSecret(e.Context(), want) })
			got, err := e.store.Secret(e.Context(), owner)
			e.must(err)
			e.same("secret", got, want)
		}
	},

	"a deleted channel takes its own with it": func(e *env) {
		e.channel(main, other)
		own, all := fullWebhook("whk_own"), fullWebhook("whk_all")
		all.Channel = ""
		e.webhook(own)
		e.webhook(all)
		for i, code := range []parley.ChannelCode{main, other} {
			event := int64(10 * i)
			e.tx(func(tx *store.Tx) error {
				d := delivery(all.ID, ann, 1)
				d.Channel = code
				d.Event, d.EventID = event, parley.NewEventID(start, 1, event)
				c := callback("https://app.example/ok", event+2)
				c.Channel = code
				return errors.Join(tx.AddDeliveries(e.Context(), []parley.Delivery{d, c}),
					tx.SetSecret(e.Context(), parley.SigningSecret{Owner: parley.ChannelSecret(code), Encrypted: []byte{1}}))
			})
		}
		e.deliver(own.ID, ann, 1)
		e.tx(func(tx *store.Tx) error { return tx.DeleteChannel(e.Context(), main) })
		webhooks, err := e.store.Webhooks(e.Context())
		e.must(err)
		e.same("webhooks", webhooks, []parley.Webhook{all})
		left, _, err := e.store.Deliveries(e.Context(), parley.DeliveryQuery{}, parley.Page{Limit: 10})
		e.must(err)
		for _, d := range left {
			if d.Channel != other {
				e.Errorf("left is %+v", d)
			}
		}
		e.same("deliveries of the other channel", len(left), 2)
		_, err = e.store.Secret(e.Context(), parley.ChannelSecret(main))
		e.same("secret", err, parley.ErrNotFound)
	},

	"what is done to webhooks counts as a revision": func(e *env) {
		w := fullWebhook("whk_1")
		done := delivery(w.ID, ann, 1)
		done.State, done.EndedAt = parley.DeliveryDone, start
		for _, step := range []struct {
			name   string
			counts bool
			do     func(*store.Tx) error
		}{
			{"add", true, func(tx *store.Tx) error { return tx.AddWebhook(e.Context(), w) }},
			{"update", true, func(tx *store.Tx) error { return tx.UpdateWebhook(e.Context(), w) }},
			{"cursor", false, func(tx *store.Tx) error { return tx.SetWebhookCursor(e.Context(), w.ID, 9) }},
			{"health", false, func(tx *store.Tx) error {
				return tx.SetWebhookHealth(e.Context(), parley.Webhook{ID: w.ID, FailingSince: start, Failures: 9})
			}},
			{"add deliveries", false, func(tx *store.Tx) error { return tx.AddDeliveries(e.Context(), []parley.Delivery{done}) }},
			{"replay", true, func(tx *store.Tx) error {
				return second(tx.ReplayDeliveries(e.Context(), parley.DeliveryQuery{}, start, 10))
			}},
			{"replay of nothing", false, func(tx *store.Tx) error {
				return second(tx.ReplayDeliveries(e.Context(), parley.DeliveryQuery{}, start, 10))
			}},
			{"delete", true, func(tx *store.Tx) error { return tx.DeleteWebhook(e.Context(), w.ID) }},
		} {
			before, err := e.store.Revision(e.Context())
			e.must(err)
			e.tx(step.do)
			after, err := e.store.Revision(e.Context())
			e.must(err)
			if (after > before) != step.counts {
				e.Errorf("%s: revision went from %d to %d", step.name, before, after)
			}
		}
	},
}

// delivery makes the delivery of an event to a webhook, due now. It gets its id when it is stored.
func delivery(webhook parley.WebhookID, chat parley.ContactID, event int64) parley.Delivery {
	return parley.Delivery{
		Webhook: webhook, Event: event, EventID: parley.NewEventID(start, 1, event),
		Type: parley.MessageReceived, Channel: main, Chat: chat, CreatedAt: start,
	}
}

// callback makes the delivery of an event to an address.
func callback(url string, event int64) parley.Delivery {
	d := delivery("", ann, event)
	d.URL, d.Type = url, parley.OTPApproved
	return d
}

// deliver adds deliveries of events of one chat to a webhook.
func (e *env) deliver(webhook parley.WebhookID, chat parley.ContactID, events ...int64) {
	e.Helper()
	var ds []parley.Delivery
	for _, n := range events {
		ds = append(ds, delivery(webhook, chat, n))
	}
	e.tx(func(tx *store.Tx) error { return tx.AddDeliveries(e.Context(), ds) })
}

func (e *env) countDeliveries(q parley.DeliveryQuery) int {
	e.Helper()
	_, total, err := e.store.Deliveries(e.Context(), q, parley.Page{})
	e.must(err)
	return int(total)
}

// due lists the events that may be delivered at an endpoint.
func (e *env) due(endpoint parley.Endpoint, now time.Time, limit int) []int64 {
	e.Helper()
	found, err := e.store.DueDeliveries(e.Context(), endpoint, now, limit)
	e.must(err)
	return places(found)
}

func places(ds []parley.Delivery) []int64 {
	all := []int64{}
	for _, d := range ds {
		all = append(all, d.Event)
	}
	return all
}

// becomes stores what became of deliveries.
func (e *env) becomes(ds ...parley.Delivery) {
	e.Helper()
	for _, d := range ds {
		stored := e.storedDelivery(d)
		d.ID = stored.ID
		e.tx(func(tx *store.Tx) error {
			return tx.UpdateDeliveries(e.Context(), []store.DeliveryResult{{Delivery: d, Before: stored.Attempts}})
		})
	}
}

// storedDelivery reads a delivery; one without an id: it is not stored.
func (e *env) storedDelivery(d parley.Delivery) parley.Delivery {
	e.Helper()
	found, _, err := e.store.Deliveries(e.Context(), parley.DeliveryQuery{Events: []int64{d.Event}}, parley.Page{Limit: 10})
	e.must(err)
	for _, f := range found {
		if f.Endpoint() == d.Endpoint() {
			return f
		}
	}
	return parley.Delivery{}
}

// finished is a delivery that is done or failed.
func finished(d parley.Delivery, state parley.DeliveryState, at time.Time) parley.Delivery {
	d.State, d.Attempts, d.TriedAt, d.EndedAt = state, 1, at, at
	return d
}
