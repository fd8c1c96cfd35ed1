package browsertest

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestInstall has the browser judge whether the console can be installed as an app. In windows that
// forget everything, as those of the other tests are, nothing can be installed.
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
