package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// timeline waits for a step of what happened.
func (p *tab) timeline(step string) {
	p.t.Helper()
	p.until("the timeline has "+step, `document.querySelector('[data-step="`+step+`"]')`)
}

// TestOTPCode logs in by a code: asked for, seen on the phone, typed in, and no use a second time.
func TestOTPCode(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/otp")
	p.see("No code requested yet.")
	p.accessible()
	p.fill("Name of your app", "Toko Ayu")
	p.click("button", "Send a code")
	for _, step := range []string{"requested", "sent", "delivered", "read"} {
		p.timeline(step)
	}
	p.find("button", "Copy…")
	code := c.Phone(ayu).Expect("Toko Ayu").Codes[0]
	p.find("button", "Copy "+code)
	p.fill("Enter the code that we sent to your phone", code)
	p.press(kb.Enter)
	p.see("Welcome!")
	p.timeline("approved")
	p.click("button", "Use the code again")
	p.see("INVALID")
	eval[any](p, `scrollTo(0, 0)`) // what the bar at the top half covers is no target
	p.accessible()
}

// TestOTPCodeLocked tries wrong codes until the code is locked, and asks again too soon.
func TestOTPCodeLocked(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/otp")
	p.allow("429") // asked again too soon
	p.click("button", "Send a code")
	p.timeline("sent")
	p.click("button", "Wrong code")
	p.see("4 tries left.")
	p.click("button", "Wrong code × 5")
	p.see("LOCKED")
	p.timeline("failed")
	p.click("button", "Request again at once")
	p.see("Retry-After:")
	p.find("link", "Rules")
}

// TestOTPExpires moves the clock of the sandbox past the end of a code.
func TestOTPExpires(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/otp")
	p.click("button", "Send a code")
	p.timeline("delivered")
	code := c.Phone(ayu).Expect("code").Codes[0]
	p.click("button", "Expire now")
	p.timeline("expired")
	p.fill("Enter the code that we sent to your phone", code)
	p.press(kb.Enter)
	p.see("The code has expired.")
}

// TestOTPLink logs in by a link: it opens the phone with the prompt filled in, one tap sends it, and the
// callback is called.
func TestOTPLink(t *testing.T) {
	t.Parallel()
	c := start(t)
	called := make(chan url.Values, 10)
	shop := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { called <- r.URL.Query() }))
	t.Cleanup(shop.Close)
	p := c.open("/otp?kind=link")
	p.fill("Callback address", shop.URL+"/login?session=7")
	p.click("button", "Create a link")
	p.see("Waiting for the callback…")
	p.accessible()
	p.click("button", "Open the chat")
	p.see("A login link filled this in.")
	p.click("button", "Send")
	for _, step := range []string{"created", "typed", "approved", "answered", "callback"} {
		p.timeline(step)
	}
	p.see("Welcome!")
	if got := <-called; got.Get("status") != "success" || got.Get("session") != "7" || got.Get("contact_id") != ayu+"@c.us" {
		t.Errorf("the shop received %v", got)
	}
	p.click("button", "Send it again")
	c.Phone(ayu).Expect("did not log you in")
	p.see("did not log you in")
}

// TestOTPLinkMisused answers from another phone and with another text; both fail, and the link stays good.
func TestOTPLinkMisused(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/otp?kind=link")
	p.click("button", "Create a link")
	p.timeline("created")
	p.click("button", "Reply from another phone")
	p.see("from another phone")
	p.click("button", "Edit the text")
	p.see("the text was edited")
	p.click("button", "Open the chat")
	p.click("button", "Send")
	p.see("Welcome!")
}

// TestOTPLinkAtThePhone opens a link's prompt on the phone's own page, as a signed-in reader does.
func TestOTPLinkAtThePhone(t *testing.T) {
	t.Parallel()
	c := start(t)
	answer := c.Post("/api/otp/link/request", fmt.Sprintf(`{"contact_id":"%s@c.us","expires":300,"name":"Toko"}`, ayu)).Expect(http.StatusOK)
	link, err := url.Parse(answer.Text("data.link"))
	if err != nil {
		t.Fatal(err)
	}
	p := c.open("/phone/" + ayu + "?" + link.RawQuery)
	p.see("A login link filled this in.")
	p.click("button", "Send")
	p.see("You are logged in to Toko.")
	c.Eventually("the link is approved", func() bool {
		return c.Get("/api/otp/link/"+answer.Text("data.id")).Text("data.status") == "APPROVED"
	})
}

// TestOTPDemo lets the page do all the steps by itself.
func TestOTPDemo(t *testing.T) {
	t.Parallel()
	c := start(t)
	for _, page := range []string{"/otp", "/otp?kind=link"} {
		p := c.open(page)
		p.click("button", "Run the demo")
		p.timeline("approved")
		p.see("Welcome!")
	}
}

// TestOTPWrongFields says once, at its field, what is wrong with a request.
func TestOTPWrongFields(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/otp?kind=link")
	p.fill("Number", "abc")
	p.click("button", "Create a link")
	p.see("Enter the number with its country code")
	p.until("it is said once", `document.querySelectorAll('main .wrong').length === 1 && !document.querySelector('main form .note.bad')`)
	p.fill("Number", ayu)
	p.fill("Callback address", "nowhere")
	p.allow("422")
	p.click("button", "Create a link")
	p.until("the address is wrong, which is said once",
		`document.querySelector('[name=callback][aria-invalid=true]') && document.querySelectorAll('main .wrong').length === 1 && `+
			`!document.querySelector('main form .note.bad')`)
	p.accessible()
}
