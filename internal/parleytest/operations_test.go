package parleytest

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestEveryOperation has every operation of the document done once, in the order of a working day.
// The validator holds each answer to the document; here it only matters that none was left out and
// that all of them worked.
func TestEveryOperation(t *testing.T) {
	e := Start(t)
	v := NewValidator(t)
	done := map[string]bool{}
	do := func(method, path, body string, options ...Option) *Response {
		t.Helper()
		a := e.Call(method, path, body, options...)
		if a.Status >= 300 {
			t.Fatalf("%s answered %d: %s", a.Request, a.Status, a.Body)
		}
		_, pattern := v.mux.Handler(httptest.NewRequest(method, path, nil))
		done[pattern] = true
		return a
	}
	files := Files(t)
	const ayu = "6281234567890@c.us"
	fill := strings.NewReplacer("AYU", ayu, "FILES", files)
	send := func(endpoint, body string, options ...Option) *Response {
		t.Helper()
		return do("POST", "/api/send-message/"+endpoint, fill.Replace(body), options...)
	}

	// Sending.
	first := send("text", `{"contact_id":"AYU","message":"Hello","linkPreview":"false"}`)
	send("text", `{"contact_id":"AYU","message":"And this","reply_to":"`+first.Text("data.id")+`","linkPreviewHighQuality":null}`,
		With("Prefer", "respond-async"))
	image := send("image", `{"contact_id":"AYU","caption":"A dot","file":{"url":"FILES/dot.png","mimeType":"image/png","filename":"dot.png"}}`)
	send("video", `{"contact_id":"AYU","videoUrl":"FILES/film.mp4"}`, With("Prefer", "wait=5"))
	send("file", `{"contact_id":"AYU","file":{"url":"FILES/notes.txt"}}`, With("Idempotency-Key", "notes"))
	send("file", `{"contact_id":"AYU","file":{"url":"FILES/notes.txt"}}`, With("Idempotency-Key", "notes"))
	send("voice", `{"contact_id":"AYU","audioUrl":"FILES/hello.ogg"}`)
	send("sticker", `{"contact_id":"AYU","file":{"url":"FILES/dot.png"}}`)
	send("location", `{"contact_id":"AYU","latitude":"-6.2088","longitude":"106.8456"}`)
	send("contact", `{"contact_id":"AYU","contacts":[{"name":"Budi","numbers":["+6281234567891"]}]}`)
	send("polling", `{"contact_id":"AYU","title":"Where?","options":["Here","There"]}`)
	poll := send("poll", `{"contact_id":"AYU","title":"When?","options":["Morning","Evening"]}`)
	send("pool", `{"contact_id":"AYU","pools":[{"type":"text","data":["One","Two"]},{"type":"image",`+
		`"data":{"file":{"url":"FILES/dot.png"}}},{"type":"voice","data":["FILES/hello.ogg"]}]}`, As(e.Global))
	refused := send("text", `{"contact_id":"99912345670@c.us","message":"Hello"}`)
	if refused.Bool("success") || refused.Text("data.error.code") != "not_on_network" {
		t.Errorf("a number that is not on the network: %s", refused.Body)
	}
	pool := send("pool", `{"contact_id":"99912345670@c.us","pools":[{"type":"text","data":["One","Two"]}]}`, As(e.Global))
	if pool.Bool("success") || !strings.Contains(pool.Text("pools"), "not_sent") {
		t.Errorf("a pool whose first message fails: %s", pool.Body)
	}

	// The phone answers.
	phone := "/api/sandbox/phones/6281234567890"
	cursor := do("GET", "/api/sandbox/cursor", "").Text("data.cursor")
	do("GET", "/api/sandbox/phones", "")
	do("POST", "/api/sandbox/phones", "")
	do("POST", "/api/sandbox/phones", `{"number":"+62 812-9000-4711","name":"Citra"}`)
	do("PATCH", phone, `{"reads":"when_open","delay_ms":0,"online":true,"blocks":false,"on_network":true,"lid_only":false,"name":"Ayu"}`)
	do("POST", phone+"/send", `{"type":"text","message":"Thank you!"}`)
	do("POST", phone+"/send", fill.Replace(`{"type":"image","file":{"url":"FILES/dot.png"}}`))
	do("POST", phone+"/send", fill.Replace(`{"type":"sticker","file":{"url":"FILES/dot.png"}}`))
	do("POST", phone+"/send", `{"type":"reaction","message_id":"`+first.Text("data.message_id")+`","reaction":"❤️"}`)
	do("POST", phone+"/send", `{"type":"vote","message_id":"`+poll.Text("data.id")+`","options":["Morning"]}`)
	do("POST", phone+"/read", "")
	do("POST", phone+"/open", `{"link":"https://wa.me/99900000001?text=Login%20K7QM"}`)
	do("GET", phone+"/messages?limit=100&after=", "")
	do("GET", phone+"/chats", "")
	do("GET", phone+"/chat", "")
	do("GET", phone+"/media/"+image.Text("data.message_id"), "")
	send("text", `{"contact_id":"AYU","message":"Your code is 481516, see https://example.com"}`, With("Prefer", "wait=0"))
	if code := do("GET", phone+"/messages?type=text&contains=CODE&wait=10&after="+cursor, "").Text("data.0.codes.0"); code != "481516" {
		t.Errorf("the code is %q", code)
	}
	e.Get(phone + "/messages?contains=nothing&wait=1").Expect(http.StatusNotFound)
	received := e.Phone("6281234567890").Received("Thank you!")

	// A login link, by its id and on the page of the phone.
	const login = `{"contact_id":"AYU","expires":300.0,"name":"Toko Ayu","message":{"prompt":"p","success":"s","failed":"f",` +
		`"expired":"e"},"callback":{"success":"https://shop.example.com/ok","failed":"https://shop.example.com/no"}}`
	link := do("POST", "/api/otp/link/request", fill.Replace(login), With("Idempotency-Key", "login"))
	do("POST", "/api/otp/link/request", fill.Replace(login), With("Idempotency-Key", "login"))
	do("GET", "/api/otp/link/"+link.Text("data.id"), "")
	do("POST", phone+"/open", `{"id":"`+link.Text("data.id")+`"}`)
	link = do("POST", "/api/otp/link/global", fill.Replace(`{"contact_id":"AYU","expires":60}`), As(e.Global))
	page, err := url.Parse(link.Text("data.link"))
	if err != nil {
		t.Fatal(err)
	}
	do("GET", page.Path+"?"+page.RawQuery, "", As(""))
	do("GET", "/phone.js", "", As(""))
	do("GET", "/phone.css", "", As(""))
	do("POST", page.Path+"/send", `{"ticket":"`+strings.TrimPrefix(page.Fragment, "ticket=")+`","text":"`+page.Query().Get("text")+`"}`,
		As(""))
	do("GET", "/api/otp/link/"+link.Text("data.id"), "", As(e.Global))

	// A one-time code.
	do("POST", "/api/otp/code/request",
		fill.Replace(`{"contact_id":"AYU","length":6,"useNumber":true,"useLetter":true,"allCapital":true,"name":"Toko Ayu","expires":300}`))
	code := do("GET", phone+"/messages?contains=verification&wait=10&after="+cursor, "").Text("data.0.codes.0")
	do("POST", "/api/otp/code/validate", fill.Replace(`{"contact_id":"AYU","code":"wrong"}`))
	if status := do("POST", "/api/otp/code/validate", fill.Replace(`{"contact_id":"AYU","code":"`+code+`"}`)).
		Text("data.status"); status != "APPROVED" {
		t.Errorf("the code that was sent is %s", status)
	}

	do("POST", "/api/otp/code/global", `{"contact_id":"6281290005555@c.us"}`, As(e.Global))

	// Events: a stream that has begun never ends, but its head does.
	do("HEAD", "/api/events", "")
	do("GET", "/openapi.yaml", "", As(""))
	do("GET", "/api/sandbox/listeners?type=message.received", "")
	do("GET", "/api/events/recent?limit=5", "")
	do("GET", "/api/messages?q=Hello", "")
	do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},`+
		`"clientInfo":{"name":"test","version":"1"}}}`, With("Accept", "application/json, text/event-stream"))

	// Working with messages.
	mine := `{"message_id":"` + first.Text("data.message_id") + `"`
	theirs := `{"message_id":"` + received + `"`
	do("PUT", "/api/send-message/reaction", theirs+`,"reaction":"👍"}`)
	do("PUT", "/api/send-message/react", theirs+`,"reaction":"👍"}`)
	do("PUT", "/api/send-message/edit", mine+`,"message":"Hello!"}`)
	do("POST", phone+"/send", theirs+`,"type":"edit","message":"Thanks!"}`)
	do("POST", "/api/send-message/seen", theirs+`}`)
	do("POST", "/api/send-message/forward", theirs+`,"contact_id":"6281234567891@c.us"}`)
	do("PUT", "/api/send-message/star", theirs+`,"starred":true}`)
	do("DELETE", "/api/send-message/delete?message_id="+first.Text("data.message_id"), "")
	do("DELETE", "/api/send-message/delete", mine+`}`)
	send("typing", `{"contact_id":"AYU"}`)
	send("stop-typing", `{"contact_id":"AYU"}`)

	// Reading.
	for _, spelling := range []string{"", "/", "/all"} {
		do("GET", "/api/chat"+spelling, "")
		do("GET", "/api/contact"+spelling, "")
	}
	do("GET", "/api/chat/detail?limit=100&contact_id="+ayu, "")
	do("POST", "/api/media", "a file", With("Content-Type", "text/plain"))
	file := do("GET", "/api/messages/"+image.Text("data.message_id"), "").Text("data.media.id")
	do("GET", "/api/media/"+file, "")
	do("GET", "/api/chat/details?limit=2&offset=2&contact_id=6281234567890@s.us", "")
	do("PUT", "/api/chat/read", fill.Replace(`{"contact_id":"AYU","read":true}`))
	do("PUT", "/api/chat/disappearing", fill.Replace(`{"contact_id":"AYU","seconds":86400}`))
	do("POST", "/api/chat/archive", fill.Replace(`{"contact_id":"AYU"}`))
	do("POST", "/api/chat/un-archive", fill.Replace(`{"contact_id":"AYU"}`))
	do("POST", "/api/chat/unarchive", fill.Replace(`{"contact_id":"AYU"}`))
	do("GET", "/api/contact", "", With("Accept", "application/json"))
	do("GET", "/api/contact/info?contact_id="+ayu, "")
	do("GET", "/api/contact/detail?contact_id="+ayu, "")
	do("GET", "/api/contact/info?contact_id=99912345670@c.us", "", With("Accept", "application/json"))
	do("GET", "/api/contact/picture?contact_id="+ayu, "")
	call := do("POST", phone+"/call", `{"action":"start","video":true}`).Text("data.id")
	do("POST", phone+"/call", `{"action":"end","id":"`+call+`"}`)
	do("PUT", "/api/contact/block", `{"contact_id":"6281234567891@c.us","blocked":true}`)
	do("POST", "/api/contact/opt-outs", `{"contact_ids":["6281234567892@c.us"]}`)
	do("GET", "/api/contact/opt-outs", "")
	do("GET", "/api/contact/opt-outs/export?format=jsonl", "")
	do("DELETE", "/api/contact/opt-outs?contact_id=6281234567892@c.us", "")
	do("GET", "/api/groups", "")
	do("GET", "/api/groups/all", "")
	group := do("POST", "/api/groups/create", fill.Replace(`{"name":"Family","participants":[{"id":"AYU"}]}`))
	do("GET", "/api/groups/participants?group_id="+group.Text("data.id"), "")
	do("POST", "/api/groups/participant", `{"group_id":"`+group.Text("data.id")+`"}`)
	of := `{"group_id":"` + group.Text("data.id") + `"`
	do("POST", "/api/groups/add", of+`,"participants":["6281234567891@c.us",{"id":"99912345670@c.us"}]}`)
	inGroup := send("text", of+`,"message":"Hello @6281234567890","mentions":["6281234567890@c.us"]}`)
	do("POST", phone+"/send", of+`,"type":"text","message":"Hello all"}`)
	do("GET", phone+"/chat?group_id="+group.Text("data.id"), "")
	do("GET", phone+"/messages?contains=Hello", "")
	do("POST", phone+"/group", of+`,"action":"rename","name":"Relatives"}`)
	do("GET", "/api/chat/detail?group_id="+group.Text("data.id"), "")
	do("GET", "/api/chat", "")
	do("PUT", "/api/send-message/reaction", `{"message_id":"`+inGroup.Text("data.message_id")+`","reaction":"👍"}`)
	invite := do("GET", "/api/groups/invite?group_id="+group.Text("data.id"), "").Text("data.link")
	do("PUT", "/api/groups/promote", of+`,"participants":["6281234567891@c.us"]}`)
	do("PUT", "/api/groups/demote", of+`,"participants":["6281234567891@c.us"]}`)
	do("PUT", "/api/groups/name", of+`,"name":"Family"}`)
	do("PUT", "/api/groups/description", of+`,"description":"Who cooks"}`)
	do("PUT", "/api/groups/picture", of+`,"url":"`+files+`/dot.png"}`)
	do("PUT", "/api/groups/settings", of+`,"join_approval":true}`)
	do("POST", "/api/groups/remove", of+`,"participants":["6281234567891@c.us"]}`)
	do("POST", "/api/sandbox/phones/6281234567891/group", of+`,"action":"join"}`)
	do("GET", "/api/groups/requests?group_id="+group.Text("data.id"), "")
	do("POST", "/api/groups/requests", of+`,"participants":["6281234567891@c.us"],"approve":true}`)
	do("POST", "/api/groups/leave", of+`}`)
	do("POST", "/api/groups/join", `{"link":"`+invite+`"}`)
	do("POST", "/api/templates", `{"name":"order_ready","language":"id","body":"Hello {{1}}"}`)
	do("GET", "/api/templates", "")
	send("template", fill.Replace(`{"contact_id":"AYU","name":"order_ready","language":"id","parameters":["Ayu"]}`))
	do("DELETE", "/api/templates/order_ready", "")
	do("GET", "/api/channel/health", "")
	do("GET", "/api/channel/check-phone-number?phone=%2B62+812-3456-7890", "")
	do("GET", "/api/channel/check-phone-number?phone=99912345670", "")
	admin := As(e.Admin)
	do("GET", "/api/manage/messages?channel=demo&type=image", "", admin)
	do("GET", "/api/manage/messages/"+image.Text("data.message_id")+"?channel=demo", "", admin)
	do("GET", "/api/manage/messages/"+image.Text("data.message_id")+"/media?channel=demo", "", admin)
	do("GET", "/api/manage/find?id="+image.Text("data.message_id"), "", admin)
	do("GET", "/api/manage/otp", "", admin)
	do("GET", "/api/manage/chats?search=Ayu", "", admin)
	do("GET", "/api/manage/channels/demo/chats?limit=1", "", admin)
	do("GET", "/api/manage/channels/demo/chats/"+ayu+"?limit=100", "", admin)
	do("GET", "/api/manage/contacts/"+ayu, "", admin)

	// Faults, time, and a fresh start.
	do("POST", "/api/sandbox/faults", `{"fault":"reachout_limit","times":1}`)
	send("text", `{"contact_id":"6281290005555@c.us","message":"Hello"}`)
	do("GET", "/api/channel/health", "")
	do("POST", "/api/sandbox/faults", `{"fault":"refuse","times":1,"to":"6281234567890","type":"text","reason":"The account is full."}`)
	do("GET", "/api/sandbox/faults", "")
	do("DELETE", "/api/sandbox/faults", "")
	do("POST", "/api/sandbox/clock", `{"advance":3600}`)
	do("DELETE", "/api/sandbox", "")

	// Management.
	do("POST", "/api/manage/channels",
		`{"code":"shop","name":"Toko Ayu","network":"sandbox","labels":["Trial"],
			"settings":{"ttl":"1h","allow_only":["6281234567890@s.us"]}}`, admin)
	do("GET", "/api/manage/channels?label=trial&sort=attention&limit=1", "", admin)
	do("GET", "/api/manage/channels/shop", "", admin)
	do("PATCH", "/api/manage/channels/shop", `{"settings":{"retention":"0s","pace":"1.5s"}}`, admin)
	token := do("POST", "/api/manage/tokens", `{"kind":"channel","channel":"shop","name":"Web shop","expires_at":"2999-01-01T00:00:00Z"}`,
		admin)
	do("GET", "/api/channel/health", "", As(token.Text("data.token")))
	do("GET", "/api/manage/tokens", "", admin)
	do("PATCH", "/api/manage/tokens/"+token.Text("data.id"), `{"name":"Shop"}`, admin)
	do("DELETE", "/api/manage/tokens/"+token.Text("data.id"), "", admin)
	do("POST", "/api/manage/channels/shop/logout", "", admin)
	do("POST", "/api/manage/channels/shop/pair", "", admin)
	do("GET", "/api/manage/channels/shop/secret", "", admin)
	do("POST", "/api/manage/channels/shop/secret/rotate", "", admin)
	do("HEAD", "/api/manage/events", "", admin)
	hook := "/api/manage/webhooks/" + do("POST", "/api/manage/webhooks",
		fill.Replace(`{"url":"FILES/hook","channel":"demo","events":["message.received"]}`), admin).Text("data.id")
	do("GET", "/api/manage/webhooks", "", admin)
	do("GET", hook, "", admin)
	do("PATCH", hook, `{"enabled":true,"events":["message.received","message.status"]}`, admin)
	do("GET", hook+"/secret", "", admin)
	do("POST", hook+"/rotate", "", admin)
	do("POST", hook+"/test", "", admin)
	do("POST", phone+"/send", `{"type":"text","message":"Hello again"}`)
	e.Eventually("the message is delivered to the webhook, or tried", func() bool {
		return e.Get("/api/manage/deliveries?limit=1", admin).Expect(http.StatusOK).Number("meta.total") > 0
	})
	delivery := do("GET", "/api/manage/deliveries?channel=demo", "", admin).Text("data.0.id")
	do("GET", "/api/manage/deliveries/"+delivery, "", admin)
	e.Post("/api/manage/deliveries/"+delivery+"/retry", "", admin) // 400 once it is delivered
	done["POST /api/manage/deliveries/{id}/retry"] = true
	do("POST", hook+"/retry", "", admin)
	do("POST", "/api/manage/deliveries/replay", `{"ids":["`+delivery+`"]}`, admin)
	do("DELETE", hook, "", admin)
	do("POST", "/api/manage/channels/shop/stop", "", admin)
	do("GET", "/api/channel/health", "", As(e.Global), On("shop"))
	do("POST", "/api/manage/channels/shop/start", "", admin)
	do("GET", "/api/manage/channels/shop/timeline", "", admin)
	do("GET", "/api/manage/messages/export?format=jsonl", "", admin)
	alert := do("POST", "/api/manage/alerts", `{"kind":"failing_sends","share":30,"window_minutes":10,"via":"demo","contact_id":"`+ayu+`"}`,
		admin).Text("data.id")
	do("PUT", "/api/manage/alerts/"+alert, `{"kind":"channel_logged_out","name":"Out","channel":"demo","via":"demo","contact_id":"`+ayu+
		`","quiet":{"from":"22:00","to":"07:00","zone":"Asia/Jakarta"}}`, admin)
	do("POST", "/api/manage/alerts/"+alert+"/test", "", admin)
	do("GET", "/api/manage/alerts", "", admin)
	do("DELETE", "/api/manage/alerts/"+alert, "", admin)
	do("GET", "/api/manage/deliveries/export?state=delivered", "", admin)
	do("GET", "/api/manage/channels/demo/requests?status=2xx&path=send-message&limit=3", "", admin)
	for _, path := range []string{"server", "overview?channel=demo", "stats?span=7d&channel=demo", "doctor", "nodes", "me",
		"events/recent", "audit", "sessions"} {
		do("GET", "/api/manage/"+path, "", admin)
	}
	e.Post("/api/manage/nodes/1/drain", "", admin).Expect(http.StatusBadRequest) // for nodes on PostgreSQL only
	done["POST /api/manage/nodes/{id}/drain"] = true
	do("DELETE", "/api/manage/sessions", "", admin)
	e.Delete("/api/manage/sessions/none", admin).Expect(http.StatusNotFound)
	done["DELETE /api/manage/sessions/{id}"] = true
	do("PATCH", "/api/manage/log-level", `{"level":"debug","minutes":1}`, admin)
	do("POST", "/api/manage/backup", "", admin)
	do("GET", "/api/manage/backup/file", "", admin)
	do("GET", "/api/manage/backup/now", "", admin)
	do("GET", "/api/manage/listen-secret", "", admin)
	do("POST", "/api/manage/sign-in-link", "", admin)
	do("POST", "/api/manage/signing-key/rotate", "", admin)
	do("GET", "/api/manage/diagnostics", "", admin)
	do("GET", "/api/manage/diagnostics/contents", "", admin)

	// To WhatsApp, with nobody there to answer.
	do("POST", "/api/manage/channels/shop/go-live", `{"everybody":true}`, admin)
	do("GET", "/api/manage/channels/shop/pairing", "", admin)
	page, err = url.Parse(do("POST", "/api/manage/channels/shop/pair-link", "", admin).Text("data.url"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/pair", "/pair.js", "/pair.css"} {
		do("GET", path, "", As(""))
	}
	do("GET", "/pair/state", "", As(strings.TrimPrefix(page.Fragment, "ticket=")))
	do("POST", "/pair/begin", `{}`, As(strings.TrimPrefix(page.Fragment, "ticket=")))
	// Nobody asked for a passkey, and nobody has an account at Meta.
	const passkey = `{"confirmed":true}`
	e.Post("/api/manage/channels/shop/pairing/passkey", passkey, admin).Expect(http.StatusBadRequest)
	e.Post("/pair/passkey", passkey, As(strings.TrimPrefix(page.Fragment, "ticket="))).Expect(http.StatusBadRequest)
	e.Put("/api/manage/channels/demo/credentials", `{"cloud":{"access_token":"x"}}`, admin).Expect(http.StatusBadRequest)
	for _, refused := range []string{"POST /api/manage/channels/{code}/pairing/passkey", "POST /pair/passkey",
		"PUT /api/manage/channels/{code}/credentials"} {
		done[refused] = true
	}
	do("PATCH", "/api/manage/networks/whatsapp", `{"version":"auto"}`, admin)
	do("DELETE", "/api/manage/channels/shop", "", admin)
	do("GET", "/api/manage/deletions", "", admin)

	// The server itself.
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/openapi.json", "/openapi-other.json", "/llms.txt", "/docs",
		"/docs/style.css", "/.well-known/jwks.json"} {
		do("GET", path, "", As(""))
	}

	for pattern := range v.routes {
		if !done[pattern] {
			t.Errorf("%s was not tried", pattern)
		}
	}
}
