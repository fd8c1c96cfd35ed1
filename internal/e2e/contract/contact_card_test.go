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

// TestContractContacts holds POST /send-message/contact to what is promised of it.
func TestContractContacts(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	shop := e.CreateChannel("shop")
	phone, number := newPhone(e)
	card := object{"name": "Budi", "numbers": []any{"+62 812-3456-7891"}}
	body := object{"contact_id": phone.Contact(), "contacts": []any{card}}
	contact := endpoint{method: "POST", path: "contact", body: body, fields: []member{
		{name: "contact_id", kind: "string", required: true},
		{name: "contacts", kind: "array", required: true},
		{name: "reply_to", kind: "string"},
	}}
	part(t, e, "answer", func(e *parleytest.Env) {
		name := "Budi; Sari, \\ & co\r\nTEL:1\u2028x"
		two := object{"name": name, "numbers": []any{"6281234567891", "+1 555 0100"}}
		a := expectSent(contact.call(e, contact.body.with("contacts", []any{two})))
		expectSendData(a, phone.Contact())
		if a.Text("data.message") != name || newest(phone).Type != "contact" || newest(phone).Body != name {
			e.T.Errorf("the answer is %s, and the phone got %+v", a.Body, newest(phone))
		}
		want := `BEGIN:VCARD
VERSION:3.0
N:;Budi\; Sari\, \\ & co\nTEL:1\nx;;;
FN:Budi\; Sari\, \\ & co\nTEL:1\nx
TEL;type=CELL;waid=6281234567891:+6281234567891
TEL;type=CELL;waid=15550100:+15550100
END:VCARD`
		for _, path := range []string{"/api/sandbox/phones/" + number + "/chat", "/api/chat/detail?contact_id=" + phone.Contact()} {
			shown := e.Get(path).Expect(http.StatusOK)
			row := rowWhere(shown, "message_id", a.Text("data.message_id"))
			if shown.Value(row+".contacts.0.name") != name || shown.Value(row+".contacts.0.vcard") != want {
				e.T.Errorf("%s shows %s", path, shown.Body)
			}
		}
	})
	contact.expectTypes(t, e)
	contact.expectContacts(t, e)
	contact.expectReplies(t, e, shop, phone)
	part(t, e, "both kinds of chat", func(e *parleytest.Env) {
		expectInvalid(contact.call(e, contact.body.with("group_id", "120363020000000001@g.us")), "group_id")
	})
	cards := func(n int) []any { return slices.Repeat([]any{card}, n) }
	numbers := func(n int) any {
		return []any{object{"name": "x", "numbers": slices.Repeat([]any{"6281234567891"}, n)}}
	}
	named := func(n int) any {
		return []any{object{"name": strings.Repeat("é", n), "numbers": []any{"6281234567891"}}}
	}
	for name, good := range map[string]any{"20 cards": cards(20), "10 numbers": numbers(10), "a name of 100": named(100)} {
		part(t, e, name, func(e *parleytest.Env) { expectSent(contact.call(e, contact.body.with("contacts", good))) })
	}
	part(t, e, "many are named by their number", func(e *parleytest.Env) {
		if a := expectSent(contact.call(e, contact.body.with("contacts", cards(2)))); a.Text("data.message") != "2 contacts" {
			e.T.Errorf("the answer is %s", a.Body)
		}
	})
	for field, bad := range map[string][]any{
		"contacts":             {[]any{}, cards(21)},
		"contacts.0":           {[]any{"Budi"}, []any{nil}, []any{[]any{}}},
		"contacts.0.name":      {named(0), named(101), []any{object{"name": 7, "numbers": []any{"6281234567891"}}}},
		"contacts.0.numbers":   {numbers(0), numbers(11), []any{object{"name": "x", "numbers": "6281234567891"}}, []any{object{"name": "x"}}},
		"contacts.0.numbers.0": {withNumber(""), withNumber(nil), withNumber(7), withNumber("no number"), withNumber(strings.Repeat("1", 61))},
	} {
		for i, value := range bad {
			part(t, e, fmt.Sprintf("%s, wrong %d", field, i), func(e *parleytest.Env) {
				expectInvalid(contact.call(e, contact.body.with("contacts", value)), field)
			})
		}
	}
	part(t, e, "not in a pool", func(e *parleytest.Env) {
		pool := object{"contact_id": phone.Contact(), "pools": []any{object{"type": parley.KindContact, "data": object{"contacts": cards(1)}}}}
		expectInvalid(e.Post("/api/send-message/pool", toJSON(e.T, pool), parleytest.As(e.Global)), "pools.0.type")
	})
}

func withNumber(number any) any { return []any{object{"name": "x", "numbers": []any{number}}} }
