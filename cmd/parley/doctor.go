package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/app"
)

// finding is the result of one check.
type finding struct {
	Check  string `json:"check"`
	Level  level  `json:"level"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

type level string

const (
	fine    level = "ok"
	warning level = "warning"
	problem level = "problem"
)

// littleDisk is the free space below which a busy gateway can run full within a day.
const littleDisk = 1 << 30

func (c *cli) doctor() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, and say what to do",
		Example: `  parley doctor
  parley doctor --data /var/lib/parley --json`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			findings := []finding{c.checkConfig()}
			findings = append(findings, c.checkData(ctx)...)
			findings = append(findings, c.checkServer(ctx), c.checkExposure(), checkFFmpeg(ctx))
			return c.report(findings)
		},
	}
	settingFlags(cmd.Flags(), serverSettings...)
	settingFlags(cmd.Flags(), keyURL)
	return cmd
}

func (c *cli) report(findings []finding) error {
	problems, warnings := 0, 0
	for _, f := range findings {
		switch f.Level {
		case problem:
			problems++
		case warning:
			warnings++
		}
	}
	if c.json {
		if err := c.printJSON(findings); err != nil {
			return err
		}
	} else {
		for _, f := range findings {
			c.printFinding(f)
		}
	}
	switch {
	case problems > 0:
		return fail(exitNotSo, "%s, %s", count(problems, "problem"), count(warnings, "warning"))
	case warnings > 0:
		c.hint("%s", count(warnings, "warning"))
	}
	return nil
}

func (c *cli) printFinding(f finding) {
	mark := map[level]string{fine: "✓", warning: "!", problem: "✗"}[f.Level]
	if c.colour(c.outTerminal) {
		mark = map[level]string{fine: "\x1b[32m", warning: "\x1b[33m", problem: "\x1b[31m"}[f.Level] + mark + "\x1b[0m"
	}
	fmt.Fprintf(c.out, "%s %-14s %s", mark, f.Check, f.Found)
	if f.Remedy != "" {
		fmt.Fprintf(c.out, "   → %s", f.Remedy)
	}
	fmt.Fprintln(c.out)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// checkConfig tells where the settings came from; wrong ones never get this far.
func (c *cli) checkConfig() finding {
	from := map[string]int{}
	file := "no configuration file"
	for _, v := range c.set.values {
		switch {
		case strings.HasSuffix(v.origin, "_FILE"):
			from["from files that the environment names"]++
		case strings.HasPrefix(v.origin, "PARLEY_"):
			from["from environment"]++
		case strings.HasPrefix(v.origin, "--"):
			from["from flags"]++
		case v.origin != "default":
			file = v.origin
		}
	}
	for _, where := range []string{"from environment", "from files that the environment names", "from flags"} {
		if n := from[where]; n > 0 {
			file += fmt.Sprintf(", %d %s", n, where)
		}
	}
	return finding{Check: "config", Level: fine, Found: file}
}

// checkData looks at the data directory, the database, and the channels and webhooks in it.
func (c *cli) checkData(ctx context.Context) []finding {
	info, err := os.Stat(string(c.dir()))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !c.dir().Exists() {
		return []finding{{"data", problem, fmt.Sprintf("there is no gateway's data in %s", c.dir()), "parley dev, or parley serve --data DIR"}}
	}
	if err != nil {
		return []finding{{"data", problem, err.Error(), ""}}
	}
	var findings []finding
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		findings = append(findings, finding{"data", problem, fmt.Sprintf("%s is open to other users (mode %04o)", c.dir(), mode), fmt.Sprintf("chmod 700 %s", c.dir())})
	}
	err = c.withData(ctx, false, func(data *app.Data) error {
		if err := app.CheckDatabase(ctx, data); err != nil {
			return err
		}
		size, err := data.Store.Size(ctx)
		if err != nil {
			return err
		}
		free := freeDisk(string(c.dir()))
		// Opening it made sure of synchronous=FULL.
		f := finding{"data", fine, fmt.Sprintf("sqlite %s %s, synchronous=FULL, free disk %s, checked", c.dir().Database(), sizeText(size), sizeText(free)), ""}
		if free < littleDisk {
			f.Level, f.Remedy = warning, "make room on the disk"
		}
		findings = append(findings, f)
		channels, err := data.Store.Channels(ctx)
		if err != nil {
			return err
		}
		_, running := c.dir().Running()
		for _, ch := range channels {
			findings = append(findings, checkChannel(ch, running))
		}
		webhooks, err := checkWebhooks(ctx, data)
		findings = append(findings, webhooks...)
		return err
	})
	if err != nil {
		findings = append(findings, finding{"data", problem, sentence(err), ""})
	}
	return findings
}

func checkChannel(ch parley.Channel, running bool) finding {
	f := finding{Check: "channel " + string(ch.Code), Level: fine, Found: fmt.Sprintf("%s since %s", ch.State.Status, when(ch.State.Since))}
	switch {
	case ch.State.Status == parley.Working || !ch.Enabled || !running:
		return f // what should not run, or cannot without a server, is as it should be
	case ch.State.Status.CanSend():
		f.Level = warning // it recovers by itself
	default:
		f.Level = problem
		f.Remedy = "parley channel show " + string(ch.Code)
	}
	if ch.State.Reason != "" {
		f.Found += ": " + ch.State.Reason
	}
	if ch.State.Status == parley.LoggedOut || ch.State.Status == parley.ScanQRCode {
		f.Remedy = "parley channel pair " + string(ch.Code)
	}
	return f
}

// checkServer asks the server, if one should be running, whether it is ready.
func (c *cli) checkServer(ctx context.Context) finding {
	running, ok := c.dir().Running()
	if !ok || running.URL == "" {
		return finding{"server", warning, "no server runs on " + string(c.dir()), "parley serve"}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, running.URL+"/readyz", nil)
	if err != nil {
		return finding{"server", problem, err.Error(), ""}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return finding{"server", problem, fmt.Sprintf("pid %d does not answer at %s", running.PID, running.URL), "start it again"}
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return finding{"server", problem, fmt.Sprintf("%s is not ready (%s)", running.URL, resp.Status), "read its log"}
	}
	return finding{"server", fine, fmt.Sprintf("%s is ready, pid %d", running.URL, running.PID), ""}
}

func (c *cli) checkExposure() finding {
	cfg, err := c.appConfig()
	if err == nil {
		err = cfg.Check()
	}
	if err != nil {
		return finding{"exposure", problem, err.Error(), ""}
	}
	switch {
	case cfg.TLSCert != "":
		return finding{"exposure", fine, "listens on " + cfg.Listen + " with TLS", ""}
	case cfg.BehindProxy:
		return finding{"exposure", warning, "listens on " + cfg.Listen + " without TLS: a proxy must be in front", ""}
	}
	return finding{"exposure", fine, "listens on " + cfg.Listen + ", this machine alone", ""}
}

// checkFFmpeg looks for the program that converts audio.
func checkFFmpeg(ctx context.Context) finding {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ffmpeg", "-hide_banner", "-version").Output()
	if err != nil {
		return finding{"ffmpeg", warning, "not found: voice messages must be ogg/opus already", "install ffmpeg"}
	}
	fields := strings.Fields(string(out)) // ffmpeg version 7.1 …
	release := "of unknown version"
	if len(fields) > 2 {
		release = fields[2]
	}
	if !strings.Contains(string(out), "--enable-libopus") {
		return finding{"ffmpeg", warning, release + " without libopus: voice messages must be ogg/opus already", "install an ffmpeg with libopus"}
	}
	return finding{"ffmpeg", fine, release + ", libopus: voice in any format", ""}
}

// freeDisk is how many bytes may still be written where path lies.
func freeDisk(path string) int64 {
	var fs syscall.Statfs_t
	if syscall.Statfs(path, &fs) != nil {
		return 0
	}
	return int64(fs.Bavail) * int64(fs.Bsize)
}

// sizeText writes a size for people.
func sizeText(n int64) string {
	const units = "kMGTP"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n), -1
	for value >= 1000 && unit < len(units)-1 {
		value, unit = value/1000, unit+1
	}
	return fmt.Sprintf("%.1f %cB", value, units[unit])
}
