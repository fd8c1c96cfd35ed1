package form

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"parley"
)

// newForm reads a body that must be readable.
func newForm(t testing.TB, body string) Form {
	t.Helper()
	f, err := NewReader().JSON([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return f
}

func newQuery(t testing.TB, query string) Form {
	t.Helper()
	f, err := NewReader().Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return f
}

func TestBodiesThatAreRefused(t *testing.T) {
	for body, want := range map[string]string{
		``:                               "empty",
		` `:                              "empty",
		`[]`:                             "JSON object",
		`"x"`:                            "JSON object",
		`1`:                              "JSON object",
		`null`:                           "JSON object",
		`true`:                           "JSON object",
		`{`:                              "ends before",
		`{"a":1`:                         "ends before",
		`{"a"`:                           "ends before",
		`{"a":"x`:                        "ends before",
		`{"a":1}x`:                       "goes on after",
		`{"a":1}{}`:                      "goes on after",
		`{"a":1,}`:                       "not valid JSON near byte",
		`{a:1}`:                          "not valid JSON",
		`{'a':1}`:                        "not valid JSON",
		`{"a":01}`:                       "not valid JSON",
		`{"a":nul}`:                      "not valid JSON",
		`{"a":1 "b":2}`:                  "not valid JSON",
		`{"a":"` + "\n" + `"}`:           "not valid JSON",
		`{"a":"\x"}`:                     "not valid JSON",
		`{"a":"\ud800"}`:                 "not valid JSON",
		`{"a":1,"a":2}`:                  "twice",
		`{"a":1,"\u0061":2}`:             "twice",
		`{"b":{"a":1,"a":2}}`:            "twice",
		"{\"a\":\"\xff\"}":               "UTF-8",
		"{\"\xff\":1}":                   "UTF-8",
		"\xef\xbb\xbf{}":                 "not valid JSON",
		`{"a":"x\u0000y"}`:               "U+0000",
		`{"a":["\u0000"]}`:               "U+0000",
		`{"\u0000":1}`:                   "U+0000",
		"{\"a\":\"\x00\"}":               "not valid JSON",
		nested(17):                       "deeper than 16",
		nested(100_000):                  "deeper than 16",
		`{"a":[` + zeros(10_000) + `]}`:  "more than 10000 values",
		`{"a":` + strings.Repeat("[", 9): "ends before",
	} {
		r := NewReader()
		_, err := r.JSON([]byte(body))
		r.Release()
		if len(body) > 60 {
			body = body[:60] + "…"
		}
		if parley.ToCode(err) != parley.BadRequest {
			t.Errorf("%q: %v, want a BadRequest", body, err)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q does not say %q", body, err, want)
		} else if strings.Contains(err.Error(), "jsontext") {
			t.Errorf("%q: %q speaks of our insides", body, err)
		}
	}
	newForm(t, nested(16))
	newForm(t, `{"a":"\\u0000"}`) // a backslash, not an escape
}

func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
}

func zeros(n int) string { return strings.Repeat("0,", n-1) + "0" }

func TestTexts(t *testing.T) {
	long := strings.Repeat("é", 10)
	for _, c := range []struct {
		body, want string
		wrong      string // a part of the sentence; empty: it is good
	}{
		{`{"f":"hello"}`, "hello", ""},
		{`{"f":"` + long + `"}`, long, ""},
		{`{"f":"\u0068\u00e9\n"}`, "hé\n", ""},
		{`{"f":"😀"}`, "😀", ""},
		{`{"f":"\ud83d\ude00"}`, "😀", ""},
		{`{"\u0066":"x"}`, "x", ""},
		{`{"other":{"f":1},"f":"x"}`, "x", ""},
		{`{}`, "", "is required"},
		{`{"F":"x"}`, "", "is required"},
		{`{"f":null}`, "", "is required"},
		{`{"f":""}`, "", "must not be empty"},
		{`{"f":1}`, "", "must be a string"},
		{`{"f":true}`, "", "must be a string"},
		{`{"f":{}}`, "", "must be a string"},
		{`{"f":["x"]}`, "", "must be a string"},
		{`{"f":"` + long + `x"}`, "", "1 to 10 characters long; it has 11"},
	} {
		f := newForm(t, c.body)
		if got := f.Text("f", 1, 10); got != c.want {
			t.Errorf("%s: %q, want %q", c.body, got, c.want)
		}
		checkWrong(t, c.body, f, c.wrong)
	}
}

// checkWrong checks that f has noted one sentence, on the field f, that contains want; or none.
func checkWrong(t *testing.T, input string, f Form, want string) {
	t.Helper()
	wrong := *f.wrong
	switch {
	case want == "" && len(wrong) > 0:
		t.Errorf("%s: refused: %v", input, wrong)
	case want != "" && len(wrong) != 1:
		t.Errorf("%s: %d sentences, want one: %v", input, len(wrong), wrong)
	case want != "" && (!strings.Contains(wrong[0].Sentence, want) || wrong[0].Field != "f"):
		t.Errorf("%s: %+v does not say %q on f", input, wrong[0], want)
	}
}

func TestWholeNumbers(t *testing.T) {
	for _, c := range []struct {
		value string
		want  int64
		ok    bool
	}{
		{"30", 30, true}, {"300.0", 300, true}, {"3e2", 300, true}, {"3.0E+2", 300, true}, {"3600", 3600, true},
		{"29", 0, false}, {"3601", 0, false}, {"300.5", 0, false}, {"-300", 0, false}, {"1e999", 0, false},
		{`"300"`, 0, false}, {"true", 0, false}, {"[300]", 0, false}, {"99999999999999999999", 0, false},
		{"300.0000000000000000000001", 0, false}, {"3000e-1", 300, true}, {"3001e-1", 0, false}, {"0.3e3", 300, true},
		{"1e999999999999999999999", 0, false}, {"300.0000000000000000000000", 300, true}, {"0.00003e7", 300, true},
	} {
		f := newForm(t, `{"f":`+c.value+`}`)
		got := f.Whole("f", 7, 30, 3600)
		if ok := len(*f.wrong) == 0; ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %d, %v; want %d, %v", c.value, got, ok, c.want, c.ok)
		}
	}
	for query, want := range map[string]int64{
		"": 7, "f=0": 0, "f=5": 5, "f=%35": 5, "f=99999999999999999999": math.MaxInt64,
	} {
		f := newQuery(t, query)
		if got := f.Whole("f", 7, 0, math.MaxInt64); got != want || len(*f.wrong) > 0 {
			t.Errorf("%s: %d, want %d: %v", query, got, want, *f.wrong)
		}
	}
	for _, query := range []string{"f=", "f=x", "f=1.0", "f=-1", "f=+1", "f=1e2", "f=%201", "f=0x1", "f=1&f=2"} {
		f := newQuery(t, query)
		if got := f.Whole("f", 7, 0, math.MaxInt64); len(*f.wrong) == 0 {
			t.Errorf("%s: taken as %d", query, got)
		}
	}
}

func TestFlags(t *testing.T) {
	for value, want := range map[string]bool{
		`true`: true, `"true"`: true, `1`: true, `"1"`: true, `"\u0074rue"`: true,
		`false`: false, `"false"`: false, `0`: false, `"0"`: false,
	} {
		f := newForm(t, `{"f":`+value+`}`)
		if got := f.Flag("f", !want); got != want || len(*f.wrong) > 0 {
			t.Errorf("%s: %v: %v", value, got, *f.wrong)
		}
	}
	for _, value := range []string{`2`, `"yes"`, `"TRUE"`, `""`, `1.0`, `[]`, `{}`, `"01"`} {
		f := newForm(t, `{"f":`+value+`}`)
		f.Flag("f", true)
		checkWrong(t, value, f, "must be true or false")
	}
	for _, value := range []string{`"true"`, `1`, `"1"`, `[]`} {
		f := newForm(t, `{"f":`+value+`}`)
		f.Bool("f", true)
		checkWrong(t, value, f, "must be true or false")
	}
	if f := newForm(t, `{"f":null}`); !f.Flag("f", true) || !f.Bool("f", true) || len(*f.wrong) > 0 {
		t.Error("null is not the default")
	}
}

func TestContacts(t *testing.T) {
	for value, want := range map[string]parley.ContactID{
		"6281234567890@c.us": "6281234567890@c.us", "6281234567890@s.us": "6281234567890@c.us",
		"12345@c.us": "12345@c.us", strings.Repeat("1", 45) + "@c.us": parley.ContactID(strings.Repeat("1", 45) + "@c.us"),
	} {
		f := newForm(t, `{"f":"`+value+`"}`)
		if got := f.Contact("f"); got != want {
			t.Errorf("%s: %q: %v", value, got, *f.wrong)
		}
	}
	for value, want := range map[string]string{
		`"+62 812-3456-7890"`:                    "must be digits followed by @c.us, for example 6281234567890@c.us.",
		`"0062 812 3456 7890"`:                   "for example 6281234567890@c.us.",
		`"31612345678"`:                          "for example 31612345678@c.us.",
		`"hello"`:                                "for example 6281234567890@c.us.",
		`""`:                                     "for example",
		`"1234@c.us"`:                            "10 to 50 characters",
		`"` + strings.Repeat("1", 46) + `@c.us"`: "10 to 50 characters",
		`"6281234567890@C.US"`:                   "must be digits",
		`"6281234567890@c.us "`:                  "must be digits",
		`"6281234567890@c.us\n"`:                 "must be digits",
		`"６２８１２３４５６７８９０@c.us"`:               "must be digits",
		`"120363020000000001@g.us"`:          "as group_id",
		`6281234567890`:                      "must be a string",
		`null`:                               "is required",
		`"6281234567890@s.whatsapp.net"`:     "for example 6281234567890@c.us.",
		`"` + strings.Repeat("9", 100) + `"`: "for example 6281234567890@c.us.",
	} {
		f := newForm(t, `{"f":`+value+`}`)
		f.Contact("f")
		checkWrong(t, value, f, want)
	}
}

func TestNestedFields(t *testing.T) {
	f := newForm(t, `{"a":{"b":{"c":1}},"list":["x","",3],"items":[{"n":1},7]}`)
	a, ok := f.Object("a", true)
	if !ok {
		t.Fatal("a is no object")
	}
	b, _ := a.Object("b", true)
	b.Text("c", 1, 5)
	b.Text("d", 1, 5)
	f.Texts("list", 1, 5, 1, 5)
	f.List("items", 1, 5, true, func(f Form, index string) {
		if item, ok := f.Object(index, true); ok {
			item.Bool("n", false)
		}
	})
	f.Object("missing", true)
	f.List("items", 3, 4, true, func(Form, string) { t.Error("a list of the wrong length was visited") })
	var got []string
	for _, w := range *f.wrong {
		got = append(got, w.Field)
		if !strings.HasPrefix(w.Sentence, w.Field+" ") {
			t.Errorf("%q does not begin with its field %q", w.Sentence, w.Field)
		}
	}
	want := []string{"a.b.c", "a.b.d", "list.1", "list.2", "items.0.n", "items.1", "missing", "items"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("fields %v, want %v", got, want)
	}
	if err := f.Err(); parley.ToCode(err) != parley.Invalid || !strings.HasSuffix(err.Error(), "(and 7 more errors)") {
		t.Errorf("err = %v", err)
	}
}

func TestQueriesThatAreRefused(t *testing.T) {
	for _, query := range []string{"a=%", "a=%zz", "%zz=1", "a=%ff", "a=%00", strings.Repeat("a=1&", 101)} {
		if _, err := NewReader().Query(query); parley.ToCode(err) != parley.BadRequest {
			t.Errorf("%.20s: %v", query, err)
		}
	}
	f := newQuery(t, "contact_id=6281234567890%40c.us&x=a+b&empty&&y=1=2")
	if f.Contact("contact_id") != ExampleContact || f.Text("x", 1, 9) != "a b" || f.Text("y", 1, 9) != "1=2" || !f.Has("empty") {
		t.Errorf("%+v", f.doc.values)
	}
}

// FuzzDocument holds the reader to encoding/json: it takes nothing that the other refuses, refuses
// only for reasons of its own, and reads the same values.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, `{"a":{"b":[1,"x",null,true,1.5e3]}}`, `{"a":"\u0000"}`, `{"a":1,"a":2}`, `{"é":"\ud83d\ude00"}`,
		`[]`, ``, `{"a":[[[]]]}`, "{\"a\":\"\xff\"}", `{"a":1}x`, nested(16), nested(17), `{"a":"\\u0000"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := NewReader()
		defer r.Release()
		_, err := r.JSON(body)
		var object map[string]any
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.UseNumber()
		theirs := decoder.Decode(&object)
		if theirs == nil && (!json.Valid(body) || object == nil) {
			theirs = fmt.Errorf("no single object")
		}
		if err == nil && theirs != nil {
			t.Fatalf("%q was taken, but: %v", body, theirs)
		}
		if err != nil {
			if parley.ToCode(err) != parley.BadRequest {
				t.Fatalf("%q: %v", body, err)
			}
			reason := err.Error()
			ours := !utf8.Valid(body) || strings.Contains(reason, "twice") || strings.Contains(reason, "U+0000") ||
				strings.Contains(reason, "deeper") || strings.Contains(reason, "more than") || bytes.Contains(body, []byte(`\u`))
			if theirs == nil && !ours {
				t.Fatalf("%q was refused: %v", body, err)
			}
			return
		}
		if got := r.doc.tree(0); !reflect.DeepEqual(got, any(object)) {
			t.Fatalf("%q: %#v, want %#v", body, got, object)
		}
	})
}

// tree turns a value into what encoding/json would make of it.
func (d *document) tree(at int32) any {
	v := &d.values[at]
	switch v.kind {
	case '{':
		object := map[string]any{}
		for i := v.first; i != none; i = d.values[i].next {
			object[string(d.values[i].name)] = d.tree(i)
		}
		return object
	case '[':
		array := []any{}
		for i := v.first; i != none; i = d.values[i].next {
			array = append(array, d.tree(i))
		}
		return array
	case '"':
		return v.text()
	case '0':
		return json.Number(v.raw)
	case 't', 'f':
		return v.kind == 't'
	}
	return nil
}

// BenchmarkForm reads the request that is sent most.
func BenchmarkForm(b *testing.B) {
	body := []byte(`{"contact_id":"6281234567890@c.us","message":"` + strings.Repeat("Your order is on its way. ", 5) +
		`","reply_to":"3EB0A1C4F29D77E01B5C42","linkPreview":false}`)
	for _, c := range []struct {
		name string
		body []byte
		ok   bool
	}{
		{"valid", body, true},
		{"two wrong fields", bytes.Replace(body, []byte("@c.us"), []byte("@x.us"), 1)[:len(body)-7], false},
	} {
		if !c.ok {
			c.body = append(c.body, `: 7}`...)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := NewReader()
				f, err := r.JSON(c.body)
				if err != nil {
					b.Fatal(err)
				}
				to, replyTo := f.Contact("contact_id"), f.ReplyTo()
				f.Text("message", 1, 4096)
				f.Flag("linkPreview", true)
				if c.ok != (f.Err() == nil) || c.ok && (to == "" || replyTo == "") {
					b.Fatal(f.Err())
				}
				r.Release()
			}
		})
	}
}

// BenchmarkEncodingJSON is what the same costs with encoding/json and no checks at all.
func BenchmarkEncodingJSON(b *testing.B) {
	body := []byte(`{"contact_id":"6281234567890@c.us","message":"` + strings.Repeat("Your order is on its way. ", 5) +
		`","reply_to":"3EB0A1C4F29D77E01B5C42","linkPreview":false}`)
	b.ReportAllocs()
	for b.Loop() {
		var request struct {
			ContactID   string `json:"contact_id"`
			Message     string `json:"message"`
			ReplyTo     string `json:"reply_to"`
			LinkPreview bool   `json:"linkPreview"`
		}
		if err := json.Unmarshal(body, &request); err != nil {
			b.Fatal(err)
		}
	}
}
