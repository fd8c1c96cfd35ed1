package contract_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/internal/parleytest"
)

// TestContractLocation holds POST /send-message/location to what is promised of it.
func TestContractLocation(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	shop := e.CreateChannel("shop")
	phone, _ := newPhone(e)
	db := openStore(e)
	location := endpoint{
		method: "POST", path: "location", body: object{"contact_id": phone.Contact(), "latitude": "-6.2088", "longitude": "106.8456",
			"title": "Jakarta"},
		fields: []member{
			{name: "contact_id", kind: "string", required: true},
			{name: "latitude", kind: "string", required: true},
			{name: "longitude", kind: "string", required: true},
			{name: "title", kind: "string"},
			{name: "reply_to", kind: "string"},
		},
	}
	part(t, e, "answer", func(e *parleytest.Env) {
		for title, message := range map[string]string{"Kantor 字\nלב": "Kantor 字\nלב", "": "-6.2088,106.8456"} {
			body := location.body.with("title", title)
			if title == "" {
				body = location.body.without("title")
			}
			a := expectSent(location.call(e, body))
			expectSendData(a, phone.Contact())
			if a.Value("data.message") != message {
				e.T.Errorf("the message is %v, want %q", a.Value("data.message"), message)
			}
			arrived := newest(phone)
			if arrived.Type != "location" || arrived.Body != title || arrived.MessageID != a.Text("data.message_id") {
				e.T.Errorf("the phone got %+v", arrived)
			}
			if got, want := toContent(a, e, db), (parley.Location{Title: title, Latitude: "-6.2088", Longitude: "106.8456"}); got != want {
				e.T.Errorf("what was sent is %+v, want %+v", got, want)
			}
			if row := findHistory(e, phone.Contact(), a.Text("data.id")); row["type"] != "location" || row["body"] != title ||
				row["is_media"] != false {
				e.T.Errorf("history has %v", row)
			}
		}
	})
	location.expectTypes(t, e)
	location.expectContacts(t, e)
	location.expectReplies(t, e, shop, phone)
	location.expectLengths(t, e, "title", 1, 100, func(e *parleytest.Env, text string) {
		if got := newest(phone).Body; got != text {
			e.T.Errorf("%q arrived, want %q", got, text)
		}
	})

	signs := []string{"", "1.", ".5", "+1", "--1", "- 1", " 1", "1 ", "1\n", "1,5", "1.5.5", "1e1", "0x1", "NaN", "Inf", "1°", "6.2088S",
		"１", "١", "1.12345678901", "001", "-", "1_0"}
	for name, c := range map[string]struct {
		good, bad, outside []string
	}{
		"latitude": {
			good: []string{"0", "-0", "00", "7", "07", "-6.2088", "89", "89.9999999999", "-89.9999999999", "90", "-90", "90.0",
				"-90.0000000000", "1.0123456789", "0.1"},
			bad:     append(slices.Clone(signs), "91", "-91", "99", "100", "180", "090"),
			outside: []string{"90.1", "-90.0000000001", "90.0000000001"},
		},
		"longitude": {
			good: []string{"0", "-0", "00", "7", "99", "100", "106.8456", "179.9999999999", "-179.9999999999", "180", "-180", "180.0",
				"-180.0000000000", "1.0123456789"},
			bad:     append(slices.Clone(signs), "181", "-181", "190", "200", "999", "1000", "007"),
			outside: []string{"180.1", "-180.0000000001"},
		},
	} {
		for _, value := range c.good {
			part(t, e, name+" "+value, func(e *parleytest.Env) {
				got := toContent(expectSent(location.call(e, location.body.with(name, value))), e, db).(parley.Location)
				if kept := map[string]string{"latitude": got.Latitude, "longitude": got.Longitude}[name]; kept != value {
					e.T.Errorf("%q was sent as %q", value, kept)
				}
			})
		}
		for _, value := range slices.Concat(c.bad, c.outside) {
			part(t, e, fmt.Sprintf("%s %q", name, value), func(e *parleytest.Env) {
				expectInvalid(location.call(e, location.body.with(name, value)), name)
			})
		}
	}
	part(t, e, "several errors at once", func(e *parleytest.Env) {
		expectInvalid(location.call(e, object{"contact_id": "1", "latitude": "91", "longitude": 5, "title": "", "reply_to": ""}),
			"contact_id", "latitude", "longitude", "title", "reply_to")
	})
}

// TestContractPoll holds POST /send-message/poll to what is promised of it.
func TestContractPoll(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	shop := e.CreateChannel("shop")
	phone, number := newPhone(e)
	db := openStore(e)
	poll := endpoint{
		method: "POST", path: "poll", body: object{"contact_id": phone.Contact(), "title": "When?", "options": []any{"Pagi ☀️", "Sore",
			"sore", " Sore"}},
		fields: []member{
			{name: "contact_id", kind: "string", required: true},
			{name: "title", kind: "string", required: true},
			{name: "options", kind: "array", required: true},
			{name: "is_multiple_answer", kind: "boolean"},
			{name: "reply_to", kind: "string"},
		},
	}
	part(t, e, "answer", func(e *parleytest.Env) {
		a := expectSent(poll.call(e, poll.body))
		expectSendData(a, phone.Contact())
		if a.Value("data.message") != "When?" {
			e.T.Errorf("the message is %v", a.Value("data.message"))
		}
		if arrived := newest(phone); arrived.Type != "poll" || arrived.Body != "When?" {
			e.T.Errorf("the phone got %+v", arrived)
		}
		got := toContent(a, e, db).(parley.Poll)
		if got.Title != "When?" || !slices.Equal(got.Options, []string{"Pagi ☀️", "Sore", "sore", " Sore"}) || got.Multiple {
			e.T.Errorf("the phone got %+v", got)
		}
		if row := findHistory(e, phone.Contact(), a.Text("data.id")); row["type"] != "poll" || row["body"] != "When?" {
			e.T.Errorf("history has %v", row)
		}
	})
	testVotes(t, e, poll, number)
	poll.expectTypes(t, e)
	poll.expectContacts(t, e)
	poll.expectReplies(t, e, shop, phone)
	poll.expectLengths(t, e, "title", 1, 255, nil)
	poll.expectLengths(t, e, "options.1", 1, 100, nil)
	numbered := func(n int) (options []any) {
		for i := range n {
			options = append(options, fmt.Sprint("Option ", i))
		}
		return options
	}
	for n, good := range map[int]bool{1: false, 2: true, 12: true, 13: false} {
		part(t, e, fmt.Sprintf("%d options", n), func(e *parleytest.Env) {
			a := poll.call(e, poll.body.with("options", numbered(n)))
			if !good {
				expectInvalid(a, "options")
				return
			}
			expectSent(a)
			if got := toContent(a, e, db).(parley.Poll).Options; len(got) != n || got[n-1] != fmt.Sprint("Option ", n-1) {
				e.T.Errorf("the phone got %v", got)
			}
		})
	}
	part(t, e, "options that are not different", func(e *parleytest.Env) {
		expectInvalid(poll.call(e, poll.body.with("options", []any{"a", "b", "a", "b"})), "options.2", "options.3")
	})
	for what, value := range map[string]any{"number": 7, "boolean": false, "null": nil, "array": []any{"x"}, "object": object{"name": "x"}} {
		part(t, e, "an option that is "+what, func(e *parleytest.Env) {
			expectInvalid(poll.call(e, poll.body.with("options.2", value)), "options.2")
		})
	}
	for _, value := range []any{"true", "false", 1, 0, ""} {
		part(t, e, fmt.Sprintf("is_multiple_answer %#v", value), func(e *parleytest.Env) {
			expectInvalid(poll.call(e, poll.body.with("is_multiple_answer", value)), "is_multiple_answer")
		})
	}
	part(t, e, "several errors at once", func(e *parleytest.Env) {
		expectInvalid(poll.call(e, object{"contact_id": nil, "title": strings.Repeat("x", 256), "options": []any{"", 1},
			"is_multiple_answer": "yes", "reply_to": 1}),
			"contact_id", "title", "options.0", "options.1", "is_multiple_answer", "reply_to")
	})
}

// testVotes: who may choose several answers is decided by is_multiple_answer, which is off unless
// it is given.
func testVotes(t *testing.T, e *parleytest.Env, poll endpoint, number string) {
	for name, c := range map[string]struct {
		body   object
		status int
	}{
		"by default": {poll.body, http.StatusUnprocessableEntity},
		"null":       {poll.body.with("is_multiple_answer", nil), http.StatusUnprocessableEntity},
		"false":      {poll.body.with("is_multiple_answer", false), http.StatusUnprocessableEntity},
		"true":       {poll.body.with("is_multiple_answer", true), http.StatusOK},
	} {
		part(t, e, "several answers: "+name, func(e *parleytest.Env) {
			id := expectSent(poll.call(e, c.body)).Text("data.id")
			vote := func(options ...any) *parleytest.Response {
				return e.Post("/api/sandbox/phones/"+number+"/send", toJSON(e.T, object{"type": "vote", "message_id": id, "options": options}))
			}
			vote("Pagi ☀️").Expect(http.StatusOK)
			vote("Pagi ☀️", "sore").Expect(c.status)
			vote("Malam").Expect(http.StatusUnprocessableEntity)
		})
	}
}
