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
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/evanw/esbuild/pkg/api"

	"parley/internal/parleytest"
)

const sources = "../ui"

// budget is how much of our own JavaScript, in bytes as it is served, a browser may fetch for a page that is opened and then
// left alone. A console that is opened over a bad line should not be waited for, neither before it shows nor after.
const budget = 60_000

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

// TestSizeBudget opens every page and leaves it alone until nothing is fetched any more. Counting what the pages import was not
// enough: most went on to fetch, by themselves, what nobody had asked for.
func TestSizeBudget(t *testing.T) {
	t.Parallel()
	c := start(t, version, past(t))
	message := c.populate()
	pairer := startPairer(t, version)
	pairer.addOfficial("resmi")
	file := c.say("file", ayu, `"file":{"url":"`+c.files()+`/nota.pdf","filename":"nota.pdf"}`)
	build := c.build()
	sizes := map[string]int{} // what is not ours has none
	for name := range own(t, ".js") {
		sizes[name] = len(c.served(build, name, "gzip"))
	}
	worker := map[string]bool{} // what it fetches is not among the requests of a page
	needs(modules(t), "live_worker.js", worker)
	webhook := c.Get("/api/manage/webhooks", parleytest.As(c.Admin)).Text("data.0.id")
	delivery := c.Get("/api/manage/deliveries", parleytest.As(c.Admin)).Text("data.0.id")
	opened := append(slices.Clone(everyPage), []struct{ name, path string }{
		{"message with a file", "/messages?open=demo." + file},
		{"webhook", "/webhooks?webhook=" + webhook},
		{"deliveries", "/webhooks/deliveries"},
		{"delivery", "/webhooks/deliveries?open=" + delivery},
		{"form of a message", "/messages?send=1"},
		{"form of a webhook", "/webhooks?new=1"},
		{"channel's messages", "/messages?channel=demo"},
	}...)
	simulated, paired := c.open("/settings"), pairer.open("/settings")
	for _, each := range opened {
		p := simulated
		if each.name == "pair" || each.name == "account" {
			p = paired
		}
		fetched := maps.Clone(worker)
		for _, name := range p.scripts(strings.ReplaceAll(each.path, "{message}", message)) {
			_, name, _ = strings.Cut(name, "/console/"+build+"/")
			fetched[name] = true
		}
		total := 0
		for name := range fetched {
			total += sizes[name]
		}
		t.Logf("%s: %d bytes", each.name, total)
		if total > budget {
			t.Errorf("for %s a browser fetches %d bytes of our own JavaScript, %d more than it may: %q", each.path, total, total-budget,
				slices.Sorted(maps.Keys(fetched)))
		}
	}
}

// TestIcons finds the symbol of every icon that the sources name, and sees that a browser draws those of a page.
func TestIcons(t *testing.T) {
	t.Parallel()
	symbols, named := map[string]bool{}, 0
	for _, found := range regexp.MustCompile(`<symbol id="(\w+)"`).FindAllSubmatch(own(t, ".svg")["icons.svg"], -1) {
		symbols[string(found[1])] = true
	}
	names := regexp.MustCompile(`(?:<\$\{Icon\} name|<\$\{\w+\}[^>]*? icon)="(\w+)"|\bicon: '(\w+)'`)
	for name, source := range own(t, ".js") {
		for _, found := range names.FindAllSubmatch(source, -1) {
			named++
			if icon := string(found[1]) + string(found[2]); !symbols[icon] {
				t.Errorf("%s names the icon %q, which icons.svg lacks", name, icon)
			}
		}
	}
	if named < 100 {
		t.Errorf("only %d icons were found: do the patterns still fit?", named)
	}
	p := start(t).open("/messages")
	p.until("every icon is drawn", `(() => { const all = [...document.querySelectorAll('svg.icon')]
			.filter((one) => one.clientWidth);
		return all.length > 10 && all.every((one) => one.querySelector('use').getBBox().width > 0); })()`)
}

// scripts opens a page and returns the addresses of the scripts that it has fetched once it is quiet: for half a second
// Chromium saw no request of it.
func (p *tab) scripts(path string) []string {
	p.t.Helper()
	quiet := make(chan cdp.LoaderID, 100)
	listening, stop := context.WithCancel(p.ctx)
	defer stop()
	chromedp.ListenTarget(listening, func(event any) {
		if e, ok := event.(*page.EventLifecycleEvent); ok && e.Name == "networkIdle" {
			quiet <- e.LoaderID
		}
	})
	var opened cdp.LoaderID
	p.allow("404") // of the page that is not there
	p.must(do(p.ctx, func(ctx context.Context) (err error) {
		if err = page.SetLifecycleEventsEnabled(true).Do(ctx); err == nil {
			_, opened, _, _, err = page.Navigate(p.url + "/console" + path).Do(ctx)
		}
		return err
	}))
	for hang := time.After(waitLimit); ; {
		select {
		case which := <-quiet:
			if which != opened {
				continue
			}
		case <-hang:
			p.fail("%s goes on fetching", path)
		}
		break
	}
	p.rest()
	return eval[[]string](p, `performance.getEntriesByType('resource').map((one) => one.name).filter((name) => name.endsWith('.js'))`)
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
