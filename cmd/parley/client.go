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
)

// clientSettings are the flags of commands that act on a channel of a server.
var clientSettings = []string{keyURL, keyToken}

// clientFlags gives a command what it needs to act on a channel of a server.
func clientFlags(cmd *cobra.Command) { settingFlags(cmd.PersistentFlags(), clientSettings...) }

// server finds the server: the one that was given, else the one that runs on the data directory, else where one is set
// to listen. The default address is not tried: what answers there may be another's. The second result is zero unless
// the server runs on the data directory.
func (c *cli) server() (string, app.Running, error) {
	if given := c.set.text(keyURL); given != "" {
		u, err := url.Parse(given)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return "", app.Running{}, fail(exitUsage, "%s: %q is not the address of a server. Write it like http://127.0.0.1:7275",
				c.set.values[keyURL].origin, given)
		}
		return strings.TrimSuffix(strings.TrimSuffix(given, "/"), "/api"), app.Running{}, nil
	}
	if running, ok := c.dir().Running(); ok && running.URL != "" {
		return running.URL, running, nil
	}
	if listen := c.set.values[keyListen]; listen.origin != "default" {
		return "http://" + listen.text, app.Running{}, nil
	}
	return "", app.Running{}, c.noServer()
}

// noServer says that no server runs on the data directory.
func (c *cli) noServer() error {
	return fail(exitUnreachable, "no server runs on %s. Start one with: parley dev, or parley serve. "+
		"Name another one with --url, or its directory with --data", c.dir())
}

// client makes a client with the first token of: the one that is set, the one in dev.env under the given name, that of
// the server that runs on the data directory.
func (c *cli) client(configured, inDevEnv string, local func(app.Running) string) (*client.Client, error) {
	base, running, err := c.server()
	if err != nil {
		return nil, err
	}
	cl := &client.Client{Base: base}
	if running.URL != "" {
		cl.HTTP = client.OfThisMachine()
	}
	cl.Token, cl.Origin = strings.TrimSpace(c.set.text(configured)), c.set.values[configured].origin
	if cl.Token != "" {
		return cl, nil
	}
	env, err := app.ReadDevEnv(c.dir())
	if err != nil {
		return nil, err
	}
	if cl.Token, cl.Origin = env[inDevEnv], c.dir().DevEnv(); cl.Token != "" {
		return cl, nil
	}
	if cl.Token, cl.Origin = local(running), ""; cl.Token != "" {
		return cl, nil
	}
	if running.URL == "" && c.set.text(keyURL) == "" {
		return nil, c.noServer()
	}
	known, _ := findSetting(configured)
	return nil, fail(exitNotAllowed, "no token. Set %s to one made with: parley token create", known.variable())
}

// onServer calls do with a client for the management API of a running server.
func (c *cli) onServer(cmd *cobra.Command, do func(context.Context, *client.Client) error) error {
	cl, err := c.client(keyAdminToken, app.EnvAdminToken, func(r app.Running) string { return r.AdminToken })
	if err != nil {
		return err
	}
	return do(cmd.Context(), cl)
}

// onChannel makes a client that acts on a channel; without a code, on the token's own.
func (c *cli) onChannel(ctx context.Context, code string) (*client.Client, error) {
	token := app.EnvToken
	if code != "" && code != app.DemoChannel {
		token = app.EnvGlobalToken
	}
	var of app.Running // where the token is that of the server itself
	cl, err := c.client(keyToken, token, func(r app.Running) string { of = r; return r.GlobalToken })
	if err != nil {
		return nil, err
	}
	cl.Channel = code
	if of.GlobalToken != "" && code == "" {
		return cl, mustBeOne(ctx, adminOf(of))
	}
	return cl, nil
}

// mustBeOne asks for the code of a channel where there are several to choose from.
func mustBeOne(ctx context.Context, api *client.Client) error {
	var channels []client.Channel
	if _, err := api.Get(ctx, client.Path("channels"), nil, &channels); err != nil || len(channels) == 1 {
		return err
	}
	return fail(exitUsage, "there are %s. Name one: give its code, or --channel CODE. See: parley channel list",
		count(len(channels), "channel"))
}

// explain names a channel that is not there as it was given, not as the header of the request.
func (c *cli) explain(ctx context.Context, cl *client.Client, err error) error {
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || refused.Status != http.StatusBadRequest || cl.Channel == "" {
		return err
	}
	running, ok := c.dir().Running()
	if !ok || running.URL != cl.Base {
		return err
	}
	if _, missing := adminOf(running).Get(ctx, client.Path("channels", cl.Channel), nil, nil); isNotFound(missing) {
		return noChannel(cl.Channel)
	}
	return err
}

// adminOf is a client for the management API of a server on this machine.
func adminOf(r app.Running) *client.Client {
	return &client.Client{Base: r.URL, Token: r.AdminToken, HTTP: client.OfThisMachine()}
}

// manage calls do with a client for the management API of the data directory: that of the server that runs on it, else
// one in this process.
func (c *cli) manage(cmd *cobra.Command, do func(context.Context, *client.Client) error) error {
	if !c.dir().Exists() {
		return c.noData()
	}
	return c.manageNew(cmd, do)
}

// managing makes the body of a command of one that manages: see manage.
func (c *cli) managing(do func(ctx context.Context, api *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return c.manage(cmd, func(ctx context.Context, api *client.Client) error { return do(ctx, api, args) })
	}
}

func (c *cli) noData() error {
	return fail(exitUsage, "%s holds no Parley data. Start a server with: parley dev, or name the directory with --data", c.dir())
}

// manageNew is manage for a command that may make the data directory.
func (c *cli) manageNew(cmd *cobra.Command, do func(context.Context, *client.Client) error) error {
	err := c.manageData(cmd, do)
	if _, decided := errors.AsType[*failure](err); !decided && isInvalid(err) {
		return fail(exitUsage, "%w", err) // what is wrong was given in arguments and flags
	}
	return err
}

func (c *cli) manageData(cmd *cobra.Command, do func(context.Context, *client.Client) error) (err error) {
	ctx := cmd.Context()
	if running, ok := c.dir().Running(); ok && running.URL != "" {
		return c.onRunning(ctx, running, do)
	}
	isNew := !c.dir().Exists()
	offline, err := app.OpenOffline(ctx, app.Config{DataDir: c.dir(), Version: version, Log: c.warnings()}, cmd.CommandPath())
	if used, ok := errors.AsType[*app.InUseError](err); ok && used.By.URL != "" { // it has just started
		return c.onRunning(ctx, used.By, do)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, offline.Close()) }()
	if isNew && !c.quiet { // programs hear it too: a forgotten --data is found out by nothing else
		fmt.Fprintf(c.err, "parley: %s is a new data directory. If there is one already, name it with --data or PARLEY_DATA\n", c.dir())
	}
	return do(ctx, &client.Client{Base: "http://parley", Token: offline.AdminToken, HTTP: &http.Client{Transport: client.Direct(offline)}})
}

func (c *cli) onRunning(ctx context.Context, running app.Running, do func(context.Context, *client.Client) error) error {
	if running.AdminToken == "" {
		return fail(exitNotAllowed, "the server on %s (pid %d) is of another version than this program. Restart it", c.dir(), running.PID)
	}
	return do(ctx, adminOf(running))
}

// isNotFound reports whether the API says that there is no such thing.
func isNotFound(err error) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return ok && refused.Status == http.StatusNotFound
}

// isInvalid reports whether the API says that fields are wrong.
func isInvalid(err error) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return ok && refused.Status == http.StatusUnprocessableEntity
}

// orNoChannel says that fields are wrong because they name a channel that is not there.
func orNoChannel(ctx context.Context, api *client.Client, err error, code string) error {
	if code == "" || !isInvalid(err) {
		return err
	}
	if _, missing := api.Get(ctx, client.Path("channels", code), nil, nil); isNotFound(missing) {
		return noChannel(code)
	}
	return err
}

// orMissing says of what is not there where to look for others: orMissing(err, "webhook", id).
func orMissing(err error, kind, id string) error {
	if !isNotFound(err) {
		return err
	}
	list := kind
	if kind == "delivery" {
		list = "deliveries"
	}
	return &client.Error{Status: http.StatusNotFound, Code: "not_found",
		Message: fmt.Sprintf("there is no %s %s. See: parley %s list", kind, id, list)}
}

func noChannel(code string) error {
	return orMissing(&client.Error{Status: http.StatusNotFound}, "channel", code)
}

// digits takes a phone number in any spelling people use down to its digits.
func digits(number string) (string, error) {
	var b strings.Builder
	for _, r := range strings.TrimSuffix(number, "@c.us") {
		switch {
		case r >= '0' && r <= '9':
			b.WriteRune(r)
		case strings.ContainsRune("+-. ()/", r):
		default:
			return "", notANumber(number)
		}
	}
	if b.Len() < 5 {
		return "", notANumber(number)
	}
	return b.String(), nil
}

func notANumber(number string) error {
	return fail(exitUsage, "%q is not a phone number. Write it with its country code, for example +6281234567890", number)
}

// clock writes a time of day for people.
func clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }

// exitCode is what the shell learns of how a command went.
type exitCode int

const (
	exitDone        exitCode = 0
	exitNotSo       exitCode = 1   // the thing asked about is not so: a wait timed out, a check found a problem
	exitUsage       exitCode = 2   // wrong usage or configuration
	exitUnreachable exitCode = 3   // cannot reach the server
	exitNotAllowed  exitCode = 4   // no token, or one that may not do this
	exitRefused     exitCode = 5   // the server understood and refused
	exitNeedsPerson exitCode = 6   // somebody must act, at a phone or at a prompt
	exitInterrupted exitCode = 130 // by Ctrl-C
)

// failure is an error that knows its exit code.
type failure struct {
	code exitCode
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// fail makes an error with an exit code.
func fail(code exitCode, format string, args ...any) error {
	return &failure{code, fmt.Errorf(format, args...)}
}

// codes maps the kinds of our own errors to exit codes.
var codes = map[parley.Code]exitCode{
	parley.Internal:        exitNotSo,
	parley.BadRequest:      exitRefused,
	parley.Unauthenticated: exitNotAllowed,
	parley.Forbidden:       exitNotAllowed,
	parley.NotFound:        exitNotSo,
	parley.TooLarge:        exitRefused,
	parley.Invalid:         exitRefused,
	parley.TooMany:         exitRefused,
	parley.Unavailable:     exitUnreachable,
}

// exitCodeOf returns the exit code of what a command returned.
func exitCodeOf(err error) exitCode {
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
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return exitOfStatus(refused.Status)
	}
	return codes[parley.CodeOf(err)]
}

// exitOfStatus is the exit code of a request that the API refused.
func exitOfStatus(status int) exitCode {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitNotAllowed
	case http.StatusNotFound:
		return exitNotSo
	case http.StatusServiceUnavailable:
		return exitUnreachable
	}
	return exitRefused
}

// words are the codes of errors that are not of the API, for programs.
var words = map[exitCode]string{
	exitNotSo: "not_so", exitUsage: "usage", exitUnreachable: "unreachable", exitNotAllowed: "unauthenticated",
	exitRefused: "refused", exitNeedsPerson: "needs_person", exitInterrupted: "interrupted",
}

// errorDocument is an error as --json shows it, in the form of the API's.
type errorDocument struct {
	Success bool                `json:"success"`
	Code    string              `json:"code"`
	Message string              `json:"message"`
	Errors  map[string][]string `json:"errors,omitempty"`
}

func documentOf(err error) errorDocument {
	d := errorDocument{Code: words[exitCodeOf(err)], Message: sentence(err)}
	if refused, ok := errors.AsType[*client.Error](err); ok {
		d.Code, d.Message, d.Errors = refused.Code, refused.Message, refused.Errors
	}
	return d
}
