package contract_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/parleytest"
)

const faults = "/api/sandbox/faults"

// TestSandboxFaults holds what can be made to fail, and the clock, to the contract.
func TestSandboxFaults(t *testing.T) {
	t.Parallel() // much of it is waiting
	e := parleytest.Start(t)
	checkLate := faultLate(t, within(t, e)) // takes seconds, in which the others are tried
	for name, test := range map[string]func(*testing.T, *parleytest.Env){
		"refuse":         faultRefuse,
		"matching":       faultMatching,
		"operations":     faultOperations,
		"twice":          faultTwice,
		"drop socket":    faultDropSocket,
		"log out":        faultLogOut,
		"reachout limit": faultReachout,
		"restrictions":   faultRestrictions,
		"passkey":        faultPasskey,
		"unknown":        faultUnknown,
		"official":       faultOfficial,
		"window":         sandboxWindow,
		"bad faults":     faultBad,
		"too many":       faultTooMany,
		"clock":          sandboxClock,
		"bad clock":      sandboxBadClock,
		"expiry":         sandboxExpiry,
		"reset":          sandboxReset,
	} {
		t.Run(name, func(t *testing.T) { test(t, within(t, e)) })
	}
	checkLate()
}

// order orders a fault.
func order(e *parleytest.Env, body string, options ...parleytest.Option) {
	e.T.Helper()
	a := e.Post(faults, body, options...).Expect(http.StatusOK)
	if a.Count("data") != -1 || !a.Bool("success") {
		e.T.Errorf("ordering a fault answers %s", a.Body)
	}
}

// try sends a text and returns how that ended.
func try(e *parleytest.Env, number string, options ...parleytest.Option) (status, code, message string) {
	e.T.Helper()
	a := e.Post(sendText, textTo(number), options...).Expect(http.StatusOK)
	return a.Text("data.status"), a.Text("data.error.code"), a.Text("message")
}

// faultUnknown loses responses: a receipt resolves that, and without one the message is sent again and says so.
func faultUnknown(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("unknown"))
	const number = "6281900000091"
	send := func() *parleytest.Response { return e.Post(sendText, textTo(number), as).Expect(http.StatusOK) }
	read := func(id string) *parleytest.Response { return e.Get("/api/messages/"+id, as).Expect(http.StatusOK) }
	order(e, `{"fault":"unknown","to":"`+number+`"}`, as)
	id := send().Text("data.message_id")
	e.Eventually("the receipt", func() bool { return read(id).Text("data.status") == "DELIVERED" })
	if a := read(id); strings.Contains(string(a.Body), "possible_duplicate") {
		t.Errorf("a receipt came, and %s", a.Body)
	}
	e.Call("PATCH", "/api/sandbox/phones/"+number, `{"online":false}`, as).Expect(http.StatusOK)
	order(e, `{"fault":"unknown","to":"`+number+`"}`, as)
	id = send().Text("data.message_id")
	e.Post("/api/sandbox/clock", `{"advance":10}`, as).Expect(http.StatusOK)
	e.Eventually("the second copy", func() bool { return read(id).Text("data.status") == "SENT" })
	if a := read(id); !a.Bool("data.possible_duplicate") || a.Number("data.copies") != 2 {
		t.Errorf("it was sent again, and is %s", a.Body)
	}
}

// faultOfficial has the network refuse messages for reasons of the official one.
func faultOfficial(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("official"))
	for fault, want := range map[string]string{"window_closed": "outside_window", "template_paused": "template", "held_back": "held_back"} {
		order(e, `{"fault":"`+fault+`"}`, as)
		if status, code, message := try(e, "6281900000092", as); status != "FAILED" || code != want || !strings.HasSuffix(message, ".") {
			t.Errorf("%s: %s %s %q", fault, status, code, message)
		}
	}
}

// sandboxWindow closes the reply window of a channel: only those who wrote get texts, and everybody gets templates.
func sandboxWindow(t *testing.T, e *parleytest.Env) {
	token := e.CreateChannel("window")
	as := parleytest.As(token)
	const number = "6281900000093"
	e.Call("PATCH", "/api/manage/channels/window", `{"settings":{"window":"24h"}}`, parleytest.As(e.Admin)).Expect(http.StatusOK)
	expect := func(what, want string) {
		t.Helper()
		if _, code, _ := try(e, number, as); code != want {
			t.Errorf("%s: the code is %q, want %q", what, code, want)
		}
	}
	// until reads the end of the window from the list of chats and from the contact.
	until := func() string {
		t.Helper()
		listed := e.Get("/api/chat", as).Expect(http.StatusOK).Text("data.0.window_until")
		shown := e.Get("/api/contact/info?contact_id="+number+"@c.us", as).Expect(http.StatusOK).Text("data.window_until")
		if listed != shown {
			t.Errorf("the window is open until %q in the list, and %q in the contact", listed, shown)
		}
		return listed
	}
	expect("a stranger", "outside_window")
	if end := until(); end != "" {
		t.Errorf("the window of a stranger is open until %s", end)
	}
	e.Post("/api/templates", `{"name":"hello","language":"id","body":"Halo."}`, as).Expect(http.StatusCreated)
	a := e.Post("/api/send-message/template", `{"contact_id":"`+number+`@c.us","name":"hello","language":"id"}`, as).Expect(http.StatusOK)
	if a.Text("data.status") == "FAILED" {
		t.Errorf("a template: %s", a.Body)
	}
	write := func(text string) {
		t.Helper()
		phone := e.PhoneFor(token, number)
		phone.Types(text)
		phone.Received(text)
	}
	write("hello")
	expect("who wrote", "")
	if end, err := time.Parse(time.RFC3339, until()); err != nil || time.Until(end) < 23*time.Hour || time.Until(end) > 24*time.Hour {
		t.Errorf("the window is open until %s, %v", end, err)
	}
	e.Post("/api/sandbox/clock", `{"advance":86401}`, as).Expect(http.StatusOK)
	expect("a day later", "outside_window")

	// With a template for that, texts go as one; it needs one gap.
	set := func(name string) {
		e.Call("PATCH", "/api/manage/channels/window", `{"settings":{"window":"24h","cloud":{"outside_window":{"template":"`+name+
			`","language":"id"}}}}`, parleytest.As(e.Admin)).Expect(http.StatusOK)
	}
	set("hello")
	expect("a template without a gap", "template")
	e.Post("/api/templates", `{"name":"update","language":"id","body":"Kabar: {{1}}"}`, as).Expect(http.StatusCreated)
	set("update")
	sent := e.Post(sendText, textTo(number), as).Expect(http.StatusOK)
	if status := sent.Text("data.status"); status != "SENT" {
		t.Errorf("a text as a template: %s", sent.Body)
	}
	if a := e.Get("/api/messages/"+sent.Text("data.message_id"), as).Expect(http.StatusOK); a.Text("data.sent_as") != "template" {
		t.Errorf("a text as a template is %s", a.Body)
	}
	if end := until(); end != "" {
		t.Errorf("a day later the window is open until %s", end)
	}
	write("hello again")
	expect("who wrote again", "")
}

func faultRefuse(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("refuse"))
	const number = "6281900000001"
	for _, c := range []struct {
		body   string
		times  int
		reason string
	}{
		{`{"fault":"refuse"}`, 1, ""},
		{`{"fault":"refuse","times":2,"reason":"The account is full."}`, 2, "The account is full."},
		{`{"fault":"refuse","times":1,"reason":"` + strings.Repeat("é", 199) + `."}`, 1, strings.Repeat("é", 199) + "."},
		{`{"fault":"refuse","times":null,"to":null,"type":null,"reason":null}`, 1, ""},
	} {
		order(e, c.body, as)
		for range c.times {
			if status, code, message := try(e, number, as); status != "FAILED" || code != "refused" || c.reason != "" && message != c.reason {
				t.Errorf("%s: %s %s %q", c.body, status, code, message)
			}
		}
		if status, _, _ := try(e, number, as); status != "SENT" {
			t.Errorf("%s: the next one is %s", c.body, status)
		}
	}
	order(e, `{"fault":"refuse","times":1000}`, as)
	if status, _, _ := try(e, number, as); status != "FAILED" {
		t.Errorf("with a thousand refusals: %s", status)
	}
}

// faultMatching checks that a fault befalls only the sends that it was ordered for.
func faultMatching(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("matching"))
	const target, other = "6281900000002", "6281900000003"
	order(e, `{"fault":"refuse","to":"+62 819-0000-0002"}`, as)
	if status, _, _ := try(e, other, as); status != "SENT" {
		t.Errorf("to another number: %s", status)
	}
	if status, _, _ := try(e, target, as); status != "FAILED" {
		t.Errorf("to the number: %s", status)
	}
	order(e, `{"fault":"refuse","type":"location","to":"`+target+`"}`, as)
	if status, _, _ := try(e, target, as); status != "SENT" {
		t.Errorf("of another type: %s", status)
	}
	location := `{"contact_id":"%s@c.us","latitude":"1","longitude":"2"}`
	wantValue(t, e.Post("/api/send-message/location", fmt.Sprintf(location, other), as).Expect(http.StatusOK), "data.status", "SENT")
	wantValue(t, e.Post("/api/send-message/location", fmt.Sprintf(location, target), as).Expect(http.StatusOK), "data.status", "FAILED")
	// They come in the order in which they were ordered.
	order(e, `{"fault":"refuse","reason":"First."}`, as)
	order(e, `{"fault":"refuse","reason":"Second."}`, as)
	for _, want := range []string{"First.", "Second."} {
		if _, _, message := try(e, target, as); message != want {
			t.Errorf("refused with %q, want %q", message, want)
		}
	}
}

// faultOperations checks that operations fail only where they are named.
func faultOperations(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("operations"))
	const number = "6281900000004"
	id := say(e, number, "Hello", as)
	react := func() *parleytest.Response {
		return e.Put("/api/send-message/reaction", `{"message_id":"`+id+`","reaction":"👍"}`, as).Expect(http.StatusOK)
	}
	order(e, `{"fault":"refuse"}`, as)
	wantValue(t, react(), "success", true)
	order(e, `{"fault":"refuse","type":"reaction"}`, as)
	wantValue(t, react(), "success", false)
	wantValue(t, react(), "success", true)
	if status, _, _ := try(e, number, as); status != "FAILED" { // the first one waited for a message
		t.Errorf("the message: %s", status)
	}
	for _, kind := range []string{"text", "image", "video", "file", "voice", "sticker", "location", "poll", "reaction", "seen", "delete",
		"star", "archive"} {
		order(e, `{"fault":"refuse","type":"`+kind+`"}`, as)
	}
}

func faultTwice(t *testing.T, e *parleytest.Env) {
	const number = "6281900000005"
	order(e, `{"fault":"twice","to":"`+number+`"}`)
	id := say(e, number, "once")
	say(e, number, "plainly")
	list := e.Get(phones + "/" + number + "/messages").Expect(http.StatusOK)
	if got := column(list, "body"); !slices.Equal(got, []string{"once", "plainly"}) {
		t.Fatalf("the phone shows %q", got)
	}
	wantValue(t, list, "data.0.message_id", id)
	wantValue(t, list, "data.0.copies", 2.0)
	wantValue(t, list, "data.1.copies", 1.0)
	wantValue(t, e.Get("/api/chat/detail?contact_id="+number+"@c.us"), "meta.total", 2.0)
}

// faultLate orders a late confirmation and returns a check for when it has come.
func faultLate(t *testing.T, e *parleytest.Env) (check func()) {
	t.Helper()
	as := parleytest.As(e.CreateChannel("late"))
	const number = "6281900000006"
	e.Call("PATCH", phones+"/"+number, `{"online":false}`, as).Expect(http.StatusOK) // its receipt would be as good as a confirmation
	order(e, `{"fault":"late"}`, as)
	began := time.Now()
	a := e.Post(sendText, textTo(number), as, parleytest.With("Prefer", "wait=0")).Expect(http.StatusOK)
	wantValue(t, a, "success", true)
	wantValue(t, a, "data.status", "PENDING")
	wantValue(t, e.Get(phones+"/"+number+"/messages?wait=30", as).Expect(http.StatusOK), "data.0.message_id", a.Text("data.message_id"))
	return func() {
		e.Eventually("the confirmation has come", func() bool {
			return e.Get("/api/chat/detail?contact_id="+number+"@c.us", as).Text("data.0.status") == "SENT"
		})
		if took := time.Since(began); took < time.Second {
			t.Errorf("it came after %s", took)
		}
		wantValue(t, e.Get(phones+"/"+number+"/messages", as).Expect(http.StatusOK), "data.0.copies", 1.0)
	}
}

func faultDropSocket(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("drop"))
	const number = "6281900000007"
	order(e, `{"fault":"drop_socket"}`, as)
	a := e.Post(sendText, textTo(number), as, parleytest.With("Prefer", "wait=30")).Expect(http.StatusOK) // waits until it is connected again
	wantValue(t, a, "data.status", "SENT")
	list := e.Get(phones+"/"+number+"/messages", as).Expect(http.StatusOK)
	if list.Count("data") != 1 || list.Number("data.0.copies") < 1 {
		t.Errorf("the phone shows it %d times: %s", list.Count("data"), list.Body)
	}
	e.Eventually("it works again", func() bool { return e.Get("/api/channel/health", as).Text("data.status") == "WORKING" })
}

func faultLogOut(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("logout"))
	const number = "6281900000008"
	order(e, `{"fault":"log_out"}`, as)
	a := e.Post(sendText, textTo(number), as, parleytest.With("Prefer", "wait=1")).Expect(http.StatusOK)
	wantValue(t, a, "data.status", "PENDING")
	e.Eventually("the account is logged out", func() bool { return e.Get("/api/channel/health", as).Text("data.status") == "LOGGED_OUT" })
	e.Post(sendText, textTo(number), as).ExpectError(http.StatusBadRequest, "LOGGED_OUT").ExpectError(http.StatusBadRequest,
		"parley channel pair logout")
	e.Post("/api/manage/channels/logout/pair", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	got := e.Get(phones+"/"+number+"/messages?wait=30", as).Expect(http.StatusOK) // what waited goes out
	wantValue(t, got, "data.0.message_id", a.Text("data.message_id"))
	wantValue(t, got, "data.0.copies", 1.0)
}

func faultReachout(t *testing.T, e *parleytest.Env) {
	token := e.CreateChannel("reachout")
	as := parleytest.As(token)
	const number = "6281900000009"
	const known = "6281900000010"
	phone := e.PhoneFor(token, known)
	phone.Types("Hello")
	phone.Received("Hello")
	order(e, `{"fault":"reachout_limit","times":1,"to":"`+number+`"}`, as)
	if status, code, message := try(e, number, as); status != "FAILED" || code != "restricted" || !strings.Contains(message, "463") {
		t.Errorf("%s %s %q", status, code, message)
	}
	if status, _, _ := try(e, known, as); status != "SENT" {
		t.Errorf("to somebody who wrote: %s", status)
	}
	if status, _, _ := try(e, number, as, parleytest.With("Prefer", "respond-async")); status != "PENDING" {
		t.Errorf("a first message that must wait: %s", status)
	}
}

// faultRestrictions restricts accounts for a chosen time, also after their clock was moved, and without a known end.
func faultRestrictions(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("lengths"))
	waiting := func() (string, *parleytest.Response) {
		a := e.Post(sendText, textTo("6281900000021"), as, parleytest.With("Prefer", "respond-async")).Expect(http.StatusOK)
		return a.Text("data.message_id"), e.Get("/api/messages/"+a.Text("data.message_id"), as).Expect(http.StatusOK)
	}
	e.Post("/api/sandbox/clock", `{"advance":7200}`, as).Expect(http.StatusOK)
	order(e, `{"fault":"reachout_limit","seconds":600}`, as)
	wantValue(t, e.Get(faults, as).Expect(http.StatusOK), "data.0.seconds", 600.0)
	if status, code, _ := try(e, "6281900000020", as); status != "FAILED" || code != "restricted" {
		t.Errorf("the first one is %s %s", status, code)
	}
	id, read := waiting()
	wantValue(t, read, "data.waiting.reason", "restricted")
	if read.Text("data.waiting.until") == "" {
		t.Errorf("no end: %s", read.Body)
	}
	e.Post("/api/sandbox/clock", `{"advance":601}`, as).Expect(http.StatusOK)
	e.Eventually("the restriction is over", func() bool { return e.Get("/api/messages/"+id, as).Text("data.status") != "PENDING" })
	wantValue(t, e.Get("/api/channel/health", as), "data.restricted", nil)

	as = parleytest.As(e.CreateChannel("endless"))
	order(e, `{"fault":"reachout_limit","seconds":0}`, as)
	if status, code, message := try(e, "6281900000020", as); status != "FAILED" || code != "restricted" || strings.Contains(message, "until") {
		t.Errorf("without an end: %s %s %q", status, code, message)
	}
	id, read = waiting()
	wantValue(t, read, "data.waiting.reason", "restricted")
	wantValue(t, read, "data.waiting.until", nil)
	wantValue(t, e.Get("/api/channel/health", as), "data.restricted", true)
	e.Post("/api/sandbox/clock", `{"advance":901}`, as).Expect(http.StatusOK) // one is tried then, and the network takes it
	e.Eventually("one was tried", func() bool { return e.Get("/api/messages/"+id, as).Text("data.status") != "PENDING" })
	e.Eventually("it is not restricted", func() bool { return e.Get("/api/channel/health", as).Value("data.restricted") == nil })
}

// faultPasskey pairs a channel whose account asks for its passkey.
func faultPasskey(t *testing.T, e *parleytest.Env) {
	as, admin := parleytest.As(e.CreateChannel("passkey")), parleytest.As(e.Admin)
	const channel = channels + "/passkey"
	answer := func(challenge string) string {
		data := base64.RawURLEncoding.EncodeToString([]byte(`{"type":"webauthn.get","challenge":"` + challenge + `"}`))
		return `{"assertion":{"id":"a2V5","rawId":"a2V5","type":"public-key","response":{"clientDataJSON":"` + data +
			`","authenticatorData":"AA","signature":"c2lnbmVk"}}}`
	}
	order(e, `{"fault":"passkey"}`, as)
	if status, _, _ := try(e, "6281900000030", as); status != "SENT" { // it is no fault of a send
		t.Errorf("a message is %s", status)
	}
	e.Post(channel+"/logout", "", admin).Expect(http.StatusOK)
	for range 2 { // who begins again is asked again
		wantValue(t, e.Post(channel+"/pair", "", admin).Expect(http.StatusOK), "data.status", "SCAN_QR_CODE")
	}
	step := awaitStep(e, "passkey", "passkey")
	wantKeys(t, step, "data", pairingKeys...)
	if ends, err := time.Parse(time.RFC3339, step.Text("data.passkey.expires_at")); err != nil || time.Until(ends) > 5*time.Minute {
		t.Errorf("it may take until %s: %v", ends, err)
	}
	challenge := step.Text("data.passkey.request.challenge")
	e.Post(channel+"/pairing/passkey", `{"confirmed":true}`, admin).ExpectError(http.StatusBadRequest, "waits for a passkey")
	e.Post(channel+"/pairing/passkey", answer("another"), admin).ExpectError(http.StatusBadRequest, "challenge")
	e.Post(sendText, textTo("6281900000030"), as).Expect(http.StatusBadRequest)
	e.Post(channel+"/pairing/passkey", answer(challenge), admin).Expect(http.StatusOK)
	if code := awaitStep(e, "passkey", "confirm").Text("data.code"); len(code) != 9 {
		t.Errorf("the code is %q", code)
	}
	e.Post(channel+"/pairing/passkey", answer(challenge), admin).Expect(http.StatusBadRequest)
	e.Post(channel+"/pairing/passkey", `{"confirmed":true}`, admin).Expect(http.StatusOK)
	awaitStep(e, "passkey", "paired")
	awaitStatus(e, "passkey", "WORKING")
	e.Post(channel+"/pairing/passkey", `{"confirmed":true}`, admin).Expect(http.StatusBadRequest)
	e.Post(channel+"/logout", "", admin).Expect(http.StatusOK) // the fault is used up
	wantValue(t, e.Post(channel+"/pair", "", admin).Expect(http.StatusOK), "data.status", "WORKING")
}

func faultBad(t *testing.T, e *parleytest.Env) {
	for _, c := range []struct {
		body   string
		fields []string
	}{
		{`{}`, []string{"fault"}},
		{`{"fault":"flood"}`, []string{"fault"}},
		{`{"fault":""}`, []string{"fault"}},
		{`{"fault":1}`, []string{"fault"}},
		{`{"fault":"REFUSE"}`, []string{"fault"}},
		{`{"fault":"refuse","times":0}`, []string{"times"}},
		{`{"fault":"reachout_limit","seconds":-1}`, []string{"seconds"}},
		{`{"fault":"reachout_limit","seconds":31622401}`, []string{"seconds"}},
		{`{"fault":"refuse","times":-1}`, []string{"times"}},
		{`{"fault":"refuse","times":1001}`, []string{"times"}},
		{`{"fault":"refuse","times":1.5}`, []string{"times"}},
		{`{"fault":"refuse","times":"1"}`, []string{"times"}},
		{`{"fault":"refuse","to":"nobody"}`, []string{"to"}},
		{`{"fault":"refuse","to":"1234"}`, []string{"to"}},
		{`{"fault":"refuse","to":6281900000010}`, []string{"to"}},
		{`{"fault":"refuse","to":""}`, []string{"to"}},
		{`{"fault":"refuse","type":"song"}`, []string{"type"}},
		{`{"fault":"refuse","type":""}`, []string{"type"}},
		{`{"fault":"refuse","reason":""}`, []string{"reason"}},
		{`{"fault":"refuse","reason":"` + strings.Repeat("é", 201) + `"}`, []string{"reason"}},
		{`{"fault":[],"times":{},"to":true,"type":1,"reason":2}`, []string{"fault", "times", "to", "type", "reason"}},
		{`{"fault":"flood","times":0,"to":"x","type":"song","reason":""}`, []string{"fault", "times", "to", "type", "reason"}},
	} {
		e.Post(faults, c.body).ExpectFields(c.fields...)
	}
	if status, _, _ := try(e, "6281900000010"); status != "SENT" {
		t.Errorf("something was ordered: %s", status)
	}
}

// faultTooMany checks that the queue of faults has an end.
func faultTooMany(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("many"))
	for range 100 {
		order(e, `{"fault":"refuse"}`, as)
	}
	e.Post(faults, `{"fault":"refuse"}`, as).ExpectFields("fault")
	e.Delete("/api/sandbox", as).Expect(http.StatusOK)
	order(e, `{"fault":"refuse","type":"poll"}`, as)
}

func sandboxClock(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("clock"))
	ahead := func(a *parleytest.Response) time.Duration {
		t.Helper()
		at, err := time.Parse(time.RFC3339, a.Text("data.timestamp"))
		if err != nil || !stampForm.MatchString(a.Text("data.timestamp")) {
			t.Fatalf("%s: timestamp %q", a.Request, a.Text("data.timestamp"))
		}
		return time.Until(at).Round(time.Minute)
	}
	total := time.Duration(0)
	for _, step := range []struct {
		body string
		by   time.Duration
	}{{`{"advance":1}`, time.Second}, {`{"advance":3600}`, time.Hour}, {`{"advance":7200.0}`, 2 * time.Hour}, {`{"advance":31622400}`,
		366 * 24 * time.Hour}} {
		a := e.Post("/api/sandbox/clock", step.body, as).Expect(http.StatusOK)
		wantKeys(t, a, "data", "timestamp")
		total += step.by
		for _, a := range []*parleytest.Response{a, e.Get("/api/channel/health", as).Expect(http.StatusOK),
			e.Post(sendText, textTo("6281900000011"), as).Expect(http.StatusOK)} {
			if got := ahead(a); (got - total).Abs() > time.Minute {
				t.Errorf("%s after %s: %s ahead, want %s", a.Request, step.body, got, total)
			}
		}
	}
	e.Delete("/api/sandbox", as).Expect(http.StatusOK)
	if got := ahead(e.Get("/api/channel/health", as)); got != 0 {
		t.Errorf("after a reset: %s ahead", got)
	}
}

func sandboxBadClock(t *testing.T, e *parleytest.Env) {
	for _, value := range []string{`0`, `-1`, `31622401`, `1.5`, `"60"`, `null`, `true`, `[]`, `{}`, `1e300`} {
		e.Post("/api/sandbox/clock", `{"advance":`+value+`}`).ExpectFields("advance")
	}
	e.Post("/api/sandbox/clock", `{}`).ExpectFields("advance")
	e.Post("/api/sandbox/clock", "").Expect(http.StatusBadRequest)
	wantRecent(t, e.Get("/api/channel/health"), "data.timestamp")
}

// sandboxExpiry lets a message that waits run out of time, without waiting.
func sandboxExpiry(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("expiry"))
	const number = "6281900000012"
	order(e, `{"fault":"log_out"}`, as)
	sent := e.Post(sendText, textTo(number), as, parleytest.With("Prefer", "respond-async")).Expect(http.StatusOK)
	e.Eventually("nothing can be sent", func() bool { return e.Get("/api/channel/health", as).Text("data.status") == "LOGGED_OUT" })
	record := func() *parleytest.Response {
		return e.Get("/api/chat/detail?contact_id="+number+"@c.us", as).Expect(http.StatusOK)
	}
	e.Post("/api/sandbox/clock", `{"advance":86000}`, as).Expect(http.StatusOK)
	wantValue(t, record(), "data.0.status", "PENDING") // a day is not over
	e.Post("/api/sandbox/clock", `{"advance":500}`, as).Expect(http.StatusOK)
	e.Eventually("it has expired", func() bool { return record().Text("data.0.status") == "FAILED" })
	wantValue(t, record(), "data.0.error.code", "expired")
	e.Post("/api/manage/channels/expiry/pair", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	e.Eventually("it works again", func() bool { return e.Get("/api/channel/health", as).Text("data.status") == "WORKING" })
	later := say(e, number, "later", as)
	list := e.Get(phones+"/"+number+"/messages", as).Expect(http.StatusOK)
	if got := column(list, "message_id"); !slices.Equal(got, []string{later}) {
		t.Errorf("the phone got %q, want only %s and not %s", got, later, sent.Text("data.message_id"))
	}
}

// sandboxReset checks that a reset forgets all.
func sandboxReset(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("reset"))
	const number = "6281900000013"
	own := e.Get("/api/channel/health", as).Value("data.phone.number")
	say(e, number, "before", as)
	e.Post(phones, `{"name":"Hana"}`, as).Expect(http.StatusOK)
	e.Call("PATCH", phones+"/6281234567890", `{"name":"Renamed","blocks":true}`, as).Expect(http.StatusOK)
	e.Post("/api/groups/create", `{"name":"Club","participants":[{"id":"`+number+`@c.us"}]}`, as).Expect(http.StatusOK)
	order(e, `{"fault":"refuse","times":1000}`, as)
	e.Post("/api/manage/channels/reset/logout", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	cursor := cursorNow(e, as)

	a := e.Delete("/api/sandbox", as).Expect(http.StatusOK)
	wantKeys(t, a, "", "success", "message", "data")
	wantKeys(t, a, "data")
	wantValue(t, e.Get("/api/channel/health", as), "data.status", "WORKING") // it is paired again
	if chats := e.Get("/api/chat", as).Expect(http.StatusOK); chats.Count("data") != 0 {
		t.Errorf("chats are remembered: %s", chats.Body)
	}
	if history := e.Get("/api/chat/detail?contact_id="+number+"@c.us", as).Expect(http.StatusOK); history.Number("meta.total") != 0 {
		t.Errorf("messages are remembered: %s", history.Body)
	}
	wantValue(t, e.Get("/api/channel/health", as), "data.phone.number", own)
	list := e.Get(phones, as).Expect(http.StatusOK)
	if got := column(list, "name"); !slices.Equal(got, []string{"Ayu", "Budi"}) {
		t.Errorf("the phones are %q", got)
	}
	wantValue(t, list, "data.0.blocks", false)
	if got := column(e.Get("/api/groups", as).Expect(http.StatusOK), "name"); len(got) != 1 || got[0] == "Club" {
		t.Errorf("the groups are %q", got)
	}
	if got := e.Get(phones+"/"+number+"/messages", as).Expect(http.StatusOK).Count("data"); got != 0 {
		t.Errorf("%d messages are remembered", got)
	}
	// The faults are gone, and a cursor from before is still one.
	after := say(e, number, "after", as)
	got := e.Get(phones+"/"+number+"/messages?wait=10&after="+cursor, as).Expect(http.StatusOK)
	wantValue(t, got, "data.0.message_id", after)
	e.Delete("/api/sandbox", as).Expect(http.StatusOK) // twice is no error
}
