package doctor

import (
	"context"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"time"

	"parley"
)

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

// WhatsAppReach reports whether WhatsApp can be reached, if a channel uses it.
func WhatsAppReach(ctx context.Context, channels []parley.Channel, reach func(context.Context) error) []Finding {
	if !usesWhatsApp(channels) {
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
