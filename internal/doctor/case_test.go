package doctor

import (
	"context"
	"errors"
	"maps"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"parley"
)

// TestCases holds that every case has a name of its own.
func TestCases(t *testing.T) {
	seen := map[string]bool{"": true}
	for _, c := range Cases() {
		if seen[c.String()] {
			t.Errorf("case %d is called %q", c, c)
		}
		seen[c.String()] = true
	}
}

// TestFindingsSayWhatTheCasesHave holds that every finding of a server is of a case, with the values that are
// listed for it.
func TestFindingsSayWhatTheCasesHave(t *testing.T) {
	size := func(context.Context) (int64, error) { return 1, nil }
	looked, err := Database{Path: t.TempDir(), Size: size}.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shop := parley.Channel{Code: "shop", Enabled: true, State: parley.ChannelState{Status: parley.Failed, Reason: "Why."}}
	findings := append(Channels([]parley.Channel{shop}, true), Directory(t.TempDir()+"/nothing")...)
	findings = append(findings, looked, Broken(errors.New("damaged")), Ready("http://127.0.0.1:1", 7), NotReady("http://127.0.0.1:1", "Why."),
		unwritable(errors.New("full")), FFmpeg(t.Context()),
		Settings{}.Look(), Settings{File: "parley.toml", Flags: 2}.Look(), Clock(0), Clock(7*time.Second), Clock(-time.Hour),
		Reach{Listen: "127.0.0.1:1"}.Look(), Reach{Listen: "127.0.0.1:1", TLS: true}.Look(), Reach{Listen: "127.0.0.1:1", BehindProxy: true}.Look(),
		Reach{Listen: "127.0.0.1:1", UntrustedProxy: true}.Look(),
		checkClient(&debug.BuildInfo{}, true, time.Now()))
	for _, w := range []parley.Webhook{
		{URL: "http://a"}, {URL: "https://a"}, {URL: "https://a", DisabledAt: time.Now(), Reason: "Why."}, {URL: "http://a", Failures: 3, FailingSince: time.Now()},
	} {
		of, err := Webhooks(t.Context(), oneWebhook{webhook: w})
		if err != nil {
			t.Fatal(err)
		}
		findings = append(findings, of...)
	}
	for _, kind := range []parley.EventType{parley.OTPPaused, parley.OTPGuessing} {
		alarm := parley.OTPAlarm{Channel: "shop", Type: kind, At: time.Now(), Until: time.Now().Add(time.Minute), Count: 501}
		of, err := Attacks(t.Context(), oneAlarm{alarm: alarm}, []parley.Channel{shop}, time.Now())
		if err != nil || len(of) != 1 {
			t.Fatalf("%s: %+v, %v", kind, of, err)
		}
		findings = append(findings, of[0].Finding)
	}
	for _, f := range findings {
		for _, name := range slices.Sorted(maps.Keys(f.Values)) {
			if !slices.Contains(f.Case.Values(), name) {
				t.Errorf("%s has a value %s that is not listed", f.Case, name)
			}
		}
		for _, name := range f.Case.Values() {
			if _, there := f.Values[name]; !there && name != "reason" {
				t.Errorf("%q, %s, has no %s", f.Found, f.Case, name)
			}
		}
		if f.Case == unnamed || f.Case.HasRemedy() != (f.Remedy != "" && isSentence(f.Remedy)) {
			t.Errorf("%+v is of the case %q, whose remedy is a sentence: %v", f, f.Case, f.Case.HasRemedy())
		}
	}
}

// isSentence tells remedies for people from commands.
func isSentence(remedy string) bool {
	return !slices.ContainsFunc([]string{"parley ", "chmod "}, func(command string) bool { return len(remedy) > len(command) && remedy[:len(command)] == command })
}

// oneWebhook is a store in which there is one webhook and no delivery.
type oneWebhook struct {
	parley.Reader
	webhook parley.Webhook
}

func (o oneWebhook) Webhooks(context.Context) ([]parley.Webhook, error) {
	return []parley.Webhook{o.webhook}, nil
}

func (oneWebhook) OldestDelivery(context.Context, parley.WebhookID, bool) (parley.Delivery, error) {
	return parley.Delivery{Problem: "timeout"}, nil
}

// oneAlarm is a store in which there is one alarm of one-time codes.
type oneAlarm struct {
	parley.Reader
	alarm parley.OTPAlarm
}

func (o oneAlarm) OTPAlarms(context.Context) ([]parley.OTPAlarm, error) {
	return []parley.OTPAlarm{o.alarm}, nil
}

// TestAttacksThatAreOver has an alarm end, by the channel's own clock.
func TestAttacksThatAreOver(t *testing.T) {
	now := time.Now()
	store := oneAlarm{alarm: parley.OTPAlarm{Channel: "shop", Type: parley.OTPPaused, At: now, Until: now.Add(time.Minute)}}
	for _, test := range []struct {
		code  parley.ChannelCode
		ahead time.Duration
		later time.Duration
		want  int
	}{
		{"shop", 0, 0, 1}, {"shop", 0, time.Minute, 0}, {"shop", time.Minute, 0, 0}, {"other", 0, 0, 0},
	} {
		channel := parley.Channel{Code: test.code, Settings: parley.ChannelSettings{ClockAhead: parley.Duration(test.ahead)}}
		got, err := Attacks(t.Context(), store, []parley.Channel{channel}, now.Add(test.later))
		if err != nil || len(got) != test.want {
			t.Errorf("%+v: %+v, %v", test, got, err)
		}
	}
}

func TestClock(t *testing.T) {
	for ahead, want := range map[time.Duration]Finding{
		5 * time.Second:  {Level: Fine, Found: "agrees with WhatsApp's"},
		7 * time.Second:  {Level: Warning, Found: "The clock of this machine is 7 s ahead of WhatsApp's."},
		-7 * time.Second: {Level: Warning, Found: "The clock of this machine is 7 s behind WhatsApp's."},
		-time.Hour:       {Level: Problem, Found: "The clock of this machine is 1 h behind WhatsApp's."},
	} {
		if f := Clock(ahead); f.Level != want.Level || f.Found != want.Found {
			t.Errorf("%s: %+v", ahead, f)
		}
	}
}
