package browsertest

import (
	"log/slog"
	"os"
	"testing"

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

	p.click("button", "Change for a while")
	p.see("The log is at level debug until ")

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
