package browsertest

import (
	"context"
	"database/sql"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"

	"parley"
	"parley/internal/app"
	"parley/internal/parleytest"
	"parley/internal/store"
	_ "parley/internal/store/storetest" // the driver "sqlite"
)

// screenshots is a directory into which a picture of every page is written, in one size and theme.
var screenshots = flag.String("screenshots", "", "write a picture of every page into this directory")

// everyPage lists the pages by what their pictures are called. {message} is the id of a message.
var everyPage = []struct{ name, path string }{
	{"overview", "/?span=7d"},
	{"channels", "/channels"},
	{"channel", "/channels/demo"},
	{"requests", "/channels/demo/requests"},
	{"templates", "/channels/demo/templates"},
	{"channel-settings", "/channels/demo/settings"},
	{"pair", "/channels/toko/pair"}, // of a gateway of its own: a channel that is real would make all others look so
	{"account", "/channels/resmi/pair"},
	{"conversations", "/conversations"},
	{"conversation", "/conversations/demo/" + ayu + "@c.us"},
	{"contact", "/contacts/" + ayu},
	{"messages", "/messages"},
	{"message", "/messages?open={message}"},
	{"phone", "/phone/" + ayu},
	{"otp", "/otp"},
	{"webhooks", "/webhooks"},
	{"alerts", "/alerts"},
	{"tokens", "/tokens"},
	{"access", "/access"},
	{"sessions", "/access/sessions"},
	{"recipes", "/api-recipes"},
	{"settings", "/settings"},
	{"not-found", "/massages"},
	{"login", "/login"},
}

// screen is what a page is looked at on.
type screen struct {
	name, theme   string
	width, height int64
	scale         float64
}

// screens are those that every page is tried on.
var screens = []screen{
	{"light", "light", 1280, 800, 1},
	{"dark", "dark", 1280, 800, 1},
	{"light-phone", "light", 390, 844, 2},
	{"dark-phone", "dark", 390, 844, 2},
}

// TestEveryPage opens every page, light and dark, on a desk and in a hand, and holds it to what is true
// of all: nothing breaks, everybody can use it, nothing is wider than the screen.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	c := start(t, version, past(t))
	message := c.populate()
	for _, screen := range screens {
		t.Run(screen.name, func(t *testing.T) {
			t.Parallel()
			shown := (&console{Env: c.Env, t: t}).on(screen)
			pairer := startPairer(t, version)
			pairer.addOfficial("resmi")
			paired := pairer.on(screen)
			for _, each := range everyPage {
				t.Run(each.name, func(t *testing.T) {
					p := shown.during(t)
					if each.name == "pair" || each.name == "account" {
						p = paired.during(t)
					}
					p.try(each.name, screen.theme, strings.ReplaceAll(each.path, "{message}", message))
					if *screenshots != "" && screen.name == "light" && each.name != "not-found" {
						p.shoot(filepath.Join(*screenshots, each.name+".png"))
					}
				})
			}
		})
	}
}

// on opens a tab that is signed in and has the size and the theme of a screen.
func (c *console) on(s screen) *tab {
	c.t.Helper()
	p := c.blank()
	c.signIn(p)
	p.must(do(p.ctx, func(ctx context.Context) error {
		return emulation.SetDeviceMetricsOverride(s.width, s.height, s.scale, s.width < 600).Do(ctx)
	}))
	p.visit("/login")
	p.prefer("theme", s.theme)
	return p
}

// past is a change that gives the demo channel a week behind it, as one has that was not made for a test.
func past(t *testing.T) func(*app.Config) {
	return func(config *app.Config) {
		before(t, addPast)(config)
		addWeek(t, config.DataDir.Database())
	}
}

// before is a change that adds the demo channel and what it has before the gateway starts.
func before(t *testing.T, add func(ctx context.Context, tx *store.Tx) error) func(*app.Config) {
	return func(config *app.Config) {
		c := &console{Env: &parleytest.Env{Data: config.DataDir}, t: t}
		c.store(func(ctx context.Context, data *app.Data) error {
			demo := parley.Channel{Code: app.DemoChannel, Name: "Demo", Network: parley.Sandbox}
			if err := app.AddChannel(ctx, data.Store, demo); err != nil {
				return err
			}
			return data.Store.Tx(ctx, func(tx *store.Tx) error { return add(ctx, tx) })
		})
	}
}

func addPast(ctx context.Context, tx *store.Tx) error {
	now, was := time.Now(), parley.ChannelStopped
	for _, past := range []struct {
		before time.Duration
		status parley.ChannelStatus
		reason string
	}{
		{21 * time.Hour, parley.ChannelWorking, ""},
		{9*time.Hour + 12*time.Minute, parley.ChannelReconnecting, "The network closed the connection."},
		{9*time.Hour + 11*time.Minute, parley.ChannelWorking, ""},
		{2 * time.Hour, parley.ChannelStopped, "It was stopped by hand."},
		{95 * time.Minute, parley.ChannelWorking, ""},
		{2 * time.Minute, parley.ChannelStopped, "The server is not running."},
	} {
		channel := parley.Channel{Code: app.DemoChannel, Network: parley.Sandbox, Name: "Demo",
			State: parley.ChannelState{Status: past.status, Reason: past.reason, Since: now.Add(-past.before)}}
		if err := tx.AddEvent(ctx, parley.NewChannelEvent(channel, was, channel.State.Since)); err != nil {
			return err
		}
		was = past.status
	}
	return nil
}

// addWeek counts a week of a shop in Jakarta, with its nights and its weekend, for the charts.
func addWeek(t *testing.T, path string) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	byHour := []int{0, 0, 0, 0, 0, 1, 3, 8, 19, 28, 33, 30, 24, 27, 31, 29, 26, 24, 27, 25, 17, 9, 4, 1}
	random := rand.New(rand.NewPCG(7, 7)) // the same pictures each time
	at := time.Now().Add(-7 * 24 * time.Hour).Truncate(10 * time.Minute)
	for ; time.Until(at) < -10*time.Minute; at = at.Add(10 * time.Minute) {
		there := at.UTC().Add(7 * time.Hour)
		sent := byHour[there.Hour()] * (7 + random.IntN(5)) / 24
		if there.Weekday() == time.Sunday {
			sent /= 3
		}
		counts := map[store.Counter]int{store.CountSent: sent, store.CountReceived: sent * 3 / 5, store.CountCodes: sent / 6,
			store.CountCodesDelivered: sent / 6, store.CountApproved: sent / 7}
		hooks := map[store.Counter]int{store.CountWebhookDone: 3 * sent, store.CountAttemptFailed: random.IntN(40) / 38}
		for range sent {
			took := 600*time.Millisecond + time.Duration(random.IntN(1900))*time.Millisecond
			counts[store.CountToSent.Bucket(took)]++
			hooks[store.CountWebhookTook.Bucket(time.Duration(20*random.ExpFloat64())*time.Millisecond)] += 3
			if random.IntN(200) == 0 {
				counts[store.CountFailed]++
				counts[store.CountFailedFor(parley.NotOnNetwork)]++
				continue
			}
			if random.IntN(25) > 0 {
				counts[store.CountDelivered]++
				counts[store.CountToDelivered.Bucket(took+time.Duration(900*random.ExpFloat64())*time.Millisecond)]++
				counts[store.CountRead] += min(1, random.IntN(5))
			}
		}
		for webhook, counts := range map[string]map[store.Counter]int{"": counts, "whk_past": hooks} {
			for what, n := range counts {
				for table, step := range map[string]int64{"minute": 60, "hour": 3600} {
					_, err := tx.Exec(`INSERT INTO counter_`+table+` SELECT number, $1, $2, $3, $4
						FROM (SELECT 0 AS number UNION SELECT id FROM channel) WHERE $4 > 0 ON CONFLICT DO UPDATE SET n = n + excluded.n`,
						at.Unix()/step, string(what), webhook, n)
					if err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// try opens a page and holds it to what is true of all.
func (p *tab) try(name, theme, path string) {
	p.t.Helper()
	if name == "not-found" {
		p.allow("404") // the page itself
	}
	p.visit(path)
	if name != "login" {
		p.live()
	}
	p.rest()
	if name == "pair" {
		p.click("button", "Show QR code")
		p.state("qr")
		eval[any](p, `scrollTo(0, innerWidth < 600 ? document.querySelector('.pair').offsetTop - 150 : 0), null`) // what this page is for
	}
	if theme == "light" {
		p.accessible()
	} else {
		p.visible()
	}
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
