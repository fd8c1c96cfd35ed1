package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/text"

	"parley"
	"parley/internal/console"
	"parley/internal/gateway"
	"parley/internal/store"
	"parley/internal/token"
)

// DemoChannel is the channel that a development server creates.
const DemoChannel = "demo"

// prepareDev creates the demo channel and writes dev.env. Tokens that are still valid stay, so programs that have them
// continue to work here. They are marked, so that a production server on the same directory does not accept them.
func prepareDev(ctx context.Context, data *Data, url string) error {
	data.Tokens.AcceptDev()
	if err := ensureDemo(ctx, data.Store); err != nil {
		return err
	}
	env, err := ReadDevEnv(data.Dir)
	if err != nil {
		return err
	}
	env[EnvURL] = url
	for name, want := range map[string]parley.Token{
		EnvToken:       {Name: "dev", Dev: true, Kind: parley.ChannelToken, Channel: DemoChannel},
		EnvGlobalToken: {Name: "dev", Dev: true, Kind: parley.GlobalToken},
		EnvAdminToken:  {Name: "dev", Dev: true, Kind: parley.AdminToken},
	} {
		has, err := data.Tokens.Verify(ctx, env[name])
		if err == nil && has.Kind == want.Kind && has.Channel == want.Channel {
			if err := markDev(ctx, data.Tokens, has); err != nil {
				return err
			}
			continue
		}
		if err != nil && !parley.IsUnauthenticated(err) {
			return err
		}
		if env[name], err = data.Tokens.Issue(ctx, want); err != nil {
			return err
		}
	}
	return WritePrivate(data.Dir.DevEnv(), []byte(strings.Join(env.Lines(), "\n")+"\n"))
}

// markDev marks a token that is in dev.env but was made otherwise.
func markDev(ctx context.Context, tokens *token.Authority, t parley.Token) error {
	if t.Dev {
		return nil
	}
	_, err := tokens.Update(ctx, t.ID, func(t *parley.Token) { t.Dev = true },
		func(*store.Tx, parley.Token, parley.Token) error { return nil })
	return err
}

func ensureDemo(ctx context.Context, db *store.DB) error {
	_, err := db.Channel(ctx, DemoChannel)
	if !errors.Is(err, parley.ErrNotFound) {
		return err
	}
	return AddChannel(ctx, db, parley.Channel{Code: DemoChannel, Name: "Demo", Network: parley.Sandbox})
}

// AddChannel stores a new enabled channel. A gateway starts it when it reads the store.
func AddChannel(ctx context.Context, db *store.DB, c parley.Channel) error {
	c.Begin(time.Now())
	err := db.Tx(ctx, func(tx *store.Tx) error { return tx.AddChannel(ctx, c) })
	if errors.Is(err, parley.ErrExists) {
		return parley.Errorf(parley.Invalid, "Channel %s already exists.", c.Code)
	}
	return err
}

// The names in dev.env.
const (
	EnvURL         = "PARLEY_URL"
	EnvToken       = "PARLEY_TOKEN"
	EnvGlobalToken = "PARLEY_GLOBAL_TOKEN"
	EnvAdminToken  = "PARLEY_ADMIN_TOKEN"
)

var envNames = []string{EnvURL, EnvToken, EnvGlobalToken, EnvAdminToken}

// DevEnv is the content of dev.env: NAME=value lines for a shell.
type DevEnv map[string]string

// ReadDevEnv reads dev.env in a data directory. A missing file is empty.
func ReadDevEnv(dir Dir) (DevEnv, error) {
	env := DevEnv{}
	data, err := os.ReadFile(dir.DevEnv())
	if errors.Is(err, fs.ErrNotExist) {
		return env, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir.DevEnv(), err)
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			env[name] = value
		}
	}
	return env, nil
}

// Lines returns the known values, each as NAME=value.
func (e DevEnv) Lines() []string {
	var lines []string
	for _, name := range envNames {
		if e[name] != "" {
			lines = append(lines, name+"="+e[name])
		}
	}
	return lines
}

// WritePrivate writes a file that only its owner can read, whole or not at all.
func WritePrivate(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".parley-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // after the rename there is nothing to remove
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// banner is what a development server prints at a terminal: what runs, and an example to copy.
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
	line("Allowed   addresses of this machine (loopback), in webhooks and alerts and in what callers name: `parley serve` allows none")
	b.WriteString("\n")
	if to == "" { // the demo channel is live: an example would reach a real phone
		line("For simulated phones, create another channel: %s channel create try", s.calledAs())
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
	line("Ctrl-C stops. `%s --help` shows the rest.", s.calledAs())
	b.WriteString("\n")
	return b.String()
}

// bannerConsole prints the address of the console. The link is a secret: it is printed only if no browser was opened.
func (s *server) bannerConsole(ctx context.Context, line func(string, ...any)) {
	link, err := s.data.SignInLink(ctx, s.address())
	switch {
	case err != nil:
		s.log.Warn("no link to the console could be made", "error", err)
		line("Console   %s   sign in with: %s open", s.address(), s.calledAs())
	case s.cfg.Open != nil && s.cfg.Open(link):
		line("Console   %-30s opened in your browser, signed in", s.address())
	default:
		line("Console   %s", link)
		line("          (the link works once, for %d minutes; a new one: %s open)", int(console.LinkLife.Minutes()), s.calledAs())
	}
}

func (s *server) calledAs() string { return cmp.Or(s.cfg.Program, "parley") }

func (s *server) liveChannels() (codes []string) {
	for _, c := range s.gateway.List().Live {
		codes = append(codes, string(c.Code))
	}
	return codes
}

// bannerChannel prints the demo channel and its phones, and returns a simulated phone to write to. It returns "" if the
// demo channel is no longer on the sandbox.
func (s *server) bannerChannel(ctx context.Context, line func(string, ...any)) parley.ContactID {
	const anyPhone parley.ContactID = "99912345673@c.us" // on the sandbox every number is a phone; no country has the code 999
	demo, ok := s.gateway.Channel(DemoChannel)
	if !ok {
		return ""
	}
	number := ""
	if demo.Number != "" {
		number = ShowNumber(demo.Number)
	}
	if !s.gateway.Network(demo.Network).Simulated {
		line("Channel   %-8s %-9s %s", demo.Code, demo.State.Status, strings.TrimSpace(number+" on "+string(demo.Network)))
		return ""
	}
	line("Channel   %-8s %-9s %s", demo.Code, demo.State.Status, number)
	directory, err := s.gateway.Directory(DemoChannel)
	if err != nil {
		return anyPhone
	}
	phones, _, err := directory.Contacts(ctx, parley.Page{Limit: 2})
	if err != nil || len(phones) == 0 {
		return anyPhone
	}
	for _, phone := range phones {
		line("Phone     %-8s %-9s %s", phone.Name, "", ShowNumber(phone.ID.Number()))
	}
	return phones[0].ID
}

// show prints the banner, then one line per activity, until ctx ends.
func (s *server) show(ctx context.Context) {
	io.WriteString(s.cfg.Screen, s.banner(ctx)) // a closed terminal is ignored
	v := view{nameOf: s.contactName}
	for ctx.Err() == nil {
		happens, unsubscribe := s.gateway.Activity()
		for open := true; open; {
			var a gateway.Activity
			select {
			case a, open = <-happens: // closed if we were too slow: subscribe again
			case <-ctx.Done():
				open = false
			}
			if open {
				io.WriteString(s.cfg.Screen, v.line(a)+"\n")
			}
		}
		unsubscribe()
	}
}

// contactName is the name of a contact on the screen. Only the sandbox is asked for names: on another network each line
// would cost a query.
func (s *server) contactName(channel parley.ChannelCode, id parley.ContactID) string {
	if id.IsGroup() {
		return string(id)
	}
	if c, ok := s.gateway.Channel(channel); !ok || !s.gateway.Network(c.Network).Simulated {
		return ShowNumber(id.Number())
	}
	if directory, err := s.gateway.Directory(channel); err == nil {
		if contact, err := directory.Contact(context.Background(), id); err == nil && contact.Name != "" {
			return contact.Name
		}
	}
	return ShowNumber(id.Number())
}

// The widths of the columns of a line.
const (
	whoWidth    = 22
	kindWidth   = 10
	textWidth   = 28
	statusWidth = 10
	tookWidth   = 8
)

// view formats activity as lines. It omits the message if the previous line has it.
type view struct {
	nameOf func(parley.ChannelCode, parley.ContactID) string
	last   parley.MessageID
}

func (v *view) line(a gateway.Activity) string {
	at := a.At.Local().Format(time.TimeOnly)
	if a.State != "" {
		v.last = ""
		what := string(a.State)
		if a.Pairing != "" {
			what = "pairing: " + string(a.Pairing)
		}
		return strings.TrimRight(fmt.Sprintf("%s  %s%s%s", at, cell(string(a.Channel), whoWidth), cell(what, kindWidth+textWidth),
			Plain(a.Reason)), " ")
	}
	who, kind, said, id := "", "", "", string(a.ID)
	if a.ID == v.last && a.Kind == "" { // the previous line has the rest
		id = ""
	} else {
		from, to := string(a.Channel), v.nameOf(a.Channel, a.Contact)
		if !a.FromMe {
			from, to = to, from
		}
		who, kind, said = from+" → "+to, string(a.Kind), a.Text
	}
	v.last = a.ID
	if a.Failure != nil {
		id += "  " + Plain(a.Failure.Message)
	}
	return strings.TrimRight(fmt.Sprintf("%s  %s%s%s%s%s%s", at,
		cell(who, whoWidth), cell(kind, kindWidth), cell(said, textWidth),
		cell(a.Status.String(), statusWidth), cell(took(a.Took), tookWidth), id), " ")
}

// cell pads or cuts a text to a column, with two blanks after it.
func cell(s string, width int) string {
	return text.Pad(text.Snip(Plain(s), width, "…"), width, ' ') + "  "
}

// Plain removes what would move the cursor: strangers write the text.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && r != '\u200d' { // the joiner of emoji is harmless
			return ' '
		}
		return r
	}, s)
}

func took(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Second:
		return fmt.Sprintf("%d ms", max(1, d.Milliseconds()))
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// ShowNumber formats the digits of a phone number: country code, then groups.
func ShowNumber(digits string) string {
	if len(digits) < 8 {
		return "+" + digits
	}
	code := 2 // the length of most country codes
	switch {
	case strings.HasPrefix(digits, "999"): // no country has it: numbers of the sandbox
		code = 3
	case digits[0] == '1' || digits[0] == '7':
		code = 1
	}
	groups := []string{digits[code : code+3]}
	rest := digits[code+3:]
	for len(rest) > 4 {
		groups = append(groups, rest[:4])
		rest = rest[4:]
	}
	return "+" + digits[:code] + " " + strings.Join(append(groups, rest), "-")
}
