package doctor

import (
	"context"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/internal/otp/rule"
)

const (
	// recoveryTime is how long a channel may reconnect before it is reported, longRecovery before it is a problem.
	recoveryTime = time.Minute
	longRecovery = 15 * time.Minute
)

// Channels checks the status of channels. Without a running server, a stopped channel is fine.
func Channels(channels []parley.Channel, running bool, now time.Time) []Finding {
	findings := make([]Finding, len(channels))
	for i, c := range channels {
		findings[i] = checkChannel(c, running, now)
	}
	return findings
}

// Restricted reports the accounts that the network does not let write to new contacts.
func Restricted(channels []parley.Channel, now time.Time) (findings []Finding) {
	for _, c := range channels {
		if active, end := c.RestrictedAt(now); active {
			until := ""
			if !end.IsZero() {
				until = " until " + When(end)
			}
			findings = append(findings, Finding{Check: "channel " + string(c.Code), Level: Warning, Code: "account_restricted",
				Channel: c.Code, Until: end, Remedy: "send fewer messages to people who never wrote to it",
				Found:    "the account may not write to new contacts" + until + "; first messages wait",
				Sentence: fmt.Sprintf("The account of channel %s is restricted: it may not write to new contacts%s.", c.Code, until)})
		}
	}
	return findings
}

// Fast warns of numbers that were paired lately and send more than a careful channel would.
func Fast(ctx context.Context, channels []parley.Channel, now time.Time,
	count func(ctx context.Context, code parley.ChannelCode, since time.Time) (firsts, sent int64, err error),
) (findings []Finding) {
	for _, c := range channels {
		age := now.Sub(c.PairedAt)
		if c.PairedAt.IsZero() || age > parley.NewNumberAge || c.Network != parley.WhatsApp {
			continue
		}
		firsts, sent, err := count(ctx, c.Code, now.Add(-24*time.Hour))
		if err != nil {
			return append(findings, Broken(err))
		}
		if mostFirsts, most := parley.NewNumberCaps(age); firsts > int64(mostFirsts) || sent > int64(most) {
			findings = append(findings, Finding{Check: "channel " + string(c.Code), Level: Warning, Code: "new_number_fast", Channel: c.Code,
				Found: fmt.Sprintf("its number was paired %s ago and wrote to %s in 24 hours, with %s in all", Lasted(age),
					Count(int(firsts), "new contact"), Count(int(sent), "message")),
				Remedy: fmt.Sprintf("parley channel set %s --careful new_number", c.Code),
				Sentence: fmt.Sprintf("The number of channel %s is new and wrote to %d new contacts in 24 hours. WhatsApp may ban it.",
					c.Code, firsts)})
		}
	}
	return findings
}

// Accounts reports what networks find wrong with the accounts of channels.
func Accounts(channels []parley.Channel, examine func(parley.Channel) []parley.AccountProblem) (findings []Finding) {
	for i := range channels {
		c := &channels[i]
		for _, p := range examine(*c) {
			level := Warning
			if p.Serious {
				level = Problem
			}
			findings = append(findings, Finding{Check: "account of " + string(c.Code) + ", " + p.Code, Level: level, Code: p.Code, Channel: c.Code,
				Found: p.Text, Remedy: p.Remedy})
		}
	}
	return findings
}

// Sandboxes lists the channels on a simulated network, without the archives of channels that went live, and whether others exist.
func Sandboxes(channels []parley.Channel, isSimulated func(parley.NetworkName) bool) (simulated []parley.ChannelCode, live bool) {
	for _, c := range channels {
		switch {
		case !isSimulated(c.Network):
			live = true
		case c.Settings.ArchiveOf == "":
			simulated = append(simulated, c.Code)
		}
	}
	return simulated, live
}

// Simulated warns of a production server that has only sandbox channels, and of sandbox channels beside real ones. The archive
// of a channel that went live is not among them: it never runs.
func Simulated(simulated []parley.ChannelCode, live, dev bool) []Finding {
	const most = 5 // named; the rest is counted
	count := len(simulated)
	switch {
	case count == 0, dev && !live:
		return nil
	case !live:
		return []Finding{{Check: "network", Level: Warning, Code: "sandbox_only",
			Found:  "every channel is on the sandbox: no message reaches a real phone",
			Remedy: "parley channel create CODE --network whatsapp"}}
	}
	var names []string
	for _, code := range simulated[:min(count, most)] {
		names = append(names, string(code))
	}
	named := strings.Join(names, ", ")
	if more := count - most; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return []Finding{{Check: "network", Level: Warning, Code: "sandbox_beside_live",
		Found: fmt.Sprintf("%s on the sandbox beside real ones (%s): their codes and login links work without a phone",
			Count(count, "channel"), named),
		Remedy: "parley channel delete CODE, unless you test with it"}}
}

// DevTokens warns of tokens of parley dev that a production server refuses: programs that still have them do not work.
func DevTokens(tokens []parley.Token, dev bool, now time.Time) []Finding {
	n := 0
	for _, t := range tokens {
		if t.Dev && t.Active(now) {
			n++
		}
	}
	if dev || n == 0 {
		return nil
	}
	return []Finding{{Check: "tokens", Level: Warning, Code: "dev_tokens",
		Found:  fmt.Sprintf("%s of parley dev: parley serve answers 401 to programs that use the tokens in dev.env", Count(n, "token")),
		Remedy: "give programs a token from parley token create, then revoke those that parley token list shows as dev"}}
}

func checkChannel(c parley.Channel, running bool, now time.Time) Finding {
	if !running {
		c = c.Offline()
	}
	status := c.State.Status
	f := Finding{Check: "channel " + string(c.Code), Level: Fine, Channel: c.Code, Since: c.State.Since,
		Found: fmt.Sprintf("%s since %s", status, When(c.State.Since))}
	if c.State.Since.IsZero() {
		f.Found = fmt.Sprintf("%s: %s", status, c.State.Reason)
	}
	if status == parley.ChannelWorking || !c.Enabled || !running {
		return f // disabled, or without a server: as expected
	}
	if c.State.Reason != "" {
		f.Found += ": " + c.State.Reason
	}
	f.Level, f.Remedy = Problem, "parley channel show "+string(c.Code)
	switch {
	case status == parley.ChannelLoggedOut:
		f.Code, f.Remedy = "channel_logged_out", "parley channel pair "+string(c.Code)
		f.Sentence = fmt.Sprintf("Channel %s is logged out and sends nothing. Pair it again.", c.Code)
	case status == parley.ChannelScanQRCode:
		f.Level, f.Code, f.Remedy = Warning, "channel_not_paired", "parley channel pair "+string(c.Code)
		f.Sentence = fmt.Sprintf("Channel %s is not paired. Pair its phone.", c.Code)
	case status == parley.ChannelStopped: // although it is enabled
		f.Code, f.Sentence = "channel_stopped", fmt.Sprintf("Channel %s is stopped.", c.Code)
	case status.CanSend(): // it recovers by itself
		f = recovering(f, c, now.Sub(c.State.Since))
	default:
		f.Code, f.Sentence = "channel_failed", fmt.Sprintf("Channel %s failed.", c.Code)
	}
	if c.State.Reason != "" && f.Sentence != "" {
		f.Sentence += " " + c.State.Reason
	}
	return f
}

// recovering is the finding of a channel that has been reconnecting or starting for some time.
func recovering(f Finding, c parley.Channel, lasts time.Duration) Finding {
	f.Remedy = ""
	if lasts < recoveryTime {
		f.Level = Fine
		return f
	}
	f.Level, f.Code = Warning, "channel_reconnecting"
	if lasts >= longRecovery {
		f.Level, f.Remedy = Problem, "parley channel show "+string(c.Code)
	}
	f.Sentence = fmt.Sprintf("Channel %s has been %s for %s.", c.Code, c.State.Status, Lasted(lasts))
	return f
}

// Attacks reports recent attacks on one-time codes.
func Attacks(ctx context.Context, store interface {
	OTPAlarms(ctx context.Context) ([]parley.OTPAlarm, error)
}, channels []parley.Channel, now time.Time) ([]Finding, error) {
	alarms, err := store.OTPAlarms(ctx)
	if err != nil {
		return nil, err
	}
	var attacks []Finding
	for _, a := range alarms {
		for i := range channels {
			c := &channels[i]
			if c.Code == a.Channel && now.Add(time.Duration(c.Settings.ClockAhead)).Before(a.Until) {
				attacks = append(attacks, attackFinding(a))
			}
		}
	}
	return attacks, nil
}

func attackFinding(a parley.OTPAlarm) Finding {
	if a.Type == parley.OTPPaused {
		return Finding{Check: "codes", Level: Warning, Code: "otp_paused", Channel: a.Channel, Since: a.At, Until: a.Until,
			Found: fmt.Sprintf("Channel %s sends no codes to new contacts until %s: of the last %d fewer than 10 %% were approved.",
				a.Channel, When(a.Until), a.Count),
			Remedy: "find out who requests codes for made-up numbers, and limit requests on your login page"}
	}
	return Finding{Check: "codes", Level: Warning, Code: "otp_guessing", Channel: a.Channel, Since: a.At,
		Found: fmt.Sprintf("On channel %s more than %d wrong codes were tried within an hour, at %s.", a.Channel,
			rule.GuessLimit, When(a.At)),
		Remedy: "find out who tries codes of many contacts, and limit tries on your login page"}
}

// enoughCodes is from how many codes on the delivery rate counts.
const enoughCodes = 10

// Codes warns if fewer than half of the one-time codes of the last 24 hours reached a phone.
func Codes(requested, delivered int64) []Finding {
	if requested < enoughCodes || 2*delivered >= requested {
		return nil
	}
	return []Finding{{Check: "codes", Level: Warning, Code: "otp_undelivered",
		Found:  fmt.Sprintf("Only %d of %d one-time codes in the last 24 hours reached a phone.", delivered, requested),
		Remedy: "check the channel and the numbers that codes are requested for"}}
}

// WhatsApp refuses clients about 127 days after their version appeared.
const (
	oldClient    = 60 * 24 * time.Hour
	tooOldClient = 100 * 24 * time.Hour
)

// WhatsApp reports the age of the version of WhatsApp Web that this program says it is, if a channel uses it; zero: unknown.
func WhatsApp(channels []parley.Channel, made, now time.Time) []Finding {
	if !usesWhatsApp(channels) {
		return nil
	}
	if made.IsZero() {
		return []Finding{{Check: "whatsapp", Level: Fine, Found: "client of unknown age"}}
	}
	age := now.Sub(made)
	f := Finding{Check: "whatsapp", Level: Fine, Found: fmt.Sprintf("client of %s, %s old", made.Format(time.DateOnly), Lasted(age))}
	if age < oldClient {
		return []Finding{f}
	}
	f.Level, f.Code = Warning, "client_old"
	if age >= tooOldClient {
		f.Level = Problem
	}
	f.Remedy = "upgrade to the latest release; a build from source: see \"Upgrading whatsmeow\" in CONTRIBUTING.md; until then " +
		"--whatsapp-version with the version of web.whatsapp.com"
	f.Sentence = fmt.Sprintf("The WhatsApp client of this program is of %s. WhatsApp refuses clients about four months after that, "+
		"on all channels at once.", made.Format(time.DateOnly))
	return []Finding{f}
}

// checksAtOnce is how many proxies are checked at the same time.
const checksAtOnce = 8

// Proxies reports the proxies of channels that do not work. Such a channel is not connected: it never goes around its proxy.
func Proxies(ctx context.Context, channels []parley.Channel, check func(context.Context, parley.Channel) error) []Finding {
	var checks sync.WaitGroup
	findings, slots := make([][]Finding, len(channels)), make(chan struct{}, checksAtOnce)
	for i := range channels {
		c := &channels[i]
		if c.Settings.Proxy == "" {
			continue
		}
		slots <- struct{}{}
		checks.Go(func() {
			defer func() { <-slots }()
			f := Finding{Check: "proxy of " + string(c.Code), Level: Fine, Channel: c.Code, Found: "works"}
			if err := check(ctx, *c); err != nil {
				f.Level, f.Code, f.Found = Problem, "proxy_failed", err.Error()
				f.Remedy = fmt.Sprintf("parley channel set %s --proxy ADDRESS, or --proxy off", c.Code)
			}
			findings[i] = []Finding{f}
		})
	}
	checks.Wait()
	return slices.Concat(findings...)
}

// WhatsAppReach reports whether WhatsApp can be reached, if a channel without a proxy of its own uses it.
func WhatsAppReach(ctx context.Context, channels []parley.Channel, reach func(context.Context) error) []Finding {
	direct := func(c parley.Channel) bool { return c.Network == parley.WhatsApp && c.Settings.Proxy == "" }
	if !slices.ContainsFunc(channels, direct) {
		return nil
	}
	if err := reach(ctx); err != nil {
		return []Finding{{Check: "whatsapp", Level: Problem, Code: "whatsapp_unreachable", Found: err.Error(),
			Remedy: "once it can be reached, channels connect by themselves"}}
	}
	return []Finding{{Check: "whatsapp", Level: Fine, Found: "can be reached"}}
}

func usesWhatsApp(channels []parley.Channel) bool {
	return slices.ContainsFunc(channels, func(c parley.Channel) bool { return c.Network == parley.WhatsApp })
}

// commitTime matches the time in a module's pseudo-version.
var commitTime = regexp.MustCompile(`[-.]([0-9]{14})-[0-9a-f]{12}$`)

// ClientDate is when the WhatsApp client of this program was made; zero: unknown.
func ClientDate() time.Time {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return time.Time{}
	}
	return clientDate(info)
}

func clientDate(info *debug.BuildInfo) time.Time {
	for _, m := range info.Deps {
		if digits := commitTime.FindStringSubmatch(m.Version); m.Path == "go.mau.fi/whatsmeow" && digits != nil {
			made, _ := time.Parse("20060102150405", digits[1]) // zero if it is no time
			return made
		}
	}
	return time.Time{}
}
