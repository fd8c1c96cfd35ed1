package doctor

import (
	"errors"
	"net/netip"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
)

func TestChannels(t *testing.T) {
	since := time.Date(2026, 11, 15, 8, 30, 0, 0, time.Local)
	for _, c := range []struct {
		status  parley.ChannelStatus
		enabled bool
		running bool
		lasts   time.Duration
		want    Finding
	}{
		{parley.ChannelWorking, true, true, 0, Finding{Level: Fine, Found: "WORKING since 2026-11-15 08:30:00"}},
		{parley.ChannelStopped, false, true, 0, Finding{Level: Fine, Found: "STOPPED since 2026-11-15 08:30:00"}},
		{parley.ChannelLoggedOut, true, false, 0, Finding{Level: Fine, Found: "LOGGED_OUT since 2026-11-15 08:30:00"}},
		{parley.ChannelLoggedOut, true, true, 0, Finding{Level: Problem, Code: "channel_logged_out",
			Found: "LOGGED_OUT since 2026-11-15 08:30:00: Why.", Remedy: "parley channel pair shop",
			Sentence: "Channel shop is logged out and sends nothing. Pair it again. Why."}},
		{parley.ChannelScanQRCode, true, true, 0, Finding{Level: Warning, Code: "channel_not_paired",
			Found: "SCAN_QR_CODE since 2026-11-15 08:30:00: Why.", Remedy: "parley channel pair shop",
			Sentence: "Channel shop is not paired. Pair its phone. Why."}},
		{parley.ChannelFailed, true, true, 0, Finding{Level: Problem, Code: "channel_failed",
			Found: "FAILED since 2026-11-15 08:30:00: Why.", Remedy: "parley channel show shop", Sentence: "Channel shop failed. Why."}},
		{parley.ChannelReconnecting, true, true, recoveryTime - 1, Finding{Level: Fine,
			Found: "RECONNECTING since 2026-11-15 08:30:00: Why."}},
		{parley.ChannelReconnecting, true, true, recoveryTime, Finding{Level: Warning, Code: "channel_reconnecting",
			Found:    "RECONNECTING since 2026-11-15 08:30:00: Why.",
			Sentence: "Channel shop has been RECONNECTING for 1 min. Why."}},
		{parley.ChannelReconnecting, true, true, longRecovery, Finding{Level: Problem, Code: "channel_reconnecting",
			Found: "RECONNECTING since 2026-11-15 08:30:00: Why.", Remedy: "parley channel show shop",
			Sentence: "Channel shop has been RECONNECTING for 15 min. Why."}},
	} {
		channel := parley.Channel{Code: "shop", Enabled: c.enabled, State: parley.ChannelState{Status: c.status, Reason: "Why.", Since: since}}
		c.want.Check, c.want.Channel, c.want.Since = "channel shop", "shop", since
		if got := Channels([]parley.Channel{channel}, c.running, since.Add(c.lasts)); !reflect.DeepEqual(got, []Finding{c.want}) {
			t.Errorf("%s for %s: %+v, want %+v", c.status, c.lasts, got, c.want)
		}
	}
}

func TestRestricted(t *testing.T) {
	end := time.Date(2026, 11, 15, 9, 0, 0, 0, time.Local)
	got := Restricted([]parley.Channel{{Code: "a"}, {Code: "b", Restricted: true, RestrictedUntil: end},
		{Code: "c", Restricted: true, RestrictedUntil: end.Add(-time.Hour)}}, end.Add(-time.Minute))
	if len(got) != 1 || got[0].Channel != "b" || got[0].Level != Warning || !got[0].Until.Equal(end) {
		t.Errorf("found %+v", got)
	}
}

// TestAttention holds what needs attention and in which order, and how it is counted and said.
func TestAttention(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 15, 8, minute, 0, 0, time.UTC) }
	findings := []Finding{
		{Check: "server", Level: Fine, Found: "is ready"},
		{Check: "clock", Level: Warning, Found: "The clock is wrong.", Since: at(9)},
		{Check: "data", Level: Problem, Found: "is open to others", Since: at(1)},
		{Check: "channel a", Level: Problem, Found: "FAILED since 8:02", Sentence: "Channel a failed.", Since: at(2)},
	}
	var texts []string
	for _, f := range Attention(findings) {
		texts = append(texts, f.Text())
	}
	want := []string{"Channel a failed.", "Data: is open to others.", "The clock is wrong."}
	if !slices.Equal(texts, want) {
		t.Errorf("%q, want %q", texts, want)
	}
	if problems, warnings := CountLevels(findings); problems != 2 || warnings != 1 {
		t.Errorf("%d problems, %d warnings", problems, warnings)
	}
}

func TestCodesThatDoNotArrive(t *testing.T) {
	for codes, want := range map[[2]int64]int{{9, 0}: 0, {10, 5}: 0, {10, 4}: 1} {
		if got := Codes(codes[0], codes[1]); len(got) != want {
			t.Errorf("%v: %+v", codes, got)
		}
	}
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	for mode, want := range map[os.FileMode]int{0o700: 0, 0o755: 1, 0o710: 1} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if got := Directory(dir); len(got) != want || want > 0 && (got[0].Level != Problem || got[0].Remedy != "chmod 700 "+dir) {
			t.Errorf("mode %04o: %+v", mode, got)
		}
	}
	if got := Directory(dir + "/nothing"); len(got) != 1 || got[0].Level != Problem {
		t.Errorf("of a directory that is not there: %+v", got)
	}
}

func TestDatabase(t *testing.T) {
	locked := &parley.Error{Code: parley.Unavailable, Message: "Another program has locked the database.", Cause: errors.New("busy")}
	f := Database(t.TempDir(), 1_234_567, true, locked)
	if f.Level != Problem || !strings.HasSuffix(f.Found, ": Another program has locked the database.") {
		t.Errorf("a database that cannot be written to: %+v", f)
	}
	for checked, want := range map[bool]string{true: ", checked", false: ", not checked for damage"} {
		f := Database(t.TempDir(), 1_234_567, checked, nil)
		if !strings.Contains(f.Found, " 1.2 MB, ") || !strings.HasSuffix(f.Found, want) {
			t.Errorf("%+v", f)
		}
	}
}

func TestExposure(t *testing.T) {
	for _, c := range []struct {
		tls, proxy bool
		level      Level
		says       string
	}{
		{false, false, Fine, "this machine alone"}, {true, false, Fine, "with TLS"}, {true, true, Fine, "with TLS"}, {false, true, Fine,
			"a proxy must be in front"},
	} {
		if f := (Reach{Listen: "127.0.0.1:1", TLS: c.tls, BehindProxy: c.proxy}).Look(); f.Level != c.level || !strings.Contains(f.Found,
			c.says) {
			t.Errorf("TLS %v, proxy %v: %+v", c.tls, c.proxy, f)
		}
	}
	untrusted := Reach{Listen: "127.0.0.1:1", UntrustedProxy: true}.Look()
	if untrusted.Level != Warning || !strings.Contains(untrusted.Remedy, "--behind-proxy") {
		t.Errorf("an untrusted proxy: %+v", untrusted)
	}
}

func TestPrivateAddresses(t *testing.T) {
	lan, machine := netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.1/32")
	if found := Private(nil, nil); found != nil {
		t.Errorf("none allowed: %+v", found)
	}
	for _, c := range []struct {
		webhooks, callers []netip.Prefix
		want              string
	}{
		{[]netip.Prefix{lan, machine}, nil, "webhooks and alerts may reach 10.0.0.0/8, 127.0.0.1/32 (--allow-private)"},
		{nil, []netip.Prefix{lan}, "anyone with a token can read what responds on 10.0.0.0/8 (--allow-private-callers)"},
	} {
		if found := Private(c.webhooks, c.callers); len(found) != 1 || found[0].Found != c.want {
			t.Errorf("%+v", found)
		}
	}
}

func TestClientAge(t *testing.T) {
	made := time.Date(2026, 8, 21, 14, 18, 5, 0, time.UTC)
	for version, want := range map[string]time.Time{"v0.0.0-20260821141805-0123456789ab": made, "v1.2.3": {}} {
		info := &debug.BuildInfo{Deps: []*debug.Module{{Path: "example.com/other"}, {Path: "go.mau.fi/whatsmeow", Version: version}}}
		if got := clientDate(info); !got.Equal(want) {
			t.Errorf("%s is of %s", version, got)
		}
	}
	channels := []parley.Channel{{Network: parley.WhatsApp}}
	for days, want := range map[int]Level{0: Fine, 59: Fine, 60: Warning, 99: Warning, 100: Problem} {
		got := WhatsApp(channels, made, made.Add(time.Duration(days)*24*time.Hour))
		if len(got) != 1 || got[0].Level != want || (want != Fine) != (got[0].Code == "client_old") {
			t.Errorf("after %d days: %+v, want %s", days, got, want)
		}
	}
	if got := WhatsApp(channels, time.Time{}, made); len(got) != 1 || got[0].Level != Fine {
		t.Errorf("of unknown age: %+v", got)
	}
	if got := WhatsApp([]parley.Channel{{Network: parley.Sandbox}}, made, made.AddDate(1, 0, 0)); got != nil {
		t.Errorf("without a channel: %+v", got)
	}
}

func TestSandboxes(t *testing.T) {
	sandbox, live := parley.Channel{Code: "ci", Network: parley.Sandbox}, parley.Channel{Code: "toko", Network: parley.WhatsApp}
	archive := parley.Channel{Code: "toko-sandbox", Network: parley.Sandbox, Settings: parley.ChannelSettings{ArchiveOf: "toko"}}
	for _, c := range []struct {
		channels []parley.Channel
		codes    []parley.ChannelCode
		live     bool
	}{
		{nil, nil, false},
		{[]parley.Channel{sandbox}, []parley.ChannelCode{"ci"}, false},
		{[]parley.Channel{live, archive}, nil, true},
		{[]parley.Channel{sandbox, live, archive}, []parley.ChannelCode{"ci"}, true},
	} {
		codes, live := Sandboxes(c.channels, func(name parley.NetworkName) bool { return name == parley.Sandbox })
		if !slices.Equal(codes, c.codes) || live != c.live {
			t.Errorf("of %v: %v, live %v", c.channels, codes, live)
		}
	}
}

func TestSimulated(t *testing.T) {
	for _, c := range []struct {
		simulated []parley.ChannelCode
		live, dev bool
		want      string
	}{
		{nil, false, false, ""},
		{nil, true, false, ""},
		{[]parley.ChannelCode{"ci"}, false, false, "sandbox_only"},
		{[]parley.ChannelCode{"ci"}, false, true, ""},
		{[]parley.ChannelCode{"ci"}, true, false, "sandbox_beside_live"},
		{[]parley.ChannelCode{"ci", "b", "c", "d", "e", "f", "g"}, true, true, "sandbox_beside_live"},
	} {
		got, found := "", ""
		for _, f := range Simulated(c.simulated, c.live, c.dev) {
			got, found = f.Code, f.Found
		}
		if got != c.want || strings.Contains(found, " and 2 more") != (len(c.simulated) == 7) {
			t.Errorf("%v, live %v, dev %v: %q (%s), want %q", c.simulated, c.live, c.dev, got, found, c.want)
		}
		if got == "sandbox_beside_live" && !strings.Contains(found, "ci") {
			t.Errorf("the channels are not named: %s", found)
		}
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		Count(1, "failure"): "1 failure", Count(2, "failure"): "2 failures",
		Lasted(40 * time.Second): "40 s", Lasted(12 * time.Minute): "12 min", Lasted(47 * time.Hour): "47 h", Lasted(72 * time.Hour): "3 d",
		Size(999): "999 B", Size(1000): "1.0 kB", Size(5_300_000_000): "5.3 GB", When(time.Time{}): "-",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for address, want := range map[string]bool{"http://a": true, "HTTP://a": true, "https://a": false, "": false} {
		if IsUnencrypted(address) != want {
			t.Errorf("%q: %v", address, !want)
		}
	}
}

// TestAccounts has a network find two problems of one channel, and none of another.
func TestAccounts(t *testing.T) {
	problems := map[parley.ChannelCode][]parley.AccountProblem{"toko": {
		{Code: "cloud_quality", Text: "Channel toko: quality YELLOW.", Remedy: "send less"},
		{Code: "cloud_token_invalid", Serious: true, Text: "Channel toko: token.", Remedy: "set another"},
	}}
	examine := func(c parley.Channel) []parley.AccountProblem { return problems[c.Code] }
	found := Accounts([]parley.Channel{{Code: "toko"}, {Code: "other"}}, examine)
	if len(found) != 2 || found[0].Level != Warning || found[1].Level != Problem || found[0].Check == found[1].Check {
		t.Fatalf("found %+v", found)
	}
	f := found[1]
	if f.Channel != "toko" || f.Code != "cloud_token_invalid" || f.Text() != "Channel toko: token." || f.Remedy != "set another" {
		t.Errorf("found %+v", f)
	}
}
