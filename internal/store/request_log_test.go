package store_test

import (
	"fmt"
	"time"

	"parley"
	"parley/internal/store"
)

var requestTests = map[string]func(*env){
	"requests come back newest first, by page and filter": func(e *env) {
		all := []store.LoggedRequest{
			{Seq: 1, Method: "POST", Path: "/api/send-message/text", Status: 200, Request: "req_1", IdempotencyKey: "order-1", Token: "tok_a"},
			{Seq: 2, Method: "GET", Path: "/api/chat", Status: 404, Code: "not_found", Request: "req_2", Token: "tok_b"},
			{Seq: 3, Method: "POST", Path: "/api/send-message/image", Status: 422, Code: "invalid", Request: "req_3", Token: "tok_a"},
		}
		for i := range all {
			all[i].Channel, all[i].At, all[i].Took = main, start, 1500*time.Microsecond
		}
		e.tx(func(tx *store.Tx) error { return tx.AddRequests(e.Context(), main, all) })
		e.tx(func(tx *store.Tx) error { return tx.AddRequests(e.Context(), main, all[:1]) }) // the same again: ignored
		e.tx(func(tx *store.Tx) error { return tx.AddRequests(e.Context(), other, all[:1]) })
		e.tx(func(tx *store.Tx) error { return tx.AddRequests(e.Context(), "gone", all[:1]) })
		for name, c := range map[string]struct {
			query store.RequestQuery
			want  []int // indices
		}{
			"all":     {store.RequestQuery{}, []int{2, 1, 0}},
			"class":   {store.RequestQuery{Status: [2]int{400, 499}}, []int{2, 1}},
			"status":  {store.RequestQuery{Status: [2]int{404, 404}}, []int{1}},
			"code":    {store.RequestQuery{Code: "invalid"}, []int{2}},
			"method":  {store.RequestQuery{Method: "POST"}, []int{2, 0}},
			"path":    {store.RequestQuery{Path: "message/"}, []int{2, 0}},
			"pattern": {store.RequestQuery{Path: "%"}, nil},
			"request": {store.RequestQuery{Request: "req_2"}, []int{1}},
			"key":     {store.RequestQuery{IdempotencyKey: "order-1"}, []int{0}},
			"token":   {store.RequestQuery{Token: "tok_a", Status: [2]int{200, 299}}, []int{0}},
			"after":   {store.RequestQuery{After: 1}, []int{2, 1}},
		} {
			got, total, err := e.store.Requests(e.Context(), main, c.query, parley.Page{Limit: 10})
			e.must(err)
			var want []store.LoggedRequest
			for _, i := range c.want {
				want = append(want, all[i])
			}
			e.same(name, got, want)
			e.same(name+": total", total, int64(len(want)))
		}
		page, total, err := e.store.Requests(e.Context(), main, store.RequestQuery{}, parley.Page{Limit: 1, Beyond: all[2].Seq})
		e.must(err)
		e.same("page", page, all[1:2])
		e.same("total", total, int64(3))
		_, _, err = e.store.Requests(e.Context(), "gone", store.RequestQuery{}, parley.Page{Limit: 1})
		e.same("no channel", err, parley.ErrNotFound)
	},
	"only the latest remain, and none of a deleted channel": func(e *env) {
		var all []store.LoggedRequest
		for i := range 20 {
			all = append(all, store.LoggedRequest{Seq: int64(i + 1), Request: fmt.Sprint(i), At: start, Token: "tok_a"})
		}
		for _, code := range []parley.ChannelCode{main, other} {
			e.tx(func(tx *store.Tx) error { return tx.AddRequests(e.Context(), code, all) })
		}
		e.tx(func(tx *store.Tx) error { return tx.TrimRequests(e.Context(), main, 5) })
		e.tx(func(tx *store.Tx) error { return tx.TrimRequests(e.Context(), main, 5) })
		e.tx(func(tx *store.Tx) error { return tx.TrimRequests(e.Context(), "gone", 5) })
		count := func(code parley.ChannelCode) int64 {
			got, total, err := e.store.Requests(e.Context(), code, store.RequestQuery{}, parley.Page{Limit: 1})
			e.must(err)
			e.same("newest", got[0].Seq, int64(20))
			return total
		}
		e.same("left", count(main), int64(5))
		e.same("left elsewhere", count(other), int64(20))

		e.tx(func(tx *store.Tx) error { return tx.DeleteChannel(e.Context(), other) })
		for more := true; more; {
			e.tx(func(tx *store.Tx) (err error) { _, more, err = tx.PurgeChannels(e.Context()); return err })
		}
		e.channel(other)
		_, total, err := e.store.Requests(e.Context(), other, store.RequestQuery{}, parley.Page{Limit: 1})
		e.must(err)
		e.same("of a new channel with the code", total, int64(0))
		e.same("left", count(main), int64(5))
	},
}
