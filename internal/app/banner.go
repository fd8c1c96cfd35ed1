package app

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"parley"
	"parley/internal/console"
)

// banner greets the person who started a development server: what runs, and a line to copy.
func (s *server) banner(ctx context.Context) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	env := s.cfg.DataDir.DevEnv()
	if !filepath.IsAbs(env) {
		env = "./" + env // "." looks for a name without a slash in PATH
	}

	live := s.liveChannels()
	where := "SANDBOX · nothing leaves this machine"
	if len(live) > 0 {
		where = "LIVE · real phones on " + strings.Join(live, ", ")
	}
	b.WriteString("\n")
	line("parley %s · %s · data in %s", s.cfg.Version, where, s.cfg.DataDir)
	b.WriteString("\n")
	s.bannerConsole(ctx, line)
	line("API       %s/api", s.address())
	line("Docs      %s/docs", s.address())
	b.WriteString("\n")
	to := s.bannerChannel(ctx, line)
	line("Token     saved in %s (only you can read it)", s.cfg.DataDir.DevEnv())
	line("Allowed   addresses of this machine (loopback) in what you send: `parley serve` allows none")
	b.WriteString("\n")
	if to == "" { // the demo channel is live: no example that would reach a stranger
		line("For simulated phones, create another channel: parley channel create try")
		line("Then load the tokens: . %s", env)
	} else {
		line("Now send something. In another terminal:")
		b.WriteString("\n")
		line("  . %s", env)
		line("  curl $PARLEY_URL/api/send-message/text \\")
		line(`    -H "Authorization: Bearer $PARLEY_TOKEN" -H 'Content-Type: application/json' \`)
		line(`    -d '{"contact_id":"%s","message":"Halo dari parley 👋"}'`, to)
	}
	b.WriteString("\n")
	line("Ctrl-C stops. `parley --help` shows the rest.")
	b.WriteString("\n")
	return b.String()
}

// bannerConsole leads to the console, signed in. The link is a secret: it is shown to the person at the
// terminal only where no browser was opened.
func (s *server) bannerConsole(ctx context.Context, line func(string, ...any)) {
	link, err := s.data.SignInLink(ctx, s.address())
	switch {
	case err != nil:
		s.log.Warn("no link to the console could be made", "error", err)
		line("Console   %s   sign in with: parley open", s.address())
	case s.cfg.Open != nil && s.cfg.Open(link):
		line("Console   %-30s opened in your browser, signed in", s.address())
	default:
		line("Console   %s", link)
		line("          (the link works once, for %d minutes; a new one: parley open)", int(console.LinkLife.Minutes()))
	}
}

// liveChannels lists the channels that reach real phones.
func (s *server) liveChannels() []string {
	var live []string
	for _, c := range s.gateway.Channels() {
		if c.Network != parley.Sandbox {
			live = append(live, string(c.Code))
		}
	}
	return live
}

// bannerChannel shows the demo channel and its phones, and returns a simulated phone to write to. It is empty
// where the demo channel is not on the sandbox any more.
func (s *server) bannerChannel(ctx context.Context, line func(string, ...any)) parley.ContactID {
	const anyPhone parley.ContactID = "99912345673@c.us" // on the sandbox every number is a phone; 999 is nobody's code
	demo, ok := s.gateway.Channel(DemoChannel)
	if !ok {
		return ""
	}
	number := ""
	if demo.Number != "" {
		number = ShowNumber(demo.Number)
	}
	if demo.Network != parley.Sandbox {
		line("Channel   %-8s %-9s %s", demo.Code, demo.State.Status, strings.TrimSpace(number+" on "+string(demo.Network)))
		return ""
	}
	line("Channel   %-8s %-9s %s", demo.Code, demo.State.Status, number)
	session, err := s.gateway.Session(DemoChannel)
	if err != nil {
		return anyPhone
	}
	phones, _, err := session.Contacts(ctx, parley.Page{Limit: 2})
	if err != nil || len(phones) == 0 {
		return anyPhone
	}
	for _, phone := range phones {
		line("Phone     %-8s %-9s %s", phone.Name, "", ShowNumber(phone.ID.Number()))
	}
	return phones[0].ID
}
