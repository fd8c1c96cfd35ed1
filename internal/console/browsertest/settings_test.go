package browsertest

import (
	"archive/zip"
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	downloading "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"parley/internal/app"
	"parley/internal/parleytest"
)

// TestSettings makes a backup, has the log say more, and changes how the console looks and speaks.
func TestSettings(t *testing.T) {
	t.Parallel()
	c := start(t, func(config *app.Config) { config.LogLevel = new(slog.LevelVar) })
	p := c.open("/settings")
	p.accessible()
	p.see("none yet")
	p.click("button", "Back up now")
	p.see(", complete, in ")
	path := c.Get("/api/manage/server", parleytest.As(c.Admin)).Text("data.last_backup.path")
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		t.Errorf("the backup %s: %v", path, err)
	}
	p.see(path)
	stored, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.downloads(func() { p.click("link", "Download (…") }); !bytes.Equal(got, stored) {
		t.Errorf("the backup has %d bytes, and was downloaded with %d", len(stored), len(got))
	}

	p.click("button", "View its content")
	p.find("dialog", "Diagnostics")
	p.see("Look through them before you hand them to somebody.")
	p.accessible()
	p.click("tab", "channels.json…")
	p.see(`"code": "demo"`)
	packed := p.downloads(func() { p.click("button", "Download") })
	if files, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed))); err != nil || len(files.File) < 5 {
		t.Errorf("the diagnostics are no zip file: %v", err)
	}
	p.click("button", "Close")

	p.click("button", "Change temporarily")
	p.see("The log level is debug until ")

	p.click("radio", "Dark")
	p.until("it is dark", `getComputedStyle(document.documentElement).colorScheme === 'dark'`)
	p.click("switch", "Single-key shortcuts")
	p.press("?")
	p.choose("Language", "id")
	p.see("Pintasan satu tombol")
	if p.count("dialog", "") > 0 {
		t.Error("a key still works that was switched off")
	}
	p.accessible()
	for _, address := range eval[[]string](p, `[...document.querySelectorAll('.settings li a')].map((a) => a.href)`) {
		if text := eval[string](p, `fetch(`+quote(address)+`).then((answer) => answer.ok ? answer.text() : '')`); len(text) < 500 {
			t.Errorf("the licence at %s is %q", address, text)
		}
	}
}

// downloads has the browser save a file, and returns what is in it.
func (p *tab) downloads(act func()) []byte {
	p.t.Helper()
	dir, saved := p.t.TempDir(), make(chan string, 1)
	p.must(do(p.ctx, func(ctx context.Context) error {
		return downloading.SetDownloadBehavior(downloading.SetDownloadBehaviorBehaviorAllowAndName).
			WithBrowserContextID(chromedp.FromContext(ctx).BrowserContextID).
			WithDownloadPath(dir).WithEventsEnabled(true).Do(ctx)
	}))
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	chromedp.ListenTarget(ctx, func(event any) {
		if e, ok := event.(*downloading.EventDownloadProgress); ok && e.State != downloading.DownloadProgressStateInProgress {
			select {
			case saved <- e.GUID:
			default:
			}
		}
	})
	act()
	select {
	case name := <-saved:
		content, err := os.ReadFile(filepath.Join(dir, name))
		p.must(err)
		return content
	case <-time.After(waitLimit):
		p.fail("nothing was downloaded")
		return nil
	}
}
