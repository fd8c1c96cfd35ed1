package browsertest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"parley"
	"parley/internal/app"
	"parley/internal/parleytest"
	"parley/internal/store"
)

// waitLimit is how long something may take to show. Only a program that hangs reaches it.
const waitLimit = 2 * time.Minute

// console is a gateway and a browser that is signed in to it.
type console struct {
	*parleytest.Env
	t    *testing.T
	tab  context.Context // whose cookies all its pages share; nil: none was opened
	role parley.Role     // of the session; empty: owner
}

// start runs a gateway until the test ends.
func start(t *testing.T, change ...func(*app.Config)) *console {
	t.Helper()
	return &console{Env: parleytest.Start(t, change...), t: t}
}

// store writes to the gateway's data, as a command beside it does.
func (c *console) store(do func(ctx context.Context, data *app.Data) error) {
	c.t.Helper()
	ctx := c.t.Context()
	data, err := app.OpenData(ctx, c.Data, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer data.Close()
	if err := do(ctx, data); err != nil {
		c.t.Fatal(err)
	}
}

// link makes a link that signs in.
func (c *console) link() string {
	c.t.Helper()
	var link string
	c.store(func(ctx context.Context, data *app.Data) (err error) {
		link, err = data.SignInLink(ctx, c.URL)
		return err
	})
	return link
}

// signIn gives the browser a session without going through the sign-in page.
func (c *console) signIn(p *tab) {
	c.t.Helper()
	secret, ticket := parley.NewTicket(parley.SessionTicket, "", time.Now(), time.Hour)
	ticket.Role, ticket.Name = cmp.Or(c.role, parley.Owner), string(c.role)
	c.store(func(ctx context.Context, data *app.Data) error {
		return data.Store.Tx(ctx, func(tx *store.Tx) error { return tx.AddTicket(ctx, ticket) })
	})
	p.must(do(p.ctx, func(ctx context.Context) error {
		return network.SetCookie("__Host-parley", secret).WithURL(c.URL).WithPath("/").WithSecure(true).WithHTTPOnly(true).
			WithSameSite(network.CookieSameSiteStrict).Do(ctx)
	}))
}

// open opens a page of the console, signed in, and waits until it is live and shows what it loaded.
func (c *console) open(path string) *tab {
	c.t.Helper()
	first := c.tab == nil
	p := c.blank()
	if first {
		c.signIn(p)
	}
	p.visit(path)
	p.live()
	p.rest()
	return p
}

// blank opens an empty tab, which is signed in if one before it was.
func (c *console) blank() *tab {
	c.t.Helper()
	p := newPage(c.t, c.URL, newTab(c.t, c.tab))
	if c.tab == nil {
		c.tab = p.ctx
	}
	return p
}

// tab is one tab of the browser.
type tab struct {
	t   *testing.T
	url string
	ctx context.Context
	*watch
}

// watch is what was seen of a tab that it must not do.
type watch struct {
	mu       sync.Mutex
	problems []string
	allowed  []string
}

func newPage(t *testing.T, url string, ctx context.Context) *tab {
	t.Helper()
	p := &tab{t: t, url: url, ctx: ctx, watch: &watch{}}
	chromedp.ListenTarget(ctx, p.hear)
	p.must(do(ctx, func(ctx context.Context) error {
		if err := log.Enable().Do(ctx); err != nil {
			return err
		}
		if err := runtime.AddBinding("tellViolation").Do(ctx); err != nil {
			return err
		}
		_, err := page.AddScriptToEvaluateOnNewDocument(`addEventListener('securitypolicyviolation', (e) =>
			tellViolation(e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sourceFile + ':' + e.lineNumber));
			window.shifts = [];
			new PerformanceObserver((list) => shifts.push(...list.getEntries().filter((e) => !e.hadRecentInput).map((e) => ({ value: e.value,
				what: e.sources.map(({ node, previousRect: a, currentRect: b }) => [node?.nodeName, node?.className, a.x, a.y, a.width, a.height, '->',
					b.x, b.y, b.width, b.height].join(' ')) })))).observe({ type: 'layout-shift', buffered: true });`).Do(ctx)
		return err
	}))
	t.Cleanup(p.finish)
	return p
}

// during lends the tab to a subtest, which reports the errors of the page.
func (p *tab) during(t *testing.T) *tab {
	t.Helper()
	p.finish()
	lent := &tab{t: t, url: p.url, ctx: p.ctx, watch: p.watch}
	t.Cleanup(lent.finish)
	return lent
}

// hear notes what a page must not do.
func (p *watch) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventBindingCalled:
		p.problem("breaks its policy: " + e.Payload)
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		p.problem("throws: " + text)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Source == log.SourceSecurity {
			p.problem(fmt.Sprintf("logs: %s %s", e.Entry.Text, e.Entry.URL))
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeAssert {
			var words []string
			for _, a := range e.Args {
				words = append(words, strings.TrimSpace(string(a.Value)+" "+a.Description))
			}
			p.problem("logs an error: " + strings.Join(words, " "))
		}
	}
}

func (p *watch) problem(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, text)
}

// allow says that the page will log something that contains a text, and must.
func (p *watch) allow(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = append(p.allowed, text)
}

// finish holds against the page what it did wrong until now.
func (p *tab) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		expected := false
		for _, a := range p.allowed {
			expected = expected || strings.Contains(problem, a)
		}
		if !expected {
			p.t.Errorf("the page %s", problem)
		}
	}
	p.problems = nil
}

func (p *tab) must(err error) {
	p.t.Helper()
	if err != nil {
		p.fail("%v", err)
	}
}

// fail ends the test with a picture of the page, which is kept where -artifacts is given.
func (p *tab) fail(format string, args ...any) {
	p.t.Helper()
	picture := filepath.Join(p.t.ArtifactDir(), fmt.Sprintf("failed-%d.png", time.Now().UnixNano()))
	if err := os.WriteFile(picture, p.picture(), 0o644); err == nil {
		p.t.Logf("what was seen: %s", picture)
	}
	at, _ := tryEval[string](p, `location.href.replace(/#.*/, '') + '\n' + document.body?.innerText.slice(0, 1500)`)
	p.t.Fatalf(format+"\nat "+strings.ReplaceAll(at, "%", "%%"), args...)
}

// picture takes a picture of what is seen; nil: it could not.
func (p *tab) picture() []byte {
	var picture []byte
	err := do(p.ctx, func(ctx context.Context) (err error) {
		picture, err = page.CaptureScreenshot().Do(ctx)
		return err
	})
	if err != nil {
		return nil
	}
	return picture
}

// visit goes to a page of the console, or to a whole address, and waits until it was loaded.
func (p *tab) visit(path string) {
	p.t.Helper()
	switch {
	case strings.HasPrefix(path, "http"):
	default:
		path = p.url + "/console" + path
	}
	p.must(chromedp.Run(p.ctx, chromedp.Navigate(path)))
}

// live waits until the page hears of what happens.
func (p *tab) live() {
	p.t.Helper()
	p.until("the page is live", `document.documentElement.dataset.live === 'on'`)
}

// rest waits until the page has loaded what it shows.
func (p *tab) rest() {
	p.t.Helper()
	p.until("the page has a heading", `document.querySelector('h1')?.innerText`)
	p.until("the page has loaded", `!document.querySelector('[aria-busy=true], .loading')`)
	eval[any](p, `document.fonts.ready.then(() => new Promise((done) => requestAnimationFrame(() => `+
		`requestAnimationFrame(done)))).then(() => null)`)
}

// until waits for a JavaScript expression to be true. On its way the page may be replaced by another.
func (p *tab) until(what, expression string) {
	p.t.Helper()
	for deadline := time.Now().Add(waitLimit); ; p.breathe() {
		met, err := tryEval[bool](p, "!!("+expression+")")
		if met {
			return
		}
		if time.Now().After(deadline) {
			p.fail("waited in vain until %s (%v)", what, err)
		}
	}
}

// breathe lets the page go on for a frame or so before it is asked again.
func (p *tab) breathe() {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-p.ctx.Done():
	}
}

// see waits for a text on the page.
func (p *tab) see(text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("%q is seen", text), "document.body.innerText.includes("+quote(text)+")")
}

// gone waits until a text is on the page no more.
func (p *tab) gone(text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("%q is gone", text), "!document.body.innerText.includes("+quote(text)+")")
}

// eval returns the value of a JavaScript expression; of a promise, what it comes to.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	value, err := tryEval[T](p, expression)
	if err != nil {
		p.fail("%s: %v", expression, err)
	}
	return value
}

func tryEval[T any](p *tab, expression string) (T, error) {
	var value T
	err := chromedp.Run(p.ctx, chromedp.Evaluate(expression, &value, func(e *runtime.EvaluateParams) *runtime.EvaluateParams {
		return e.WithAwaitPromise(true)
	}))
	return value, err
}

// quote writes a text as JavaScript does.
func quote(text string) string {
	written, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can always be written
	}
	return string(written)
}
