package contract_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"parley/internal/parleytest"
	"parley/internal/postgrestest"
	"parley/internal/store/storetest"
)

// TestDeletedChannelLeavesNothing deletes a channel while everything that stores something of a channel is called.
func TestDeletedChannelLeavesNothing(t *testing.T) {
	postgrestest.Skip(t, "the database is not a file")
	e := parleytest.Start(t)
	admin := parleytest.As(e.Admin)
	makeWebhook(e, `{"url":"`+quiet+`"}`) // of every channel
	path := filepath.Join(string(e.Data), "parley.db")
	for round := range 5 {
		code := "passing"
		e.CreateChannel(code)
		e.Post(webhooks, `{"url":"`+quiet+`","channel":"`+code+`"}`, admin).Expect(http.StatusCreated)
		calls := []func(n int) (*parleytest.Response, error){}
		for i, call := range []struct{ path, body string }{
			{"/api/send-message/text", `{"contact_id":"%s@c.us","message":"hi"}`},
			{"/api/otp/code/request", `{"contact_id":"%s@c.us","length":6,"expires":60}`},
			{"/api/otp/link/request", `{"contact_id":"%s@c.us","expires":60}`},
			{"/api/sandbox/phones/%s/send", `{"type":"text","message":"hi"}`},
			{"/api/groups/create", `{"name":"%s","participants":[{"id":"99912345671@c.us"}]}`},
		} {
			calls = append(calls, func(n int) (*parleytest.Response, error) {
				number := fmt.Sprintf("999%d%06d1", i, n)
				target, body := call.path, call.body
				if i == 3 {
					target = fmt.Sprintf(call.path, number)
				} else {
					body = fmt.Sprintf(call.body, number)
				}
				return e.TryCall("POST", target, body, parleytest.As(e.Global), parleytest.On(code),
					parleytest.With("Idempotency-Key", fmt.Sprintf("k%d-%d-%d", round, i, n)))
			})
		}
		calls = append(calls,
			func(int) (*parleytest.Response, error) {
				return e.TryCall("POST", "/api/manage/channels/"+code+"/secret/rotate", "", admin)
			},
			func(int) (*parleytest.Response, error) {
				return e.TryCall("POST", webhooks, `{"url":"`+quiet+`","channel":"`+code+`"}`, admin)
			},
			func(int) (*parleytest.Response, error) {
				return e.TryCall("POST", "/api/manage/tokens", `{"name":"x","kind":"channel","channel":"`+code+`"}`, admin)
			})
		var stop atomic.Bool
		var load sync.WaitGroup
		some := make([]chan struct{}, len(calls))
		for i, call := range calls {
			some[i] = make(chan struct{}, 1)
			load.Go(func() {
				for n := 0; !stop.Load(); n++ {
					a, err := call(n)
					switch {
					case err != nil:
						t.Error(err)
						return
					case a.Status < 300:
						signal(some[i])
					case n > 0 && (a.Status == http.StatusBadRequest || a.Status == http.StatusNotFound || a.Status == http.StatusUnprocessableEntity):
						return // the channel is gone
					case a.Status == http.StatusServiceUnavailable: // it is going
					default:
						signal(some[i])
						t.Errorf("%s answers %d: %s", a.Request, a.Status, a.Body)
						return
					}
				}
			})
		}
		for i := range some {
			<-some[i]
		}
		e.Delete("/api/manage/channels/"+code, admin).Expect(http.StatusAccepted)
		stop.Store(true)
		load.Wait()
		e.AwaitDeletions()
		if found := storetest.ChannelRows(t, path, code); len(found) > 0 {
			t.Fatalf("round %d: there are %v", round, found)
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
