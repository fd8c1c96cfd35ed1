package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/app"
	"parley/internal/client"
	"parley/internal/doctor"
	"parley/internal/wire"
)

func (c *cli) doctor() *cobra.Command {
	var unreadable error
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the server and its data, and say how to fix problems",
		Example: `  parley doctor
  parley doctor --data /var/lib/parley --json`,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			if c.set, err = loadSettings(cmd.Flags(), c.getenv); errors.Is(err, fs.ErrPermission) {
				unreadable, err = err, nil // this user may not read the configuration file
			}
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			findings := []doctor.Finding{c.settingsFrom().Look()}
			if unreadable != nil {
				findings[0] = doctor.Finding{Check: "config", Level: doctor.Problem, Found: unreadable.Error(), Remedy: asOwner(c.dir())}
			}
			if running, ok := c.dir().Running(); ok && running.URL != "" {
				found, unlisted := c.askDoctor(ctx, running)
				return c.report(append(findings, found...), unlisted)
			}
			findings = append(findings, c.checkData(ctx)...)
			findings = append(findings, doctor.Finding{
				Check: "server", Level: doctor.Warning, Found: "no server runs on " + string(c.dir()), Remedy: "parley serve"})
			findings = append(findings, c.checkExposure()...)
			return c.report(append(findings, doctor.FFmpeg(ctx)), nil)
		},
	}
	hiddenFlags(cmd.Flags(), serverSettings...)
	settingFlags(cmd.Flags(), keyURL)
	return cmd
}

// report prints the findings and counts them. Unlisted are those that the server has beyond them.
func (c *cli) report(findings []doctor.Finding, unlisted map[doctor.Level]int) error {
	levels := map[doctor.Level]int{}
	maps.Copy(levels, unlisted)
	for _, f := range findings {
		levels[f.Level]++
		if !c.json {
			c.printFinding(f)
		}
	}
	if c.json {
		if err := c.printJSON(findings); err != nil {
			return err
		}
	}
	warnings := count(levels[doctor.Warning], "warning")
	switch {
	case levels[doctor.Problem] > 0:
		return fail(exitNegative, "%s, %s", count(levels[doctor.Problem], "problem"), warnings)
	case c.json || c.quiet:
	case levels[doctor.Warning] > 0:
		fmt.Fprintf(c.err, "no problem, %s\n", warnings)
	default:
		fmt.Fprintln(c.err, "no problem found")
	}
	return nil
}

func (c *cli) printFinding(f doctor.Finding) {
	mark := map[doctor.Level]string{doctor.Fine: "✓", doctor.Warning: "!", doctor.Problem: "✗"}[f.Level]
	if c.colour(c.outTerminal) {
		colour := map[doctor.Level]string{doctor.Fine: "\x1b[32m", doctor.Warning: "\x1b[33m", doctor.Problem: "\x1b[31m"}[f.Level]
		mark = colour + mark + "\x1b[0m"
	}
	fmt.Fprintf(c.out, "%s %-14s %s", mark, f.Check, f.Found)
	if f.Remedy != "" {
		fmt.Fprintf(c.out, "   → %s", f.Remedy)
	}
	fmt.Fprintln(c.out)
}

func count(n int, what string) string { return doctor.Count(n, what) }

func (c *cli) settingsFrom() *doctor.Settings {
	from := new(doctor.Settings)
	for _, v := range c.set.values {
		switch {
		case strings.HasSuffix(v.origin, "_FILE"):
			from.Files++
		case strings.HasPrefix(v.origin, "PARLEY_"):
			from.Environment++
		case strings.HasPrefix(v.origin, "--"):
			from.Flags++
		case v.origin != "default":
			from.File = v.origin
		}
	}
	return from
}

// askDoctor requests the findings of the running server. If it does not respond, that is a finding. A server with very
// many findings lists the worst, and counts the others: unlisted.
func (c *cli) askDoctor(ctx context.Context, running app.Running) (findings []doctor.Finding, unlisted map[doctor.Level]int) {
	var found wire.Findings
	err := c.onRunning(ctx, running, func(ctx context.Context, api *client.Client) error {
		ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
		defer cancel()
		_, err := api.Get(ctx, client.Path("doctor"), nil, &found)
		return err
	})
	if err != nil {
		findings := append(doctor.Directory(string(c.dir())), doctor.Server(ctx, running.URL, running.PID))
		return append(findings, doctor.Finding{Check: "doctor", Level: doctor.Problem, Found: sentence(err)}), nil
	}
	for _, f := range found.Findings {
		findings = append(findings, doctor.Finding{Check: f.Name, Level: doctor.Level(f.Level), Found: f.Sentence, Remedy: f.Remedy,
			Code: f.Code, Channel: parley.ChannelCode(f.Channel), Webhook: parley.WebhookID(f.Webhook)})
	}
	problems, warnings := doctor.CountLevels(findings)
	unlisted = map[doctor.Level]int{doctor.Problem: found.Problems - problems, doctor.Warning: found.Warnings - warnings}
	// This command has its own finding about its settings.
	findings = slices.DeleteFunc(findings, func(f doctor.Finding) bool { return f.Check == "config" })
	return findings, unlisted
}

// doctorTimeout is long because the check of a large database is slow.
const doctorTimeout = time.Minute

func (c *cli) checkData(ctx context.Context) []doctor.Finding {
	_, err := os.Stat(string(c.dir()))
	missing := errors.Is(err, fs.ErrNotExist)
	if !c.onPostgres() && (missing || err == nil && !c.dir().Exists()) {
		return []doctor.Finding{{Check: "data", Level: doctor.Problem,
			Found: fmt.Sprintf("%s holds no Parley data", c.dir()), Remedy: "parley dev, or parley serve --data DIR"}}
	}
	var findings []doctor.Finding
	if !missing {
		findings = doctor.Directory(string(c.dir()))
	}
	cfg, err := c.appConfig()
	if err == nil {
		var found []doctor.Finding
		cfg.Log = c.warnings()
		found, err = app.ExamineOffline(ctx, cfg)
		findings = append(findings, found...)
	}
	if err != nil {
		findings = append(findings, c.brokenData(err))
	}
	return findings
}

func (c *cli) brokenData(err error) doctor.Finding {
	f := doctor.Finding{Check: "data", Level: doctor.Problem, Found: sentence(err)}
	switch {
	case errors.Is(err, syscall.EROFS) || app.IsReadOnly(string(c.dir())):
		f.Found, f.Remedy = fmt.Sprintf("%s is on a read-only file system", c.dir()), "mount it writable, or give another directory with --data"
	case errors.Is(err, fs.ErrPermission):
		f.Remedy = asOwner(c.dir())
	}
	return f
}

func asOwner(dir app.Dir) string {
	return "run this command as the owner of " + string(dir)
}

// checkExposure checks who could reach a server with these settings, and where links would lead.
func (c *cli) checkExposure() []doctor.Finding {
	cfg, err := c.appConfig()
	if err == nil {
		err = cfg.Check()
	}
	var public string
	if err == nil {
		public, err = c.publicURL()
	}
	if err != nil {
		return []doctor.Finding{{Check: "exposure", Level: doctor.Problem, Found: err.Error()}}
	}
	reach := cfg.Reach()
	findings := append([]doctor.Finding{reach.WouldReach()}, doctor.Private(cfg.AllowPrivate, cfg.AllowPrivateCallers)...)
	return append(findings, doctor.Links(public, reach.BehindProxy)...)
}
