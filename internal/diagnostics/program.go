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

// told are the settings of a build that say what it is. Others, like the flags of the linker, may hold
// anything.
var told = []string{"vcs.revision", "vcs.time", "vcs.modified", "CGO_ENABLED", "GOOS", "GOARCH", "-race", "-trimpath"}

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
		return errors.Join(table(b, rows), errors.New("the build did not record what it was made of"))
	}
	for _, one := range info.Settings {
		if slices.Contains(told, one.Key) {
			rows = append(rows, []string{one.Key, one.Value})
		}
	}
	for _, m := range info.Deps {
		rows = append(rows, []string{m.Path, m.Version})
	}
	return table(b, rows)
}

// table writes rows with their columns one below the other.
func table(b *strings.Builder, rows [][]string) error {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

func (s Source) writeSettings(_ context.Context, b *strings.Builder) error {
	if len(s.Settings) == 0 {
		return errors.New("the program that runs the server did not tell its settings")
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

// labels are what the figures are told apart by. A channel can be called by its number.
var labels = regexp.MustCompile(`"[^"\n]*"`)

func (s Source) writeMetrics(_ context.Context, b *strings.Builder) error {
	figures, err := s.Metrics()
	scrubbed := map[string]string{} // the same few come again and again
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

// untouched reports whether a line is of a histogram in which nothing was counted: most of all lines, on most
// servers.
func untouched(line string) bool {
	if !strings.HasSuffix(line, " 0\n") {
		return false
	}
	name := line[:strings.IndexAny(line, "{ ")]
	return strings.HasSuffix(name, "_bucket") || strings.HasSuffix(name, "_sum") || strings.HasSuffix(name, "_count")
}

// writeGoroutines writes the stacks of all goroutines, those that are alike once. This form of the profile
// has functions and lines only: the other one has what the functions were called with.
func writeGoroutines(_ context.Context, b *strings.Builder) error {
	var stacks strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 1); err != nil {
		return err
	}
	for line := range strings.Lines(stacks.String()) {
		if !strings.HasPrefix(line, "# labels:") { // which are values
			b.WriteString(line)
		}
	}
	return nil
}
