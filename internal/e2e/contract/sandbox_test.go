package contract_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/parleytest"
)

const phones = "/api/sandbox/phones"

var phoneKeys = []string{"number", "contact_id", "name", "online", "reads", "delay_ms", "blocks", "on_network", "lid_only",
	"number_hidden", "disappearing_seconds"}

// TestSandboxPhones holds the phones of the sandbox to the contract.
func TestSandboxPhones(t *testing.T) {
	e := parleytest.Start(t)
	for name, test := range map[string]func(*testing.T, *parleytest.Env){
		"cursor":        sandboxCursor,
		"owner":         sandboxOwner,
		"phones":        sandboxPhones,
		"bad phones":    sandboxBadPhones,
		"magic numbers": sandboxMagic,
		"changes":       sandboxChanges,
		"bad changes":   sandboxBadChanges,
		"behaviours":    sandboxBehaviours,
		"two channels":  sandboxApart,
	} {
		t.Run(name, func(t *testing.T) { test(t, within(t, e)) })
	}
}

func cursorNow(e *parleytest.Env, options ...parleytest.Option) string {
	e.T.Helper()
	return e.Get("/api/sandbox/cursor", options...).Expect(http.StatusOK).Text("data.cursor")
}

// say sends a text and returns its full id.
func say(e *parleytest.Env, number, text string, options ...parleytest.Option) (messageID string) {
	e.T.Helper()
	body := fmt.Sprintf(`{"contact_id":"%s@c.us","message":%s,"linkPreview":false}`, number, quoted(text))
	return e.Post(sendText, body, options...).Expect(http.StatusOK).Text("data.message_id")
}

func sandboxCursor(t *testing.T, e *parleytest.Env) {
	const number = "6281700000001"
	form := regexp.MustCompile(`^[A-Za-z0-9_.~-]+$`)
	say(e, number, "before")
	a := e.Get("/api/sandbox/cursor").Expect(http.StatusOK)
	wantKeys(t, a, "data", "cursor")
	cursor := a.Text("data.cursor")
	if !form.MatchString(cursor) || url.QueryEscape(cursor) != cursor {
		t.Errorf("the cursor %q is not fit for an address", cursor)
	}
	say(e, number, "after")
	got := e.Get(phones + "/" + number + "/messages?after=" + cursor).Expect(http.StatusOK)
	if bodies := column(got, "body"); !slices.Equal(bodies, []string{"after"}) {
		t.Errorf("after the cursor: %q", bodies)
	}
}

func sandboxPhones(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("phones"))
	a := e.Get(phones, as).Expect(http.StatusOK)
	if got := column(a, "number"); len(got) != 2 {
		t.Fatalf("a new channel has the phones %q, want two", got)
	}
	for i := range 2 {
		row := fmt.Sprintf("data.%d", i)
		wantKeys(t, a, row, phoneKeys...)
		wantValue(t, a, row+".contact_id", a.Text(row+".number")+"@c.us")
		if a.Text(row+".name") == "" {
			t.Errorf("a first phone has no name, so it is no contact: %s", a.Body)
		}
		wantValue(t, a, row+".online", true)
		wantValue(t, a, row+".reads", "when_open")
		wantValue(t, a, row+".delay_ms", 0.0)
		wantValue(t, a, row+".blocks", false)
		wantValue(t, a, row+".on_network", true)
		wantValue(t, a, row+".lid_only", false)
	}
	contacts := e.Get("/api/contact", as).Expect(http.StatusOK)
	if got, want := column(contacts, "number"), column(a, "number"); !slices.Equal(got, want) {
		t.Errorf("the contacts are %q, want the two phones %q", got, want)
	}
	group := e.Get("/api/groups", as).Expect(http.StatusOK)
	wantValue(t, group, "meta.total", 1.0)
	members := column(e.Get("/api/groups/participants?group_id="+group.Text("data.0.id"), as).Expect(http.StatusOK), "id")
	for _, id := range column(a, "contact_id") {
		if !slices.Contains(members, id) {
			t.Errorf("%s is not in the group: %q", id, members)
		}
	}

	free := map[string]bool{}
	for _, body := range []string{"", `{}`, `{"name":"Free"}`, `{"number":null}`} {
		made := e.Post(phones, body, as).Expect(http.StatusOK)
		wantKeys(t, made, "data", phoneKeys...)
		number := made.Text("data.number")
		if free[number] || !regexp.MustCompile(`^[1-9]\d{7,14}$`).MatchString(number) || strings.HasPrefix(number, "999") {
			t.Errorf("%q gave the number %q", body, number)
		}
		free[number] = true
		wantValue(t, made, "data.contact_id", number+"@c.us")
	}
	longest := strings.Repeat("名", 100)
	for body, want := range map[string][2]string{
		`{"number":"6281700000002","name":"Eka"}`:               {"6281700000002", "Eka"},
		`{"number":"+62 817-0000.0003"}`:                        {"6281700000003", ""},
		`{"number":"12345","name":"x"}`:                         {"12345", "x"},
		`{"number":"` + strings.Repeat("2", 45) + `"}`:          {strings.Repeat("2", 45), ""},
		`{"number":"6281700000004","name":"` + longest + `"}`:   {"6281700000004", longest},
		`{"number":"6281700000005","name":null,"colour":"red"}`: {"6281700000005", ""},
		`{"number":"6281700000007","name":" \t "}`:              {"6281700000007", ""}, // blanks are no name
		`{"number":"6281700000008","name":" Fitri "}`:           {"6281700000008", "Fitri"},
	} {
		made := e.Post(phones, body, as).Expect(http.StatusOK)
		wantValue(t, made, "data.number", want[0])
		wantValue(t, made, "data.name", want[1])
	}
	// One that is there is kept, and renamed where a name is given.
	e.Call("PATCH", phones+"/6281700000002", `{"reads":"never"}`, as).Expect(http.StatusOK)
	wantValue(t, e.Post(phones, `{"number":"6281700000002"}`, as).Expect(http.StatusOK), "data.name", "Eka")
	again := e.Post(phones, `{"number":"6281700000002","name":"Eka S."}`, as).Expect(http.StatusOK)
	wantValue(t, again, "data.name", "Eka S.")
	wantValue(t, again, "data.reads", "never")
	blank := e.Call("PATCH", phones+"/6281700000002", `{"name":"   "}`, as).Expect(http.StatusOK)
	wantValue(t, blank, "data.name", "")
	// Writing to any number makes it a phone.
	say(e, "6281700000006", "Hello", as)
	list := e.Get(phones, as).Expect(http.StatusOK)
	rowWhere(list, "number", "6281700000006")
	if got := slices.Index(column(list, "number"), "6281700000002"); got < 0 || slices.Contains(column(list, "number")[got+1:],
		"6281700000002") {
		t.Errorf("6281700000002 is not there once: %q", column(list, "number"))
	}
}

func sandboxBadPhones(t *testing.T, e *parleytest.Env) {
	before := e.Get(phones).Count("data")
	for _, c := range []struct {
		body   string
		fields []string
	}{
		{`{"number":6281700000007}`, []string{"number"}},
		{`{"number":""}`, []string{"number"}},
		{`{"number":"nobody"}`, []string{"number"}},
		{`{"number":"1234"}`, []string{"number"}},
		{`{"number":"` + strings.Repeat("2", 46) + `"}`, []string{"number"}},
		{`{"number":"` + strings.Repeat("2", 51) + `"}`, []string{"number"}},
		{`{"number":"6281700000007@c.us"}`, []string{"number"}},
		{`{"name":""}`, []string{"name"}},
		{`{"name":1}`, []string{"name"}},
		{`{"name":"` + strings.Repeat("名", 101) + `"}`, []string{"name"}},
		{`{"number":true,"name":[]}`, []string{"number", "name"}},
	} {
		e.Post(phones, c.body).ExpectFields(c.fields...)
	}
	e.Post(phones, `[]`).Expect(http.StatusBadRequest)
	e.Post(phones, `{"name":"x"}`, parleytest.With("Content-Type", "text/plain")).Expect(http.StatusBadRequest)
	if after := e.Get(phones).Count("data"); after != before {
		t.Errorf("%d phones, want %d as before", after, before)
	}
	for _, number := range []string{"nobody", "1234", strings.Repeat("2", 46), "6281700000007@c.us", "62-x"} {
		e.Call("PATCH", phones+"/"+number, `{}`).ExpectFields("number")
		e.Get(phones + "/" + number + "/messages").ExpectFields("number")
		e.Post(phones+"/"+number+"/send", `{"type":"text","message":"x"}`).ExpectFields("number")
		e.Post(phones+"/"+number+"/read", "").ExpectFields("number")
		e.Post(phones+"/"+number+"/open", `{"link":"https://wa.me/1?text=x"}`).ExpectFields("number")
	}
}

// sandboxMagic checks the numbers whose last digit says what goes wrong.
func sandboxMagic(t *testing.T, e *parleytest.Env) {
	for last, want := range map[string]map[string]any{
		"0": {"on_network": false}, "1": {"online": false}, "2": {"blocks": true}, "3": {"reads": "at_once"}, "4": {"reads": "never"}, "5": {},
	} {
		number := "9991700000" + last
		made := e.Post(phones, `{"number":"`+number+`"}`).Expect(http.StatusOK)
		usual := map[string]any{"on_network": true, "online": true, "blocks": false, "reads": "when_open", "lid_only": false, "delay_ms": 0.0}
		for name, value := range want {
			usual[name] = value
		}
		for name, value := range usual {
			wantValue(t, made, "data."+name, value)
		}
		sent := e.Post(sendText, textTo(number)).Expect(http.StatusOK)
		wantValue(t, sent, "success", last != "0" && last != "2")
	}
	wantValue(t, e.Get("/api/chat/detail?contact_id=99917000000@c.us"), "data.0.error.code", "not_on_network")
	wantValue(t, e.Get("/api/chat/detail?contact_id=99917000002@c.us"), "data.0.error.code", "blocked")
	e.Eventually("999…3 answers, and reads", func() bool {
		a := e.Get("/api/chat/detail?contact_id=99917000003@c.us")
		return a.Number("meta.total") == 2 && a.Text("data.0.from_me") == "false" && a.Text("data.1.status") == "READ"
	})
	for number, status := range map[string]string{"99917000001": "SENT", "99917000004": "DELIVERED"} {
		e.Phone(number).Reads()
		e.Eventually(number+" is "+status, func() bool {
			return e.Get("/api/chat/detail?contact_id="+number+"@c.us").Text("data.0.status") == status
		})
	}
	// No ordinary number is magic.
	wantValue(t, e.Post(phones, `{"number":"6281799917000"}`).Expect(http.StatusOK), "data.on_network", true)
}

func sandboxChanges(t *testing.T, e *parleytest.Env) {
	const path = phones + "/6281700000010"
	for _, c := range []struct {
		body string
		want map[string]any
	}{
		{`{}`, map[string]any{"name": "", "online": true, "reads": "when_open", "delay_ms": 0.0, "blocks": false, "on_network": true,
			"lid_only": false}},
		{`{"name":"Fajar"}`, map[string]any{"name": "Fajar"}},
		{`{"online":false}`, map[string]any{"online": false, "name": "Fajar"}},
		{`{"online":true,"reads":"at_once"}`, map[string]any{"online": true, "reads": "at_once"}},
		{`{"reads":"never"}`, map[string]any{"reads": "never"}},
		{`{"reads":"when_open"}`, map[string]any{"reads": "when_open"}},
		{`{"delay_ms":60000}`, map[string]any{"delay_ms": 60000.0}},
		{`{"delay_ms":0}`, map[string]any{"delay_ms": 0.0}},
		{`{"blocks":true,"on_network":false,"lid_only":true}`, map[string]any{"blocks": true, "on_network": false, "lid_only": true}},
		{`{"name":null,"online":null,"reads":null,"delay_ms":null,"blocks":null}`, map[string]any{"name": "Fajar", "online": true,
			"blocks": true}},
		{`{"blocks":false,"on_network":true,"lid_only":false,"colour":1}`, map[string]any{"blocks": false, "on_network": true,
			"lid_only": false}},
		{`{"name":"` + strings.Repeat("名", 100) + `"}`, map[string]any{"name": strings.Repeat("名", 100)}},
		{`{"name":""}`, map[string]any{"name": "", "reads": "when_open"}},
	} {
		a := e.Call("PATCH", path, c.body).Expect(http.StatusOK)
		wantKeys(t, a, "data", phoneKeys...)
		list := e.Get(phones).Expect(http.StatusOK)
		row := rowWhere(list, "number", "6281700000010")
		for name, value := range c.want {
			wantValue(t, a, "data."+name, value)
			wantValue(t, list, row+"."+name, value)
		}
	}
}

func sandboxBadChanges(t *testing.T, e *parleytest.Env) {
	const path = phones + "/6281700000011"
	before := string(e.Call("PATCH", path, `{"name":"Gita","delay_ms":5}`).Expect(http.StatusOK).Body)
	for _, c := range []struct {
		body   string
		fields []string
	}{
		{`{"name":1}`, []string{"name"}},
		{`{"name":"` + strings.Repeat("名", 101) + `"}`, []string{"name"}},
		{`{"online":"true"}`, []string{"online"}},
		{`{"online":1}`, []string{"online"}},
		{`{"reads":"sometimes"}`, []string{"reads"}},
		{`{"reads":""}`, []string{"reads"}},
		{`{"reads":true}`, []string{"reads"}},
		{`{"reads":"AT_ONCE"}`, []string{"reads"}},
		{`{"delay_ms":-1}`, []string{"delay_ms"}},
		{`{"delay_ms":60001}`, []string{"delay_ms"}},
		{`{"delay_ms":0.5}`, []string{"delay_ms"}},
		{`{"delay_ms":"5"}`, []string{"delay_ms"}},
		{`{"blocks":"no"}`, []string{"blocks"}},
		{`{"on_network":0}`, []string{"on_network"}},
		{`{"lid_only":[]}`, []string{"lid_only"}},
		{`{"name":{},"online":"","reads":1,"delay_ms":true,"blocks":1,"on_network":"","lid_only":2}`,
			[]string{"name", "online", "reads", "delay_ms", "blocks", "on_network", "lid_only"}},
		{`{"name":"Other","delay_ms":-1}`, []string{"delay_ms"}}, // and nothing of it is done
	} {
		e.Call("PATCH", path, c.body).ExpectFields(c.fields...)
	}
	e.Call("PATCH", path, "").Expect(http.StatusBadRequest)
	if after := string(e.Call("PATCH", path, `{}`).Expect(http.StatusOK).Body); after != before {
		t.Errorf("the phone was %s and is %s", before, after)
	}
}

// sandboxBehaviours checks the settings of phones.
func sandboxBehaviours(t *testing.T, e *parleytest.Env) {
	const number = "6281700000012"
	phone := e.Phone(number)
	status := func(body string) string {
		a := e.Get("/api/chat/detail?contact_id=" + number + "@c.us").Expect(http.StatusOK)
		return a.Text(rowWhere(a, "body", body) + ".status")
	}
	becomes := func(body, want string) {
		t.Helper()
		e.Eventually(body+" is "+want, func() bool { return status(body) == want })
	}
	phone.Becomes(`{"online":false}`)
	say(e, number, "while away")
	if got := status("while away"); got != "SENT" {
		t.Errorf("to a phone that is offline: %s", got)
	}
	if arrived := phone.Messages(); len(arrived) != 1 || arrived[0].Status != "SENT" {
		t.Errorf("what waits for a phone that is offline: %+v", arrived)
	}
	phone.Types("typed while away")
	phone.Becomes(`{"online":true}`)
	becomes("while away", "DELIVERED")
	phone.Received("typed while away") // it is sent when the phone is back

	phone.Becomes(`{"reads":"at_once"}`)
	becomes("while away", "READ") // it reads what it has
	say(e, number, "at once")
	becomes("at once", "READ")

	phone.Becomes(`{"reads":"never"}`)
	say(e, number, "never")
	becomes("never", "DELIVERED")
	wantValue(t, e.Post(phones+"/"+number+"/read", "").Expect(http.StatusOK), "data.read", 0.0)
	if got := status("never"); got != "DELIVERED" {
		t.Errorf("read by a phone that never reads: %s", got)
	}
	phone.Becomes(`{"reads":"when_open"}`)
	say(e, number, "when open")
	becomes("when open", "DELIVERED")
	phone.Reads()
	becomes("when open", "READ")

	const delay = 400 * time.Millisecond
	phone.Becomes(`{"delay_ms":400}`)
	began := time.Now()
	say(e, number, "slowly")
	phone.Expect("slowly") // it arrived, and the channel has no receipt yet
	if got := status("slowly"); got != "SENT" && time.Since(began) < delay {
		t.Errorf("delivered without delay: %s", got)
	}
	becomes("slowly", "DELIVERED")
	if took := time.Since(began); took < delay {
		t.Errorf("delivered after %s, want no sooner than %s", took, delay)
	}
	phone.Becomes(`{"delay_ms":0}`)

	phone.Becomes(`{"blocks":true}`)
	blocked := e.Post(sendText, textTo(number)).Expect(http.StatusOK)
	wantValue(t, blocked, "success", false)
	wantValue(t, blocked, "data.error.code", "blocked")
	phone.Becomes(`{"blocks":false,"on_network":false}`)
	gone := e.Post(sendText, textTo(number)).Expect(http.StatusOK)
	wantValue(t, gone, "data.error.code", "not_on_network")
	wantValue(t, e.Get("/api/channel/check-phone-number?phone="+number), "data.is_exists", false)
	for _, act := range []string{"send", "read", "open"} {
		e.Post(phones+"/"+number+"/"+act, `{"type":"text","message":"x","link":"https://wa.me/1?text=x"}`).ExpectError(http.StatusBadRequest,
			"on_network")
	}
	phone.Becomes(`{"on_network":true,"lid_only":true}`)
	phone.Types("who am I?")
	if id := phone.Received("who am I?"); !strings.HasPrefix(id, "false_"+number+"@c.us_") {
		t.Errorf("a phone that hides its number is %s", id)
	}
	wantValue(t, e.Post(sendText, textTo(number)).Expect(http.StatusOK), "data.status", "SENT")
}

// sandboxOwner checks what the owner of the account writes on a phone of their own.
func sandboxOwner(t *testing.T, e *parleytest.Env) {
	const number = "6281700000021"
	a := e.Post(phones+"/"+number+"/send", `{"type":"text","message":"from my own phone","from_owner":true}`).Expect(http.StatusOK)
	id := a.Text("data.message_id")
	e.Eventually("channel has it", func() bool {
		return e.Get("/api/chat/detail?contact_id="+number+"@c.us").Text("data.0.message_id") == id
	})
	page, _, err := besides(t, e).Store.Events(t.Context(), 0, parley.EventFilter{Types: []parley.EventType{parley.MessageSentOnPhone}}, 10)
	if err != nil || len(page) != 1 || page[0].Message == nil || !page[0].Message.FromMe {
		t.Errorf("the events are %+v: %v", page, err)
	}
	e.Phone(number).Expect("from my own phone")
	e.Post(phones+"/"+number+"/send", `{"type":"delete","message_id":`+quoted(id)+`,"from_owner":true}`).ExpectFields("from_owner")
}

// sandboxApart checks that the worlds of two channels are two.
func sandboxApart(t *testing.T, e *parleytest.Env) {
	const number, path = "6281700000019", phones + "/6281700000019/messages"
	left, right := parleytest.As(e.CreateChannel("left")), parleytest.As(e.CreateChannel("right"))
	id := say(e, number, "to the left", left)
	if got := e.Get(path, right).Expect(http.StatusOK).Count("data"); got != 0 {
		t.Errorf("the other channel's phone got %d messages", got)
	}
	say(e, number, "to the right", right)
	for body, as := range map[string]parleytest.Option{"to the left": left, "to the right": right} {
		if got := column(e.Get(path, as).Expect(http.StatusOK), "body"); !slices.Equal(got, []string{body}) {
			t.Errorf("the phone got %q, want %q", got, body)
		}
	}
	e.Post(phones, `{"number":"6281700000020","name":"Left only"}`, left).Expect(http.StatusOK)
	e.Call("PATCH", phones+"/"+number, `{"blocks":true}`, left).Expect(http.StatusOK)
	if list := column(e.Get(phones, right).Expect(http.StatusOK), "number"); slices.Contains(list, "6281700000020") {
		t.Errorf("the other channel's phones are %q", list)
	}
	wantValue(t, e.Post(sendText, textTo(number), right).Expect(http.StatusOK), "success", true)
	wantValue(t, e.Post(sendText, textTo(number), left).Expect(http.StatusOK), "success", false)
	for _, act := range []string{`{"type":"reaction","message_id":"` + id + `","reaction":"👍"}`,
		`{"type":"text","message":"x","reply_to":"` + toBareID(id) + `"}`} {
		e.Post(phones+"/"+number+"/send", act, right).Expect(http.StatusUnprocessableEntity)
	}
	e.Post("/api/sandbox/faults", `{"fault":"refuse"}`, left).Expect(http.StatusOK)
	wantValue(t, e.Post(sendText, textTo(number), right).Expect(http.StatusOK), "success", true)
	e.Post("/api/sandbox/clock", `{"advance":3600}`, left).Expect(http.StatusOK)
	wantRecent(t, e.Get("/api/channel/health", right), "data.timestamp")
	e.Delete("/api/sandbox", left).Expect(http.StatusOK)
	if got := e.Get(path, right).Expect(http.StatusOK).Count("data"); got != 3 {
		t.Errorf("after the other channel was reset the phone has %d messages, want 3", got)
	}
	e.PhoneFor(e.CreateToken("channel", "right"), number).Types("hello right")
	e.PhoneFor(e.CreateToken("channel", "right"), number).Received("hello right")
	wantValue(t, e.Get("/api/chat/detail?limit=1&contact_id="+number+"@c.us", left).Expect(http.StatusOK), "meta.total", 0.0)
}
