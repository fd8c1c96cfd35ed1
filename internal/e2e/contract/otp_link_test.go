package contract_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/parleytest"
)

const (
	linkPath   = "/api/otp/link/request"
	globalPath = "/api/otp/link/global"
)

// madeLink is a login link as its caller knows it.
type madeLink struct{ id, code, link, appURI, prompt string }

// toLink reads the answer to the making of a link.
func toLink(a *parleytest.Response) madeLink {
	a.T.Helper()
	a.Expect(http.StatusOK)
	l := madeLink{id: a.Text("data.id"), code: a.Text("data.code"), link: a.Text("data.link"), appURI: a.Text("data.app_uri")}
	u, err := url.Parse(l.appURI)
	if err != nil {
		a.T.Fatal(err)
	}
	l.prompt = u.Query().Get("text")
	return l
}

// linkFor makes a link for a number, with more fields if wanted.
func linkFor(e *parleytest.Env, number string, more ...string) madeLink {
	e.T.Helper()
	fields := append([]string{`"contact_id":"` + number + `@c.us"`, `"expires":300`}, more...)
	return toLink(e.Post(linkPath, "{"+strings.Join(fields, ",")+"}"))
}

const linkCallback = `"callback":{"success":"http://127.0.0.1:9/ok?a=1","failed":"http://127.0.0.1:9/no"}`

// awaitLink waits until a link has a status, and returns the response.
func awaitLink(e *parleytest.Env, id, status string) (a *parleytest.Response) {
	e.T.Helper()
	e.Eventually("link is "+status, func() bool {
		a = e.Get("/api/otp/link/" + id).Expect(http.StatusOK)
		return a.Text("data.status") == status
	})
	return a
}

// otpEvents lists the events of one-time passwords as "type reason", oldest first, and the callbacks
// as "type URL".
func otpEvents(t *testing.T, e *parleytest.Env) (events, callbacks []string) {
	t.Helper()
	store := besides(t, e).Store
	page, _, err := store.Events(t.Context(), 0, parley.EventFilter{Types: []parley.EventType{parley.OTPApproved, parley.OTPFailed,
		parley.OTPExpired}}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range page {
		reason, _, _ := strings.Cut(string(event.Data)[strings.Index(string(event.Data), `"contact_id"`):], "}")
		_, reason, _ = strings.Cut(reason, `"reason":`)
		events = append(events, strings.TrimSpace(string(event.Type)+" "+strings.Trim(reason, `"`)))
	}
	deliveries, _, err := store.Deliveries(t.Context(), parley.DeliveryQuery{}, parley.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range deliveries {
		callbacks = append(callbacks, string(d.Type)+" "+d.URL)
	}
	return events, callbacks
}

func wantList(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s are %q, want %q", what, got, want)
	}
}

func TestContractLinkShape(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	a := e.Post(linkPath, `{"contact_id":"6281234567890@s.us","expires":300.0,"name":"Toko Ayu","unknown":1}`).Expect(http.StatusOK)
	wantKeys(t, a, "", "success", "message", "data")
	wantKeys(t, a, "data", "id", "code", "contact_id", "link", "app_uri", "expired_at", "timestamp")
	wantValue(t, a, "success", true)
	wantValue(t, a, "data.contact_id", "6281234567890@c.us")
	made := wantRecent(t, a, "data.timestamp")
	ends, _ := time.Parse(time.RFC3339, a.Text("data.expired_at"))
	if ends.Sub(made) != 5*time.Minute {
		t.Errorf("it lives for %s", ends.Sub(made))
	}
	if code := a.Text("data.code"); !regexp.MustCompile(`^[2-9A-HJKMNP-Z]{13}$`).MatchString(code) {
		t.Errorf("the code is %q", code)
	}
	l := toLink(a)
	want := "Log me in to Toko Ayu. My code is " + l.code + ". If you did not start this, do not send."
	if l.prompt != want {
		t.Errorf("the prompt is %q, want %q", l.prompt, want)
	}
	number := e.Get("/api/channel/health").Number("data.phone.number")
	if !strings.HasPrefix(fmt.Sprint(number), "999") || !strings.HasPrefix(l.appURI,
		fmt.Sprintf("whatsapp://send?phone=%d&text=Log%%20me%%20in%%20to%%20Toko%%20Ayu.%%20My", number)) {
		t.Errorf("the app's address is %q; the channel has number %d", l.appURI, number)
	}
	u, err := url.Parse(l.link)
	if err != nil || u.Scheme+"://"+u.Host+u.Path != e.URL+"/phone/6281234567890" || u.Query().Get("to") != "demo" || u.Query().
		Get("text") != want ||
		!strings.HasPrefix(u.Fragment, "ticket=otl_") {
		t.Errorf("the link is %q, %v", l.link, err)
	}
	if linkFor(e, "6281234567890").code == l.code {
		t.Error("two links have one code")
	}
	if p := linkFor(e, "6281234567890").prompt; !strings.Contains(p, "Demo") {
		t.Errorf("without a name the prompt is %q, want the channel's name in it", p)
	}
}

func TestContractLinkFields(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	const contact = `"contact_id":"6281234567890@c.us"`
	texts := func(prompt, success, failed, expired string) string {
		return fmt.Sprintf(`{%s,"expires":300,"message":{"prompt":%s,"success":%s,"failed":%s,"expired":%s}}`, contact, prompt, success, failed,
			expired)
	}
	for _, c := range []struct {
		body   string
		fields []string
	}{
		{`{}`, []string{"contact_id", "expires"}},
		{`{"contact_id":null,"expires":null}`, []string{"contact_id", "expires"}},
		{`{"contact_id":"6281","expires":59}`, []string{"contact_id", "expires"}},
		{`{"contact_id":"120363020000000001@g.us","expires":86401}`, []string{"contact_id", "expires"}},
		{`{` + contact + `,"expires":60.5}`, []string{"expires"}},
		{`{` + contact + `,"expires":"300"}`, []string{"expires"}},
		{`{` + contact + `,"expires":-1}`, []string{"expires"}},
		{`{` + contact + `,"expires":1e99}`, []string{"expires"}},
		{`{` + contact + `,"expires":300,"name":""}`, []string{"name"}},
		{`{` + contact + `,"expires":300,"name":"` + strings.Repeat("é", 61) + `"}`, []string{"name"}},
		{`{` + contact + `,"expires":300,"name":7}`, []string{"name"}},
		{`{` + contact + `,"expires":300,"name":"a\nb"}`, []string{"name"}},
		{`{` + contact + `,"expires":300,"name":"a\u202eb"}`, []string{"name"}},
		{`{` + contact + `,"expires":300,"message":"hi"}`, []string{"message"}},
		{`{` + contact + `,"expires":300,"message":[]}`, []string{"message"}},
		{`{` + contact + `,"expires":300,"message":{}}`, []string{"message.prompt", "message.success", "message.failed", "message.expired"}},
		{`{` + contact + `,"expires":300,"message":{"prompt":"p","success":"s","failed":"f"}}`, []string{"message.expired"}},
		{texts(`""`, `1`, `null`, `[]`), []string{"message.prompt", "message.success", "message.failed", "message.expired"}},
		{texts(quoted(strings.Repeat("é", 1025)), `"s"`, `"f"`, `"e"`), []string{"message.prompt"}},
		{texts(`"p"`, `"a\u0007"`, `"\u202d"`, `"\u2066e"`), []string{"message.success", "message.failed", "message.expired"}},
		{`{` + contact + `,"expires":300,"callback":"http://a.example"}`, []string{"callback"}},
		{`{` + contact + `,"expires":300,"callback":{}}`, []string{"callback.success", "callback.failed"}},
		{`{` + contact + `,"expires":300,"callback":{"success":"http://a.example"}}`, []string{"callback.failed"}},
		{`{` + contact + `,"expires":300,"callback":{"success":"ftp://a.example","failed":"/no"}}`, []string{"callback.success",
			"callback.failed"}},
		{`{` + contact + `,"expires":300,"callback":{"success":"http://u:p@a.example","failed":"http://a.example/` + strings.Repeat("x", 2040) +
			`"}}`,
			[]string{"callback.success", "callback.failed"}},
	} {
		e.Post(linkPath, c.body).ExpectFields(c.fields...)
		e.Post(globalPath, c.body, parleytest.As(e.Global)).ExpectFields(c.fields...)
	}
	for _, body := range []string{
		`{` + contact + `,"expires":60}`, `{` + contact + `,"expires":86400}`,
		`{` + contact + `,"expires":6e2,"name":null,"message":null,"callback":null}`,
		`{` + contact + `,"expires":300,"name":"` + strings.Repeat("é", 60) + `"}`,
		`{` + contact + `,"expires":300,"name":"` + strings.Repeat("a", 44) + `"}`,
		`{` + contact + `,"expires":300,"name":"` + strings.Repeat("a", 60) + `"}`,
		`{` + contact + `,"expires":300,"name":"Booking.com"}`,
		texts(quoted(strings.Repeat("Z", 1015)+" ##code##"), `"s"`, `"f"`, `"e"`),
		texts(quoted(strings.Repeat("A", 1016)+"##code##"), `"s"`, `"f"`, `"e"`),
		texts(`"abc##code##def"`, `"s"`, `"f"`, `"e"`),
		texts(quoted(strings.Repeat("é", 1024)), `"a\nb\tc"`, `"👍🏽 ##name##"`, `"##code##"`),
		`{` + contact + `,"expires":300,` + linkCallback + `}`,
	} {
		e.Post(linkPath, body).Expect(http.StatusOK)
		e.Post(globalPath, body, parleytest.As(e.Global)).Expect(http.StatusOK)
	}
	e.Post(linkPath, `[]`).Expect(http.StatusBadRequest)
	e.Get(linkPath).Expect(http.StatusMethodNotAllowed)
}

func TestContractLinkTexts(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	const own = `"name":"A & B","message":{"prompt":"Masuk ##name## + 100% #1\n«ya»","success":"Hai ##name##, ##code##!",` +
		`"failed":"Gagal ##name##","expired":"Basi"}`
	l := linkFor(e, "6281300000001", own)
	if want := "Masuk A & B + 100% #1\n«ya» " + l.code; l.prompt != want {
		t.Errorf("the prompt is %q, want %q", l.prompt, want)
	}
	phone := e.Phone("6281300000001")
	phone.Types("edited " + l.code)
	phone.Expect("Gagal A & B")
	phone.Types(l.prompt)
	phone.Expect("Hai A & B, " + l.code + "!")
	history := e.Get("/api/chat/detail?contact_id=" + phone.Contact())
	if strings.Contains(string(history.Body), l.code) {
		t.Errorf("history holds the code: %s", history.Body)
	}
	wantValue(t, history, "data.0.body", "Hai A & B, ••••••••!")
}

func TestContractLinkFlow(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	phone, other := e.Phone("6281234567890"), e.Phone("6289876543210")
	l := linkFor(e, "6281234567890", linkCallback)
	a := e.Get("/api/otp/link/" + l.id).Expect(http.StatusOK)
	wantKeys(t, a, "data", "id", "channel", "contact_id", "name", "status", "tries", "tries_by_others", "expired_at", "ended_at", "timestamp")
	wantValue(t, a, "data.status", "PENDING")
	wantValue(t, a, "data.ended_at", nil)

	other.Types(l.prompt)
	other.Expect("did not log you in")
	phone.Types("I send " + l.code)
	phone.Expect("did not log you in")
	a = e.Get("/api/otp/link/" + l.id)
	wantValue(t, a, "data.status", "PENDING")
	wantValue(t, a, "data.tries", 1.0)
	wantValue(t, a, "data.tries_by_others", 1.0)

	phone.Types(strings.ToLower(l.prompt))
	phone.Expect("You are logged in to Demo")
	a = e.Get("/api/otp/link/" + l.id)
	wantValue(t, a, "data.status", "APPROVED")
	wantRecent(t, a, "data.ended_at")
	phone.Types(l.prompt) // used
	e.Eventually("a second answer that it failed", func() bool { return len(phone.Messages()) == 3 })

	events, callbacks := otpEvents(t, e)
	wantList(t, "events", events, "otp.failed wrong_sender", "otp.failed edited_prompt", "otp.approved")
	wantList(t, "callbacks", callbacks, "otp.approved http://127.0.0.1:9/ok?a=1", "otp.failed http://127.0.0.1:9/no",
		"otp.failed http://127.0.0.1:9/no")
	if strings.Contains(string(e.Get("/api/chat/detail?contact_id="+phone.Contact()).Body), l.code) {
		t.Error("history holds the code")
	}
	if e.Log.Contains(l.code) || e.Log.Contains("6281234567890") {
		t.Error("the log holds the code or the number")
	}
	wantNowhere(t, e, l.code)
}

// wantNowhere looks for a text in everything that the gateway keeps. What the sandbox network keeps is
// what phones have.
func wantNowhere(t *testing.T, e *parleytest.Env, text string) {
	t.Helper()
	looked := 0
	err := filepath.Walk(string(e.Data), func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() || strings.Contains(filepath.Base(path), "sandbox") {
			return err
		}
		looked++
		data, err := os.ReadFile(path)
		if strings.Contains(strings.ToUpper(string(data)), strings.ToUpper(text)) {
			t.Errorf("%s holds %s", path, text)
		}
		return err
	})
	if err != nil || looked < 3 {
		t.Errorf("%d files looked at: %v", looked, err)
	}
}

func TestContractLinkExpires(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	phone := e.Phone("6281300000002")
	l := linkFor(e, "6281300000002", linkCallback)
	e.Post("/api/sandbox/clock", `{"advance":299}`)
	wantValue(t, e.Get("/api/otp/link/"+l.id), "data.status", "PENDING")
	e.Post("/api/sandbox/clock", `{"advance":1}`)
	a := e.Get("/api/otp/link/" + l.id)
	wantValue(t, a, "data.status", "EXPIRED")
	wantValue(t, a, "data.ended_at", a.Text("data.expired_at"))
	for range 6 {
		phone.Types(l.prompt)
	}
	phone.Expect("has expired")
	e.Eventually("all six are kept", func() bool {
		return e.Get("/api/chat/detail?contact_id="+phone.Contact()).Number("meta.total") == 6+3
	})
	events, callbacks := otpEvents(t, e)
	wantList(t, "events", events, "otp.expired")
	wantList(t, "callbacks", callbacks)
	if got := len(phone.Messages()); got != 3 {
		t.Errorf("%d answers in ten minutes, want 3", got)
	}
	e.Post("/api/sandbox/clock", `{"advance":601}`)
	phone.Types(l.prompt)
	e.Eventually("a fourth answer", func() bool { return len(phone.Messages()) == 4 })
}

func TestContractLinkEnds(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	phone := e.Phone("6281300000003")
	first := linkFor(e, "6281300000003")
	elsewhere := linkFor(e, "6281300000004")
	second := linkFor(e, "6281300000003")
	wantValue(t, e.Get("/api/otp/link/"+first.id), "data.status", "INVALID")
	wantValue(t, e.Get("/api/otp/link/"+elsewhere.id), "data.status", "PENDING")
	phone.Types(first.prompt)
	phone.Expect("did not log you in")
	wantValue(t, e.Get("/api/otp/link/"+second.id), "data.status", "PENDING")
	for i := range 5 {
		phone.Types(fmt.Sprintf("try %d of %s", i, second.code))
	}
	wantValue(t, awaitLink(e, second.id, "LOCKED"), "data.tries", 5.0)
	phone.Types(second.prompt)
	phone.Received(strings.ReplaceAll(second.prompt, second.code, "••••••••"))
	wantValue(t, e.Get("/api/otp/link/"+second.id), "data.status", "LOCKED")
	events, _ := otpEvents(t, e)
	if len(events) != 5 {
		t.Errorf("events are %q, want five failures", events)
	}
}

func TestContractLinkOfAPhoneKnownByLID(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	phone := e.Phone("6281300000005")
	phone.Becomes(`{"lid_only":true}`)
	l := linkFor(e, "6281300000005")
	phone.Types(l.prompt)
	awaitLink(e, l.id, "APPROVED")
}

// TestContractHiddenNumber has a phone that hides its number fail to log in, chat, and become one contact with its number.
func TestContractHiddenNumber(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	const number = "6281300000007"
	phone := e.Phone(number)
	phone.Becomes(`{"number_hidden":true}`)
	hidden := e.Get(phones).Expect(http.StatusOK).Text("data.2.contact_id")
	if !parley.ContactID(hidden).IsHidden() {
		t.Fatalf("the phone is %q", hidden)
	}
	l := linkFor(e, number)
	phone.Types(l.prompt)
	phone.Expect("did not log you in")
	if events, _ := otpEvents(t, e); len(events) != 1 || !strings.Contains(events[0], "number_hidden") {
		t.Errorf("events are %q", events)
	}
	info := e.Get("/api/contact/info?contact_id=" + hidden).Expect(http.StatusOK)
	wantValue(t, info, "data.number", nil)
	if info.Text("data.username") == "" {
		t.Error("it has no username")
	}
	sent := e.Post(sendText, `{"contact_id":"`+hidden+`","message":"who are you?"}`).Expect(http.StatusOK)
	wantValue(t, sent, "data.status", "SENT")
	phone.Expect("who are you?")

	phone.Becomes(`{"number_hidden":false}`)
	e.Eventually("number is known", func() bool {
		return e.Get("/api/contact/info?contact_id="+hidden).Expect(http.StatusOK).Text("data.number") == number
	})
	for _, id := range []string{hidden, number + "@c.us"} {
		wantValue(t, e.Get("/api/chat/detail?contact_id="+id).Expect(http.StatusOK), "data.0.body", "who are you?")
	}
	phone.Types("it was me")
	if id := phone.Received("it was me"); !strings.HasPrefix(id, "false_"+number+"@c.us_") {
		t.Errorf("the message is %s", id)
	}
}

// TestContractLinkTappedAtOnce has 200 thumbs on one link.
func TestContractLinkTappedAtOnce(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	l := linkFor(e, "6281300000006", linkCallback)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			a, err := e.TryCall("POST", "/api/sandbox/phones/6281300000006/open", `{"link":`+quoted(l.link)+`}`)
			if err != nil || a.Status != http.StatusOK {
				t.Errorf("tap: %v, %+v", err, a)
			}
		})
	}
	wg.Wait()
	phone := e.Phone("6281300000006")
	e.Eventually("all are kept", func() bool {
		return e.Get("/api/chat/detail?contact_id="+phone.Contact()).Number("meta.total") == 200+3
	})
	events, callbacks := otpEvents(t, e)
	wantList(t, "events", events, "otp.approved")
	wantList(t, "callbacks", callbacks, "otp.approved http://127.0.0.1:9/ok?a=1")
	if got := len(phone.Messages()); got != 3 {
		t.Errorf("the phone got %d answers, want 3", got)
	}
}

func TestContractLinkState(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	second := e.CreateChannel("second")
	l := linkFor(e, "6281300000007")
	path := "/api/otp/link/" + l.id
	for _, good := range [][]parleytest.Option{
		{}, {parleytest.On("demo")}, {parleytest.As(e.Global)}, {parleytest.As(e.Global), parleytest.On("second")},
		{parleytest.As(e.CreateToken("channel", "demo"))}, {parleytest.As(e.CreateToken("global", ""))},
	} {
		a := e.Get(path, good...).Expect(http.StatusOK)
		wantValue(t, a, "data.id", l.id)
		wantValue(t, a, "data.channel", "demo")
		if strings.Contains(string(a.Body), l.code) {
			t.Errorf("the state holds the code: %s", a.Body)
		}
	}
	e.Get(path, parleytest.As(second)).ExpectError(http.StatusNotFound, "does not exist")
	e.Get(path, parleytest.As(e.Admin)).Expect(http.StatusForbidden)
	e.Get(path, parleytest.As("")).Expect(http.StatusUnauthorized)
	e.Get(path, parleytest.On("second")).Expect(http.StatusForbidden)
	e.Get(path, parleytest.As(e.Global), parleytest.On("nobody")).Expect(http.StatusBadRequest)
	for _, none := range []string{"otl_000000000000000000000000", "otc_1", "x", l.code} {
		e.Get("/api/otp/link/" + none).Expect(http.StatusNotFound)
	}
	e.Post(path, `{}`).Expect(http.StatusMethodNotAllowed)
	e.Restart()
	wantValue(t, e.Get(path), "data.status", "PENDING")
}

func TestContractGlobalLink(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	e.CreateChannel("second")
	const body = `{"contact_id":"6281300000008@c.us","expires":300}`
	e.Post(globalPath, body).ExpectError(http.StatusForbidden, "Global")
	e.Post(globalPath, body, parleytest.As(e.Admin)).Expect(http.StatusForbidden)
	channelOf := func(a *parleytest.Response) string {
		return e.Get("/api/otp/link/"+toLink(a).id, parleytest.As(e.Global)).Text("data.channel")
	}
	chosen := map[string]int{}
	for range 60 {
		chosen[channelOf(e.Post(globalPath, body, parleytest.As(e.Global)))]++
	}
	if len(chosen) != 2 || chosen["demo"] < 10 || chosen["second"] < 10 { // once in a million by chance
		t.Errorf("of two channels they were made on %v", chosen)
	}
	for range 10 {
		if got := channelOf(e.Post(globalPath, body, parleytest.As(e.Global), parleytest.On("second"))); got != "second" {
			t.Errorf("pinned to second, made on %s", got)
		}
	}
	e.Post(globalPath, body, parleytest.As(e.Global), parleytest.On("nobody")).ExpectError(http.StatusBadRequest, "X-Channel")

	e.Post("/api/manage/channels/second/stop", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	e.Post(globalPath, body, parleytest.As(e.Global), parleytest.On("second")).ExpectError(http.StatusBadRequest, "STOPPED")
	for range 10 {
		if got := channelOf(e.Post(globalPath, body, parleytest.As(e.Global))); got != "demo" {
			t.Errorf("made on %s, which does not work", got)
		}
	}
	e.Post("/api/manage/channels/demo/stop", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	e.Post(globalPath, body, parleytest.As(e.Global)).ExpectError(http.StatusBadRequest, "WORKING")
	e.Post(linkPath, body).ExpectError(http.StatusBadRequest, "STOPPED")
}

func TestContractLinkAllowList(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	e.Call("PATCH", "/api/manage/channels/demo", `{"settings":{"allow_only":["6281300000009@c.us"]}}`, parleytest.As(e.Admin)).
		Expect(http.StatusOK)
	l := linkFor(e, "6281300000009")
	const stranger = `{"contact_id":"6281300000010@c.us","expires":300}`
	e.Post(linkPath, stranger).ExpectError(http.StatusForbidden, "parley channel allow")
	e.Post(globalPath, stranger, parleytest.As(e.Global)).ExpectError(http.StatusForbidden, "parley channel allow")
	e.Phone("6281300000010").Types(l.prompt)
	e.Eventually("the try is counted", func() bool { return e.Get("/api/otp/link/"+l.id).Number("data.tries_by_others") == 1 })
	if got := e.Phone("6281300000010").Messages(); len(got) != 0 {
		t.Errorf("somebody who is not on the allow-list was answered %+v", got)
	}
}

func TestContractLinkIdempotency(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	e.CreateChannel("second")
	for _, path := range []string{linkPath, globalPath} {
		key := []parleytest.Option{parleytest.With("Idempotency-Key", "k-"+path)}
		if path == globalPath {
			key = append(key, parleytest.As(e.Global))
		}
		const body = `{"contact_id":"6281300000011@c.us","expires":300}`
		answers := make([]*parleytest.Response, 20)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i], _ = e.TryCall("POST", path, body, key...) })
		}
		wg.Wait()
		replayed := 0
		for _, a := range answers {
			a.Expect(http.StatusOK)
			if string(a.Body) != string(answers[0].Body) {
				t.Errorf("two answers to one key: %s and %s", a.Body, answers[0].Body)
			}
			if a.Header.Get("Idempotent-Replayed") == "true" {
				replayed++
			}
		}
		if replayed != len(answers)-1 {
			t.Errorf("%d of %d answers are replayed", replayed, len(answers))
		}
		l := toLink(answers[0])
		e.Restart() // what is kept is enough
		again := e.Post(path, body, key...).Expect(http.StatusOK)
		if string(again.Body) != string(answers[0].Body) || again.Header.Get("Content-Type") != "application/json" {
			t.Errorf("after a restart: %s, want %s", again.Body, answers[0].Body)
		}
		e.Post(path, `{"contact_id":"6281300000011@c.us","expires":301}`, key...).ExpectFields("Idempotency-Key")
		e.Post(path, `{"contact_id":"6281300000011@c.us","expires":1}`, append(key, parleytest.With("Idempotency-Key", "bad"))...).
			ExpectFields("expires")
		wantNowhere(t, e, l.code)
	}
}
