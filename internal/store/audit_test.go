package store_test

import (
	"encoding/json"
	"time"

	"parley"
	"parley/internal/store"
)

func auditEntry(action, object, actor string, at time.Time) store.AuditEntry {
	return store.AuditEntry{
		At: at, Action: action, Object: object, Address: "192.0.2.1", Request: "req_1",
		Actor:  store.Actor{Kind: store.ActorToken, ID: "tok_" + actor, Name: actor, Role: parley.Operator},
		Before: json.RawMessage(`{"name":"a"}`), After: json.RawMessage(`{"name":"b"}`),
	}
}

var auditTests = map[string]func(*env){
	"entries come back newest first, by page and filter": func(e *env) {
		all := []store.AuditEntry{
			auditEntry("channel.create", "main", "Ayu", start), auditEntry("channel.stop", "main", "Budi", start.Add(time.Minute)),
			auditEntry("channels.x", "main", "Ayu", start.Add(2*time.Minute)), auditEntry("token.create", "tok_9", "Ayu", start.Add(3*time.Minute)),
		}
		all[1].Before, all[1].After = nil, nil
		for _, entry := range all {
			e.tx(func(tx *store.Tx) error { return tx.AddAudit(e.Context(), entry) })
		}
		for name, c := range map[string]struct {
			query store.AuditQuery
			want  []int // indices
		}{
			"all":       {store.AuditQuery{}, []int{3, 2, 1, 0}},
			"action":    {store.AuditQuery{Action: "channel.stop"}, []int{1}},
			"group":     {store.AuditQuery{Action: "channel."}, []int{1, 0}},
			"actor":     {store.AuditQuery{Actor: "Budi"}, []int{1}},
			"actor id":  {store.AuditQuery{Actor: "tok_Ayu"}, []int{3, 2, 0}},
			"object":    {store.AuditQuery{Object: "tok_9"}, []int{3}},
			"time":      {store.AuditQuery{Since: start.Add(time.Minute), Until: start.Add(3 * time.Minute)}, []int{2, 1}},
			"no entry":  {store.AuditQuery{Action: "token.create", Object: "main"}, nil},
			"quotation": {store.AuditQuery{Actor: `' OR 1=1 --`}, nil},
		} {
			got, total, err := e.store.Audit(e.Context(), c.query, parley.Page{Limit: 10})
			e.must(err)
			var want []store.AuditEntry
			for _, i := range c.want {
				entry := all[i]
				entry.Seq = int64(i + 1)
				want = append(want, entry)
			}
			e.same(name, got, want)
			e.same(name+": total", total, int64(len(want)))
		}
		got, total, err := e.store.Audit(e.Context(), store.AuditQuery{}, parley.Page{Limit: 1, Beyond: 4})
		e.must(err)
		e.same("page", got[0].Action, "channels.x")
		e.same("total", total, int64(4))

		e.tx(func(tx *store.Tx) error {
			n, err := tx.PurgeAudit(e.Context(), start.Add(2*time.Minute), 1)
			e.same("purged", n, 1)
			return err
		})
		_, total, err = e.store.Audit(e.Context(), store.AuditQuery{}, parley.Page{Limit: 1})
		e.must(err)
		e.same("left", total, int64(3))
	},
}
