package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"parley"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/internal/app"
)

// clientSettings are the flags of commands that call a server.
var clientSettings = []string{keyURL, keyToken}

// client calls a server's HTTP API.
type client struct {
	base    string // without /api
	token   string
	origin  string // where the token was set; empty: this command made it
	channel string // for X-Channel; empty: the token's own
	http    http.Client
}

// answer is the envelope of the API, and the body of its errors.
type answer struct {
	Success *bool               `json:"success"`
	Message string              `json:"message"`
	Data    json.RawMessage     `json:"data"`
	Meta    json.RawMessage     `json:"meta"`
	Errors  map[string][]string `json:"errors"`
}

// serverURL finds the server: as told, else the one that runs on the data directory, else where one is set to
// listen. The default address is not tried: whatever answers there belongs to somebody else.
func (c *cli) serverURL() (string, error) {
	if given := c.set.text(keyURL); given != "" {
		u, err := url.Parse(given)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return "", fail(exitUsage, "%s: %q is not the address of a server. Write it like http://127.0.0.1:7275", c.set.values[keyURL].origin, given)
		}
		return strings.TrimSuffix(strings.TrimSuffix(given, "/"), "/api"), nil
	}
	if running, ok := c.dir().Running(); ok && running.URL != "" {
		return running.URL, nil
	}
	if listen := c.set.values[keyListen]; listen.origin != "default" {
		return "http://" + listen.text, nil
	}
	return "", c.noServer()
}

// noServer says that no server runs on the data directory.
func (c *cli) noServer() error {
	return fail(exitUnreachable, "no server runs on %s. Start one with: parley dev, or parley serve. Name another one with --url, or its directory with --data", c.dir())
}

// client makes a client with the token that is configured, or else the one in dev.env under the
// given name. Without either it returns the client with an error of exitNotAllowed.
func (c *cli) client(configured, inDevEnv, channel string) (*client, error) {
	base, err := c.serverURL()
	if err != nil {
		return nil, err
	}
	cl := &client{base: base, channel: channel}
	token, origin := strings.TrimSpace(c.set.text(configured)), c.set.values[configured].origin
	if token == "" {
		env, err := app.ReadDevEnv(c.dir())
		if err != nil {
			return nil, err
		}
		token, origin = env[inDevEnv], c.dir().DevEnv()
	}
	if token == "" {
		known, _ := findSetting(configured)
		return cl, fail(exitNotAllowed, "no token. Set %s to one made with: parley token create", known.variable())
	}
	cl.token, cl.origin = token, origin
	return cl, nil
}

// call makes one request. The answer's data is decoded into data, unless that is nil.
func (cl *client) call(ctx context.Context, method, path string, query url.Values, body, data any) (*answer, error) {
	resp, err := cl.send(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	a, err := cl.read(resp)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		return a, cl.refusal(resp.StatusCode, a)
	}
	if data != nil {
		if err := json.Unmarshal(a.Data, data); err != nil {
			return a, fmt.Errorf("read the answer to %s: %w", path, err)
		}
	}
	return a, nil
}

// read reads the whole of an answer and closes it.
func (cl *client) read(resp *http.Response) (*answer, error) {
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fail(exitUnreachable, "read the answer of %s: %w", cl.base, err)
	}
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, fail(exitRefused, "%s answered %s with something that is not of this API. Is it a parley server?", cl.base, resp.Status)
	}
	return &a, nil
}

func (cl *client) send(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	address := cl.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, fail(exitUsage, "the server's address: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+cl.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if cl.channel != "" {
		req.Header.Set("X-Channel", cl.channel)
	}
	resp, err := cl.http.Do(req)
	if err != nil {
		return nil, unreachable(ctx, cl.base, err)
	}
	return resp, nil
}

func unreachable(ctx context.Context, base string, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	return fail(exitUnreachable, "cannot reach %s: %w. Is it running? Start it with: parley dev, or parley serve", base, err)
}

// refusal turns an error answer into an error.
func (cl *client) refusal(status int, a *answer) error {
	if cl.channel != "" && strings.HasPrefix(a.Message, "The header X-Channel names no channel") { // which people gave by another name
		return noChannel(parley.ChannelCode(cl.channel))
	}
	code := exitRefused
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		code = exitNotAllowed
	case http.StatusNotFound:
		code = exitNotSo
	case http.StatusServiceUnavailable:
		code = exitUnreachable
	}
	lines := []string{a.Message}
	if status == http.StatusUnauthorized && cl.origin != "" {
		lines[0] = cl.origin + ": " + a.Message
	}
	for _, field := range slices.Sorted(maps.Keys(a.Errors)) {
		for _, sentence := range a.Errors[field] {
			if sentence != a.Message {
				lines = append(lines, "  "+field+": "+sentence)
			}
		}
	}
	return fail(code, "%s", strings.Join(lines, "\n"))
}

// clientFlags gives a command what it needs to call a server.
func clientFlags(cmd *cobra.Command) { settingFlags(cmd.PersistentFlags(), clientSettings...) }

// digits takes a phone number in any spelling people use down to its digits.
func digits(number string) (string, error) {
	var b strings.Builder
	for _, r := range strings.TrimSuffix(number, "@c.us") {
		switch {
		case r >= '0' && r <= '9':
			b.WriteRune(r)
		case strings.ContainsRune("+-. ()/", r):
		default:
			return "", fail(exitUsage, "%q is not a phone number. Write it with its country code, for example +6281234567890", number)
		}
	}
	if b.Len() < 5 {
		return "", fail(exitUsage, "%q is not a phone number. Write it with its country code, for example +6281234567890", number)
	}
	return b.String(), nil
}

// clock writes a time of day for people.
func clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }
