package main

import (
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/wire"
)

func notified(r *wire.AlertRule) wire.Text {
	if r.URL != "" {
		return r.URL
	}
	return r.ContactID + " through " + r.Via
}

func (c *cli) alert() *cobra.Command {
	return c.resource(resource{
		name: "alert", short: "Manage alerts: notices of problems, by webhook or message", id: "alr_2f0c6a9be1d84c53a7f0",
		example: `  parley alert create --kind channel_logged_out --url https://ops.example.com/alerts
  parley alert list`,
		verbs: []verb{{
			use: "list", short: "List alert rules and recent alerts", call: "GET alerts",
			print: printer{part: "rules", text: one((*cli).showAlerts).text},
		}, {
			use: "create", short: "Create an alert rule",
			long: `Create an alert rule. It notifies the address in --url with a signed request, or the number in --to with a message through
the channel in --via: once when a problem begins, and once when it ends. During quiet hours it sends nothing; if the problem
still exists when they end, it notifies you then. With --url, the command prints the secret that signs the requests, this once.`,
			example: `  parley alert create --kind channel_logged_out --url https://ops.example.com/alerts
  parley alert create --kind failing_sends --share 30 --via toko --to +6281234567890 --quiet 22:00-07:00 --zone Asia/Jakarta`,
			flags: []flag{
				textFlag("kind", "what to watch: "+strings.Join(words(parley.AlertKinds), ", ")),
				textFlag("name", "a name, for notices"),
				textFlag("channel", "only this channel, by its code"),
				textFlag("url", "the address to notify"),
				textFlag("via", "the channel that sends messages, by its code"),
				textFlag("to", "the number that gets the messages").as("contact_id").by(readContact),
				intFlag("share", 20, "for failing_sends: the share that raises the alert, in percent"),
				intFlag("window", 15, "for failing_sends: over how many minutes").as("window_minutes"),
				textFlag("quiet", "when nothing is sent, such as 22:00-07:00"),
				{name: "zone", value: "UTC", usage: "the time zone of --quiet, such as Asia/Jakarta"},
			},
			check: checkAlert, call: "POST alerts",
			print: one(func(c *cli, r *wire.NewAlertRule) string {
				if r.Secret != "" {
					c.hint("The secret signs its requests, and is shown only now")
				}
				return pairs(withoutEmpty([]string{"id", string(r.ID), "secret", string(r.Secret)})...)
			}),
		}, {
			use: "delete ID", short: "Delete an alert rule and its alerts", call: "DELETE alerts/*", hint: "deleted alert *",
		}, {
			use: "test ID", short: "Send a test notice now",
			long: "Send a test notice now, also in quiet hours. The server must be running. The exit code says whether it was accepted.",
			call: "POST alerts/*/test", live: true, hint: "the notice was accepted",
		}},
	})
}

func checkAlert(f fields) error {
	zone := f.pop("zone")
	if quiet := f.text("quiet"); quiet != "" {
		from, until, ok := strings.Cut(quiet, "-")
		if !ok {
			return fail(exitUsage, "--quiet must be two times of day, such as 22:00-07:00")
		}
		f["quiet"] = fields{"from": from, "to": until, "zone": zone}
	}
	if f.text("kind") != string(parley.AlertFailingSends) {
		f.pop("share")
		f.pop("window_minutes")
	}
	return nil
}

func (c *cli) showAlerts(data *wire.Alerts) string {
	if len(data.Rules) == 0 && len(data.Alerts) == 0 {
		c.sayNone(false, "There are no alert rules. Create one with: parley alert create")
		return ""
	}
	text := newTable(c, "id,name,kind,channel,notifies,enabled", data.Rules,
		func(r *wire.AlertRule) []any { return []any{r.ID, r.Name, r.Kind, r.Channel, notified(r), r.Enabled} })
	if len(data.Alerts) > 0 {
		text += "\n" + newTable(c, "raised,resolved,alert,problem", data.Alerts,
			func(a *wire.Alert) []any {
				return []any{when(a.RaisedAt.Time), when(a.ResolvedAt.Time), a.Sentence, a.Problem}
			})
	}
	return text
}
