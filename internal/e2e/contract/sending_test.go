package contract_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/app"
	"parley/internal/parleytest"
	"parley/internal/store"
)

// What the tests of sending share: bodies, phones, and rules that hold for every answer.

// part runs a part of a test on a gateway that all parts share. The part reports its own failures.
func part(t *testing.T, e *parleytest.Env, name string, do func(e *parleytest.Env)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		own := *e
		own.T = t
		do(&own)
	})
}

// object is a JSON object.
type object map[string]any

// with returns the object with another value at a dotted path, where a number is an array's index.
func (o object) with(path string, value any) object {
	return replaced(o, strings.Split(path, "."), func(any) (any, bool) { return value, true }).(object)
}

// without returns the object without the member at a dotted path.
func (o object) without(path string) object {
	return replaced(o, strings.Split(path, "."), func(any) (any, bool) { return nil, false }).(object)
}

func replaced(in any, path []string, change func(any) (any, bool)) any {
	if len(path) == 0 {
		panic("an empty path")
	}
	if list, ok := in.([]any); ok {
		i, err := strconv.Atoi(path[0])
		if err != nil {
			panic(err)
		}
		list = slices.Clone(list)
		if len(path) > 1 {
			list[i] = replaced(list[i], path[1:], change)
		} else {
			list[i], _ = change(list[i])
		}
		return list
	}
	made := maps.Clone(in.(object))
	if len(path) > 1 {
		made[path[0]] = replaced(made[path[0]], path[1:], change)
		return made
	}
	value, keep := change(made[path[0]])
	if keep {
		made[path[0]] = value
	} else {
		delete(made, path[0])
	}
	return made
}

func toJSON(t testing.TB, v any) string {
	t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

// submit posts a body to one of the endpoints that send.
func submit(e *parleytest.Env, kind string, body object, options ...parleytest.Option) *parleytest.Response {
	e.T.Helper()
	return e.Post("/api/send-message/"+kind, toJSON(e.T, body), options...)
}

// newPhone makes a phone that nobody has written to yet.
func newPhone(e *parleytest.Env) (phone *parleytest.Phone, number string) {
	e.T.Helper()
	number = e.Post("/api/sandbox/phones", "").Expect(http.StatusOK).Text("data.number")
	return e.Phone(number), number
}

// expectSent demands that a message was taken by the network, and the form of such an answer.
func expectSent(a *parleytest.Response) *parleytest.Response {
	a.T.Helper()
	a.Expect(http.StatusOK)
	if !a.Bool("success") || a.Text("data.status") != "SENT" || a.Value("data.error") != nil {
		a.T.Errorf("%s: want success and SENT: %s", a.Request, a.Body)
	}
	return a
}

// expectPending demands that a message was taken but not confirmed yet.
func expectPending(a *parleytest.Response) *parleytest.Response {
	a.T.Helper()
	a.Expect(http.StatusOK)
	if !a.Bool("success") || a.Text("data.status") != "PENDING" || a.Value("data.error") != nil {
		a.T.Errorf("%s: want success and PENDING: %s", a.Request, a.Body)
	}
	return a
}

// expectFailed demands that the network refused what was a good request.
func expectFailed(a *parleytest.Response, code string) *parleytest.Response {
	a.T.Helper()
	a.Expect(http.StatusOK)
	if a.Value("success") != false || a.Text("data.status") != "FAILED" || a.Text("data.error.code") != code {
		a.T.Errorf("%s: want no success, FAILED and %s: %s", a.Request, code, a.Body)
	}
	if reason := a.Text("data.error.message"); !isSentence(reason) {
		a.T.Errorf("%s: the reason is no sentence: %q", a.Request, reason)
	}
	return a
}

// expectInvalid demands a validation error of just these fields, with the rules that hold for all of
// them: each sentence is one, and the message is the first and says how many more there are.
func expectInvalid(a *parleytest.Response, fields ...string) *parleytest.Response {
	a.T.Helper()
	a.ExpectFields(fields...)
	said := sentences(a)
	for _, s := range said {
		if !isSentence(s) {
			a.T.Errorf("%s: no sentence: %q", a.Request, s)
		}
	}
	want := said[0]
	if more := len(said) - 1; more > 0 {
		want += fmt.Sprintf(" (and %d more errors)", more)
	}
	if got := a.Text("message"); got != want {
		a.T.Errorf("%s: the message is %q, want %q", a.Request, got, want)
	}
	if got := jsonKeys(a, ""); !slices.Equal(got, []string{"code", "errors", "message"}) || a.Text("code") != "invalid" {
		a.T.Errorf("%s: a validation error with %v: %s", a.Request, got, a.Body)
	}
	return a
}

// expectSentence demands that a field's first sentence has a part.
func expectSentence(a *parleytest.Response, field, part string) {
	a.T.Helper()
	errors, _ := a.Value("errors").(map[string]any)
	list, _ := errors[field].([]any)
	if len(list) == 0 || !strings.Contains(fmt.Sprint(list[0]), part) {
		a.T.Errorf("%s: the error of %s is %q, want something with %q", a.Request, field, list, part)
	}
}

func isSentence(s string) bool { return strings.Contains(s, " ") && strings.HasSuffix(s, ".") }

// sentences lists what is wrong in the order of the response.
func sentences(a *parleytest.Response) (list []string) {
	a.T.Helper()
	var body struct{ Errors json.RawMessage }
	if err := json.Unmarshal(a.Body, &body); err != nil {
		a.T.Fatal(err)
	}
	errors := json.NewDecoder(bytes.NewReader(body.Errors))
	if _, err := errors.Token(); err != nil {
		a.T.Fatal(err)
	}
	for errors.More() {
		var of []string
		if _, err := errors.Token(); err != nil {
			a.T.Fatal(err)
		}
		if err := errors.Decode(&of); err != nil {
			a.T.Fatal(err)
		}
		list = append(list, of...)
	}
	return list
}

// jsonKeys lists the members of an object in an answer; "" is the answer itself.
func jsonKeys(a *parleytest.Response, path string) []string {
	a.T.Helper()
	var value any
	if path == "" {
		if err := json.Unmarshal(a.Body, &value); err != nil {
			a.T.Fatal(err)
		}
	} else {
		value = a.Value(path)
	}
	members, _ := value.(map[string]any)
	return slices.Sorted(maps.Keys(members))
}

var (
	bareIDForm = regexp.MustCompile(`^3EB0[0-9A-F]{10,}$`)
	sentAtForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
)

// expectSendData demands the envelope and the data of a send to a contact: status, message,
// timestamp, and beside them the two ids.
func expectSendData(a *parleytest.Response, contact string) {
	a.T.Helper()
	if got := jsonKeys(a, ""); !slices.Equal(got, []string{"data", "message", "success"}) {
		a.T.Errorf("%s: the envelope has %v", a.Request, got)
	}
	if got := jsonKeys(a, "data"); !slices.Equal(got, []string{"id", "message", "message_id", "status", "timestamp"}) {
		a.T.Errorf("%s: the data has %v", a.Request, got)
	}
	if a.Text("message") == "" {
		a.T.Errorf("%s: the envelope says nothing: %s", a.Request, a.Body)
	}
	id := a.Text("data.id")
	if !bareIDForm.MatchString(id) || a.Text("data.message_id") != "true_"+contact+"_"+id {
		a.T.Errorf("%s: the ids are %q and %q", a.Request, id, a.Text("data.message_id"))
	}
	expectStamp(a, "data.timestamp")
}

// expectStamp demands a time just before the response.
func expectStamp(a *parleytest.Response, path string) {
	a.T.Helper()
	text := a.Text(path)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || !sentAtForm.MatchString(text) || a.At.Sub(at).Abs() > time.Minute {
		a.T.Errorf("%s: %s is %q, want the time now in UTC with milliseconds", a.Request, path, text)
	}
}

// findHistory finds what a chat's history has of a message.
func findHistory(e *parleytest.Env, contact, id string, options ...parleytest.Option) map[string]any {
	e.T.Helper()
	history := e.Get("/api/chat/detail?limit=100&contact_id="+contact, options...).Expect(http.StatusOK)
	rows, _ := history.Value("data").([]any)
	for _, row := range rows {
		if row := row.(map[string]any); row["id"] == id {
			return row
		}
	}
	e.T.Fatalf("the history of %s has no %s: %s", contact, id, history.Body)
	return nil
}

// openStore opens what the gateway remembers beside it, as the command line does, to see of a message
// what no answer shows.
func openStore(e *parleytest.Env) *store.DB {
	e.T.Helper()
	data := e.OpenData()
	e.T.Cleanup(func() { data.Close() })
	return data.Store
}

// storedMessage returns a message of channel demo by its full id. Asking for the chat's history first
// has the gateway put all of it where others find it.
func storedMessage(e *parleytest.Env, db *store.DB, full string) parley.Message {
	e.T.Helper()
	findHistory(e, strings.Split(full, "_")[1], toBareID(full))
	ref, err := parley.ParseMessageRef(full)
	if err != nil {
		e.T.Fatal(err)
	}
	m, err := db.Message(e.T.Context(), app.DemoChannel, ref)
	if err != nil {
		e.T.Fatalf("%s: %v", full, err)
	}
	return m
}

// toContent returns the content of the message that was sent.
func toContent(a *parleytest.Response, e *parleytest.Env, db *store.DB) parley.Content {
	a.T.Helper()
	return storedMessage(e, db, a.Text("data.message_id")).Content
}

// endpoint is one way to send something, with a body that it takes.
type endpoint struct {
	method, path string // the path after /api/send-message/
	body         object
	fields       []member
	options      []parleytest.Option
}

// member is a field of a body.
type member struct {
	name     string // dotted path
	kind     string // the JSON types that it may have: string, boolean, array, object, or flag
	required bool
	missing  string // the field on which it is reported as missing; empty: on itself
}

func (ep endpoint) call(e *parleytest.Env, body any, options ...parleytest.Option) *parleytest.Response {
	e.T.Helper()
	return e.Call(ep.method, "/api/send-message/"+ep.path, toJSON(e.T, body), slices.Concat(ep.options, options)...)
}

// jsonValues has one value of each JSON type. None of them is good for a field of its type by chance.
var jsonValues = map[string]any{
	"string": "x y", "number": 7, "boolean": true, "array": []any{}, "object": object{},
}

// expectTypes tries every field with a value of every other type, with null and left out.
func (ep endpoint) expectTypes(t *testing.T, e *parleytest.Env) {
	t.Helper()
	for _, f := range ep.fields {
		for _, kind := range slices.Sorted(maps.Keys(jsonValues)) {
			if strings.Contains(f.kind, kind) || f.kind == "flag" && kind == "boolean" {
				continue
			}
			part(t, e, fmt.Sprintf("%s is %s", f.name, kind), func(e *parleytest.Env) {
				expectInvalid(ep.call(e, ep.body.with(f.name, jsonValues[kind])), f.name)
			})
		}
		for how, body := range map[string]object{"null": ep.body.with(f.name, nil), "missing": ep.body.without(f.name)} {
			part(t, e, f.name+" is "+how, func(e *parleytest.Env) {
				a := ep.call(e, body)
				switch {
				case !f.required:
					a.Expect(http.StatusOK)
				case f.missing != "":
					expectInvalid(a, f.missing)
				default:
					expectInvalid(a, f.name)
				}
			})
		}
	}
	part(t, e, "unknown fields", func(e *parleytest.Env) {
		ep.call(e, ep.body.with("unheard_of", object{"a": []any{1, nil}}).with("Contact_ID", 7)).Expect(http.StatusOK)
	})
	part(t, e, "no field at all", func(e *parleytest.Env) {
		var required []string
		for _, f := range ep.fields {
			switch {
			case !f.required || strings.Contains(f.name, "."):
			case f.missing != "":
				required = append(required, f.missing)
			default:
				required = append(required, f.name)
			}
		}
		if len(required) > 0 { // else the fields are those of something inside
			expectInvalid(ep.call(e, object{}), required...)
		}
	})
}

// expectContacts tries what a contact id may be and what not. Every endpoint has the same rule.
func (ep endpoint) expectContacts(t *testing.T, e *parleytest.Env) {
	t.Helper()
	digits := func(n int) string { return strings.Repeat("1", n) }
	for _, good := range []string{"12345@c.us", digits(45) + "@c.us", digits(45) + "@s.us", "00000@s.us"} { // 10 and 50 characters
		part(t, e, "contact "+good, func(e *parleytest.Env) {
			ep.call(e, ep.body.with("contact_id", good)).Expect(http.StatusOK)
		})
	}
	for _, bad := range []string{
		"", "1234@c.us", digits(46) + "@c.us", digits(46) + "@s.us", // 0, 9 and 51 characters
		"6281234567890", "@c.us", "6281234567890@", "6281234567890@d.us", "6281234567890@cs.us", "6281234567890@c-us", "6281234567890@c.us.",
		"6281234567890@C.us",
		"+6281234567890@c.us", "62812 34567890@c.us", "62812-34567890@c.us", "62812x4567890@c.us", " 6281234567890@c.us", "6281234567890@c.us ",
		"6281234567890@c.us\n",
		"٦٢٨١٢٣٤٥٦٧٨@c.us", "6281234567890@c.us,6281234567891@c.us", "6281234567890@s.whatsapp.net", "6281234567890@lid",
		"status@broadcast",
	} {
		part(t, e, fmt.Sprintf("contact %q", bad), func(e *parleytest.Env) {
			expectInvalid(ep.call(e, ep.body.with("contact_id", bad)), "contact_id")
		})
	}
	part(t, e, "contact is a group", func(e *parleytest.Env) {
		a := expectInvalid(ep.call(e, ep.body.with("contact_id", "120363020000000001@g.us")), "contact_id")
		expectSentence(a, "contact_id", "send its id as group_id")
	})
}

// expectLengths tries a text at its bounds, in characters of one, two and four bytes. What is taken is
// given to taken, with the text.
func (ep endpoint) expectLengths(t *testing.T, e *parleytest.Env, name string, least, most int, taken func(e *parleytest.Env,
	text string)) {
	t.Helper()
	for _, letter := range []string{"a", "é", "😀"} {
		for _, n := range []int{least - 1, least, most, most + 1} {
			part(t, e, fmt.Sprintf("%s of %d %s", name, n, letter), func(e *parleytest.Env) {
				text := strings.Repeat(letter, n)
				a := ep.call(e, ep.body.with(name, text))
				if n < least || n > most {
					expectInvalid(a, name)
					return
				}
				expectSent(a)
				if taken != nil {
					taken(e, text)
				}
			})
		}
	}
}

// expectReplies tries what a reply may point at. The endpoint's body is to a phone of channel demo.
func (ep endpoint) expectReplies(t *testing.T, e *parleytest.Env, otherChannel string, phone *parleytest.Phone) {
	t.Helper()
	first := expectSent(submit(e, "text", object{"contact_id": phone.Contact(), "message": "something to reply to"}))
	phone.Types("something else to reply to")
	theirs := toBareID(phone.Received("something else to reply to"))
	elsewhere := expectSent(submit(e, "text", object{"contact_id": phone.Contact(), "message": "on another channel"},
		parleytest.As(otherChannel)))
	reaction := e.Put("/api/send-message/reaction", toJSON(t, object{"message_id": first.Text("data.id"), "reaction": "👍"})).
		Expect(http.StatusOK)

	for what, id := range map[string]string{"own": first.Text("data.id"), "theirs": theirs} {
		part(t, e, "reply to "+what, func(e *parleytest.Env) {
			a := expectSent(ep.call(e, ep.body.with("reply_to", id)))
			arrived := phone.Messages()
			if last := arrived[len(arrived)-1]; last.ReplyTo != id {
				t.Errorf("the phone got a reply to %q, want %q", last.ReplyTo, id)
			}
			if row := findHistory(e, phone.Contact(), a.Text("data.id")); row["reply_to"] != id {
				t.Errorf("history has a reply to %v, want %q", row["reply_to"], id)
			}
		})
	}
	part(t, e, "reply to a full id", func(e *parleytest.Env) {
		a := expectInvalid(ep.call(e, ep.body.with("reply_to", first.Text("data.message_id"))), "reply_to")
		expectSentence(a, "reply_to", first.Text("data.id"))
	})
	for what, id := range map[string]string{
		"nothing known":        "3EB0000000000000000000",
		"a hundred characters": strings.Repeat("_-Az09", 20)[:100],
		"another channel's":    elsewhere.Text("data.id"),
		"a reaction":           reaction.Text("data.id"),
	} {
		part(t, e, "reply to "+what, func(e *parleytest.Env) {
			a := expectInvalid(ep.call(e, ep.body.with("reply_to", id)), "reply_to")
			expectSentence(a, "reply_to", "names a message that does not exist on this channel")
		})
	}
	for _, id := range []string{"", strings.Repeat("A", 101), strings.Repeat("é", 100), "3EB0!", "3EB0 ", " 3EB0", "3EB0\n", "3EB0.1",
		"a/b", "é", "３", "true_" + phone.Contact() + "_"} {
		part(t, e, fmt.Sprintf("reply to %.20q", id), func(e *parleytest.Env) {
			expectInvalid(ep.call(e, ep.body.with("reply_to", id)), "reply_to")
		})
	}
}

// toBareID returns the bare id of a full one.
func toBareID(full string) string { return full[strings.LastIndex(full, "_")+1:] }
