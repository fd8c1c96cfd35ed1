package main

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"parley"
)

// accountFlags are the credentials of a channel on the network cloud. Secrets are in files: others can read the arguments of a process.
var accountFlags = []flag{
	textFlag("phone-number-id", "on cloud: the phone number id that Meta shows").as("phone_number_id"),
	textFlag("waba-id", "on cloud: the id of the WhatsApp Business Account").as("waba_id"),
	textFlag("access-token-file", "on cloud: a file with the access token; - for stdin").as("access_token"),
	textFlag("app-secret-file", "on cloud: a file with the app secret; - for stdin").as("app_secret"),
	textFlag("graph-url", "on cloud: another server than Meta's, for tests").as("graph_url"),
	boolFlag("no-webhook", "on cloud: do not give Meta the address to report to; you paste it yourself").as("no_webhook"),
	boolFlag("app-webhook", "on cloud: also replace the address of the app, which gets what is about templates").as("app_webhook"),
}

// takeAccount moves the credentials among the fields into the object that the API expects. Secrets that a new channel lacks are asked
// for on a terminal.
func (t *task) takeAccount(ctx context.Context, isNew bool) error {
	account := fields{}
	for _, f := range accountFlags {
		if value := t.fields.pop(f.field); value != nil {
			account[f.field] = value
		}
	}
	for field, webhook := range map[string]string{"no_webhook": "none", "app_webhook": "app"} {
		if account.pop(field) == nil {
			continue
		}
		if account["webhook"] != nil {
			return fail(exitUsage, "give --no-webhook or --app-webhook, not both")
		}
		account["webhook"] = webhook
	}
	for _, secret := range []struct{ field, name string }{{"access_token", "access token"}, {"app_secret", "app secret"}} {
		text, err := t.readSecret(ctx, account.text(secret.field), secret.name, isNew)
		if err != nil {
			return err
		}
		if text != "" {
			account[secret.field] = text
		}
	}
	if len(account) == 0 {
		return fail(exitUsage, "nothing to change. Give --access-token-file, --app-secret-file, --phone-number-id or --waba-id")
	}
	t.fields[string(parley.Cloud)] = account
	return nil
}

// readSecret reads a secret from a file, from stdin, or without showing it from a terminal if it is needed; empty: it is not given.
func (t *task) readSecret(ctx context.Context, path, name string, needed bool) (string, error) {
	c := t.cli
	terminal, isFile := c.in.(*os.File)
	switch {
	case path == "" && needed && isFile && c.inTerminal && !c.noInput:
		return c.askSecret(ctx, terminal, strings.ToUpper(name[:1])+name[1:]+": ")
	case path == "" && needed:
		return "", fail(exitUsage, "the %s is missing. Write it to a file and give --%s-file", name,
			strings.ReplaceAll(strings.ToLower(name), " ", "-"))
	case path == "":
		return "", nil
	}
	var from io.Reader = c.in
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return "", fail(exitUsage, "the %s: %w", name, err)
		}
		defer file.Close()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, 64<<10))
	if err == nil && len(strings.TrimSpace(string(text))) == 0 {
		return "", fail(exitUsage, "the %s is empty", name)
	}
	return strings.TrimSpace(string(text)), err
}

// readAccount is takeAccount for the flags of a command that is no verb; empty: its network needs no credentials.
func (c *cli) readAccount(ctx context.Context, cmd *cobra.Command, network string) (fields, error) {
	if network != string(parley.Cloud) {
		return nil, nil
	}
	given, err := readFlags(cmd, verb{flags: accountFlags})
	if err != nil {
		return nil, err
	}
	t := &task{cli: c, cmd: cmd, fields: given}
	return t.fields, t.takeAccount(ctx, true)
}

// channelCredentials is the command that changes them.
func channelCredentials(show printer) verb {
	return verb{
		use: "credentials CODE", short: "Change the credentials of a channel on cloud",
		long: `Change the credentials of a channel on WhatsApp's official API. Parley asks Meta first and changes nothing unless they
work. Queued messages are sent with the new credentials.`,
		example: `  parley channel credentials toko --access-token-file token.txt
  pass show meta/token | parley channel credentials toko --access-token-file -`,
		flags: accountFlags, call: "PUT channels/*/credentials", live: true, hint: "saved", print: show,
		run: func(ctx context.Context, t *task) error {
			if err := t.takeAccount(ctx, false); err != nil {
				return err
			}
			return t.requestAndPrint(ctx)
		},
	}
}

// channelRegister is the command that registers the number of a channel.
func channelRegister(show printer) verb {
	return verb{
		use: "register CODE", short: "Register the number of a channel on cloud",
		long: `Register the number of a channel on WhatsApp's official API, if Meta says that it is not connected. The PIN is the one of its
two-step verification; a number without one gets this one. It comes from a file, from stdin or from a prompt, and is not stored.`,
		example: `  parley channel register toko
  parley channel register toko --pin-file pin.txt`,
		flags: []flag{textFlag("pin-file", "a file with the PIN of six digits; - for stdin").as("pin")},
		call:  "PUT channels/*/credentials", live: true, hint: "registered", print: show,
		run: func(ctx context.Context, t *task) error {
			pin, err := t.readSecret(ctx, t.fields.text("pin"), "PIN", true)
			if err != nil {
				return err
			}
			t.fields.pop("pin")
			t.fields[string(parley.Cloud)] = fields{"pin": pin}
			return t.requestAndPrint(ctx)
		},
	}
}
