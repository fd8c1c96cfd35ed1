package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/gateway"
	"parley/internal/network"
	"parley/internal/otp"
	"parley/internal/store"
)

// fallbackBench has three channels and codes.
type fallbackBench struct {
	*bench
	issuer *otp.Issuer
	// answers say what the networks of the channels respond; nil: they confirm.
	answers map[parley.ChannelCode]*atomic.Pointer[error]
}

var hops = []parley.ChannelCode{"demo", "second", "third"}

func newFallbackBench(t *testing.T) *fallbackBench {
	b := &fallbackBench{bench: newBench(t), answers: map[parley.ChannelCode]*atomic.Pointer[error]{}}
	for _, code := range hops {
		b.answers[code] = &atomic.Pointer[error]{}
		if code != "demo" {
			b.tx(func(tx *store.Tx) error {
				return tx.AddChannel(t.Context(), parley.Channel{Code: code, Name: "Toko", Network: parley.Sandbox, Enabled: true})
			})
		}
	}
	b.driver.answer = func(m *parley.Message) error {
		if err := b.answers[m.Channel].Load(); err != nil {
			return *err
		}
		return nil
	}
	b.refresh()
	b.issuer = otp.New(otp.Config{Store: b.store, Keyring: b.keyring, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		Now:     func(code parley.ChannelCode) time.Time { return b.g.Now(code) },
		Network: func(name parley.NetworkName) network.Info { return b.g.Network(name) }})
	return b
}

func (b *fallbackBench) respond(code parley.ChannelCode, err error) { b.answers[code].Store(&err) }

// request asks for a code on all channels, and returns it as its recipient reads it.
func (b *fallbackBench) request(first int) (string, parley.OTPID) {
	b.t.Helper()
	order := otp.CodeRequest{Contact: ayu, Name: "Toko", Length: 6, Digits: true, TTL: 5 * time.Minute, First: first, Token: "tok_1"}
	for _, code := range hops {
		c, _ := b.g.Channel(code)
		order.Channels = append(order.Channels, c)
	}
	order.Channel = order.Channels[0]
	issue, err := b.issuer.NewCode(b.t.Context(), order)
	if err != nil {
		b.t.Fatal(err)
	}
	defer issue.Close(b.t.Context())
	var drafts []gateway.Draft
	if first == 0 {
		drafts = []gateway.Draft{{To: ayu, Content: issue.Content, ExpiresAt: issue.Code.ExpiresAt, Priority: issue.Priority, Token: "tok_1"}}
	}
	_, err = b.g.Send(b.t.Context(), "demo", drafts, gateway.SendOptions{
		Accepted: func(tx *store.Tx, ms []parley.Message) error { return issue.Store(b.t.Context(), tx, ms...) }})
	if err != nil {
		b.t.Fatal(err)
	}
	b.g.ContinueCodes()
	text, err := b.keyring.Decrypt(issue.Code.Encrypted, string(issue.Code.ID))
	if err != nil {
		b.t.Fatal(err)
	}
	code, _, _ := strings.Cut(string(text), parley.CodeSeparator)
	return code, issue.Code.ID
}

// wantCopies checks the copies of the code on each channel, as "status reason", and the channels that were tried.
func (b *fallbackBench) wantCopies(code string, want map[parley.ChannelCode]string, tried ...parley.ChannelCode) {
	b.t.Helper()
	for _, hop := range hops {
		ms, _, err := b.g.History(b.t.Context(), hop, ayu, parley.Page{Limit: 10})
		if parley.IgnoreNotFound(err) != nil { // a channel may be deleted
			b.t.Fatal(err)
		}
		got := ""
		for _, m := range ms {
			got += strings.TrimSpace(m.Status.String() + " " + reason(m.Failure))
			if m.Copies > 0 {
				got += " possible duplicate"
			}
			if m.Token != "tok_1" || !strings.Contains(m.Content.Text(), "••••••") || strings.Contains(m.Content.Text(), code) {
				b.t.Errorf("on %s there is %+v", hop, m)
			}
		}
		if got != want[hop] {
			b.t.Errorf("on %s there is %q, want %q", hop, got, want[hop])
		}
	}
	l, err := b.store.Ledger(b.t.Context(), "demo", ayu)
	if err != nil {
		b.t.Fatal(err)
	}
	if !slices.Equal(l.Code.Tried, tried) || len(l.Requests) != 1 {
		b.t.Errorf("tried %v, want %v; %d requests were counted", l.Code.Tried, tried, len(l.Requests))
	}
}

func reason(f *parley.Failure) string {
	if f == nil {
		return ""
	}
	return string(f.Code)
}

// ended lists the published events of codes.
func (b *fallbackBench) ended() (events []string) {
	b.t.Helper()
	all, _, err := b.store.Events(b.t.Context(), 0, parley.EventFilter{Types: []parley.EventType{parley.OTPFailed, parley.OTPApproved}}, 100)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range all {
		events = append(events, string(e.Channel)+" "+string(e.Type)+" "+string(e.Data))
	}
	return events
}

func refused(code parley.FailureCode) error { return network.Refuse(code, "No.") }

var errNotNow = &network.Error{Class: network.Temporary, Failure: parley.Failure{Message: "Not now."}, RetryAfter: time.Minute}

// TestFallback has a code go on to the next channel, or stay, for each reason.
func TestFallback(t *testing.T) {
	lost := &network.Error{Class: network.Unknown, RetryAfter: time.Minute}
	for name, test := range map[string]struct {
		first, second error
		after         time.Duration // when it is looked at
		demo, other   string
		tried         []parley.ChannelCode
		ended         string // what an event contains; empty: there is none
	}{
		"sent":        {nil, nil, time.Minute, "SENT", "", hops[:1], ""},
		"restricted":  {refused(parley.Restricted), nil, 0, "FAILED restricted", "SENT", hops[:2], ""},
		"quota":       {refused("quota"), nil, 0, "FAILED quota", "SENT", hops[:2], ""},
		"payment":     {refused(parley.PaymentProblem), nil, 0, "FAILED payment", "SENT", hops[:2], ""},
		"template":    {refused(parley.TemplateProblem), nil, 0, "FAILED template", "SENT", hops[:2], ""},
		"refused":     {refused(parley.Refused), nil, 0, "FAILED refused", "SENT", hops[:2], ""},
		"unsupported": {refused(parley.Unsupported), nil, 0, "FAILED unsupported", "SENT", hops[:2], ""},
		"gave up":     {refused(parley.GaveUp), nil, 0, "FAILED gave_up", "SENT", hops[:2], ""},
		"not on the network": {refused(parley.NotOnNetwork), nil, time.Minute, "FAILED not_on_network", "", hops[:1],
			`"reason":"not_on_network"`},
		"blocked":              {refused(parley.Blocked), nil, time.Minute, "FAILED blocked", "", hops[:1], `"reason":"blocked"`},
		"a network that waits": {errNotNow, nil, 12 * time.Second, "FAILED not_sent", "SENT", hops[:2], ""},
		"not yet":              {errNotNow, nil, 9 * time.Second, "PENDING", "", hops[:1], ""},
		"a lost response":      {lost, nil, 12 * time.Second, "FAILED unknown_outcome possible duplicate", "SENT", hops[:2], ""},
		"two do not send it":   {errNotNow, errNotNow, 30 * time.Second, "FAILED not_sent", "FAILED not_sent", hops, ""},
		"the second does not know": {refused(parley.Refused), refused(parley.NotOnNetwork), time.Minute, "FAILED refused",
			"FAILED not_on_network", hops[:2], `"not_on_network","channels_tried":["demo","second"]`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFallbackBench(t)
				if test.first != nil {
					b.respond("demo", test.first)
				}
				if test.second != nil {
					b.respond("second", test.second)
				}
				code, _ := b.request(0)
				time.Sleep(test.after)
				synctest.Wait()
				want := map[parley.ChannelCode]string{"demo": test.demo, "second": test.other}
				if len(test.tried) == 3 {
					want["third"] = "SENT"
				}
				b.wantCopies(code, want, test.tried...)
				got := b.ended()
				if len(got) > 1 || (len(got) == 1) != (test.ended != "") || len(got) == 1 && !strings.Contains(got[0], test.ended) {
					t.Errorf("published %q, want %q", got, test.ended)
				}
				if len(test.tried) > 1 && test.ended == "" { // it is the code of the first channel, and works once
					for _, want := range []parley.OTPStatus{parley.OTPStatusApproved, parley.OTPStatusInvalid} {
						try, err := b.issuer.Validate(t.Context(), "demo", ayu, code, nil)
						if err != nil || try.Status != want || want == parley.OTPStatusApproved && !slices.Equal(try.Tried, test.tried) {
							t.Errorf("the code is %+v: %v", try, err)
						}
					}
					got := b.ended()
					if len(got) != 1 || !strings.HasPrefix(got[0], "demo otp.approved") ||
						!strings.Contains(got[0], `"channels_tried":["demo","second"`) {
						t.Errorf("published %q", got)
					}
				}
			})
		})
	}
}

// TestFallbackFailsOnce publishes one failure when no channel sends a code, and none for copies that were withdrawn.
func TestFallbackFailsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFallbackBench(t)
		b.respond("demo", errNotNow)
		b.respond("second", refused(parley.Restricted))
		b.respond("third", refused(parley.Refused))
		code, id := b.request(0)
		time.Sleep(time.Minute)
		synctest.Wait()
		b.wantCopies(code, map[parley.ChannelCode]string{
			"demo": "FAILED not_sent", "second": "FAILED restricted", "third": "FAILED refused"}, hops...)
		want := fmt.Sprintf(`demo otp.failed {"id":%q,"contact_id":%q,"reason":"refused","channels_tried":["demo","second","third"]}`, id, ayu)
		if got := b.ended(); len(got) != 1 || got[0] != want {
			t.Errorf("published %q, want %q", got, want)
		}
	})
}

// TestFallbackSkipsUnusable leaves out channels that are stopped or deleted, at the beginning and later.
func TestFallbackSkipsUnusable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFallbackBench(t)
		b.stopChannel("demo")
		b.stopChannel("second")
		code, _ := b.request(2)
		synctest.Wait()
		b.wantCopies(code, map[parley.ChannelCode]string{"third": "SENT"}, hops...)
	})
	synctest.Test(t, func(t *testing.T) {
		b := newFallbackBench(t)
		b.respond("demo", errNotNow)
		code, _ := b.request(0)
		if _, err := b.g.DeleteChannel(t.Context(), "second"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12 * time.Second)
		synctest.Wait()
		b.wantCopies(code, map[parley.ChannelCode]string{"demo": "FAILED not_sent", "third": "SENT"}, hops...)
	})
}

// TestFallbackStaysWithoutAnother keeps the copy in the queue while no other channel can be used.
func TestFallbackStaysWithoutAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFallbackBench(t)
		b.respond("demo", errNotNow)
		b.stopChannel("second")
		b.stopChannel("third")
		code, _ := b.request(0)
		time.Sleep(25 * time.Second)
		synctest.Wait()
		b.wantCopies(code, map[parley.ChannelCode]string{"demo": "PENDING"}, "demo")
		if _, err := b.g.StartChannel(t.Context(), "third"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12 * time.Second)
		synctest.Wait()
		b.wantCopies(code, map[parley.ChannelCode]string{"demo": "FAILED not_sent", "third": "SENT"}, hops...)
	})
}

// TestFallbackAfterRestart goes on with a code that an earlier process accepted. That one may have sent it.
func TestFallbackAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFallbackBench(t)
		b.respond("demo", errNotNow)
		code, _ := b.request(0)
		synctest.Wait()
		b.restart()
		time.Sleep(12 * time.Second)
		synctest.Wait()
		b.wantCopies(code, map[parley.ChannelCode]string{"demo": "FAILED unknown_outcome possible duplicate", "second": "SENT"}, hops[:2]...)
	})
}

// TestFallbackInFlight marks a copy that the network has not answered for. It counts as delivered when it arrives nevertheless.
func TestFallbackInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFallbackBench(t)
		answered := make(chan struct{})
		b.driver.answer = func(m *parley.Message) error {
			if m.Channel == "demo" {
				<-answered
			}
			return nil
		}
		code, _ := b.request(0)
		time.Sleep(12 * time.Second)
		synctest.Wait()
		copies := map[parley.ChannelCode]string{"demo": "FAILED unknown_outcome possible duplicate", "second": "SENT"}
		b.wantCopies(code, copies, hops[:2]...)
		close(answered)
		synctest.Wait()
		b.wantCopies(code, copies, hops[:2]...)
		sent := b.driver.session("demo").given
		arrived := network.Receipt{From: ayu, IDs: []parley.MessageID{sent[0].ID}, Status: parley.Delivered, At: time.Now()}
		if err := b.driver.sink("demo")(t.Context(), arrived); err != nil {
			t.Fatal(err)
		}
		copies["demo"] = "DELIVERED possible duplicate"
		b.wantCopies(code, copies, hops[:2]...)
		if len(sent) != 1 {
			t.Errorf("it was sent %d times", len(sent))
		}
	})
}

// TestFallbackEndsWithItsCode tries nothing more for a code that was used, replaced or has expired.
func TestFallbackEndsWithItsCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFallbackBench(t)
		b.respond("demo", errNotNow)
		code, _ := b.request(0)
		if try, err := b.issuer.Validate(t.Context(), "demo", ayu, code, nil); err != nil || try.Status != parley.OTPStatusApproved {
			t.Fatalf("%+v, %v", try, err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		b.wantCopies(code, map[parley.ChannelCode]string{"demo": "FAILED expired"}, "demo")
		due, err := b.store.DueFallbacks(context.Background(), time.Now().Add(time.Hour), 10)
		if err != nil || len(due) != 0 {
			t.Errorf("still due: %+v, %v", due, err)
		}
	})
}

func (b *fallbackBench) stopChannel(code parley.ChannelCode) {
	b.t.Helper()
	if _, err := b.g.StopChannel(b.t.Context(), code); err != nil {
		b.t.Fatal(err)
	}
}
