package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"parley"
	"parley/internal/app"
	"parley/internal/client"
)

// profiles is the file with the servers that this user is signed in to.
type profiles struct {
	Current  string             `json:"current"` // the profile of the last login; empty: none
	Profiles map[string]profile `json:"profiles"`
}

// profile is a server and the tokens for it. A token is never sent to another server.
type profile struct {
	URL        string `json:"url"`
	Token      string `json:"token,omitempty"` // of a channel, or Global
	AdminToken string `json:"admin_token,omitempty"`
}

const defaultProfile = "default"

var profileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

func profilesPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fail(exitUsage, "there is no directory for profiles: %w. Set HOME, or pass --url and a token", err)
	}
	return filepath.Join(dir, "parley", "profiles.json"), nil
}

// readProfiles reads the file. A missing one has no profiles.
func readProfiles() (*profiles, error) {
	all := &profiles{Profiles: map[string]profile{}}
	path, err := profilesPath()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, fail(exitUsage, "profiles: %w", err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fail(exitUsage, "%s has tokens and is open to other users. Run: chmod 600 %s", path, path)
	}
	if err := json.Unmarshal(data, all); err != nil {
		return nil, fail(exitUsage, "%s is damaged: %w. Remove it and sign in again", path, err)
	}
	return all, nil
}

func (p *profiles) write() error {
	path, err := profilesPath()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fail(exitUsage, "profiles: %w", err)
	}
	data, _ := json.MarshalIndent(p, "", "  ") // of texts only
	return app.WritePrivate(path, append(data, '\n'))
}

// useProfile sets the server and the tokens of a profile, for a command that has the flag --profile. What was set elsewhere
// stays.
func (c *cli) useProfile(cmd *cobra.Command) error {
	name := c.set.text(keyProfile)
	if cmd.Flag(keyProfile) == nil || name == "" && !c.mayUseLogin() {
		return nil
	}
	all, err := readProfiles()
	if err != nil {
		return err
	}
	asked := name != ""
	name = cmp.Or(name, all.Current)
	p, found := all.Profiles[name]
	switch {
	case !found && asked:
		return fail(exitUsage, "there is no profile %q.%s Sign in with: parley login URL --profile %s", name,
			didYouMean(name, slices.Sorted(maps.Keys(all.Profiles))), name)
	case !found:
		return nil
	}
	if given := c.set.values[keyURL]; given.text != "" {
		if base, err := serverURL(given); err != nil || base != p.URL {
			return fail(exitUsage, "profile %s is for %s, but %s names another server. Remove one of them", name, p.URL, given.origin)
		}
	}
	c.profile = name
	origin := "profile " + name
	for key, text := range map[string]string{keyURL: p.URL, keyToken: p.Token, keyAdminToken: p.AdminToken} {
		if c.set.text(key) == "" && text != "" {
			c.set.values[key] = settingValue{text, origin}
		}
	}
	return nil
}

// mayUseLogin reports whether the last login counts although no profile was named: only where neither a server nor a data
// directory is given, and the default directory has none.
func (c *cli) mayUseLogin() bool {
	for _, key := range []string{keyURL, keyData, keyDatabase, keyListen} {
		if c.set.values[key].origin != "default" {
			return false
		}
	}
	_, running := c.dir().Running()
	return !running && !c.dir().Exists()
}

// loadPlain loads the settings without a profile, for commands that manage profiles.
func (c *cli) loadPlain(cmd *cobra.Command, _ []string) (err error) {
	c.set, err = loadSettings(cmd.Flags(), c.getenv)
	return err
}

func (c *cli) login() *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "login [URL]",
		Short: "Sign in to a server, so that other commands need neither --url nor a token",
		Long: `Sign in to a server. The command asks for the token, or reads it from stdin if that is not a terminal, and checks it. It
stores the token in profiles.json in your configuration directory, which only you can read, and never prints it.

A profile has a server and up to two tokens: a channel or Global token for messages, and an admin token to manage the
server. Sign in twice to have both. Without a URL, the profile's server is used again.

Commands use the profile of the last login, unless you name another server or a data directory, or one is found here.
--profile or PARLEY_PROFILE select another profile. Flags and PARLEY_… take precedence over a profile.`,
		Example: `  parley login https://chat.example.com
  parley login https://chat.example.com --profile staging < token.txt`,
		PersistentPreRunE: c.loadPlain,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := readProfiles()
			if err != nil {
				return err
			}
			if list {
				return c.printProfiles(all)
			}
			return c.signIn(cmd.Context(), all, args)
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the profiles instead, without their tokens")
	c.outputFlag(cmd)
	settingFlags(cmd.Flags(), keyProfile)
	return cmd
}

func (c *cli) signIn(ctx context.Context, all *profiles, args []string) error {
	name := cmp.Or(c.set.text(keyProfile), defaultProfile)
	if !profileName.MatchString(name) {
		return fail(exitUsage, "%q cannot be the name of a profile. Use letters, digits, and . _ -", name)
	}
	old, found := all.Profiles[name]
	if len(args) == 0 && !found {
		return fail(exitUsage, "URL is missing: the address of the server, for example https://chat.example.com")
	}
	p := profile{URL: old.URL}
	if len(args) > 0 {
		var err error
		if p.URL, err = serverURL(settingValue{args[0], "URL"}); err != nil {
			return err
		}
	}
	if p.URL == old.URL {
		p = old // with its other token
	}
	if isPlain(p.URL) && !c.quiet {
		fmt.Fprintf(c.err, "parley: %s is not encrypted: others on the way can read the token. Use https:// outside of your own network\n", p.URL)
	}
	token, err := c.readToken(ctx)
	if err != nil {
		return err
	}
	about, err := checkToken(ctx, p.URL, token)
	if err != nil {
		return err
	}
	if about.Kind == parley.AdminToken {
		p.AdminToken = token
	} else {
		p.Token = token
	}
	all.Profiles[name], all.Current = p, name
	if err := all.write(); err != nil {
		return err
	}
	about.Profile, about.URL = name, p.URL
	if c.json {
		return c.printJSON(about)
	}
	c.hint("Signed in to %s with %s. Profile: %s", p.URL, about, name)
	return nil
}

// signedIn is what a login printed, and a line of the list of profiles.
type signedIn struct {
	Profile string             `json:"profile"`
	URL     string             `json:"url"`
	Kind    parley.TokenKind   `json:"kind"`
	Channel parley.ChannelCode `json:"channel,omitempty"`
}

func (s signedIn) String() string {
	switch s.Kind {
	case parley.ChannelToken:
		return "a token of channel " + string(s.Channel)
	case parley.AdminToken:
		return "an admin token"
	}
	return "a Global token"
}

// claims reads what a token says of itself. The server verifies it.
func claims(token string) (about signedIn, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return about, false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &about) != nil {
		return about, false
	}
	return about, about.Kind == parley.ChannelToken || about.Kind == parley.GlobalToken || about.Kind == parley.AdminToken
}

// checkToken has the server verify a token.
func checkToken(ctx context.Context, base, token string) (signedIn, error) {
	about, ok := claims(token)
	if !ok {
		return about, fail(exitUsage, "this is not a token of Parley. Create one on the server with: parley token create")
	}
	method, path := http.MethodHead, client.EventsPath // a stream whose response has no body
	if about.Kind == parley.AdminToken {
		method, path = http.MethodGet, client.Path("server")
	}
	resp, err := (&client.Client{Base: base, Token: token}).Open(ctx, method, path, nil, nil, nil)
	if hasCode(err, parley.Unauthenticated, parley.TokenExpired) { // the response to HEAD has no text
		return about, fail(exitNotAllowed, "%s does not accept this token. Is it of another server, expired or revoked?", base)
	}
	if err != nil {
		return about, err
	}
	return about, resp.Body.Close()
}

// readToken asks for a token without showing it, or reads it from stdin.
func (c *cli) readToken(ctx context.Context) (string, error) {
	if file, ok := c.in.(*os.File); ok && c.inTerminal {
		if c.noInput {
			return "", fail(exitUsage, "the token is missing. Pass it on stdin: parley login URL < token.txt")
		}
		return c.askSecret(ctx, file, "Token: ")
	}
	text, err := io.ReadAll(io.LimitReader(c.in, 64<<10))
	if err != nil {
		return "", fail(exitUsage, "read the token from stdin: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// askSecret is ask for something that must not be shown on the terminal.
func (c *cli) askSecret(ctx context.Context, terminal *os.File, question string) (string, error) {
	before, err := term.GetState(int(terminal.Fd()))
	if err != nil {
		return "", err
	}
	fmt.Fprint(c.err, question)
	defer fmt.Fprintln(c.err)
	text, err := awaitLine(ctx, func() (string, error) {
		text, err := term.ReadPassword(int(terminal.Fd()))
		return string(text), err
	})
	if ctx.Err() != nil {
		_ = term.Restore(int(terminal.Fd()), before) // else the shell would not show what is typed
	} else if err == nil && text == "" {
		err = fail(exitNeedsPerson, "nothing was typed")
	}
	return text, err
}

// isPlain reports whether requests to a server cross a network without encryption.
func isPlain(base string) bool {
	return strings.HasPrefix(base, "http:") && !isOnThisMachine(base)
}

// serverURL checks the address of a server and writes it in one form.
func serverURL(given settingValue) (string, error) {
	u, err := url.Parse(given.text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", fail(exitUsage, "%s: %q is not the address of a server. Write it like http://127.0.0.1:7275", given.origin, given.text)
	}
	return strings.TrimSuffix(strings.TrimSuffix(given.text, "/"), "/api"), nil
}

func (c *cli) printProfiles(all *profiles) error {
	type row struct {
		Name    string `json:"name"`
		URL     string `json:"url"`
		Token   string `json:"token"`
		Admin   bool   `json:"admin"`
		Current bool   `json:"current"`
	}
	rows := []row{}
	for _, name := range slices.Sorted(maps.Keys(all.Profiles)) {
		p := all.Profiles[name]
		r := row{Name: name, URL: p.URL, Admin: p.AdminToken != "", Current: name == all.Current}
		if about, ok := claims(p.Token); ok {
			r.Token = about.String()
		}
		rows = append(rows, r)
	}
	if c.json {
		return c.printJSON(rows)
	}
	if len(rows) == 0 {
		c.sayNone(false, "There are no profiles. Sign in with: parley login URL")
		return nil
	}
	fmt.Fprintln(c.out, newTable(c, "profile,url,token,admin token,current", rows, func(r *row) []any {
		return []any{r.Name, r.URL, cmp.Or(r.Token, "-"), r.Admin, r.Current}
	}))
	return nil
}

func (c *cli) logout() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logout",
		Short: "Remove the tokens of a profile from this machine",
		Long: `Remove a profile with its tokens from this machine: that of the last login, or the one that --profile names. The
tokens stay valid on the server until you revoke them there with: parley token revoke.`,
		Example: `  parley logout
  parley logout --profile staging`,
		PersistentPreRunE: c.loadPlain,
		RunE: func(*cobra.Command, []string) error {
			all, err := readProfiles()
			if err != nil {
				return err
			}
			name := cmp.Or(c.set.text(keyProfile), all.Current)
			if _, found := all.Profiles[name]; !found {
				return fail(exitNotFound, "there is no profile to sign out from. See: parley login --list")
			}
			delete(all.Profiles, name)
			if all.Current == name {
				all.Current = ""
			}
			if err := all.write(); err != nil {
				return err
			}
			return c.done("Removed profile %s. Its tokens are valid until they are revoked: parley token revoke", name)
		},
	}
	settingFlags(cmd.Flags(), keyProfile)
	return cmd
}

// profileNames completes --profile.
func profileNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	all, err := readProfiles()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(all.Profiles)), cobra.ShellCompDirectiveNoFileComp
}
