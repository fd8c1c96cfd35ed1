package store_test

import (
	"errors"
	"fmt"
	"time"

	"parley"
	"parley/internal/store"
)

func accepted(scope, key string) store.StoredResponse {
	return store.StoredResponse{Scope: scope, Key: key, Fingerprint: []byte{1, 2, 3}, CreatedAt: start}
}

var answerTests = map[string]func(*env){
	"a request is accepted, then it has a response": func(e *env) {
		want := accepted("main", "k")
		want.Channel = main
		want.Messages = []parley.MessageRef{{FromMe: true, Chat: ann, ID: "A1"}, {FromMe: true, Chat: ann, ID: "A2"}}
		e.tx(func(tx *store.Tx) error { return tx.AddStoredResponse(e.Context(), want) })
		got, err := e.store.StoredResponse(e.Context(), "main", "k")
		e.must(err)
		e.same("accepted", got, want)
		if got.IsComplete() {
			e.Error("it is complete before it has a response")
		}
		want.StatusCode, want.ContentType, want.Body = 200, "application/json", []byte(`{"a":1}`)
		e.tx(func(tx *store.Tx) error {
			return tx.SetStoredResponse(e.Context(), store.StoredResponse{Scope: "main", Key: "k", StatusCode: 200,
				ContentType: want.ContentType, Body: want.Body})
		})
		got, err = e.store.StoredResponse(e.Context(), "main", "k")
		e.must(err)
		e.same("with a response", got, want)
	},

	"a key is used once in its scope": func(e *env) {
		e.tx(func(tx *store.Tx) error {
			return errors.Join(tx.AddStoredResponse(e.Context(), accepted("main", "k")), tx.AddStoredResponse(e.Context(), accepted("main", "K")),
				tx.AddStoredResponse(e.Context(), accepted("*global", "k")))
		})
		e.wants(parley.ErrExists, func(tx *store.Tx) error { return tx.AddStoredResponse(e.Context(), accepted("main", "k")) })
	},

	"a key is deleted": func(e *env) {
		for range 2 {
			e.tx(func(tx *store.Tx) error { return tx.AddStoredResponse(e.Context(), accepted("main", "k")) })
			e.tx(func(tx *store.Tx) error {
				return errors.Join(tx.DeleteStoredResponse(e.Context(), "main", "k"), tx.DeleteStoredResponse(e.Context(), "main", "other"))
			})
		}
	},

	"an unknown key is not found": func(e *env) {
		if _, err := e.store.StoredResponse(e.Context(), "main", "k"); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("got %v", err)
		}
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.SetStoredResponse(e.Context(), accepted("main", "k")) })
	},

	"old responses are purged, the oldest first": func(e *env) {
		for i := range 5 {
			a := accepted("main", fmt.Sprint(i))
			a.CreatedAt = start.Add(time.Duration(i) * time.Minute)
			e.tx(func(tx *store.Tx) error { return tx.AddStoredResponse(e.Context(), a) })
		}
		for _, step := range []struct{ limit, forgotten, oldest int }{{2, 2, 2}, {10, 1, 3}, {10, 0, 3}} {
			var n int
			e.tx(func(tx *store.Tx) (err error) {
				n, err = tx.PurgeStoredResponses(e.Context(), start.Add(3*time.Minute), step.limit)
				return err
			})
			e.same("forgotten", n, step.forgotten)
			for i := range 5 {
				_, err := e.store.StoredResponse(e.Context(), "main", fmt.Sprint(i))
				if errors.Is(err, parley.ErrNotFound) != (i < step.oldest) {
					e.Errorf("response %d: %v", i, err)
				}
			}
		}
	},
}
