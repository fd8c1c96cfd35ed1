// Package browsertest tries the console in a real browser against a whole gateway. One Chromium serves
// all tests; each has a gateway and cookies of its own, so they run side by side.
//
// A test begins with start, opens pages, finds things as a person does, by what they are and what they
// are called, and waits for what must come:
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		c := start(t)
//		p := c.open("/tokens")
//		p.click("button", "Create token")
//		p.fill("Name", "CI")
//		p.press(kb.Enter)
//		p.see("Copy it now")
//		p.accessible()
//	}
//
// A page that breaks its policy, throws or logs an error fails the test by itself, unless the test said
// with allow that it must.
package browsertest

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// browser is the Chromium that all tests share.
var browser context.Context

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	path, err := findChromium()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	height := 800
	if path == shell {
		height = 657 // what a window of 800 leaves for the page
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.WindowSize(1280, height),
		chromedp.Flag("lang", "en"),
		chromedp.Flag("force-color-profile", "srgb"),               // so that screenshots are the same everywhere
		chromedp.Flag("disable-dev-shm-usage", true),               // containers have little of it
		chromedp.Flag("disable-background-timer-throttling", true), // all but one tab are in the background
		chromedp.Flag("use-fake-device-for-media-stream", true),    // a microphone that beeps, for pages that may use one
		chromedp.Flag("use-fake-ui-for-media-stream", true),        // and nobody who is asked
		chromedp.WSURLReadTimeout(waitLimit),
	)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to run as root with it
	}
	allocator, closeAll := chromedp.NewExecAllocator(context.Background(), options...)
	defer closeAll()
	// What this Chromium tells and the driver does not know of is of no concern.
	started, closeBrowser := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}), chromedp.WithLogf(log.Printf))
	defer closeBrowser()
	if err := chromedp.Run(started); err != nil {
		fmt.Fprintln(os.Stderr, "start", path+":", err)
		return 1
	}
	browser = started
	return m.Run()
}

// shell is Debian's Chromium without windows, which needs two thirds of the time. It is not in the path: what is there is a script, and
// the browser would outlive it.
const shell = "/usr/lib/chromium/chromium-headless-shell"

// findChromium finds the browser. Without one nothing here can be tried, and that must not go unseen.
func findChromium() (string, error) {
	for _, name := range []string{shell, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium here, which these tests drive. On Debian: apt-get install " + shell)
}

// newTab opens a tab in a window of its own: with cookies of its own, or with those of another tab.
func newTab(t testing.TB, beside context.Context) context.Context {
	t.Helper()
	chromium := chromedp.FromContext(browser).Browser
	ctx := cdp.WithExecutor(browser, chromium)
	var jar cdp.BrowserContextID
	if beside != nil {
		jar = chromedp.FromContext(beside).BrowserContextID
	} else {
		var err error
		if jar, err = target.CreateBrowserContext().WithDisposeOnDetach(true).Do(ctx); err != nil {
			t.Fatalf("make room for cookies: %v", err)
		}
		t.Cleanup(func() { _ = target.DisposeBrowserContext(jar).Do(ctx) }) // Chromium ends soon anyway
	}
	id, err := target.CreateTarget("about:blank").WithBrowserContextID(jar).WithNewWindow(true).Do(ctx)
	if err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	tab, closeTab := chromedp.NewContext(browser, chromedp.WithTargetID(id))
	t.Cleanup(closeTab)
	if err := chromedp.Run(tab); err != nil {
		t.Fatalf("take up a tab: %v", err)
	}
	chromedp.FromContext(tab).BrowserContextID = jar
	return tab
}

// do runs commands of the browser's protocol in a tab.
func do(ctx context.Context, f func(ctx context.Context) error) error {
	return chromedp.Run(ctx, chromedp.ActionFunc(f))
}
