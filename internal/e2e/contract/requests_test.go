package contract_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// TestContractRequests holds every endpoint that sends to the rules of all requests: who may call
// it, and what a body must be.
func TestContractRequests(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	shop := e.CreateChannel("shop")
	files := parleytest.Files(t)
	c := converse(e, shop)
	for _, ep := range sendings(e, files, c.phone.Contact(), c.own, c.theirs) {
		t.Run(ep.path, func(t *testing.T) {
			testCallers(t, e, ep)
			testRequestChannel(t, e, ep)
			testBodies(t, e, ep)
			testMethods(t, e, ep)
		})
	}
	t.Run("pool", func(t *testing.T) {
		ep := endpoint{method: "POST", path: "pool", body: texts(c.phone.Contact(), "Hello"),
			options: []parleytest.Option{parleytest.As(e.Global)}}
		testCallers(t, e, ep)
		testBodies(t, e, ep)
		testMethods(t, e, ep)
	})
	for name, option := range map[string]parleytest.Option{
		"no such token": parleytest.As("x.y.z"), "another scheme": parleytest.With("Authorization", "Basic eDp5"),
		"a token that was changed": parleytest.As(e.Token[:len(e.Token)-4] + "AAAA"),
	} {
		part(t, e, name, func(e *parleytest.Env) {
			expectUnauthorized(submit(e, "text", object{"contact_id": c.phone.Contact(), "message": "Hello"}, option))
		})
	}
	part(t, e, "as large as it may be", func(e *parleytest.Env) {
		phone, _ := newPhone(e)
		body := toJSON(e.T, object{"contact_id": phone.Contact(), "message": "Hello", "filler": ""})
		fill := func(size int) string {
			return strings.Replace(body, `"filler":""`, `"filler":"`+strings.Repeat("x", size-len(body))+`"`, 1)
		}
		expectSent(e.Post("/api/send-message/text", fill(1<<20)))
		e.Post("/api/send-message/text", fill(1<<20+1)).ExpectError(http.StatusRequestEntityTooLarge, "1 MiB")
		expectBodies(e, phone, "text Hello")
	})
}

func testCallers(t *testing.T, e *parleytest.Env, ep endpoint) {
	// One kind each: after some thirty failures the address has to wait.
	part(t, e, "no token", func(e *parleytest.Env) { expectUnauthorized(ep.call(e, ep.body, parleytest.As(""))) })
	part(t, e, "an admin token", func(e *parleytest.Env) {
		ep.call(e, ep.body, parleytest.As(e.Admin)).ExpectError(http.StatusForbidden, " ")
	})
	part(t, e, "request ids", func(e *parleytest.Env) {
		if got := ep.call(e, object{}, parleytest.With("X-Request-Id", "order-17")).Header.Get("X-Request-Id"); got != "order-17" {
			e.T.Errorf("the request's id came back as %q", got)
		}
		first, second := ep.call(e, object{}).Header.Get("X-Request-Id"), ep.call(e, object{}, parleytest.With("X-Request-Id",
			"not sane!")).Header.Get("X-Request-Id")
		if first == "" || second == "" || first == second || second == "not sane!" {
			e.T.Errorf("ids of requests are %q and %q", first, second)
		}
	})
}

func expectUnauthorized(a *parleytest.Response) {
	a.T.Helper()
	a.ExpectError(http.StatusUnauthorized, " ")
	if !strings.HasPrefix(a.Header.Get("WWW-Authenticate"), "Bearer") {
		a.T.Errorf("WWW-Authenticate is %q", a.Header.Get("WWW-Authenticate"))
	}
	if got := jsonKeys(a, ""); !slices.Equal(got, []string{"code", "message"}) {
		a.T.Errorf("the body has %v", got)
	}
}

// testRequestChannel: a channel's token is for its channel, a Global one for the channel that is named.
func testRequestChannel(t *testing.T, e *parleytest.Env, ep endpoint) {
	global := parleytest.As(e.Global)
	part(t, e, "X-Channel", func(e *parleytest.Env) {
		ep.call(e, ep.body, parleytest.On("demo")).Expect(http.StatusOK)
		ep.call(e, ep.body, parleytest.On("shop")).ExpectError(http.StatusForbidden, "only for channel demo")
		ep.call(e, ep.body, parleytest.On("nowhere")).Expect(http.StatusForbidden)
		ep.call(e, ep.body, global).ExpectError(http.StatusBadRequest, "X-Channel")
		ep.call(e, ep.body, global, parleytest.On("nowhere")).ExpectError(http.StatusBadRequest, "X-Channel")
		ep.call(e, ep.body, global, parleytest.On("demo")).Expect(http.StatusOK)
		onShop := ep.call(e, ep.body, global, parleytest.On("shop"))
		if _, ok := ep.body["message_id"]; ok { // which is no message of that channel
			expectInvalid(onShop, "message_id")
		} else {
			onShop.Expect(http.StatusOK)
		}
	})
}

func testBodies(t *testing.T, e *parleytest.Env, ep endpoint) {
	good := toJSON(t, ep.body)
	raw := func(e *parleytest.Env, body string, options ...parleytest.Option) *parleytest.Response {
		e.T.Helper()
		return e.Call(ep.method, "/api/send-message/"+ep.path, body, append(ep.options, options...)...)
	}
	for name, body := range map[string]string{
		"an array": "[" + good + "]", "null": "null", "a string": `"x"`, "a number": "7", "blank": "  ", "cut off": good[:len(good)-1],
		"no JSON":            "contact_id=1",
		"something after it": good + "{}", "a field given twice": good[:len(good)-1] + `,"twice":1,"twice":2}`, "a NUL": good[:len(good)-1] +
			`,"x":"\u0000"}`,
		"no UTF-8": good[:len(good)-1] + `,"x":"` + "\xff" + `"}`, "half a pair": good[:len(good)-1] + `,"x":"\ud800"}`,
		"a comma at the end": good[:len(good)-1] + ",}", "single quotes": strings.ReplaceAll(good, `"`, `'`),
	} {
		part(t, e, "body: "+name, func(e *parleytest.Env) {
			a := raw(e, body).ExpectError(http.StatusBadRequest, " ")
			if got := jsonKeys(a, ""); !slices.Equal(got, []string{"code", "message"}) {
				e.T.Errorf("the answer has %v", got)
			}
		})
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonp",
		"multipart/form-data; boundary=x"} {
		part(t, e, "type: "+kind, func(e *parleytest.Env) {
			raw(e, good, parleytest.With("Content-Type", kind)).ExpectError(http.StatusBadRequest, "application/json")
		})
	}
	for _, kind := range []string{"application/json; charset=utf-8", "Application/JSON"} {
		part(t, e, "type: "+kind, func(e *parleytest.Env) { raw(e, good, parleytest.With("Content-Type", kind)).Expect(http.StatusOK) })
	}
	part(t, e, "body: too large", func(e *parleytest.Env) {
		raw(e, `{"x":"`+strings.Repeat("x", 1<<20)+`"}`).Expect(http.StatusRequestEntityTooLarge)
	})
}

func testMethods(t *testing.T, e *parleytest.Env, ep endpoint) {
	part(t, e, "methods", func(e *parleytest.Env) {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if method == ep.method {
				continue
			}
			a := e.Call(method, "/api/send-message/"+ep.path, "", ep.options...).ExpectError(http.StatusMethodNotAllowed, ep.method)
			if a.Header.Get("Allow") != ep.method {
				e.T.Errorf("%s: Allow is %q", method, a.Header.Get("Allow"))
			}
		}
		e.Call(ep.method, "/api/send-message/"+ep.path+"/x", "", ep.options...).ExpectError(http.StatusNotFound, " ")
	})
}

// TestEverythingWrongIsTold sends requests in which one field is wrong in itself and another names something that
// does not exist: both are reported at once.
func TestEverythingWrongIsTold(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	const number = "6281400000050"
	contact := `"contact_id":"` + number + `@c.us"`
	e.Post(phones, `{"number":"`+number+`"}`).Expect(http.StatusOK)
	admin := parleytest.As(e.Admin)
	global := parleytest.As(e.Global)

	reply := `{"type":"text","data":{"message":"x","reply_to":"nope"}}`
	pool := "/api/send-message/pool"
	e.Post(pool, `{`+contact+`,"pools":[`+reply+`,{"type":"text","data":{"message":""}}]}`, global).ExpectFields("pools.0.data.reply_to",
		"pools.1.data.message")
	e.Post(pool, `{"contact_id":"x","pools":[`+reply+`]}`, global).ExpectFields("contact_id", "pools.0.data.reply_to")
	e.Post(pool, `{`+contact+`,"pools":[{"type":"text","data":{"message":"x","linkPreview":"zz","reply_to":"nope"}}]}`, global).
		ExpectFields("pools.0.data.linkPreview", "pools.0.data.reply_to")

	e.Get(phones+"/"+number+"/messages?limit=0&after=zzz").ExpectFields("after", "limit")
	e.Get(phones+"/"+number+"/messages?wait=31&after=zzz").ExpectFields("after", "wait")
	e.Get(phones+"/abc/messages?limit=0").ExpectFields("limit", "number")
	e.Post(phones+"/x/send", `{"type":"text"}`).ExpectFields("message", "number")
	e.Call("PATCH", phones+"/x", `{"name":5}`).ExpectFields("name", "number")
	e.Post(phones+"/x/send", `{"type":"text","message":"halo"}`).ExpectFields("number")

	send := phones + "/" + number + "/send"
	e.Post(send, `{"type":"reaction","message_id":"nope","reaction":"aa"}`).ExpectFields("message_id", "reaction")
	e.Post(send, `{"type":"text","message":"","reply_to":"nope"}`).ExpectFields("message", "reply_to")
	e.Post(send, `{"type":"vote","message_id":"nope","options":5}`).ExpectFields("message_id", "options")

	e.Post("/api/manage/tokens", `{"kind":"channel","channel":"nope","name":5,"expires_at":"x"}`, admin).ExpectFields("channel",
		"expires_at", "name")
	e.Post(channels, `{"code":"demo","network":"zz","name":5}`, admin).ExpectFields("code", "name", "network")

	e.Get("/api/groups", func(r *http.Request) { r.Header["X-Channel"] = []string{"demo", "other"} }).Expect(http.StatusBadRequest)
}

// TestContractImpossibleNumbers writes to numbers that pass the pattern and that nobody can have. They are
// accepted and fail, with a sentence that says what to do.
func TestContractImpossibleNumbers(t *testing.T) {
	e := parleytest.Start(t)
	for _, number := range []string{"0812345", "081234567890", "12345", "628123", "6281234567890123", strings.Repeat("1", 45)} {
		failed := expectFailed(submit(e, "text", object{"contact_id": number + "@c.us", "message": "x"}), "not_on_network")
		if got := failed.Text("message"); !strings.Contains(got, "Begin with the country code") || failed.Text("data.error.message") != got {
			t.Errorf("%s: %s", number, failed.Body)
		}
		exists := e.Get("/api/channel/check-phone-number?phone=" + number).Expect(http.StatusOK)
		wantValue(t, exists, "data.is_exists", false)
		wantValue(t, exists, "data.contact_id", nil)
		e.Post("/api/sandbox/phones/"+number+"/send", `{"type":"text","message":"hi"}`).Expect(http.StatusBadRequest)
	}
	for _, number := range []string{"1234567", strings.Repeat("1", 15)} {
		wantValue(t, submit(e, "text", object{"contact_id": number + "@c.us", "message": "x"}).Expect(http.StatusOK), "data.status", "SENT")
	}
}
