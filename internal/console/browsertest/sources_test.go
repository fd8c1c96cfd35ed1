package browsertest

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/evanw/esbuild/pkg/api"
)

const sources = "../ui"

// budget is how much of our own JavaScript a browser may have to fetch before it can show a page,
// compressed as it is served. A console that is opened over a bad line should not be waited for.
const budget = 60 << 10

// own lists the files of the front end that are ours, by their path below ui.
func own(t *testing.T, extensions ...string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(sources, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "vendor" {
			return filepath.SkipDir
		}
		for _, extension := range extensions {
			if !d.IsDir() && filepath.Ext(path) == extension {
				name, err := filepath.Rel(sources, path)
				if err != nil {
					return err
				}
				if files[filepath.ToSlash(name)], err = os.ReadFile(path); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("there are no files in %s", sources)
	}
	return files
}

// module is a file of the front end and what it imports.
type module struct {
	Imports []struct {
		Path string
		Kind string // import-statement: always; dynamic-import: when it is needed
	}
}

// modules has the front end read as a browser would: its syntax, and that everything that is imported is
// there.
func modules(t *testing.T) map[string]module {
	t.Helper()
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{sources + "/app.js", sources + "/live_worker.js"},
		Bundle:      true, Splitting: true, Format: api.FormatESModule, Target: api.ES2022,
		Outdir: "none", Write: false, Metafile: true, LogLevel: api.LogLevelSilent,
	})
	for _, m := range append(result.Errors, result.Warnings...) {
		at := ""
		if m.Location != nil {
			at = m.Location.File + ": " + m.Location.LineText
		}
		t.Errorf("%s %s", m.Text, at)
	}
	if t.Failed() {
		t.FailNow()
	}
	var made struct{ Inputs map[string]module }
	if err := json.Unmarshal([]byte(result.Metafile), &made); err != nil {
		t.Fatal(err)
	}
	all := map[string]module{}
	for path, m := range made.Inputs {
		for i := range m.Imports {
			m.Imports[i].Path = strings.TrimPrefix(m.Imports[i].Path, sources+"/")
		}
		all[strings.TrimPrefix(path, sources+"/")] = m
	}
	return all
}

// TestSources finds what does not hold together. A module that nobody imports is one that nobody tries.
func TestSources(t *testing.T) {
	t.Parallel()
	read := modules(t)
	for name := range own(t, ".js") {
		if _, imported := read[name]; !imported {
			t.Errorf("nothing imports %s", name)
		}
	}
}

// TestNoImportCircle finds modules that import each other, also through others: none of them can be read or tried alone.
func TestNoImportCircle(t *testing.T) {
	t.Parallel()
	read := modules(t)
	done := map[string]bool{}
	var visit func(path []string)
	visit = func(path []string) {
		for _, i := range read[path[len(path)-1]].Imports {
			if from := slices.Index(path, i.Path); from >= 0 {
				t.Errorf("modules import each other: %s", strings.Join(append(path[from:], i.Path), ", "))
			} else if !done[i.Path] {
				visit(append(path, i.Path))
			}
		}
		done[path[len(path)-1]] = true
	}
	for name := range read {
		visit([]string{name})
	}
}

// needs collects what is fetched before a module runs.
func needs(read map[string]module, name string, into map[string]bool) {
	if into[name] {
		return
	}
	into[name] = true
	for _, i := range read[name].Imports {
		if i.Kind == "import-statement" {
			needs(read, i.Path, into)
		}
	}
}

func TestSizeBudget(t *testing.T) {
	t.Parallel()
	c := start(t)
	build := c.build()
	sizes := map[string]int{} // what is not ours has none
	for name := range own(t, ".js") {
		sizes[name] = len(c.served(build, name, "gzip"))
	}
	read := modules(t)
	for _, i := range read["routes.js"].Imports {
		if i.Kind != "dynamic-import" {
			continue
		}
		fetched := map[string]bool{}
		for _, name := range []string{"app.js", "live_worker.js", i.Path} {
			needs(read, name, fetched)
		}
		total := 0
		for name := range fetched {
			total += sizes[name]
		}
		t.Logf("%s: %.1f kB", i.Path, float64(total)/1024)
		if total > budget {
			t.Errorf("to show %s a browser fetches %d bytes of our own JavaScript, %d more than it may", i.Path, total, total-budget)
		}
	}
}

// TestNothingDangerous looks for what must not stand in the front end: making code or markup of text,
// and addresses of others. The policy of the pages stops most of it; here it is found before it is run.
func TestNothingDangerous(t *testing.T) {
	t.Parallel()
	banned := regexp.MustCompile(`\b(innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|srcdoc|createContextualFragment` +
		`|setHTMLUnsafe|parseHTMLUnsafe)\b` +
		`|\bdocument\.write|\beval\(|\bnew Function\b|\bjavascript:|https?://|<style|\sstyle="|\son[a-z]+="`)
	for name, body := range own(t, ".js", ".css", ".html") {
		for number, line := range strings.Split(string(body), "\n") {
			if found := banned.FindString(line); found != "" {
				t.Errorf("%s:%d has %q", name, number+1, found)
			}
		}
	}
	outside := regexp.MustCompile(`@import|url\(\s*['"]?(//|http)`)
	for name, body := range own(t, ".css") {
		if found := outside.Find(body); found != nil {
			t.Errorf("%s has %q", name, found)
		}
	}
}

// served fetches what the server makes of a file of the front end; encoding is gzip or identity.
func (c *console) served(build, name, encoding string) []byte {
	c.t.Helper()
	status, body := c.fetch("/console/"+build+"/"+name, encoding)
	if status != http.StatusOK {
		c.t.Fatalf("%s: answer %d", name, status)
	}
	return body
}

var namesBuild = regexp.MustCompile(`data-build="(\w+)"`)

// build is the name under which the files stand.
func (c *console) build() string {
	c.t.Helper()
	_, frame := c.fetch("/console/login", "identity")
	found := namesBuild.FindSubmatch(frame)
	if found == nil {
		c.t.Fatalf("the frame names no build: %s", frame)
	}
	return string(found[1])
}

func (c *console) fetch(path, encoding string) (status int, body []byte) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.URL+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", encoding)
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil {
		c.t.Fatal(err)
	}
	return answer.StatusCode, body
}

var preloads = regexp.MustCompile(`<link rel="(?:module)?preload"[^>]* href="([^"]+)"`)

// TestPreloaded holds that the frame names exactly the modules that every page loads, so that a browser asks for them at
// once: else each would be known only when the one that imports it is there.
func TestPreloaded(t *testing.T) {
	t.Parallel()
	c := start(t)
	_, frame := c.fetch("/console/login", "identity")
	named := map[string]bool{}
	for _, found := range preloads.FindAllSubmatch(frame, -1) {
		named[strings.TrimPrefix(string(found[1]), "/console/"+c.build()+"/")] = true
	}
	want := map[string]bool{"i18n/en.json": true}
	needs(modules(t), "app.js", want)
	if !maps.Equal(named, want) {
		t.Errorf("the frame names %q, and every page loads %q", slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(want)))
	}
}

// TestInstall has the browser judge whether the console can be installed as an app. In windows that
// store nothing, as those of the other tests are, nothing can be installed.
func TestInstall(t *testing.T) {
	t.Parallel()
	c := start(t)
	lasting, closeTab := chromedp.NewContext(browser)
	t.Cleanup(closeTab)
	p := newPage(t, c.URL, lasting)
	c.signIn(p)
	p.visit("/")
	p.must(do(p.ctx, func(ctx context.Context) error {
		url, problems, _, _, err := page.GetAppManifest().Do(ctx)
		if err != nil {
			return err
		}
		if url != c.URL+"/console/manifest.webmanifest" {
			t.Errorf("the manifest is at %q", url)
		}
		for _, problem := range problems {
			t.Errorf("the manifest: %s", problem.Message)
		}
		reasons, err := page.GetInstallabilityErrors().Do(ctx)
		for _, r := range reasons {
			t.Errorf("it cannot be installed: %s", r.ErrorID)
		}
		return err
	}))
	c.open("/phone?window=1").find("region", "Phone of Ayu") // where the app's menu leads
}
