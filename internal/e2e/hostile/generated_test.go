package hostile_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"parley/internal/parleytest"
)

// TestGeneratedRequests makes requests for every operation from the OpenAPI document, with fields
// that are wrong by chance, and holds every answer to the document. PARLEY_SEED repeats a run;
// PARLEY_REQUESTS makes it longer.
func TestGeneratedRequests(t *testing.T) {
	seed, count := fromEnv(t, "PARLEY_SEED", 1), fromEnv(t, "PARLEY_REQUESTS", 700)
	e := parleytest.Start(t)
	e.CreateChannel("spare")
	doc := parleytest.OpenAPI(t)
	words := wordsFor(e)
	operations := parleytest.Operations(t)
	var wg sync.WaitGroup
	var statuses sync.Map
	// A channel that one caller makes while another removes it has no right answer, and one that is
	// being reset or restarted has none.
	var managing sync.RWMutex
	const workers = 4
	for worker := range workers {
		wg.Go(func() {
			found := &complaints{TB: t}
			client := &http.Client{Timeout: parleytest.WaitLimit, Transport: parleytest.NewValidator(found).Wrap(&http.Transport{})}
			defer client.CloseIdleConnections()
			for i := worker; i < count; i += workers {
				op := operations[i%len(operations)]
				g := &generator{rng: rand.New(rand.NewPCG(uint64(seed), uint64(i))), words: words}
				r, body := g.request(e, doc, op)
				if strings.HasSuffix(op.Path, "/events") {
					r.Method = http.MethodHead // a stream that has begun never ends
				}
				lock, unlock := managing.RLock, managing.RUnlock
				if strings.HasPrefix(op.Path, "/api/manage/") || op.Path == "/api/sandbox" {
					lock, unlock = managing.Lock, managing.Unlock
				}
				lock()
				status, answer, err := do(client, r)
				unlock()
				statuses.Store(status, true)
				if lenient(op) {
					found.forgive("the server took a request that the document forbids")
				}
				found.forgive("value out of range") // no offset is too large for the server, but for the validator
				if err != nil || status >= 500 || len(found.list) > 0 {
					r.Header.Del("Authorization")
					t.Errorf("request %d of seed %d: %s %.300s %.300v\nsent: %.300s\nanswer %d, %.300v: %.300s\n%.600s", i, seed, r.Method, r.URL,
						r.Header, body, status, err, answer, strings.Join(found.list, "\n"))
				}
				found.list = nil
			}
		})
	}
	wg.Wait()
	for _, status := range []int{200, 400, 403, 404, 422} { // else the generator is only good or only bad
		if _, ok := statuses.Load(status); !ok {
			t.Errorf("no request was answered with %d", status)
		}
	}
	if e.Log.Contains("panic") {
		t.Error("a request made the gateway panic")
	}
	t.Logf("%d requests for %d operations, seed %d", count, len(operations), seed)
}

func fromEnv(t *testing.T, name string, byDefault int) int {
	text, ok := os.LookupEnv(name)
	if !ok {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// complaints keeps what a validator finds, so that it can be reported with its request.
type complaints struct {
	testing.TB
	list []string
}

func (c *complaints) Helper() {}

func (c *complaints) Errorf(format string, args ...any) {
	c.list = append(c.list, fmt.Sprintf(format, args...))
}

// forgive takes complaints of one kind back.
func (c *complaints) forgive(part string) {
	c.list = slices.DeleteFunc(c.list, func(s string) bool { return strings.Contains(s, part) })
}

// lenient says which operations ignore what is wrong with fields that do not count: those of another
// type of message, an address beside the file that was given, a body beside the query.
func lenient(op parleytest.Operation) bool {
	for _, end := range []string{"/send", "/video", "/pool", "/delete", "/api/media"} {
		if strings.HasSuffix(op.Path, end) {
			return true
		}
	}
	return false
}

func do(client *http.Client, r *http.Request) (status int, body []byte, err error) {
	resp, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// wordsFor returns values that mean something to this gateway, by the name of the field. Some would
// block the test or delete what it needs if they were random: such fields have only these.
func wordsFor(e *parleytest.Env) map[string][]any {
	files := parleytest.Files(e.T)
	sent := e.Post("/api/send-message/text", `{"contact_id":"6281234567890@c.us","message":"Hello"}`).Expect(http.StatusOK)
	poll := e.Post("/api/send-message/poll", `{"contact_id":"6281234567890@c.us","title":"When?","options":["a","b"]}`).Expect(http.StatusOK)
	phone := e.Phone("6281234567890")
	phone.Types("Hello yourself")
	received := phone.Received("Hello yourself")
	group := e.Get("/api/groups").Text("data.0.id")
	contacts := []any{"6281234567890@c.us", "6281234567890@s.us", "6281290000001@c.us", "99912345670@c.us", "99912345672@c.us",
		"6281234567890@g.us"}
	messages := []any{sent.Text("data.message_id"), sent.Text("data.id"), poll.Text("data.message_id"), received, "3EB0NOTHING"}
	addresses := []any{files + "/dot.png", files + "/film.mp4", files + "/notes.txt", files + "/nothing", "http://10.0.0.1/x.png", e.URL +
		"/livez"}
	return map[string][]any{
		"contact_id": contacts, "id": append(contacts, "tok_1"), "allow_only": contacts, "message_id": messages,
		"reply_to": {sent.Text("data.id"), poll.Text("data.id"), "3EB0NOTHING"},
		"url":      addresses, "videoUrl": addresses, "audioUrl": {files + "/hello.ogg", files + "/nothing.ogg", "http://169.254.169.254/x.mp3"},
		"group_id": {group, "1@g.us"}, "number": {"6281234567890", "62 812-9000-0001", "99912345671"}, "phone": {"+62 812-3456-7890",
			"99912345670", "0"}, "to": {"6281234567890"},
		"code": {"spare", "nothing", "gen-1", "gen-2"}, "channel": {"demo", "nothing"}, "X-Channel": {"demo", "nobody"}, "file": {"style.css",
			"nothing.js"},
		"reaction": {"👍", "", "❤️", "x"}, "latitude": {"-6.2", "90", "91"}, "longitude": {"106.8", "-180", "180.5"},
		"options": {"a", "b", "c"}, "mimeType": {"image/png", "x"},
		"pace": {"0s", "1ms"}, "ttl": {"1h", "1s"}, "retention": {"0s", "720h"}, "expires_at": {"2999-01-01T00:00:00Z", "2000-01-01T00:00:00Z"},
		"link":  {"https://wa.me/1?text=Hello", "https://wa.me/1"},
		"fault": {"refuse", "twice", "reachout_limit"}, "times": {1}, "wait": {0}, "advance": {1, 60}, "delay_ms": {0, 1}, "after": {"", "x"},
		"type":   nil,
		"Prefer": {"respond-async", "respond-async, wait=0", "wait=0", "wait=0; x, nonsense"}, "Idempotency-Key": {"k1", "k2", "k3", "k4",
			strings.Repeat("k", 255), strings.Repeat("k", 256)},
	}
}

// generator makes requests by chance. The same source of chance makes the same ones.
type generator struct {
	rng   *rand.Rand
	words map[string][]any
}

// request makes a request for an operation.
func (g *generator) request(e *parleytest.Env, doc *openapi3.T, op parleytest.Operation) (*http.Request, []byte) {
	item := doc.Paths.Value(op.Path)
	operation := item.GetOperation(op.Method)
	path, query, header := op.Path, url.Values{}, http.Header{}
	for _, ref := range slices.Concat(item.Parameters, operation.Parameters) {
		p := ref.Value
		if !p.Required && g.chance(2) && p.Name != "Prefer" {
			continue
		}
		value := fmt.Sprintf("%.300v", g.value(p.Name, p.Schema.Value)) // longer ones are refused below us
		switch p.In {
		case "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(strings.ReplaceAll(value, "/", "-")+"x"[:1-min(len(value), 1)]))
		case "query":
			if !g.chance(20) {
				query.Add(p.Name, value)
			}
		case "header":
			if value = strings.Map(func(r rune) rune { return max(r, ' ') }, value); strings.TrimSpace(value) != "" {
				header.Set(p.Name, value)
			}
		}
	}
	var body []byte
	if operation.RequestBody != nil && !g.chance(30) {
		body = []byte(g.pick("a file", `{"a":"file"}`, ""))
		if content := operation.RequestBody.Value.Content["application/json"]; content != nil {
			body = g.body(content.Schema.Value)
		}
		header.Set("Content-Type", "application/json")
		if operation.RequestBody.Value.Required && g.chance(20) {
			header.Set("Content-Type", g.pick("application/json; charset=utf-8", "text/plain", ""))
		}
	}
	header.Set("Authorization", "Bearer "+g.token(e, op.Path))
	r, err := http.NewRequest(op.Method, e.URL+path+"?"+query.Encode(), strings.NewReader(string(body)))
	if err != nil {
		e.T.Errorf("%s %q: %v", op.Method, path, err)
		return &http.Request{}, nil
	}
	r.Header = header
	return r, body
}

// token is the one that the path wants, nearly always.
func (g *generator) token(e *parleytest.Env, path string) string {
	switch {
	case g.chance(20):
		return g.pick(e.Token, e.Global, e.Admin)
	case strings.HasPrefix(path, "/api/manage"):
		return e.Admin
	case strings.HasSuffix(path, "/pool"), strings.HasSuffix(path, "/global"):
		return e.Global
	}
	return e.Token
}

// body makes a JSON body, and sometimes breaks it.
func (g *generator) body(schema *openapi3.Schema) []byte {
	body, err := json.Marshal(g.value("", schema))
	if err != nil {
		panic(err) // only values of encoding/json's own are made
	}
	switch {
	case g.chance(40):
		return body[:g.rng.IntN(len(body))]
	case g.chance(40):
		body[g.rng.IntN(len(body))] = byte(g.rng.Uint32())
	}
	return body
}

// value makes a value for a field, one time in twelve a wrong one.
func (g *generator) value(name string, schema *openapi3.Schema) any {
	if g.chance(12) {
		return g.wrong()
	}
	if words := g.words[name]; len(words) > 0 && !schema.Type.Is("array") && !schema.Type.Is("object") {
		return words[g.rng.IntN(len(words))]
	}
	switch {
	case len(schema.Enum) > 0:
		return schema.Enum[g.rng.IntN(len(schema.Enum))]
	case schema.Const != nil:
		return schema.Const
	case len(schema.OneOf) > 0:
		return g.value(name, schema.OneOf[g.rng.IntN(len(schema.OneOf))].Value)
	case schema.Type.Is("object"), len(schema.Properties) > 0:
		return g.object(schema)
	case len(schema.AnyOf) > 0:
		return g.value(name, schema.AnyOf[g.rng.IntN(len(schema.AnyOf))].Value)
	case schema.Type.Is("array"):
		list := []any{}
		for range int(schema.MinItems) + g.rng.IntN(3) {
			list = append(list, g.value(name, schema.Items.Value))
		}
		return list
	case schema.Type.Is("boolean"):
		return g.chance(2)
	case schema.Type.Is("integer"), schema.Type.Is("number"):
		return g.number(schema)
	}
	return g.text(schema)
}

func (g *generator) object(schema *openapi3.Schema) map[string]any {
	required := slices.Clone(schema.Required)
	if len(schema.AnyOf) > 0 {
		required = append(required, schema.AnyOf[g.rng.IntN(len(schema.AnyOf))].Value.Required...)
	}
	object := map[string]any{}
	names := make([]string, 0, len(schema.Properties))
	for name := range schema.Properties {
		names = append(names, name)
	}
	slices.Sort(names) // a map has no order, and chance must not depend on it
	for _, name := range names {
		if slices.Contains(required, name) && !g.chance(25) || g.chance(3) {
			object[name] = g.value(name, schema.Properties[name].Value)
		}
	}
	if g.chance(10) {
		object["unknown"] = g.wrong()
	}
	return object
}

func (g *generator) number(schema *openapi3.Schema) any {
	low, high := 0.0, 100.0
	if schema.Min != nil {
		low = *schema.Min
	}
	if schema.Max != nil {
		high = *schema.Max
	}
	return int64(low) + g.rng.Int64N(int64(high-low)+1)
}

var letters = []rune("abc XYZ 019 \n\"\\'<>&%/é日本😀👨‍👩‍👧עִ\u202e\u200b")

func (g *generator) text(schema *openapi3.Schema) string {
	longest := 40
	if schema.MaxLength != nil && (g.chance(10) || *schema.MaxLength < 40) {
		longest = int(*schema.MaxLength)
	}
	text := make([]rune, max(int(schema.MinLength), g.rng.IntN(longest+1)))
	for i := range text {
		text[i] = letters[g.rng.IntN(len(letters))]
	}
	return string(text)
}

// wrong makes a value that hardly any field takes.
func (g *generator) wrong() any {
	values := []any{nil, true, 0, -1, 1.5, 1e300, json.Number("99999999999999999999"), json.Number("-1e400"), "", " ", "0", "null",
		strings.Repeat("x", 5000), strings.Repeat("😀", 5000), "a\x00b", "\u202e", "../../x", "' OR 1=1 --", "%00",
		[]any{}, []any{nil}, []any{1, "a", []any{}}, map[string]any{}, map[string]any{"url": 1}, "http://127.0.0.1:1/x.ogg"}
	return values[g.rng.IntN(len(values))]
}

// chance is true one time in n.
func (g *generator) chance(n int) bool { return g.rng.IntN(n) == 0 }

func (g *generator) pick(words ...string) string { return words[g.rng.IntN(len(words))] }
