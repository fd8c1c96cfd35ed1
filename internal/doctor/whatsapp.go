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

// oldClient is the age at which WhatsApp may start to reject the client.
const oldClient = 45 * 24 * time.Hour

// release matches the version of a release. Builds from source have a suffix.
var release = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)

// WhatsApp reports the age of the WhatsApp client, if a channel uses it. Only a release can be outdated, because it has
// a newer release.
func WhatsApp(channels []parley.Channel, version string, now time.Time) []Finding {
	if !usesWhatsApp(channels) {
		return nil
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	return []Finding{checkClient(info, release.MatchString(version), now)}
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

// checkClient takes the age of the client from its module version.
func checkClient(info *debug.BuildInfo, released bool, now time.Time) Finding {
	made := clientDate(info)
	if made.IsZero() {
		return Finding{Check: "whatsapp", Level: Fine, Found: "client of unknown age"}
	}
	age := now.Sub(made)
	f := Finding{Check: "whatsapp", Level: Fine, Found: fmt.Sprintf("client of %s, %s old", made.Format(time.DateOnly), Lasted(age))}
	if released && age > oldClient {
		f.Level, f.Code = Warning, "client_old"
		f.Remedy = "upgrade to the latest release: WhatsApp refuses clients that are too old"
	}
	return f
}

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
		if m.Path != "go.mau.fi/whatsmeow" {
			continue
		}
		digits := commitTime.FindStringSubmatch(m.Version)
		if digits == nil {
			break
		}
		if made, err := time.Parse("20060102150405", digits[1]); err == nil {
			return made
		}
	}
	return time.Time{}
}
