package browsertest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"parley/internal/parleytest"
)

// TestPhoneRecords speaks a voice message into the phone; the channel gets it as a phone would send it,
// and it can be heard on the phone.
func TestPhoneRecords(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/phone/" + ayu)
	p.fill("Type a message", "half a thou")

	p.click("button", "Record a voice message")
	p.find("group", "Record a voice message")
	p.see("Recording")
	p.until("somebody speaks for a second", `document.querySelector('[role=timer]')?.innerText >= '0:01'`)
	p.accessible()
	p.press(kb.Escape) // and nothing was said
	p.lost("group", "Record a voice message")
	p.until("the focus is where it was", `document.activeElement.ariaLabel === 'Record a voice message'`)
	if got := p.textOf("textbox", "Type a message"); got != "half a thou" {
		t.Errorf("what was typed is %q now", got)
	}

	p.press(kb.Enter) // by the keyboard alone
	p.until("somebody speaks for two seconds", `document.querySelector('[role=timer]')?.innerText >= '0:02'`)
	p.press(kb.Enter)
	p.find("image", "Voice message")
	p.lost("group", "Record a voice message")
	var answer *parleytest.Response
	c.Eventually("the channel got it", func() bool {
		answer = c.Get("/api/chat/detail?contact_id=" + ayu + "@c.us").Expect(http.StatusOK)
		return answer.Count("data") == 1
	})
	if answer.Text("data.0.type") != "voice" || answer.Text("data.0.from_me") != "false" {
		t.Errorf("the channel got %s", answer.Body)
	}
	shown := c.Get("/api/sandbox/phones/" + ayu + "/chat").Expect(http.StatusOK)
	if kind := shown.Text("data.0.media.mimetype"); kind != "audio/ogg; codecs=opus" {
		t.Errorf("the phone sent %s", kind)
	}
	if n := shown.Number("data.0.media.seconds"); n < 2 || n > 30 {
		t.Errorf("it is %d seconds long", n)
	}
	if !strings.Contains(shown.Text("data.0.media.filename"), ".ogg") {
		t.Errorf("it is called %s", shown.Text("data.0.media.filename"))
	}
	p.click("button", "Play")
	p.until("it is heard", `document.querySelector('.voice path:last-child').getAttribute('d')`)
}

// TestPhoneRecordsAtMost stops by itself when nobody does, and can still send what was said.
func TestPhoneRecordsAtMost(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/phone/" + ayu)
	// A clock that runs thirty times as fast, for this page alone.
	eval[any](p, `(() => { const now = performance.now.bind(performance), begin = now(); performance.now = () => begin + (now() - begin) `+
		`* 30; })()`)
	p.click("button", "Record a voice message")
	p.see("Stopped")
	p.see("1:00 / 1:00")
	p.click("button", "Send")
	p.find("image", "Voice message")
	p.lost("group", "Record a voice message")
}

// TestPhoneCannotRecord says in a sentence why not.
func TestPhoneCannotRecord(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/phone/" + ayu)
	for name, sentence := range map[string]string{"NotAllowedError": "The browser blocks the microphone on this page.",
		"NotFoundError": "This computer has no microphone.", "NotReadableError": "Another program may be using it."} {
		eval[any](p, `void (navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('', '`+name+`'); })`)
		p.click("button", "Record a voice message")
		p.see(sentence)
		p.lost("group", "Record a voice message")
		p.accessible()
	}
	// As it is on a page over plain http from another computer.
	eval[any](p, `void Object.defineProperty(navigator, 'mediaDevices', { value: undefined })`)
	p.click("button", "Record a voice message")
	p.see("Browsers allow the microphone only over https")
}
