package contract_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/app"
	"parley/internal/parleytest"
	"parley/internal/store"
)

const deliveries = "/api/manage/deliveries"

var deliveryKeys = []string{"id", "webhook", "url", "event_id", "type", "channel", "contact_id", "state", "attempts", "next_at",
	"created_at", "tried_at", "code", "took_ms", "problem"}

func webhookID(id string) parley.WebhookID { return parley.WebhookID(id) }

func update(t *testing.T, data *app.Data, w parley.Webhook) {
	t.Helper()
	if err := data.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.UpdateWebhook(t.Context(), w) }); err != nil {
		t.Fatal(err)
	}
}

func mustJSON(v any) []byte {
	text, _ := json.Marshal(v) // what was read as JSON can be written
	return text
}

// TestDeliveries holds the deliveries of the management API to the contract.
func TestDeliveries(t *testing.T) {
	e := parleytest.Start(t)
	for name, test := range map[string]func(*testing.T, *parleytest.Env, parleytest.Option){
		"list":        deliveryList,
		"bad filters": deliveryBadFilters,
		"one":         deliveryOne,
		"unknown":     deliveryUnknown,
		"replay":      deliveryReplay,
		"bad replays": deliveryBadReplays,
		"steps":       deliverySteps,
	} {
		t.Run(name, func(t *testing.T) { test(t, within(t, e), parleytest.As(e.Admin)) })
	}
}

// past puts deliveries into the store that have ended, one for each time, with an event for each: the
// even ones failed and the odd ones were taken.
func past(t *testing.T, e *parleytest.Env, webhook, channel string, times ...time.Time) (ids, events []string) {
	t.Helper()
	data := besides(t, e)
	for i, at := range times {
		event := parley.NewOTPEvent(parley.OTPFailed, parley.OTPID("otp_x"), parley.ChannelCode(channel), "6281234567890@c.us",
			"wrong_sender", at)
		added := make([]parley.Delivery, 1)
		err := data.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.AddEvent(t.Context(), event) })
		if err == nil {
			d := parley.NewDelivery(event, parley.WebhookID(webhook))
			d.CreatedAt = at
			d.TriedAt, d.EndedAt, d.Took, d.Attempts = at, at, 84*time.Millisecond, 3
			d.State, d.Code = parley.DeliveryDone, 200
			if i%2 == 0 {
				d.State, d.Code, d.Problem, d.Response = parley.DeliveryFailed, 503, "http_status", "out to lunch"
			}
			added[0] = d
			err = data.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.AddDeliveries(t.Context(), added) })
		}
		if err != nil {
			t.Fatal(err)
		}
		ids, events = append(ids, string(added[0].ID)), append(events, string(event.ID))
	}
	return ids, events
}

// idle creates a webhook on its own channel, which publishes no events.
func idle(e *parleytest.Env, channel string) (id string) {
	e.CreateChannel(channel)
	id, _ = makeWebhook(e, `{"url":"`+quiet+`","channel":"`+channel+`","events":["channel.pairing"]}`)
	return id
}

var longAgo = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func deliveryList(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	id, other := idle(e, "listed"), idle(e, "listed2")
	ids, events := past(t, e, id, "listed", longAgo, longAgo.Add(time.Hour), longAgo.Add(2*time.Hour))
	otherIDs, _ := past(t, e, other, "listed2", longAgo.Add(3*time.Hour))
	all := e.Get(deliveries+"?webhook="+id, admin).Expect(http.StatusOK)
	wantKeys(t, all, "", "success", "message", "data", "meta")
	for i := range 3 {
		wantKeys(t, all, fmt.Sprintf("data.%d", i), deliveryKeys...)
	}
	if got, want := column(all, "id"), []string{ids[2], ids[1], ids[0]}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q: newest first", got, want)
	}
	wantValue(t, all, "meta.total", 3.0)
	wantValue(t, all, "meta.next_cursor", nil)
	wantValue(t, all, "data.2.webhook", id)
	wantValue(t, all, "data.2.url", quiet)
	wantValue(t, all, "data.2.event_id", events[0])
	wantValue(t, all, "data.2.type", "otp.failed")
	wantValue(t, all, "data.2.channel", "listed")
	wantValue(t, all, "data.2.contact_id", "6281234567890@c.us")
	wantValue(t, all, "data.2.state", "failed")
	wantValue(t, all, "data.2.attempts", 3.0)
	wantValue(t, all, "data.2.next_at", nil)
	wantValue(t, all, "data.2.created_at", "2026-01-01T00:00:00.000Z")
	wantValue(t, all, "data.2.tried_at", "2026-01-01T00:00:00.000Z")
	wantValue(t, all, "data.2.code", 503.0)
	wantValue(t, all, "data.2.took_ms", 84.0)
	wantValue(t, all, "data.2.problem", "http_status")
	wantValue(t, all, "data.1.state", "delivered")
	wantValue(t, all, "data.1.problem", "")

	middle := url.QueryEscape(longAgo.Add(time.Hour).In(time.FixedZone("WIB", 7*3600)).Format(time.RFC3339))
	for query, want := range map[string][]string{
		"webhook=" + id + "&state=failed":                         {ids[2], ids[0]},
		"webhook=" + id + "&state=delivered":                      {ids[1]},
		"webhook=" + id + "&state=waiting":                        {},
		"webhook=" + id + "&state=retrying":                       {},
		"channel=listed2":                                         otherIDs,
		"channel=listed&webhook=" + other:                         {},
		"webhook=whk_nobody":                                      {},
		"channel=nobody":                                          {},
		"event_id=" + events[1]:                                   {ids[1]},
		"event_id=" + events[1] + "&state=failed":                 {},
		"webhook=" + id + "&since=" + middle:                      {ids[2], ids[1]},
		"webhook=" + id + "&until=" + middle:                      {ids[0]},
		"webhook=" + id + "&since=" + middle + "&until=" + middle: {},
		"webhook=" + id + "&limit=2":                              {ids[2], ids[1]},
		"webhook=" + id + "&limit=2&order=oldest":                 {ids[0], ids[1]},
	} {
		if got := column(e.Get(deliveries+"?"+query, admin).Expect(http.StatusOK), "id"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for order, want := range map[string][]string{"newest": {ids[2], ids[1], ids[0]}, "oldest": {ids[0], ids[1], ids[2]}} {
		var got []string
		for cursor, more := "", true; more; {
			page := e.Get(deliveries+"?webhook="+id+"&limit=1&order="+order+cursor, admin).Expect(http.StatusOK)
			wantValue(t, page, "meta.total", 3.0)
			got = append(got, column(page, "id")...)
			var next string
			if next, more = page.Value("meta.next_cursor").(string); more {
				cursor = "&cursor=" + next
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the %s first, page by page: %q, want %q", order, got, want)
		}
	}

	// With the webhook go its deliveries.
	e.Delete(webhooks+"/"+id, admin).Expect(http.StatusOK)
	wantValue(t, e.Get(deliveries+"?webhook="+id, admin), "meta.total", 0.0)
}

func deliveryBadFilters(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	for query, fields := range map[string][]string{
		"state=broken":                        {"state"},
		"state=":                              {"state"},
		"state=FAILED":                        {"state"},
		"event_id=evt_1":                      {"event_id"},
		"event_id=":                           {"event_id"},
		"since=yesterday":                     {"since"},
		"since=2026-01-01":                    {"since"},
		"since=1700000000":                    {"since"},
		"until=":                              {"until"},
		"webhook=":                            {"webhook"},
		"webhook=a&webhook=b":                 {"webhook"},
		"channel=" + strings.Repeat("x", 101): {"channel"},
		"state=x&event_id=x&since=x&until=x&limit=0&cursor=-1&order=x": {"state", "event_id", "since", "until", "limit", "cursor", "order"},
		"limit=101": {"limit"},
	} {
		e.Get(deliveries+"?"+query, admin).ExpectFields(fields...)
	}
}

func deliveryOne(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	id := idle(e, "shown")
	ids, events := past(t, e, id, "shown", longAgo)
	a := e.Get(deliveries+"/"+ids[0], admin).Expect(http.StatusOK)
	wantKeys(t, a, "", "success", "message", "data")
	wantKeys(t, a, "data", append(slices.Clone(deliveryKeys), "answer", "history", "body", "request")...)
	wantValue(t, a, "data.id", ids[0])
	wantRequest(t, e, a, id)
	wantValue(t, a, "data.answer", "out to lunch")
	var body struct {
		ID, Type, Channel, Timestamp string
		Seq                          int64
		Data                         map[string]any
	}
	if err := json.Unmarshal([]byte(a.Text("data.body")), &body); err != nil {
		t.Fatal(err)
	}
	if body.ID != events[0] || body.Type != "otp.failed" || body.Channel != "shown" || body.Seq == 0 ||
		body.Data["reason"] != "wrong_sender" || body.Timestamp != "2026-01-01T00:00:00.000Z" {
		t.Errorf("the body is %+v", body)
	}
}

// wantRequest holds that the request that is shown is signed as the one that was made.
func wantRequest(t *testing.T, e *parleytest.Env, a *parleytest.Response, webhook string) {
	t.Helper()
	wantValue(t, a, "data.request.method", http.MethodPost)
	wantValue(t, a, "data.request.url", quiet)
	wantValue(t, a, "data.request.headers.webhook-id", a.Text("data.event_id"))
	wantValue(t, a, "data.request.headers.webhook-timestamp", fmt.Sprint(longAgo.Unix()))
	secret := e.Get("/api/manage/webhooks/"+webhook+"/secret", parleytest.As(e.Admin)).Expect(http.StatusOK).Text("data.secret")
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	e.Eventually("the signature fits the body", func() bool { // the names in both are looked up meanwhile
		a = e.Get(deliveries+"/"+a.Text("data.id"), parleytest.As(e.Admin)).Expect(http.StatusOK)
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%d.%s", a.Text("data.event_id"), longAgo.Unix(), a.Text("data.body"))
		return a.Text("data.request.headers.webhook-signature") == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
	})
}

func deliveryUnknown(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	for _, id := range []string{"dlv_0", "%20", "x%2Fy", strings.Repeat("x", 500)} {
		wantOnlyMessage(t, e.Get(deliveries+"/"+id, admin).Expect(http.StatusNotFound))
		wantOnlyMessage(t, e.Post(deliveries+"/"+id+"/retry", "", admin).Expect(http.StatusNotFound))
		wantOnlyMessage(t, e.Post(webhooks+"/"+id+"/retry", "", admin).Expect(http.StatusNotFound))
	}
	a := e.Get(deliveries+"/replay", admin).Expect(http.StatusMethodNotAllowed)
	wantHeader(t, a, "Allow", "POST")
	a = e.Post(deliveries+"/dlv_0", `{}`, admin).Expect(http.StatusMethodNotAllowed)
	wantHeader(t, a, "Allow", "GET, HEAD")
}

// TestDeliveryHistory has a receiver fail in two ways, take the event, and take it again when it is
// replayed. It has a gateway of its own, because only that adds to the event log here.
func TestDeliveryHistory(t *testing.T) {
	e := parleytest.Start(t)
	admin, calls := parleytest.As(e.Admin), 0
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch calls++; calls { // one delivery, so never two at a time
		case 1:
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, strings.Repeat("<b>out</b> ", 100))
		case 2:
			panic(http.ErrAbortHandler) // which breaks the connection
		}
	}))
	t.Cleanup(receiver.Close)
	id, _ := makeWebhook(e, `{"url":"`+receiver.URL+`","events":["message.received"]}`)
	e.Phone("6281234567890").Types("halo")
	var shown *parleytest.Response
	expect := func(state string, attempts, count int) {
		t.Helper()
		e.Eventually(fmt.Sprintf("%d attempts are shown", count), func() bool {
			one := column(e.Get(deliveries+"?webhook="+id, admin).Expect(http.StatusOK), "id")
			if len(one) == 0 {
				return false
			}
			shown = e.Get(deliveries+"/"+one[0], admin).Expect(http.StatusOK)
			return shown.Count("data.history") >= count
		})
		wantValue(t, shown, "data.state", state)
		wantValue(t, shown, "data.attempts", float64(attempts))
		for i := range shown.Count("data.history") {
			at := fmt.Sprintf("data.history.%d.", i)
			wantKeys(t, shown, strings.TrimSuffix(at, "."), "number", "at", "took_ms", "code", "problem", "answer")
			wantValue(t, shown, at+"number", float64(i+1))
			wantRecent(t, shown, at+"at")
		}
	}
	expect("waiting", 1, 1)
	if got := shown.Text("data.history.0.answer"); got != shown.Text("data.answer") || len(got) != 1024 {
		t.Errorf("of the last answer %d bytes are kept", len(got))
	}
	a := e.Post(deliveries+"/"+shown.Text("data.id")+"/retry", "", admin).Expect(http.StatusOK)
	wantKeys(t, a, "data", deliveryKeys...)
	expect("waiting", 2, 2)
	a = e.Post(webhooks+"/"+id+"/retry", "", admin).Expect(http.StatusOK)
	wantValue(t, a, "data.waiting", 1.0)
	expect("delivered", 3, 3)
	e.Post(deliveries+"/"+shown.Text("data.id")+"/retry", "", admin).ExpectError(http.StatusBadRequest, "Replay it instead")
	e.Call(http.MethodPatch, webhooks+"/"+id, `{"enabled":false}`, admin).Expect(http.StatusOK)
	e.Post(webhooks+"/"+id+"/retry", "", admin).ExpectError(http.StatusBadRequest, "switched off")
	e.Call(http.MethodPatch, webhooks+"/"+id, `{"enabled":true}`, admin).Expect(http.StatusOK)
	e.Post(deliveries+"/replay", `{"ids":["`+shown.Text("data.id")+`"]}`, admin).Expect(http.StatusOK)
	expect("delivered", 1, 4)
	for i, want := range []struct {
		code    any
		problem string
		answer  string
	}{
		{500.0, "http_status: The server answered 500 Internal Server Error.", strings.Repeat("<b>out</b> ", 100)[:512]},
		{nil, "connect: The server could not be reached, or broke the connection.", ""},
		{200.0, "", ""},
		{200.0, "", ""},
	} {
		at := fmt.Sprintf("data.history.%d.", i)
		wantValue(t, shown, at+"code", want.code)
		wantValue(t, shown, at+"problem", want.problem)
		wantValue(t, shown, at+"answer", want.answer)
	}
	wantValue(t, shown, "data.history.3.at", shown.Text("data.tried_at"))
}

// hook is an address that takes everything, and remembers the ids of the events.
type hook struct {
	*httptest.Server
	mu  sync.Mutex
	ids []string
}

func newHook(t *testing.T) *hook {
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ids = append(h.ids, r.Header.Get("webhook-id"))
	}))
	t.Cleanup(h.Close)
	return h
}

// got returns what came since it was last asked.
func (h *hook) got() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids := h.ids
	h.ids = nil
	slices.Sort(ids)
	return ids
}

// expect waits until just these events came.
func (h *hook) expect(e *parleytest.Env, events ...string) {
	e.T.Helper()
	var all []string
	e.Eventually(fmt.Sprintf("%d events come", len(events)), func() bool {
		all = append(all, h.got()...)
		return len(all) >= len(events)
	})
	want := slices.Sorted(slices.Values(events))
	if slices.Sort(all); !slices.Equal(all, want) {
		e.T.Errorf("%q came, want %q", all, want)
	}
}

func deliveryReplay(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	e.CreateChannel("again")
	h := newHook(t)
	id, _ := makeWebhook(e, `{"url":"`+h.URL+`","channel":"again","events":["channel.pairing"]}`)
	hour := func(n int) time.Time { return longAgo.Add(time.Duration(n) * time.Hour) }
	ids, events := past(t, e, id, "again", hour(0), hour(1), hour(2), hour(3), hour(4))
	at := func(n int) string { return hour(n).Format(time.RFC3339) }
	replay := func(body string, want ...int) {
		t.Helper()
		a := e.Post(deliveries+"/replay", body, admin).Expect(http.StatusOK)
		wantKeys(t, a, "", "success", "message", "data")
		wantKeys(t, a, "data", "replayed", "more", "ended_before")
		wantValue(t, a, "data.replayed", float64(len(want)))
		wantValue(t, a, "data.more", false)
		var wanted []string
		for _, i := range want {
			wanted = append(wanted, events[i])
		}
		h.expect(e, wanted...)
		e.Eventually("they are taken", func() bool {
			return e.Get(deliveries+"?state=waiting&webhook="+id, admin).Number("meta.total") == 0
		})
	}
	replay(`{"ids":["`+ids[0]+`"]}`, 0)
	one := e.Get(deliveries+"/"+ids[0], admin).Expect(http.StatusOK)
	wantValue(t, one, "data.state", "delivered")
	wantValue(t, one, "data.attempts", 1.0)
	wantValue(t, one, "data.event_id", events[0])
	wantValue(t, one, "data.problem", "")
	wantRecent(t, one, "data.tried_at")
	replay(`{"ids":["`+ids[1]+`","`+ids[3]+`","dlv_unknown"]}`, 1, 3) // taken ones too
	replay(`{"event_ids":["`+events[0]+`","`+events[4]+`"]}`, 0, 4)
	replay(`{"ids":["`+ids[0]+`","`+ids[2]+`"],"state":"failed"}`, 2)
	replay(`{"webhook":"` + id + `","state":"failed"}`) // none is left
	replay(`{"webhook":"`+id+`","since":"`+at(1)+`","until":"`+at(3)+`"}`, 1, 2)
	replay(`{"channel":"again","state":"delivered","since":"`+at(3)+`","colour":1}`, 3, 4)
	replay(`{"channel":"again"}`, 0, 1, 2, 3, 4)
	replay(`{"webhook":"whk_nobody"}`)
	replay(`{"webhook":"` + id + `","ended_before":"` + at(0) + `"}`)
	if left := h.got(); len(left) > 0 {
		t.Errorf("%q came besides", left)
	}

	// The same request with the same key does it once.
	key := parleytest.With("Idempotency-Key", "again-once")
	e.Post(deliveries+"/replay", `{"ids":["`+ids[0]+`"]}`, admin, key).Expect(http.StatusOK)
	wantHeader(t, e.Post(deliveries+"/replay", `{"ids":["`+ids[0]+`"]}`, admin, key).Expect(http.StatusOK), "Idempotent-Replayed", "true")
	h.expect(e, events[0])
}

func deliveryBadReplays(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	for _, c := range []struct {
		body   string
		fields []string
	}{
		{`{}`, []string{"ids"}},
		{`{"limit":5}`, []string{"ids"}},
		{`{"ids":null}`, []string{"ids"}},
		{`{"ids":[]}`, []string{"ids"}},
		{`{"ids":"dlv_1"}`, []string{"ids"}},
		{`{"ids":[1]}`, []string{"ids.0"}},
		{`{"ids":["dlv_1",""]}`, []string{"ids.1"}},
		{`{"ids":["x"` + strings.Repeat(`,"x"`, 1000) + `]}`, []string{"ids"}},
		{`{"event_ids":[]}`, []string{"event_ids"}},
		{`{"event_ids":["x",1,"evt_1"]}`, []string{"event_ids.0", "event_ids.1", "event_ids.2"}},
		{`{"state":"waiting"}`, []string{"state"}},
		{`{"state":""}`, []string{"state"}},
		{`{"since":"today"}`, []string{"since"}},
		{`{"until":5}`, []string{"until"}},
		{`{"channel":"demo","ended_before":"now"}`, []string{"ended_before"}},
		{`{"webhook":1}`, []string{"webhook"}},
		{`{"channel":""}`, []string{"channel"}},
		{`{"channel":"demo","limit":0}`, []string{"limit"}},
		{`{"channel":"demo","limit":10001}`, []string{"limit"}},
		{`{"ids":1,"event_ids":2,"webhook":3,"channel":4,"state":5,"since":6,"until":7,"ended_before":8,"limit":"9"}`,
			[]string{"ids", "event_ids", "webhook", "channel", "state", "since", "until", "ended_before", "limit"}},
	} {
		e.Post(deliveries+"/replay", c.body, admin).ExpectFields(c.fields...)
	}
	for _, body := range []string{"", "[]", "{"} {
		e.Post(deliveries+"/replay", body, admin).Expect(http.StatusBadRequest)
	}
}

// deliverySteps checks a replay that takes several calls: each delivery is made again once, although
// those that were are done again before the next call.
func deliverySteps(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	e.CreateChannel("steps")
	h := newHook(t)
	id, _ := makeWebhook(e, `{"url":"`+h.URL+`","channel":"steps","events":["channel.pairing"]}`)
	var times []time.Time
	for i := range 7 {
		times = append(times, longAgo.Add(time.Duration(i)*time.Second))
	}
	_, events := past(t, e, id, "steps", times...)
	before, total, more := "", 0.0, true
	for calls := 0; more; calls++ {
		if calls > 3 {
			t.Fatal("it does not end")
		}
		a := e.Post(deliveries+"/replay", `{"webhook":"`+id+`","limit":3`+before+`}`, admin).Expect(http.StatusOK)
		total += float64(a.Number("data.replayed"))
		more = a.Value("data.more") == true
		before = `,"ended_before":"` + a.Text("data.ended_before") + `"`
		e.Eventually("they are taken", func() bool {
			return e.Get(deliveries+"?state=waiting&webhook="+id, admin).Number("meta.total") == 0
		})
	}
	if total != 7 {
		t.Errorf("%v were made again, want 7", total)
	}
	h.expect(e, events...)
}
