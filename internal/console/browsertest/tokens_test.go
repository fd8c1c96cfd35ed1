package browsertest

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/app"
	"parley/internal/parleytest"
	"parley/internal/store"
)

// TestTokenLife makes a token, uses it as a program would, and revokes it.
func TestTokenLife(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/tokens?new=1")
	p.fill("Name", "CI")
	p.accessible()
	p.click("button", "Create token")
	p.see("Copy it now.")
	p.accessible()
	shown := eval[[]string](p, `[...document.querySelectorAll('dialog pre')].map((pre) => pre.innerText)`)
	token := shown[0]
	c.Get("/api/channel/health", parleytest.As(token)).Expect(http.StatusOK)
	if rest := strings.Join(shown[1:], "\n"); strings.Contains(rest, token) || !strings.Contains(rest, "PARLEY_TOKEN=•") ||
		!strings.Contains(rest, "gh secret set PARLEY_TOKEN") {
		t.Errorf("beside the token is shown:\n%s", rest)
	}

	// What cannot be shown again is not closed by a slip.
	p.click("button", "Close")
	p.see("You have not copied the token.")
	p.click("button", "Cancel")
	p.click("button", "Copy Token")
	p.click("button", "Close")
	p.lost("dialog", "Token for CI")
	if left := eval[bool](p, `document.documentElement.outerHTML.includes(`+quote(token)+`)`); left {
		t.Error("the token is still on the page")
	}

	p.click("button", "Revoke CI")
	p.see("refused within 1 s")
	p.click("button", "Revoke")
	p.see("It takes effect within 1 s.")
	c.Eventually("the token is refused", func() bool {
		return c.Get("/api/channel/health", parleytest.As(token)).Status == http.StatusUnauthorized
	})
	p.click("link", "Revoked or expired 1")
	p.find("link", "CI")
	p.accessible()
}

// TestTokenHints shows what should be looked at, and a thousand rows of it.
func TestTokenHints(t *testing.T) {
	t.Parallel()
	c := start(t)
	now := time.Now()
	c.store(func(ctx context.Context, data *app.Data) error {
		return data.Store.Tx(ctx, func(tx *store.Tx) error {
			for i := range 1000 {
				token := parley.Token{ID: parley.NewTokenID(), Name: "old", Kind: parley.GlobalToken, CreatedAt: now.AddDate(0, -2, 0)}
				if i == 0 {
					token.Name, token.CreatedAt, token.ExpiresAt = "<b>ending</b>", now, now.Add(48*time.Hour)
				}
				if err := tx.AddToken(ctx, token); err != nil {
					return err
				}
			}
			return nil
		})
	})
	p := c.open("/tokens")
	p.see("999 have not been used for 30 days. One expires within 7 days.")
	if drawn := len(p.rows()); drawn >= 200 {
		t.Errorf("%d rows are drawn at once", drawn)
	}
	p.click("button", "Name")
	p.click("link", "<b>ending</b>")
	p.see("It expires within 7 days. Create another one")
	p.accessible()
}
