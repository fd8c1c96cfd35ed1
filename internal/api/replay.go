package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/store"
)

const (
	maxReplayed = 10_000 // in one call, which takes about a second
	// replayBatch is how many deliveries are replayed in one transaction, for which every other writer
	// waits.
	replayBatch = 250
	maxNamed    = 1000 // deliveries or events that one call may name
)

type replayData struct {
	Replayed    int    `json:"replayed"`
	More        bool   `json:"more"`
	EndedBefore string `json:"ended_before"`
}

// replayDeliveries has deliveries made again.
func (s *server) replayDeliveries(ctx context.Context, r *request) (envelope[replayData], error) {
	q, limit := r.replay(), int(r.Whole("limit", 1000, 1, maxReplayed))
	if err := r.Err(); err != nil {
		return envelope[replayData]{}, err
	}
	var done envelope[replayData]
	for replayed, more := 0, true; more && replayed < limit; {
		batch := min(replayBatch, limit-replayed)
		var n int
		err := s.tx(ctx, func(tx *store.Tx) (err error) {
			if n, err = tx.ReplayDeliveries(ctx, q, time.Now(), batch); err != nil {
				return err
			}
			done = ok(fmt.Sprintf("%d made again", replayed+n), replayData{replayed + n, n == batch, parley.Stamp(q.EndedBefore)})
			return r.storeKey(ctx, tx, http.StatusOK, done)
		})
		if err != nil {
			return envelope[replayData]{}, err
		}
		s.Callbacks.Reload()
		r.accepted, more = true, n == batch
		replayed += n
	}
	return done, nil
}

// replay reads which deliveries to make again.
func (r *request) replay() parley.DeliveryQuery {
	q := deliveryQuery(r.Form, "failed", "delivered")
	r.List("ids", 1, maxNamed, false, func(f form.Form, index string) {
		q.IDs = append(q.IDs, parley.DeliveryID(f.Text(index, 1, 100)))
	})
	r.List("event_ids", 1, maxNamed, false, func(f form.Form, index string) {
		q.Events = append(q.Events, eventPlace(f, index))
	})
	described := false
	for _, name := range []string{"ids", "event_ids", "webhook", "channel", "state", "since", "until"} {
		described = described || r.Has(name)
	}
	if !described {
		r.Note("ids", "Say which deliveries to replay: by ids, event_ids, webhook, channel, state, since or until.")
	}
	if q.EndedBefore = r.Time("ended_before"); q.EndedBefore.IsZero() {
		q.EndedBefore = time.Now().Add(time.Millisecond) // with what ended just now: it is compared in milliseconds
	}
	return q
}
