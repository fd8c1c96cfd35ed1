package store_test

import (
	"time"

	"parley/internal/store"
)

var clockTests = map[string]func(*env){
	"the trusted time never moves back": func(e *env) {
		for _, step := range []struct{ set, want time.Time }{
			{want: time.Time{}},
			{start, start},
			{start.Add(-time.Hour), start},
			{start.Add(time.Hour), start.Add(time.Hour)},
		} {
			if !step.set.IsZero() {
				e.tx(func(tx *store.Tx) error { return tx.SetTrustedTime(e.Context(), step.set) })
			}
			got, err := e.store.TrustedTime(e.Context())
			e.must(err)
			e.same("trusted", got, step.want)
		}
	},
}
