package check

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metrics returns the names of the metrics in the source.
func metrics(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	registered := regexp.MustCompile(`(?:Name:\s+|counter\()"(parley_[a-z0-9_]+)"`)
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, found := range registered.FindAllStringSubmatch(read(t, path), -1) {
			names[found[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// settings returns the variables of the settings in the source.
func settings(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	keys := regexp.MustCompile(`(?m)^\tkey[A-Za-z0-9]+\s+= "([a-z0-9_]+)"`)
	for _, found := range keys.FindAllStringSubmatch(read(t, root, "cmd/parley/settings.go"), -1) {
		names["PARLEY_"+strings.ToUpper(found[1])] = true
	}
	return names
}

// others are metrics of Prometheus itself and of its Go library.
var others = []string{"up", "process_start_time_seconds", "process_cpu_seconds_total", "process_resident_memory_bytes",
	"process_open_fds", "go_goroutines", "go_memstats_heap_inuse_bytes"}

// TestMetricsExist fails on a metric in the alerts or the dashboard that no node has.
func TestMetricsExist(t *testing.T) {
	source := metrics(t)
	if len(source) < 10 {
		t.Fatalf("the source has %d metrics, which cannot be all", len(source))
	}
	used := regexp.MustCompile(`\b(?:parley|process|go)_[a-z0-9_]+\b`)
	ofHistogram := regexp.MustCompile(`_(bucket|sum|count)$`)
	for _, file := range []string{"monitoring/alerts.yaml", "monitoring/alerts_test.yaml", "monitoring/dashboard.json"} {
		for _, name := range used.FindAllString(read(t, deploy, file), -1) {
			short := ofHistogram.ReplaceAllString(name, "")
			if !source[name] && !source[short] && !slices.Contains(others, name) {
				t.Errorf("%s: no metric is called %s", file, name)
			}
		}
	}
}

// TestDatabasesAreVerified fails on an example whose connection to PostgreSQL others could read, or answer in its place.
func TestDatabasesAreVerified(t *testing.T) {
	texts := files(t)
	pages, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		texts[page] = read(t, root, filepath.Join("docs", filepath.Base(page)))
	}
	found := 0
	for file, text := range texts {
		for line := range strings.Lines(text) {
			if !strings.Contains(line, "postgres://p") { // others are left out, as …
				continue
			}
			found++
			if !strings.Contains(line, "sslmode=verify-full") {
				t.Errorf("%s: %s", file, line)
			}
		}
	}
	if found < 5 {
		t.Errorf("%d addresses, which cannot be all", found)
	}
}

// TestSettingsExist fails on a variable that Parley does not read.
func TestSettingsExist(t *testing.T) {
	source := settings(t)
	if len(source) < 10 {
		t.Fatalf("the source has %d settings, which cannot be all", len(source))
	}
	// Those of the proxy and of the compose files.
	proxy := []string{"PARLEY_HOST", "PARLEY_NODES"}
	texts := files(t)
	texts["docs/deploy.md"] = read(t, root, "docs/deploy.md")
	for file, text := range texts {
		for _, name := range regexp.MustCompile(`\bPARLEY_[A-Z][A-Z_]*`).FindAllString(text, -1) {
			short := strings.TrimSuffix(name, "_FILE")
			if name != "PARLEY_" && !source[name] && !source[short] && !slices.Contains(proxy, name) {
				t.Errorf("%s: no setting is called %s", file, name)
			}
		}
	}
}
