package contract_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/app"
	"parley/internal/parleytest"
)

// within gives a subtest the gateway of the test around it, so that failures are reported by the subtest.
func within(t *testing.T, e *parleytest.Env) *parleytest.Env {
	own := *e
	own.T = t
	return &own
}

// besides opens the database of a running gateway until the test ends, to put into it what the API does not.
func besides(t *testing.T, e *parleytest.Env) *app.Data {
	t.Helper()
	data := e.OpenData()
	t.Cleanup(func() { data.Close() })
	return data
}

// wantKeys fails the test where an object of the answer has other members than these.
func wantKeys(t *testing.T, a *parleytest.Response, path string, keys ...string) {
	t.Helper()
	object, ok := valueAt(a, path).(map[string]any)
	if !ok {
		t.Errorf("%s: %s is no object: %s", a.Request, path, a.Body)
		return
	}
	for _, key := range keys {
		if _, there := object[key]; !there {
			t.Errorf("%s: %s has no %s: %s", a.Request, path, key, a.Body)
		}
		delete(object, key)
	}
	for key := range object {
		t.Errorf("%s: %s has %s, which was not expected: %s", a.Request, path, key, a.Body)
	}
}

// valueAt is the value at a path, or the whole answer where the path is empty.
func valueAt(a *parleytest.Response, path string) any {
	a.T.Helper()
	if path != "" {
		return a.Value(path)
	}
	var whole any
	if err := json.Unmarshal(a.Body, &whole); err != nil {
		a.T.Fatalf("%s: %v: %s", a.Request, err, a.Body)
	}
	return whole
}

// wantValue fails the test where the value at a path is another.
func wantValue(t *testing.T, a *parleytest.Response, path string, want any) {
	t.Helper()
	if got := a.Value(path); got != want {
		t.Errorf("%s: %s is %#v, want %#v: %.600s", a.Request, path, got, want, a.Body)
	}
}

// wantTexts fails the test where the list at a path holds other strings.
func wantTexts(t *testing.T, a *parleytest.Response, path string, want ...string) {
	t.Helper()
	list, ok := a.Value(path).([]any)
	got := make([]string, len(list))
	for i, v := range list {
		got[i], _ = v.(string)
	}
	if !ok || !slices.Equal(got, want) {
		t.Errorf("%s: %s is %q, want %q", a.Request, path, got, want)
	}
}

// column collects one member of every row in data.
func column(a *parleytest.Response, name string) []string {
	a.T.Helper()
	rows := []string{}
	for i := range a.Count("data") {
		rows = append(rows, a.Text(fmt.Sprintf("data.%d.%s", i, name)))
	}
	return rows
}

// rowWhere finds the row of data whose member has a text, and returns its path.
func rowWhere(a *parleytest.Response, name, text string) (path string) {
	a.T.Helper()
	i := slices.Index(column(a, name), text)
	if i < 0 {
		a.T.Fatalf("%s: no row with %s %q: %s", a.Request, name, text, a.Body)
	}
	return fmt.Sprintf("data.%d", i)
}

// stampForm is how every time is written.
var stampForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

// wantRecent reads a time of the answer, which must be in the form of all times and about now.
func wantRecent(t *testing.T, a *parleytest.Response, path string) time.Time {
	t.Helper()
	text := a.Text(path)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || !stampForm.MatchString(text) || time.Since(at).Abs() > 2*time.Minute {
		t.Errorf("%s: %s is %q, want a time about now with milliseconds in UTC", a.Request, path, text)
	}
	return at
}

// page is what meta says of a list.
type page struct {
	Current int64 `json:"current_page"`
	Per     int64 `json:"per_page"`
	Total   int64 `json:"total"`
	Pages   int64 `json:"total_pages"`
	Next    bool  `json:"has_next_page"`
	Prev    bool  `json:"has_prev_page"`
}

func wantPage(t *testing.T, a *parleytest.Response, want page) {
	t.Helper()
	keys := []string{"current_page", "per_page", "total", "total_pages", "has_next_page", "has_prev_page"}
	if path, _, _ := strings.Cut(a.Request, "?"); strings.HasSuffix(path, "/api/chat") { // its pages have cursors too
		keys = append(keys, "next_cursor")
	}
	wantKeys(t, a, "meta", keys...)
	var got struct{ Meta page }
	if err := json.Unmarshal(a.Body, &got); err != nil {
		t.Fatalf("%s: %v", a.Request, err)
	}
	if got.Meta != want {
		t.Errorf("%s: meta %+v, want %+v", a.Request, got.Meta, want)
	}
}

// refusesBadPages holds a list to what every list with pages refuses, whatever it lists.
func refusesBadPages(t *testing.T, e *parleytest.Env, path string, options ...parleytest.Option) {
	t.Helper()
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	for _, c := range []struct {
		query  string
		fields []string
	}{
		{"limit=0", []string{"limit"}},
		{"limit=101", []string{"limit"}},
		{"limit=-1", []string{"limit"}},
		{"limit=99999999999999999999", []string{"limit"}},
		{"limit=ten", []string{"limit"}},
		{"limit=1.5", []string{"limit"}},
		{"limit=1e1", []string{"limit"}},
		{"limit=0x10", []string{"limit"}},
		{"limit=%2B5", []string{"limit"}},
		{"limit=+5", []string{"limit"}}, // a blank and a 5
		{"limit=", []string{"limit"}},
		{"limit=true", []string{"limit"}},
		{"limit=null", []string{"limit"}},
		{"limit=5&limit=6", []string{"limit"}},
		{"offset=-1", []string{"offset"}},
		{"offset=-99999999999999999999", []string{"offset"}},
		{"offset=some", []string{"offset"}},
		{"offset=0.5", []string{"offset"}},
		{"offset=", []string{"offset"}},
		{"offset=1&offset=1", []string{"offset"}},
		{"limit=0&offset=-1", []string{"limit", "offset"}},
	} {
		e.Get(path+separator+c.query, options...).ExpectFields(c.fields...)
	}
}

// refusesBadContacts holds an endpoint to the rules of a contact id in its query.
func refusesBadContacts(t *testing.T, e *parleytest.Env, path string, options ...parleytest.Option) {
	t.Helper()
	e.Get(path, options...).ExpectFields("contact_id")
	for _, id := range badContacts {
		e.Get(path+"?contact_id="+id, options...).ExpectFields("contact_id")
	}
	e.Get(path+"?contact_id=6281234567890@c.us&contact_id=6281234567890@c.us", options...).ExpectFields("contact_id")
	e.Get(path+"?contact_id=120363020000000001@g.us", options...).ExpectFields("contact_id").ExpectError(422, "group")
}

// badContacts are no contact ids; none of them needs escaping in a query.
var badContacts = []string{
	"", "6281234567890", "@c.us", "abc@c.us", "6281234567890@x.us", "6281234567890@c.us@c.us", "6281234567890@C.US",
	"62812-34567890@c.us", "%2B6281234567890@c.us", "%206281234567890@c.us", "6281234567890@c.us%0A", "6281234567890@cxus",
	"%D9%A6%D9%A2%D9%A8%D9%A1%D9%A2%D9%A3%D9%A4@c.us", // digits of another script
	"1234@c.us",                        // nine characters
	strings.Repeat("1", 46) + "@c.us",  // 51
	strings.Repeat("1", 200) + "@c.us", // far more
}

// The shortest and the longest contact id.
var (
	shortestContact = "12345@c.us"
	longestContact  = strings.Repeat("1", 45) + "@s.us"
)

// quoted writes a text as JSON.
func quoted(text string) string {
	b, _ := json.Marshal(text) // a string always can be written
	return string(b)
}
