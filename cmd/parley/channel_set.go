package main

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func channelSet(show printer) verb {
	return verb{
		use: "set CODE", short: "Change a channel's name, labels and settings",
		example: `  parley channel set toko --name 'Toko Ayu'
  parley channel set toko --retention 30d --pace 2s --add-label jakarta --remove-label trial`,
		flags: []flag{
			textFlag("name", "display name"), listFlag("add-label", "a label to add; may be repeated").as("add_labels"),
			listFlag("remove-label", "a label to remove; may be repeated").as("remove_labels"),
			textFlag("pace", "minimum time between two sends, for example 2s; 0: none; default: the default of its network"),
			textFlag("ttl", "how long a message may wait to be sent, for example 24h"),
			textFlag("retention", "how long message text is stored, for example 30d; 0: not at all; forever: no limit"),
			textFlag("window", "on the sandbox: how long after a contact wrote it can get more than templates, for example 24h; off: always"),
			textFlag("careful", "caps on messages a day: new_number, off, or JSON as in the API; see docs/whatsapp.md"),
			textFlag("calls", `what happens to calls: reject, off, or JSON as in the API, such as {"reject":true,"text":"Please write."}`),
			textFlag("proxy", "the proxy of a channel on whatsapp: an address with http, https or socks5; off: none"),
			textFlag("proxy-file", "a file with the address of the proxy and its credentials; - for stdin"),
			textFlag("opt-out", "the words with which contacts opt out, separated by commas, for example STOP; off: none"),
			textFlag("opt-out-reply", "what a contact who opts out is sent; empty: nothing"),
		},
		call: "PATCH channels/*", hint: "saved", print: show,
		run: func(ctx context.Context, t *task) error {
			given := t.cmd.Flags().Changed
			if given("name") {
				t.fields["name"] = t.fields.text("name")
			}
			settings := fields{} // empty: its default
			for flag, usual := range map[string]string{"pace": "default", "ttl": "0", "retention": "forever", "window": "off"} {
				if text := t.fields.text(flag); text == usual {
					settings[flag] = ""
				} else if given(flag) {
					settings[flag] = text
				}
				t.fields.pop(flag)
			}
			address, err := t.readSecret(ctx, t.fields.text("proxy_file"), "proxy", false)
			if err != nil {
				return err
			}
			if address = cmp.Or(address, t.fields.text("proxy")); address == "off" {
				settings["proxy"] = ""
			} else if address != "" {
				settings["proxy"] = address
			}
			t.fields.pop("proxy")
			t.fields.pop("proxy_file")
			for flag, words := range map[string]fields{"careful": {}, "calls": {"off": "", "reject": fields{"reject": true}}} {
				text := t.fields.text(flag)
				t.fields.pop(flag)
				if !given(flag) {
					continue
				}
				var value any = text
				if word, known := words[text]; known {
					value = word
				} else if strings.HasPrefix(text, "{") || len(words) > 0 {
					if err := json.Unmarshal([]byte(text), &value); err != nil {
						return fail(exitUsage, "--%s is not valid JSON: %w", flag, err)
					}
				}
				settings[flag] = value
			}
			words, reply := t.fields.pop("opt_out"), t.fields.pop("opt_out_reply")
			switch {
			case len(settings) > 0 || given("opt-out") || given("opt-out-reply"):
			case len(t.fields) == 0:
				return fail(exitUsage, "nothing to change. Give at least one flag. See: parley channel set --help")
			default:
				return t.requestAndPrint(ctx)
			}
			return t.changeSettings(ctx, func(now fields) error {
				for name, text := range settings {
					if now[name] = text; text == "" {
						delete(now, name)
					}
				}
				return setOptOut(now, words, reply, given("opt-out-reply"))
			})
		},
	}
}

// setOptOut changes how contacts opt out, in the settings of a channel. What was not given stays as it is.
func setOptOut(settings fields, words, reply any, isReply bool) error {
	optOut, _ := settings["opt_out"].(map[string]any)
	switch words {
	case nil:
	case "off":
		delete(settings, "opt_out")
		return nil
	default:
		if optOut == nil {
			optOut = map[string]any{}
		}
		optOut["words"] = strings.Split(words.(string), ",")
	}
	switch {
	case !isReply:
	case optOut == nil:
		return fail(exitUsage, "--opt-out-reply needs words: pass --opt-out too")
	case reply == nil || reply == "":
		delete(optOut, "reply")
	default:
		optOut["reply"] = reply
	}
	if optOut != nil {
		settings["opt_out"] = optOut
	}
	return nil
}

// changeSettings changes a channel. The API replaces settings as a whole, so change edits the present ones.
func (t *task) changeSettings(ctx context.Context, change func(settings fields) error) error {
	var now struct {
		Settings fields `json:"settings"`
	}
	if _, err := t.api.Get(ctx, t.path(), nil, &now); err != nil {
		return err
	}
	if err := change(now.Settings); err != nil {
		return err
	}
	t.fields["settings"] = now.Settings
	return t.requestAndPrint(ctx)
}

func channelAllow(show printer) verb {
	return verb{
		use: "allow CODE NUMBER|GROUP…", short: "Restrict the numbers that a channel may write to",
		long: `Restrict the numbers and groups that a channel may write to. Once one is on the list, all others are rejected.
--everybody removes the list.`,
		example: `  parley channel allow toko +6281298765432 120363020000000001@g.us
  parley channel allow toko --everybody`,
		flags: []flag{boolFlag("remove", "remove the numbers from the list"), boolFlag("everybody", "allow it to write to everyone")},
		args: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			switch {
			case given("everybody") && given("remove"):
				return fail(exitUsage, "give --remove or --everybody, not both")
			case given("everybody") && len(args) > 1:
				return fail(exitUsage, "give numbers or --everybody, not both")
			case given("everybody"):
				return wantArgs("CODE")(cmd, args)
			}
			return wantArgs("CODE", "NUMBER…")(cmd, args)
		},
		call: "PATCH channels/*", hint: "saved", print: show, run: allow,
	}
}

func allow(ctx context.Context, t *task) error {
	remove, everybody := t.fields.pop("remove") != nil, t.fields.pop("everybody") != nil
	var contacts []any
	for _, number := range t.args[1:] {
		id, err := chatID(number)
		if err != nil {
			return err
		}
		contacts = append(contacts, string(id))
	}
	return t.changeSettings(ctx, func(settings fields) error {
		allowed, _ := settings["allow_only"].([]any)
		list := slices.DeleteFunc(slices.Clone(allowed), func(id any) bool { return slices.Contains(contacts, id) })
		switch {
		case everybody:
			list = nil
		case !remove:
			list = append(list, contacts...)
		case len(list) == 0 && len(allowed) > 0:
			return fail(exitUsage, "this is the last allowed number, and an empty list would allow everybody. For that, pass --everybody")
		}
		settings["allow_only"] = append([]any{}, list...)
		return nil
	})
}
