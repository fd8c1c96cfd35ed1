package callback_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
)

// gaps are the times between requests.
func gaps(hits []hit) []time.Duration {
	var all []time.Duration
	for i := 1; i < len(hits); i++ {
		all = append(all, hits[i].at.Sub(hits[i-1].at))
	}
	return all
}

func TestWebhookSchedule(t *testing.T) {
	inBubble(t, func(e *env) {
		e.webhook("https://crm.example/hook")
		e.servers.on("crm.example", always(500))
		e.start()
		began := time.Now()
		e.says(ann, "hello")
		pass(100 * time.Hour)
		hits := e.servers.at("crm.example")
		if first := hits[0].at.Sub(began); first > time.Second {
			e.Errorf("the first attempt came after %v", first)
		}
		want := []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
			10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
		got := gaps(hits)
		if len(got) != len(want) {
			e.Fatalf("%d attempts, want %d", len(hits), len(want)+1)
		}
		exact := true
		for i := range want {
			slack := want[i]/5 + 50*time.Millisecond
			if got[i] < want[i]-slack || got[i] > want[i]+slack {
				e.Errorf("attempt %d came after %v, want %v ± 20 %%", i+2, got[i], want[i])
			}
			exact = exact && got[i].Round(time.Second) == want[i]
		}
		if exact {
			e.Error("the attempts come without jitter")
		}
		for _, h := range hits[1:] {
			if h.id() != hits[0].id() || h.header.Get("webhook-timestamp") == hits[0].header.Get("webhook-timestamp") ||
				h.header.Get("X-Request-Id") == hits[0].header.Get("X-Request-Id") || string(h.body) != string(hits[0].body) {
				e.Errorf("a retry must have the same id and body, and its own time and request id: %v", h.header)
			}
		}
		d := e.only()
		if d.State != parley.DeliveryFailed || d.Attempts != 10 || d.Code != 500 || d.Response != "answer 500" ||
			!strings.HasPrefix(d.Problem, "http_status: ") || d.EndedAt.IsZero() {
			e.Errorf("in the end: %+v", d)
		}
	})
}

func TestCallbackSchedule(t *testing.T) {
	inBubble(t, func(e *env) {
		e.servers.on("app.example", always(404))
		e.start()
		pass(time.Minute)
		began := time.Now()
		e.calls("https://app.example/ok", parley.OTPApproved, "")
		pass(10 * time.Hour)
		hits := e.servers.at("app.example")
		if first := hits[0].at.Sub(began); first > time.Second {
			e.Errorf("the first attempt came after %v", first)
		}
		want := []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour}
		got := gaps(hits)
		if len(got) != len(want) {
			e.Fatalf("%d attempts, want %d", len(hits), len(want)+1)
		}
		for i := range want {
			if diff := got[i] - want[i]; diff < -time.Millisecond || diff > 50*time.Millisecond {
				e.Errorf("attempt %d came after %v, want %v", i+2, got[i], want[i])
			}
		}
		if d := e.only(); d.State != parley.DeliveryFailed || d.Attempts != 7 {
			e.Errorf("in the end: %+v", d)
		}
	})
}

// TestHistory has a receiver fail in different ways before it takes an event, and then once more.
func TestHistory(t *testing.T) {
	inBubble(t, func(e *env) {
		e.webhook("https://crm.example/hook", parley.MessageReceived)
		turns := []func(*http.Request) (*http.Response, error){
			func(*http.Request) (*http.Response, error) {
				resp := answer(500)
				resp.Body = io.NopCloser(strings.NewReader(strings.Repeat("é", 600)))
				return resp, nil
			},
			tarpit, always(200), always(404), always(204),
		}
		e.servers.on("crm.example", func(req *http.Request) (*http.Response, error) {
			turn := turns[0]
			turns = turns[1:]
			return turn(req)
		})
		e.start()
		e.says(ann, "hello")
		pass(2 * time.Second)
		if d := e.only(); len(d.Earlier) != 0 || len(d.Response) < 1000 || len(d.History()) != 1 {
			e.Errorf("after one attempt: %+v", d)
		}
		pass(time.Hour)
		d := e.only()
		e.tx(func(tx *store.Tx) error {
			_, err := tx.ReplayDeliveries(e.Context(), parley.DeliveryQuery{IDs: []parley.DeliveryID{d.ID}}, time.Now(), 1)
			return err
		})
		e.engine.Reload()
		pass(time.Hour)
		if d = e.only(); d.State != parley.DeliveryDone || d.Attempts != 2 {
			e.Errorf("in the end: %+v", d)
		}
		hits, history := e.servers.at("crm.example"), d.History()
		want := []struct {
			code    int
			problem string
			took    time.Duration
			answer  string
		}{
			{500, "http_status", 0, strings.Repeat("é", 256)},
			{0, "connect", 15 * time.Second, ""},
			{200, "", 0, ""},
			{404, "http_status", 0, "answer 404"},
			{204, "", 0, ""},
		}
		if len(history) != len(want) {
			e.Fatalf("%d attempts: %+v", len(history), history)
		}
		for i, w := range want {
			got := history[i]
			word, _, _ := strings.Cut(got.Problem, ":")
			if got.Number != i+1 || !got.At.Equal(hits[i].at.Truncate(time.Millisecond)) || got.Took.Truncate(time.Second) != w.took ||
				got.Code != w.code || word != w.problem || got.Response != w.answer {
				e.Errorf("attempt %d: %+v, want %+v", i+1, got, w)
			}
		}
	})
}

func TestTimeouts(t *testing.T) {
	inBubble(t, func(e *env) {
		e.webhook("https://crm.example/hook", parley.MessageReceived)
		ended := make(chan time.Duration, 2)
		for _, host := range []string{"crm.example", "app.example"} {
			e.servers.on(host, func(req *http.Request) (*http.Response, error) {
				began := time.Now()
				defer func() { ended <- time.Since(began) }()
				return tarpit(req)
			})
		}
		e.start()
		e.says(ann, "hello")
		e.calls("https://app.example/ok", parley.OTPApproved, "")
		pass(18 * time.Second)
		if callback, webhook := <-ended, <-ended; callback != 10*time.Second || webhook != 15*time.Second {
			e.Errorf("given up after %v and %v", callback, webhook)
		}
	})
}

func TestStatusCodes(t *testing.T) {
	const delivered, again, off = "delivered", "again", "off"
	for code, want := range map[int]string{
		200: delivered, 201: delivered, 202: delivered, 203: delivered, 204: delivered, 205: delivered, 206: delivered, 226: delivered,
		299: delivered,
		300: again, 301: again, 302: again, 303: again, 304: again, 307: again, 308: again,
		400: again, 401: again, 402: again, 403: again, 404: again, 405: again, 408: again, 409: again, 410: off, 413: again,
		418: again, 422: again, 429: again,
		500: again, 501: again, 502: again, 503: again, 504: again, 599: again,
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			inBubble(t, func(e *env) {
				w := e.webhook("https://crm.example/hook", parley.MessageReceived)
				e.servers.on("crm.example", always(code))
				e.servers.on("app.example", always(code))
				e.start()
				e.says(ann, "hello")
				e.calls("https://app.example/ok", parley.OTPApproved, "")
				pass(time.Second)
				all := e.deliveries(parley.DeliveryQuery{})
				if len(all) != 2 {
					e.Fatalf("%d deliveries", len(all))
				}
				for _, d := range all {
					state := parley.DeliveryWaiting
					if want == delivered {
						state = parley.DeliveryDone
					}
					if d.State != state || d.Code != code || d.Attempts != 1 || (d.Problem == "") != (want == delivered) {
						e.Errorf("%+v", d)
					}
				}
				if got := e.readWebhook(w.ID); got.IsEnabled() != (want != off) || (got.Failures == 0) != (want == delivered) {
					e.Errorf("the webhook: %+v", got)
				}
			})
		})
	}
}

func TestRetryAfter(t *testing.T) {
	for _, test := range []struct {
		code  int
		asked string
		want  time.Duration // of the first retry; 0: by the schedule
	}{
		{503, "120", 120 * time.Second},
		{429, "90000", 24 * time.Hour},
		{502, "3600", time.Hour},
		{504, "Sat, 01 Jan 2000 00:10:00 GMT", 10 * time.Minute},
		{503, "Fri, 31 Dec 1999 00:00:00 GMT", 0},
		{503, "1", 0}, // waiting longer than asked is no offence
		{503, "-5", 0},
		{503, "soon", 0},
		{503, "99999999999999999999", 0},
		{500, "120", 0},
		{301, "120", 0},
	} {
		t.Run(fmt.Sprintf("%d %s", test.code, test.asked), func(t *testing.T) {
			inBubble(t, func(e *env) {
				e.webhook("https://crm.example/hook")
				e.servers.on("crm.example", func(*http.Request) (*http.Response, error) {
					resp := answer(test.code)
					resp.Header.Set("Retry-After", test.asked)
					return resp, nil
				})
				e.start()
				e.says(ann, "hello")
				pass(25 * time.Hour)
				got := gaps(e.servers.at("crm.example"))[0]
				low, high := test.want, test.want+time.Second
				if test.want == 0 {
					low, high = 4*time.Second, 6*time.Second+50*time.Millisecond
				}
				if got < low-20*time.Millisecond || got > high {
					e.Errorf("tried again after %v", got)
				}
			})
		})
	}
}

func TestPausedEndpointGetsNothing(t *testing.T) {
	inBubble(t, func(e *env) {
		e.webhook("https://crm.example/hook")
		e.servers.on("crm.example", func(*http.Request) (*http.Response, error) {
			resp := answer(429)
			resp.Header.Set("Retry-After", "3600")
			return resp, nil
		})
		e.start()
		e.says(ann, "one")
		pass(time.Second)
		e.says(bob, "two") // another chat: it waits for a minute, not for an hour
		pass(30 * time.Second)
		if n := len(e.servers.at("crm.example")); n != 1 {
			e.Errorf("%d attempts within the first half minute", n)
		}
		pass(time.Minute)
		if n := len(e.servers.at("crm.example")); n != 2 {
			e.Errorf("%d attempts within the first minutes", n)
		}
	})
}
