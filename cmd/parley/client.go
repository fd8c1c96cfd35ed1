package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/app"
	"parley/internal/client"
	"parley/internal/doctor"
)

// clientFlags adds the flags of commands that act on a channel of a server.
func clientFlags(cmd *cobra.Command) { settingFlags(cmd.PersistentFlags(), keyURL, keyToken) }

// server finds the server: --url or that of the profile, else the one that runs on the data directory, else the configured
// listen address. The default address is not tried, because another server may listen there. The client has no token yet.
// The second result is zero unless the server runs on the data directory.
func (c *cli) server() (*client.Client, app.Running, error) {
	if given := c.set.values[keyURL]; given.text != "" {
		base, err := serverURL(given)
		return &client.Client{Base: base}, app.Running{}, err
	}
	if running, ok := c.dir().Running(); ok && running.URL != "" {
		return &client.Client{Base: running.URL, HTTP: client.OfThisMachine()}, running, nil
	}
	if listen := c.set.values[keyListen]; listen.origin != "default" {
		return &client.Client{Base: "http://" + listen.text}, app.Running{}, nil
	}
	return nil, app.Running{}, c.noServer()
}

func (c *cli) noServer() error {
	return fail(exitUnreachable, "no server runs on %s. Start one with: parley dev, or parley serve. "+
		"Select another one with --url, or its directory with --data", c.dir())
}

// client makes a client with the first token of: the configured one, the one in dev.env under the given name, the
// temporary one of the server that runs on the data directory. The one in dev.env is only for the address in that file, while a
// development server runs there: another program may listen at any other.
func (c *cli) client(configured, inDevEnv string, local func(app.Running) string) (*client.Client, error) {
	cl, running, err := c.server()
	if err != nil {
		return nil, err
	}
	cl.Token, cl.Origin = strings.TrimSpace(c.set.text(configured)), c.set.values[configured].origin
	if cl.Token != "" {
		return cl, c.checkAddress(cl, running)
	}
	if c.profile != "" { // tokens of the data directory are for its own server
		kind := "token for messages"
		if configured == keyAdminToken {
			kind = "admin token"
		}
		return nil, fail(exitNotAllowed, "profile %s has no %s. Add one with: parley login --profile %s", c.profile, kind, c.profile)
	}
	env, err := app.ReadDevEnv(c.dir())
	if err != nil {
		return nil, err
	}
	cl.Token, cl.Origin = env[inDevEnv], c.dir().DevEnv()
	if cl.Token != "" && cl.Base == env[app.EnvURL] && (running.URL == "" || running.IsDev()) {
		return cl, nil
	}
	if cl.Token, cl.Origin = local(running), ""; cl.Token != "" {
		return cl, nil
	}
	if running.URL == "" && c.set.text(keyURL) == "" {
		return nil, c.noServer()
	}
	known, _ := findSetting(configured)
	return nil, fail(exitNotAllowed, "no token. Create one with: parley token create, and set %s", known.variable())
}

// checkAddress refuses to send a token to an address that a file in the current folder names, unless the token is from that file
// too. A folder that somebody else wrote, such as a cloned repository, must not learn the tokens of the environment.
func (c *cli) checkAddress(cl *client.Client, running app.Running) error {
	key := keyURL
	switch {
	case c.profile != "":
		key = keyProfile
	case running.URL != "":
		return nil // on this machine
	case c.set.text(keyURL) == "":
		key = keyListen
	}
	if c.set.found == "" || c.set.values[key].origin != c.set.found || cl.Origin == c.set.found || cl.Origin == "profile "+c.profile {
		return nil
	}
	return fail(exitUsage, "%s names the server %s, and the token is from %s. A file that was only found in the current folder gets no token "+
		"from elsewhere. Name the file with --config, or the server with --url", c.set.found, cl.Base, cl.Origin)
}

// isOnThisMachine reports whether an address leads to this machine only.
func isOnThisMachine(base string) bool {
	u, err := url.Parse(base)
	return err == nil && doctor.IsLoopback(u.Hostname())
}

// onServer calls do with a client for the management API of a running server.
func (c *cli) onServer(cmd *cobra.Command, do func(context.Context, *client.Client) error) error {
	cl, err := c.client(keyAdminToken, app.EnvAdminToken, func(r app.Running) string { return r.AdminToken })
	if err != nil {
		return err
	}
	return do(cmd.Context(), cl)
}

// onChannel makes a client that acts on a channel; without a code, on the token's channel.
func (c *cli) onChannel(ctx context.Context, code string) (*client.Client, error) {
	token := app.EnvToken
	if code != "" && code != app.DemoChannel {
		token = app.EnvGlobalToken
	}
	var of app.Running // set if the token is the server's temporary one
	cl, err := c.client(keyToken, token, func(r app.Running) string { of = r; return r.GlobalToken })
	if err != nil {
		return nil, err
	}
	cl.Channel = code
	if of.GlobalToken == "" || code != "" {
		return cl, nil
	}
	_, err = defaultChannel(ctx, newAdmin(of))
	return cl, err
}

// defaultChannel is the channel of a request that names none. The server chooses it.
func defaultChannel(ctx context.Context, api *client.Client) (string, error) {
	var server struct {
		Channels       int    `json:"channels"`
		DefaultChannel string `json:"default_channel"`
	}
	if _, err := api.Get(ctx, client.Path("server"), nil, &server); err != nil || server.DefaultChannel != "" {
		return server.DefaultChannel, err
	}
	return "", fail(exitUsage, "there are %s. Select one by its code, or with --channel CODE. See: parley channel list",
		count(server.Channels, "channel"))
}

// explain replaces an error about the header X-Channel by one about the code that was given.
func (c *cli) explain(ctx context.Context, cl *client.Client, err error) error {
	if err == nil {
		return nil
	}
	if running, ok := c.dir().Running(); ok && running.URL == cl.Base {
		return explainNoChannel(ctx, newAdmin(running), err, cl.Channel)
	}
	return err
}

// newAdmin is a client of the management API of a server on this machine.
func newAdmin(r app.Running) *client.Client {
	return &client.Client{Base: r.URL, Token: r.AdminToken, HTTP: client.OfThisMachine()}
}

// manage calls do with a client of the management API: of the profile's server, else of the server that runs on the data
// directory, else of one in this process.
func (c *cli) manage(cmd *cobra.Command, do func(context.Context, *client.Client) error) error {
	if c.profile != "" {
		return c.manageOrCreate(cmd, do)
	}
	if _, running := c.dir().Running(); !running && !c.dir().Exists() && c.set.text(keyDatabase) == "" {
		return c.noData()
	}
	return c.manageOrCreate(cmd, do)
}

func (c *cli) noData() error {
	return fail(exitUsage, "%s holds no Parley data. Start a server with: parley dev, or name the directory with --data", c.dir())
}

// manageOrCreate is manage for a command that may create the data directory.
func (c *cli) manageOrCreate(cmd *cobra.Command, do func(context.Context, *client.Client) error) (err error) {
	ctx := cmd.Context()
	if c.profile != "" {
		return c.onServer(cmd, do)
	}
	if running, ok := c.dir().Running(); ok && running.URL != "" {
		return c.onRunning(ctx, running, do)
	}
	isNew := !c.dir().Exists()
	config := app.Config{DataDir: c.dir(), Database: c.set.text(keyDatabase), Media: c.media(), Version: version, Log: c.warnings()}
	offline, err := app.OpenOffline(ctx, config, cmd.CommandPath())
	if used, ok := errors.AsType[*app.InUseError](err); ok && used.By.URL != "" { // it has just started
		return c.onRunning(ctx, used.By, do)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, offline.Close()) }()
	if isNew && !c.quiet { // also without a terminal: nothing else shows a forgotten --data
		fmt.Fprintf(c.err, "parley: created the data directory %s. To use an existing one, pass --data or set PARLEY_DATA\n", c.dir())
	}
	return do(ctx, &client.Client{Base: "http://parley", Token: offline.AdminToken, HTTP: &http.Client{Transport: client.Direct(offline)}})
}

func (c *cli) onRunning(ctx context.Context, running app.Running, do func(context.Context, *client.Client) error) error {
	if running.AdminToken == "" {
		return fail(exitNotAllowed, "the server on %s (pid %d) is of another version than this program. Restart it", c.dir(), running.PID)
	}
	return do(ctx, newAdmin(running))
}

func isNotFound(err error) bool { return hasCode(err, parley.NotFound) }

func isInvalid(err error) bool { return hasCode(err, parley.Invalid) }

func hasCode(err error, codes ...parley.Code) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return ok && refused.HasCode(codes...)
}

// explainNoChannel replaces the error of a request that names a channel, if the channel does not exist.
func explainNoChannel(ctx context.Context, api *client.Client, err error, code string) error {
	if code == "" || !isInvalid(err) && !hasCode(err, parley.BadRequest) {
		return err
	}
	if _, missing := api.Get(ctx, client.Path("channels", code), nil, nil); isNotFound(missing) {
		return explainNotFound(missing, "channel", code)
	}
	return err
}

// explainNotFound adds to a 404 the command that lists what exists: explainNotFound(err, "webhook", id).
func explainNotFound(err error, kind, id string) error {
	if !isNotFound(err) {
		return err
	}
	list := kind
	if kind == "delivery" {
		list = "deliveries"
	}
	return &client.Error{Status: http.StatusNotFound, Code: parley.NotFound.String(),
		Message: fmt.Sprintf("there is no %s %s. See: parley %s list", kind, id, list)}
}

func digits(number string) (string, error) {
	digits, err := parley.ParseNumber(strings.TrimSuffix(strings.TrimSuffix(number, "@c.us"), "@s.whatsapp.net"))
	if err != nil {
		return "", fail(exitUsage, "%q is not a phone number. Write it with its country code, for example +6281234567890", number)
	}
	return digits, nil
}

// chatID reads a phone number or the id of a group.
func chatID(text string) (parley.ContactID, error) {
	if group, err := parley.ParseGroupID(text); err == nil {
		return group.Chat(), nil
	}
	if strings.HasSuffix(text, "@g.us") {
		return "", fail(exitUsage, "%q is not the id of a group, for example 120363020000000001@g.us", text)
	}
	number, err := digits(text)
	return parley.NewContactID(number), err
}

func showChat(id parley.ContactID) string {
	if id.IsGroup() {
		return string(id)
	}
	return app.ShowNumber(id.Number())
}

// optionalDigits is digits for a flag that may be empty.
func optionalDigits(number string) (string, error) {
	if number == "" {
		return "", nil
	}
	return digits(number)
}

func clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }

type exitCode int

const (
	exitDone        exitCode = 0
	exitNegative    exitCode = 1   // a check found a problem, or something else failed
	exitUsage       exitCode = 2   // wrong usage or configuration, also a value that the server calls invalid
	exitUnreachable exitCode = 3   // cannot reach the server
	exitNotAllowed  exitCode = 4   // no token, or one without this permission
	exitRefused     exitCode = 5   // the server or the network rejected the request
	exitNeedsPerson exitCode = 6   // a person must act, at a phone or at a prompt
	exitNotFound    exitCode = 7   // what was named does not exist
	exitTimeout     exitCode = 8   // nothing came in time
	exitLimited     exitCode = 9   // over a limit of the server; try again later
	exitInterrupted exitCode = 130 // by Ctrl-C
)

type failure struct {
	code exitCode
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func fail(code exitCode, format string, args ...any) error {
	return &failure{code, fmt.Errorf(format, args...)}
}

func toExitCode(err error) exitCode {
	if err == nil {
		return exitDone
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f.code
	}
	if _, ok := errors.AsType[*app.ConfigError](err); ok {
		return exitUsage
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	if _, ok := errors.AsType[*client.UnreachableError](err); ok {
		return exitUnreachable
	}
	refused, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok && parley.ToCode(err) == parley.Unavailable: // the data directory, in this process
		return exitUnreachable
	case !ok:
		return exitNegative
	}
	switch {
	case refused.HasCode(parley.Unauthenticated, parley.TokenExpired, parley.Forbidden):
		return exitNotAllowed
	case refused.HasCode(parley.Invalid): // the fields came from arguments and flags
		return exitUsage
	case refused.HasCode(parley.NotFound):
		return exitNotFound
	case refused.HasCode(parley.TooMany, parley.QueueFull, parley.StorageLimit):
		return exitLimited
	case refused.HasCode(parley.Unavailable):
		return exitUnreachable
	}
	return exitRefused
}

// errorCodes are the codes in JSON of errors that do not come from the API.
var errorCodes = map[exitCode]string{
	exitNegative: "not_so", exitUsage: "usage", exitUnreachable: "unreachable", exitNotAllowed: "unauthenticated",
	exitRefused: "refused", exitNeedsPerson: "needs_person", exitNotFound: "not_found", exitTimeout: "timeout",
	exitLimited: "rate_limited", exitInterrupted: "interrupted",
}

// errorDocument is an error in JSON, in the form of the API.
type errorDocument struct {
	Success bool                `json:"success"`
	Code    string              `json:"code"`
	Message string              `json:"message"`
	Errors  map[string][]string `json:"errors,omitempty"`
}

func toErrorDocument(err error) errorDocument {
	d := errorDocument{Code: errorCodes[toExitCode(err)], Message: sentence(err)}
	if refused, ok := errors.AsType[*client.Error](err); ok {
		d.Code, d.Message, d.Errors = refused.Code, refused.Message, refused.Errors
	}
	return d
}
