package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"parley/internal/doctor"
)

// buildSettings are the build settings in the bundle. Others, such as linker flags, may contain anything.
var buildSettings = []string{"vcs.revision", "vcs.time", "vcs.modified", "CGO_ENABLED", "GOOS", "GOARCH", "-race", "-trimpath"}

func (s Source) writeVersion(_ context.Context, b *strings.Builder) error {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	rows := [][]string{
		{"parley", s.Version},
		{"mode", s.Mode},
		{"started", s.StartedAt.UTC().Format(time.RFC3339)},
		{"up", time.Since(s.StartedAt).Round(time.Second).String()},
		{"go", runtime.Version()},
		{"system", fmt.Sprintf("%s/%s, %s", runtime.GOOS, runtime.GOARCH, doctor.Count(runtime.GOMAXPROCS(0), "processor"))},
		{"goroutines", fmt.Sprint(runtime.NumGoroutine())},
		{"memory", fmt.Sprintf("%s in use, %s of the system", doctor.Size(int64(memory.HeapInuse)), doctor.Size(int64(memory.Sys)))},
	}
	info, known := debug.ReadBuildInfo()
	if !known {
		return errors.Join(table(b, rows), errors.New("the binary has no build information"))
	}
	for _, one := range info.Settings {
		if slices.Contains(buildSettings, one.Key) {
			rows = append(rows, []string{one.Key, one.Value})
		}
	}
	for _, m := range info.Deps {
		rows = append(rows, []string{m.Path, m.Version})
	}
	return table(b, rows)
}

func table(b *strings.Builder, rows [][]string) error {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

func (s Source) writeSettings(_ context.Context, b *strings.Builder) error {
	if len(s.Settings) == 0 {
		return errors.New("the settings of the server are not known")
	}
	rows := [][]string{{"SETTING", "VALUE", "FROM"}}
	for _, one := range s.Settings {
		rows = append(rows, []string{one.Key, scrub(one.Value), scrub(one.Origin)})
	}
	return table(b, rows)
}

func (s Source) writeFindings(ctx context.Context, b *strings.Builder) error {
	for _, f := range s.Doctor(ctx) {
		fmt.Fprintf(b, "%-8s %s: %s", f.Level, scrub(f.Check), scrub(f.Found))
		if f.Remedy != "" {
			fmt.Fprintf(b, " → %s", scrub(f.Remedy))
		}
		b.WriteString("\n")
	}
	return nil
}

// labels match the values of a metric's labels. A channel's code can be its number.
var labels = regexp.MustCompile(`"[^"\n]*"`)

func (s Source) writeMetrics(_ context.Context, b *strings.Builder) error {
	figures, err := s.Metrics()
	scrubbed := map[string]string{} // a cache: there are few values
	for line := range strings.Lines(figures) {
		if untouched(line) {
			continue
		}
		b.WriteString(labels.ReplaceAllStringFunc(line, func(label string) string {
			clean, known := scrubbed[label]
			if !known {
				clean = scrub(label)
				scrubbed[label] = clean
			}
			return clean
		}))
	}
	return err
}

// untouched reports whether a line belongs to an empty histogram, like most lines of most servers.
func untouched(line string) bool {
	if !strings.HasSuffix(line, " 0\n") {
		return false
	}
	name := line[:strings.IndexAny(line, "{ ")]
	return strings.HasSuffix(name, "_bucket") || strings.HasSuffix(name, "_sum") || strings.HasSuffix(name, "_count")
}

// writeGoroutines writes the stacks of all goroutines, equal ones once. This form of the profile has no arguments of
// functions.
func writeGoroutines(_ context.Context, b *strings.Builder) error {
	var stacks strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 1); err != nil {
		return err
	}
	for line := range strings.Lines(stacks.String()) {
		if !strings.HasPrefix(line, "# labels:") { // they contain values
			b.WriteString(line)
		}
	}
	return nil
}
