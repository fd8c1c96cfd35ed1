package hostile_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/internal/app"
	"parley/internal/parleytest"
)

// hidden is a value of a verification, and where it may be found all the same.
type hidden struct {
	what, value string
	public      bool // other responses, the stream and webhooks may contain it
	kept        bool // the gateway keeps it
	arrived     bool // the sandbox network keeps it, as everything that went over it
	ofUser      bool // it is in the file that a development server writes for its user
}

// TestNothingOfVerificationLeaks has codes and links made, used, guessed at and lost, with webhooks,
// callbacks and the event stream beside them, and then looks for what must not be known: in the log at
// its most talkative, in the figures, in all other answers, in what receivers got, in every file
// and in a backup.
func TestNothingOfVerificationLeaks(t *testing.T) {
	e := parleytest.Start(t)
	customer := newCustomer(t)
	stream := listen(t, e)
	s := &verification{Env: e, customer: customer}
	s.hook()
	s.codes()
	s.links()
	s.mistakes()
	s.Eventually("the callbacks came", func() bool { return customer.got("/ok") > 0 && customer.got("/no") > 1 })
	s.Eventually("the webhooks came", func() bool { return customer.got("/hook") > 10 && customer.got("/broken") > 0 })
	s.Eventually("the stream has it", func() bool { return strings.Contains(stream.String(), "otp.approved") })

	places := map[string]string{"the log": e.Log.String(), "the figures": string(e.Get("/metrics", parleytest.As("")).
		Expect(http.StatusOK).Body)}
	others := map[string]string{"the stream": stream.String(), "what the customer received": customer.String()}
	s.readEverything(others)
	for _, h := range s.hidden {
		for _, form := range h.forms() {
			reportFound(t, h.what, form, places)
			if !h.public {
				reportFound(t, h.what, form, others)
			}
		}
	}
	backup := backUp(t, e)
	e.Stop()
	found := map[string]bool{}
	for _, dir := range []string{string(e.Data), backup} {
		for _, h := range s.hidden {
			for _, form := range h.forms() {
				for _, file := range holding(t, dir, form) {
					found[h.what] = true
					onNetwork, forUser := strings.HasPrefix(file, filepath.Base(e.Data.Sandbox())), file == filepath.Base(e.Data.DevEnv())
					if !h.kept && !(h.arrived && onNetwork) && !(h.ofUser && forUser) {
						t.Errorf("%s is in the file %s", h.what, file)
					}
				}
			}
		}
	}
	for _, what := range []string{"an app", "a code", "the code of a link", "the query of a callback", "a number"} {
		if !found[what] {
			t.Errorf("%s is in no file: the search does not work", what)
		}
	}
	if !strings.Contains(others["the stream"], "message.received") || strings.Count(e.Log.String(), "level=DEBUG") < 20 {
		t.Error("the scenario did not run")
	}
}

// forms are the ways to write a value down that are looked for.
func (h hidden) forms() []string {
	forms := []string{h.value, strings.ToLower(h.value), strings.ToUpper(h.value)}
	if escaped := url.QueryEscape(h.value); escaped != h.value {
		forms = append(forms, escaped)
	}
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(h.value, "whsec_")); strings.HasPrefix(h.value, "whsec_") && err == nil {
		forms = append(forms, strings.TrimPrefix(h.value, "whsec_"), string(raw), fmt.Sprintf("%x", raw))
	}
	return forms
}

func reportFound(t *testing.T, what, form string, places map[string]string) {
	t.Helper()
	for place, text := range places {
		if at := strings.Index(text, form); at >= 0 {
			t.Errorf("%s is in %s: …%.200s…", what, place, text[max(0, at-100):])
		}
	}
}

// verification is what happens, and what of it must stay hidden.
type verification struct {
	*parleytest.Env
	customer *customer
	hidden   []hidden
	link     string // the id of one
	webhook  string
}

// The numbers.
const (
	buyer    = "6281388002211"
	stranger = "6281388002222"
	late     = "6281388002233"
	waiting  = "6281388002244"
)

func (s *verification) hide(h hidden) string {
	if len(h.value) < 6 {
		s.T.Fatalf("%s is %q, too short to be looked for", h.what, h.value)
	}
	s.hidden = append(s.hidden, h)
	return h.value
}

// hook adds webhooks, one of which is broken, and has all secrets made and changed.
func (s *verification) hook() {
	s.T.Helper()
	admin := parleytest.As(s.Admin)
	for _, number := range []string{buyer, stranger, late, waiting} {
		s.hide(hidden{what: "a number", value: number, public: true, kept: true, arrived: true})
	}
	for what, token := range map[string]string{"the channel token": s.Token, "the global token": s.Global, "the admin token": s.Admin} {
		s.hide(hidden{what: what, value: token, ofUser: true})
	}
	key := s.hide(hidden{what: "the query of a webhook", value: "canary-hook-e5e5", public: true, kept: true})
	made := s.Post("/api/manage/webhooks", `{"url":"`+s.customer.URL+`/hook?key=`+key+`"}`, admin, parleytest.With("Idempotency-Key",
		"hook")).Expect(http.StatusCreated)
	s.webhook = made.Text("data.id")
	s.Post("/api/manage/webhooks", `{"url":"`+s.customer.URL+`/broken?key=`+key+`"}`, admin).Expect(http.StatusCreated)
	s.hide(hidden{what: "a webhook's secret", value: made.Text("data.secret")})
	s.hide(hidden{what: "a webhook's secret, read", value: s.Get("/api/manage/webhooks/"+s.webhook+"/secret", admin).Expect(http.StatusOK).
		Text("data.secret")})
	s.hide(hidden{what: "a channel's secret", value: s.Get("/api/manage/channels/demo/secret", admin).Expect(http.StatusOK).
		Text("data.secret")})
	s.hide(hidden{what: "a webhook's new secret", value: s.Post("/api/manage/webhooks/"+s.webhook+"/rotate", "", admin,
		parleytest.With("Idempotency-Key", "rotate")).Expect(http.StatusOK).Text("data.secret")})
	s.hide(hidden{what: "a channel's new secret", value: s.Post("/api/manage/channels/demo/secret/rotate", "", admin).Expect(http.StatusOK).
		Text("data.secret")})
	s.Post("/api/manage/webhooks/"+s.webhook+"/test", "", admin).Expect(http.StatusOK)
}

// codes has codes used, guessed at, replaced, expired, lost and left open.
func (s *verification) codes() {
	s.T.Helper()
	name := s.hide(hidden{what: "an app", value: "canary app xq", public: true, kept: true, arrived: true})
	request := func(number string, options ...parleytest.Option) (code string) {
		s.T.Helper()
		s.Post("/api/otp/code/request",
			`{"contact_id":"`+number+`@c.us","useLetter":true,"useNumber":false,"allCapital":true,"name":"`+name+`"}`, options...).
			Expect(http.StatusOK)
		return s.hide(hidden{what: "a code", value: s.Phone(number).Expect("verification code").Codes[0], arrived: true})
	}
	validate := func(number, code, status string, options ...parleytest.Option) {
		s.T.Helper()
		a := s.Post("/api/otp/code/validate", `{"contact_id":"`+number+`@c.us","code":"`+code+`"}`, options...).Expect(http.StatusOK)
		if got := a.Text("data.status"); got != status {
			s.T.Fatalf("the try is %s, want %s", got, status)
		}
	}
	guess := s.hide(hidden{what: "a guess", value: "canary-guess-c7c7"})
	used := request(buyer, parleytest.With("Idempotency-Key", "code"))
	validate(buyer, guess, "INVALID", parleytest.With("Idempotency-Key", "guess"))
	validate(buyer, used, "APPROVED", parleytest.With("Idempotency-Key", "try"))
	validate(buyer, used, "INVALID")
	expired := request(late)
	s.Post("/api/sandbox/clock", `{"advance":301}`).Expect(http.StatusOK)
	validate(late, expired, "EXPIRED")
	request(waiting) // stays open
	s.Post("/api/otp/code/request", `{"contact_id":"`+waiting+`@c.us"}`).Expect(http.StatusTooManyRequests)
	s.Post("/api/otp/code/request", `{"contact_id":"99912345670@c.us","name":"`+name+`"}`).Expect(http.StatusOK)
	s.Post("/api/sandbox/faults", `{"fault":"drop_socket","to":"`+stranger+`"}`).Expect(http.StatusOK)
	request(stranger)
	s.Post("/api/send-message/text", `{"contact_id":"`+buyer+`@c.us","message":"`+s.hide(hidden{what: "a text", value: "canary-text-b4b4",
		public: true, kept: true, arrived: true})+`"}`).Expect(http.StatusOK)
}

// links has login links used by the right phone and the wrong one, edited, expired and left open.
func (s *verification) links() {
	s.T.Helper()
	text := func(what string) string {
		return s.hide(hidden{what: what, value: "canary " + strings.ReplaceAll(what, " ", "-"), public: true, kept: true, arrived: true})
	}
	key := s.hide(hidden{what: "the query of a callback", value: "canary-callback-d6d6", public: true, kept: true})
	body := fmt.Sprintf(`,"name":"canary app xq","message":{"prompt":"%s ##code##","success":"%s","failed":"%s","expired":"%s"},`+
		`"callback":{"success":"%s/ok?key=%s","failed":"%s/no?key=%[6]s"}}`,
		text("the prompt of a link"), text("the success of a link"), text("the failure of a link"), text("the end of a link"), s.customer.URL,
		key, s.customer.URL)
	make := func(path, number string, expires int, options ...parleytest.Option) (link, code string) {
		s.T.Helper()
		a := s.Post("/api/otp/link/"+path, fmt.Sprintf(`{"contact_id":"%s@c.us","expires":%d%s`, number, expires, body), options...).
			Expect(http.StatusOK)
		s.link, link = a.Text("data.id"), a.Text("data.link")
		s.hide(hidden{what: "the code of a link", value: a.Text("data.code"), arrived: true})
		if _, ticket, ok := strings.Cut(link, "#"); ok {
			_, ticket, _ = strings.Cut(ticket, "=")
			s.hide(hidden{what: "the ticket of a link", value: ticket})
		} else {
			s.T.Errorf("the link %s has no ticket", link)
		}
		return link, a.Text("data.code")
	}
	open := func(number, link string) {
		s.T.Helper()
		s.Post("/api/sandbox/phones/"+number+"/open", fmt.Sprintf(`{"link":%q}`, link)).Expect(http.StatusOK)
	}
	link, code := make("request", buyer, 300, parleytest.With("Idempotency-Key", "link"))
	s.Post("/api/otp/link/request", fmt.Sprintf(`{"contact_id":"%s@c.us","expires":300%s`, buyer, body), parleytest.With("Idempotency-Key",
		"link")).Expect(http.StatusOK)
	s.page(link)
	open(stranger, link)
	s.Phone(stranger).Expect("canary the-failure-of-a-link")
	s.Phone(buyer).Types("Hi, this is my code: " + code)
	s.Phone(buyer).Expect("canary the-failure-of-a-link")
	open(buyer, link)
	s.Phone(buyer).Expect("canary the-success-of-a-link")
	open(buyer, link) // again
	link, _ = make("global", late, 60, parleytest.As(s.Global), parleytest.With("Idempotency-Key", "link"))
	s.Post("/api/sandbox/clock", `{"advance":61}`).Expect(http.StatusOK)
	open(late, link)
	s.Phone(late).Expect("canary the-end-of-a-link")
	make("request", waiting, 300, parleytest.With("Idempotency-Key", "open")) // stays open
}

// page loads the page of a link, as a browser does.
func (s *verification) page(link string) {
	s.T.Helper()
	resp, err := http.Get(link)
	if err != nil {
		s.T.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		s.T.Fatalf("the page of a link: %d, %v", resp.StatusCode, err)
	}
}

// mistakes calls the endpoints wrongly, with values that are nobody's business.
func (s *verification) mistakes() {
	s.T.Helper()
	wrong := s.hide(hidden{what: "a wrong value", value: "canary-wrong-a9a9"})
	for _, path := range []string{"/api/otp/code/request", "/api/otp/code/validate", "/api/otp/link/request"} {
		s.Post(path, `{"contact_id":"`+wrong+`","code":1,"expires":"`+wrong+`","message":"`+wrong+`","callback":{"success":"ftp://`+wrong+`"}}`).
			Expect(http.StatusUnprocessableEntity)
		s.Post(path, `{"`+wrong+`":`).Expect(http.StatusBadRequest)
	}
	s.Post("/phone/"+buyer+"/send", `{"ticket":"`+wrong+`","text":"`+wrong+`"}`, parleytest.As(""))
	s.Post("/api/manage/webhooks", `{"url":"http://`+wrong+`:x@y/"}`, parleytest.As(s.Admin)).Expect(http.StatusUnprocessableEntity)
	s.Get("/api/otp/link/" + wrong).Expect(http.StatusNotFound)
	s.Get("/api/events?after=" + wrong).Expect(http.StatusUnprocessableEntity)
	s.Post("/api/manage/deliveries/replay", `{"id":"`+wrong+`"}`, parleytest.As(s.Admin))
}

// readEverything reads what tells of other things than the secrets.
func (s *verification) readEverything(into map[string]string) {
	s.T.Helper()
	admin := parleytest.As(s.Admin)
	for _, path := range []string{"/api/channel/health", "/api/chat", "/api/contact", "/api/groups", "/api/otp/link/" + s.link,
		"/openapi.json", "/.well-known/jwks.json", "/livez", "/readyz", "/docs"} {
		into[path] = string(s.Get(path).Expect(http.StatusOK).Body)
	}
	for _, number := range []string{buyer, stranger, late, waiting} {
		for _, path := range []string{"/api/chat/detail?limit=100&contact_id=", "/api/contact/info?contact_id="} {
			into[path+number] = string(s.Get(path + number + "@c.us").Expect(http.StatusOK).Body)
		}
	}
	for _, path := range []string{"channels", "channels/demo", "tokens", "webhooks", "webhooks/" + s.webhook, "deliveries?limit=100"} {
		into[path] = string(s.Get("/api/manage/"+path, admin).Expect(http.StatusOK).Body)
	}
	deliveries := s.Get("/api/manage/deliveries?limit=100", admin)
	for i := range deliveries.Count("data") {
		id := deliveries.Text(fmt.Sprintf("data.%d.id", i))
		into["delivery "+id] = string(s.Get("/api/manage/deliveries/"+id, admin).Expect(http.StatusOK).Body)
	}
	// The stored response of a repeated request does not contain the secret.
	into["a repeated change of a secret"] = string(s.Post("/api/manage/webhooks/"+s.webhook+"/rotate", "", admin,
		parleytest.With("Idempotency-Key", "rotate")).Expect(http.StatusOK).Body)
}

// customer is the server of somebody who uses the gateway, and what it was sent.
type customer struct {
	*httptest.Server
	mu    sync.Mutex
	all   bytes.Buffer
	count map[string]int
}

func newCustomer(t *testing.T) *customer {
	c := &customer{count: map[string]int{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.count[r.URL.Path]++
		fmt.Fprintln(&c.all, r.Method, r.URL, r.Header, string(body))
		if r.URL.Path == "/broken" {
			http.Error(w, "no", http.StatusInternalServerError)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *customer) got(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count[path]
}

func (c *customer) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all.String()
}

// listen follows the event stream until the test ends.
func listen(t *testing.T, e *parleytest.Env) *parleytest.Log {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", e.URL+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	parleytest.As(e.Token)(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the stream is answered %d", resp.StatusCode)
	}
	received := &parleytest.Log{}
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = bufio.NewReader(resp.Body).WriteTo(received) }) // until it is closed
	t.Cleanup(func() { cancel(); resp.Body.Close(); wg.Wait() })
	return received
}

// backUp makes a backup of a running gateway and returns the folder that it is in.
func backUp(t *testing.T, e *parleytest.Env) (dir string) {
	t.Helper()
	data := e.OpenData()
	defer data.Close()
	dir = t.TempDir()
	file, err := os.OpenFile(filepath.Join(dir, "backup.tar"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := app.Backup(t.Context(), data, file, func(int64, int64) {}); err != nil {
		t.Fatal(err)
	}
	if info, err := file.Stat(); err != nil || info.Size() < 10_000 {
		t.Fatalf("the backup is %v (%v)", info, err)
	}
	return dir
}
