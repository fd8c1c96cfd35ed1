package browsertest

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"

	"parley/internal/app"
)

// screenshots is a directory into which pictures of all pages are written.
var screenshots = flag.String("screenshots", "", "write a picture of every page into this directory")

// everyPage lists the pages by what their pictures are called. {message} is the id of a message.
var everyPage = []struct{ name, path string }{
	{"overview", "/"},
	{"channels", "/channels"},
	{"channel", "/channels/demo"},
	{"pair", "/channels/toko/pair"},
	{"messages", "/messages"},
	{"message", "/messages?open={message}"},
	{"phone", "/phone/" + ayu},
	{"otp", "/otp"},
	{"webhooks", "/webhooks"},
	{"tokens", "/tokens"},
	{"recipes", "/api-recipes"},
	{"settings", "/settings"},
	{"not-found", "/massages"},
	{"login", "/login"},
}

// screens are those that every page is tried on.
var screens = []struct {
	name, theme   string
	width, height int64
	scale         float64
}{
	{"light", "light", 1280, 800, 1},
	{"dark", "dark", 1280, 800, 1},
	{"light-phone", "light", 390, 844, 2},
	{"dark-phone", "dark", 390, 844, 2},
}

// TestEveryPage opens every page, light and dark, on a desk and in a hand, and holds it to what is true
// of all: nothing breaks, everybody can use it, nothing is wider than the screen.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	c := start(t, func(c *app.Config) { c.Version = "0.1.0" }) // the pictures show it
	message := c.populate()
	for _, screen := range screens {
		t.Run(screen.name, func(t *testing.T) {
			t.Parallel()
			own := &console{Env: c.Env, t: t}
			p := own.blank()
			own.signIn(p)
			p.must(do(p.ctx, func(ctx context.Context) error {
				return emulation.SetDeviceMetricsOverride(screen.width, screen.height, screen.scale, screen.width < 600).Do(ctx)
			}))
			p.visit("/login")
			eval[any](p, `document.cookie = 'theme=`+screen.theme+`; Path=/console', null`)
			for _, each := range everyPage {
				t.Run(each.name, func(t *testing.T) {
					p := p.during(t)
					p.try(each.name, strings.ReplaceAll(each.path, "{message}", message))
					if *screenshots != "" {
						p.shoot(filepath.Join(*screenshots, each.name+"-"+screen.name+".png"))
					}
				})
			}
		})
	}
}

// try opens a page and holds it to what is true of all.
func (p *tab) try(name, path string) {
	p.t.Helper()
	if name == "not-found" {
		p.allow("404") // the page itself
	}
	p.visit(path)
	if name != "login" {
		p.live()
	}
	p.rest()
	p.accessible()
	if wide := eval[int](p, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
		p.t.Errorf("%s is %d px wider than the screen", name, wide)
	}
}

// shoot writes a picture of what is seen.
func (p *tab) shoot(file string) {
	p.t.Helper()
	p.must(do(p.ctx, func(ctx context.Context) error {
		picture, err := page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatPng).WithOptimizeForSpeed(false).Do(ctx)
		if err != nil {
			return err
		}
		return os.WriteFile(file, picture, 0o644)
	}))
}
