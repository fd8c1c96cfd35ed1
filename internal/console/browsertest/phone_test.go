package browsertest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"parley/internal/parleytest"
)

// TestPhoneDrawsEveryKind sends everything that can be sent and finds it on the phone, as what it is.
func TestPhoneDrawsEveryKind(t *testing.T) {
	t.Parallel()
	c := start(t)
	files := parleytest.Files(t)
	const hostile = `<img src=x onerror=alert(1)> {{7*7}} مرحبا`
	c.say("text", ayu, fmt.Sprintf(`"message":%q`, hostile))
	c.say("text", ayu, fmt.Sprintf(`"message":"Look: %s/notes.txt, *bold* and _slanted_"`, files))
	c.say("image", ayu, fmt.Sprintf(`"caption":"A dot","file":{"url":"%s/dot.png"}`, files))
	c.say("voice", ayu, fmt.Sprintf(`"audioUrl":"%s/hello.ogg"`, files))
	c.say("video", ayu, fmt.Sprintf(`"caption":"A film","file":{"url":"%s/film.mp4"}`, files))
	c.say("file", ayu, fmt.Sprintf(`"file":{"url":"%s/notes.txt","filename":"notes.txt"}`, files))
	c.say("location", ayu, `"latitude":"-6.2088","longitude":"106.8456","title":"Monas"`)
	c.say("poll", ayu, `"title":"When?","options":["Morning","Evening"]`)
	last := c.say("text", ayu, `"message":"Your order is ready."`)
	bare := last[strings.LastIndexByte(last, '_')+1:]
	c.Phone(ayu).Sends(fmt.Sprintf(`{"type":"text","message":"thanks","reply_to":%q}`, bare))
	c.Phone(ayu).Sends(fmt.Sprintf(`{"type":"reaction","message_id":%q,"reaction":"❤️"}`, last))
	wrong := c.Phone(ayu).Types("a slip").Text("data.message_id")
	c.Phone(ayu).Sends(fmt.Sprintf(`{"type":"delete","message_id":%q}`, wrong))

	p := c.open("/phone/" + ayu)
	p.see(hostile)
	p.find("link", files+"/notes.txt")
	p.find("button", "Play")
	p.find("image", "Voice message")
	p.find("button", "Download notes.txt")
	p.find("image", "Map of the world with a pin at -6.2088, 106.8456")
	p.see("Monas")
	p.see("This message was deleted")
	p.gone("a slip")
	p.until("the words are emphasised",
		`document.querySelector('.body b')?.innerText === 'bold' && document.querySelector('.body i')?.innerText === 'slanted'`)
	p.until("the reaction is on it", `document.querySelector('[data-id="`+bare+`"] .reactions')?.innerText === '❤️'`)
	p.until("the answer quotes it", `document.querySelector('.own .quoted')?.innerText.includes('Your order is ready.')`)
	eval[any](p, `document.querySelector('.transcript').scrollTop = 0, null`)
	p.until("the picture is drawn", `document.querySelector('.picture img')?.naturalWidth > 0`)
	p.accessible()

	p.click("button", "Morning…")
	p.until("the vote is there", `document.querySelector('.option[aria-pressed=true]')?.innerText.includes('Morning')`)
	p.click("button", "Actions for: Your order is ready.")
	p.click("button", "Inspect")
	p.see(`"message_id": "` + last + `"`)
	p.accessible()
}

// TestPhoneAnswers writes, answers, reacts, sends a place and takes back, and the channel gets all of it.
func TestPhoneAnswers(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.say("text", ayu, `"message":"Shall we deliver?"`)
	p := c.open("/phone/" + ayu)
	p.fill("Type a message", "Yes, please")
	p.press(kb.Enter)
	c.received("Yes, please")
	p.until("the field is empty", `document.querySelector('.composer textarea').value === ''`)

	p.press(kb.ArrowUp) // the last text again, to be changed
	p.until("the last text is back", `document.querySelector('.composer textarea').value === 'Yes, please'`)
	p.fill("Type a message", "one")
	p.press(kb.Enter)
	p.typed("two")
	p.press(kb.Enter) // faster than the first can be taken
	c.received("two")

	p.click("button", "Actions for: Shall we deliver?")
	p.click("button", "React with 👍")
	p.until("the reaction is there", `document.querySelector('.theirs .reactions')?.innerText === '👍'`)
	p.click("button", "Actions for: Shall we deliver?")
	p.click("button", "Reply")
	p.typed("At noon")
	p.press(kb.Enter)
	if answer := c.received("At noon"); answer.Text("data.0.reply_to") == "" {
		t.Errorf("the answer quotes nothing: %s", answer.Body)
	}
	p.click("button", "Actions for: two")
	p.click("button", "Delete")
	p.see("This message was deleted")

	p.click("button", "Send something else")
	p.accessible()
	p.fill("Title", "Home")
	p.click("button", "Send")
	p.see("-6.2088, 106.8456")
	c.received("Home")
}

// received waits until the newest message of Ayu's chat is one from the phone with a text.
func (c *console) received(text string) *parleytest.Response {
	c.t.Helper()
	var answer *parleytest.Response
	c.Eventually("the channel got "+text, func() bool {
		answer = c.Get("/api/chat/detail?limit=1&contact_id=" + ayu + "@c.us").Expect(http.StatusOK)
		return answer.Text("data.0.body") == text && answer.Text("data.0.from_me") == "false"
	})
	return answer
}

// status waits until a message has one.
func (c *console) status(message, status string) {
	c.t.Helper()
	c.Eventually(message+" is "+status, func() bool {
		for _, m := range c.Phone(ayu).Messages() {
			if m.MessageID == message {
				return m.Status == status
			}
		}
		return false
	})
}

// TestPhoneIsLive keeps what is being typed while messages come, and reads them because the chat is open.
func TestPhoneIsLive(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/phone/" + ayu)
	p.see("This is Ayu’s phone.")
	p.accessible()
	p.fill("Type a message", "half a thou")
	first := c.say("text", ayu, `"message":"Here is news"`)
	p.see("Here is news")
	c.status(first, "READ")
	p.typed("ght")
	if got := p.textOf("textbox", "Type a message"); got != "half a thought" {
		t.Errorf("what was typed is %q now", got)
	}
	// A number that nobody knew becomes a phone when it is written to.
	c.say("text", "628175550001", `"message":"Hello stranger"`)
	p.click("link", "…550001 new")
	p.see("Hello stranger")
}

// TestPhoneBehaves has a phone go offline, never read, and leave the network.
func TestPhoneBehaves(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/phone/" + ayu)
	p.click("checkbox", "Online")
	p.see("Ayu is offline.")
	waiting := c.say("text", ayu, `"message":"Are you there?"`)
	c.status(waiting, "SENT")
	eval[any](p, `(() => { const reads = document.querySelector('select[name=reads]'); reads.value = 'never'; reads.dispatchEvent(new `+
		`Event('change', { bubbles: true })); })()`)
	p.click("checkbox", "Online")
	p.see("Are you there?")
	c.status(waiting, "DELIVERED") // and stays so
	p.click("checkbox", "On the network")
	p.see("This phone is not on the network.")
	p.see("is not on the network. Messages to it fail.")
	p.fill("Name", "Ayu Lestari")
	p.press(kb.Tab)
	p.see("Ayu Lestari")
	c.Eventually("the phone has its new name", func() bool {
		return c.Get("/api/sandbox/phones").Text("data.0.name") == "Ayu Lestari"
	})
}

// TestPhoneNames shows phones whose name is blank, or begins with a character that is made of several.
func TestPhoneNames(t *testing.T) {
	t.Parallel()
	c := start(t)
	const family = "👨\u200d👩\u200d👧"
	c.Post("/api/sandbox/phones", `{"number":"6281700000001","name":"`+family+` Lestari"}`).Expect(http.StatusOK)
	c.Post("/api/sandbox/phones", `{"number":"6281700000042"}`).Expect(http.StatusOK)
	c.Call("PATCH", "/api/sandbox/phones/6281700000042", `{"name":"  "}`).Expect(http.StatusOK)
	p := c.open("/phone/6281700000042")
	p.see("…000042")
	faces := func(letters string) string {
		return `[...document.querySelectorAll('.face')].some((face) => face.innerText === '` + letters + `')`
	}
	p.until("the phone without a name shows its number", faces("42"))
	p.until("the whole character is shown", faces(family))
}

// TestPhoneFaults orders a fault, sees it in the band on every page until a send used it up, and
// switches another one off.
func TestPhoneFaults(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/phone/" + ayu)
	p.fill("Reason", "Too many birds")
	p.click("button", "Try a failure")
	p.see("Faults are on.")
	p.see("faults are on") // in the band
	p.accessible()
	answer := c.Post("/api/send-message/text", `{"contact_id":"`+ayu+`@c.us","message":"x"}`).Expect(http.StatusOK)
	if answer.Text("data.status") != "FAILED" || !strings.Contains(string(answer.Body), "Too many birds") {
		t.Errorf("the send ends with %s", answer.Body)
	}
	p.gone("aults are on")
	p.click("button", "Try a failure")
	p.click("button", "Turn all off")
	p.gone("aults are on")
	c.say("text", ayu, `"message":"All is well"`)
	p.see("All is well")
}

// TestPhoneWindow opens the phone alone, with a text typed in by a login link; Enter sends it.
func TestPhoneWindow(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/phone/" + ayu + "?to=demo&window=1&text=Login%20Shop%20K7QM3XPBT4W9H")
	p.see("A login link filled this in.")
	if n := p.count("navigation", ""); n != 0 {
		t.Errorf("the window has %d navigations", n)
	}
	p.accessible()
	p.click("button", "Send")
	c.received("Login Shop K7QM3XPBT4W9H")
	p.until("the address does not type it in again", `!location.search.includes('text=')`)
}

// TestPhonePinned keeps the phone beside another page, and its choice of phone.
func TestPhonePinned(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/")
	p.click("button", "Pin the phone")
	p.find("region", "Phone of Ayu")
	c.say("text", ayu, `"message":"Beside it"`)
	p.see("Beside it")
	p.accessible()
	p.click("button", "Behaviour of the phone and the network")
	p.find("checkbox", "Online")
	p.press(kb.Escape)
	p.click("button", "Unpin the phone")
	p.lost("region", "Phone of Ayu")
}

// TestPhoneLongChat shows the newest of many messages, more on request, and moves nothing for somebody
// who reads.
func TestPhoneLongChat(t *testing.T) {
	t.Parallel()
	c := start(t)
	for i := range 120 {
		c.Post("/api/send-message/text", fmt.Sprintf(`{"contact_id":"%s@c.us","message":"Message %d"}`, ayu, i), parleytest.With("Prefer",
			"respond-async")).Expect(http.StatusOK)
	}
	c.Phone(ayu).Expect("Message 119")
	p := c.open("/phone/" + ayu)
	const bubbles = `document.querySelectorAll('.bubble').length`
	p.until("the newest are there", bubbles+` === 50 && document.querySelector('.bubble:last-child').innerText.includes('Message 119')`)
	p.until("the newest is in view",
		`(({scrollHeight, scrollTop, clientHeight}) => scrollHeight - scrollTop - clientHeight < 2)(document.querySelector('.transcript'))`)
	eval[any](p, `document.querySelector('.transcript').scrollTop = 0, null`)
	p.click("button", "Show earlier messages")
	p.until("there are more", bubbles+` === 100`)
	before := eval[float64](p, `document.querySelector('.transcript').scrollTop`)
	if before == 0 {
		t.Error("what was read has moved out of view")
	}
	c.say("text", ayu, `"message":"And one more"`)
	p.click("button", "One new ↓")
	p.until("the newest is in view",
		`(({scrollHeight, scrollTop, clientHeight}) => scrollHeight - scrollTop - clientHeight < 2)(document.querySelector('.transcript'))`)
	p.lost("button", "One new ↓")
}

// TestPhoneChats lists the chats that one phone has with several channels.
func TestPhoneChats(t *testing.T) {
	t.Parallel()
	c := start(t)
	shop := parleytest.As(c.CreateChannel("shop"))
	c.say("text", ayu, `"message":"From demo"`)
	c.Post("/api/send-message/text", `{"contact_id":"`+ayu+`@c.us","message":"From the shop"}`, shop).Expect(http.StatusOK)
	p := c.open("/phone/" + ayu)
	p.see("From demo")
	p.see("From the shop")
	p.accessible()
	p.click("button", "shop…")
	p.until("the address names the chat", `location.search.includes('to=shop')`)
	p.gone("From demo")
	p.click("button", "Chats")
	p.see("From demo")
}

// TestPhoneNew makes a phone and sends a file from it that is picked on this computer.
func TestPhoneNew(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/phone")
	p.press("n")
	p.fill("Number", "+62 817-555-0099")
	p.fill("Name", "Hana")
	p.click("button", "Create phone")
	p.see("This is Hana’s phone.")
	p.click("button", "Send something else")
	p.click("tab", "File")
	eval[any](p, `(() => {
		const bag = new DataTransfer();
		bag.items.add(new File(['Some notes'], 'notes.txt', { type: 'text/plain' }));
		const input = document.querySelector('dialog input[type=file]');
		input.files = bag.files;
		input.dispatchEvent(new Event('change', { bubbles: true }));
	})()`)
	p.click("button", "Send")
	p.find("button", "Download notes.txt")
	c.Eventually("the channel got the file", func() bool {
		return c.Get("/api/chat/detail?contact_id=628175550099@c.us").Text("data.0.type") == "file"
	})
}

// TestPhoneOfSeveralChannels shows a phone by the name that one of them knows, and away where it is.
func TestPhoneOfSeveralChannels(t *testing.T) {
	t.Parallel()
	c := start(t)
	shop := parleytest.As(c.CreateChannel("shop"))
	c.Phone(budi).Becomes(`{"name":"Budi Santoso","online":false}`)
	c.say("text", budi, `"message":"From demo"`)
	c.Post("/api/send-message/text", `{"contact_id":"`+budi+`@c.us","message":"From the shop"}`, shop).Expect(http.StatusOK)
	p := c.open("/phone/" + budi)
	p.find("link", "Budi Santoso")
	p.find("heading", "Budi Santoso")
	p.see("Budi Santoso is offline.")
	p.until("the face is away", `document.querySelector('.faces [aria-current] .away')`)
}

// TestPhoneMasked leaves nothing of whose phone it is on a shared screen.
func TestPhoneMasked(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Phone(budi).Becomes(`{"name":"Zulfikar"}`)
	c.Phone("6281377700098").Types("siapa ini?")
	p := c.open("/phone/" + budi)
	p.find("link", "Zulfikar")
	p.press(".")
	p.lost("link", "Zulfikar")
	p.until("the faces show nothing", `[...document.querySelectorAll('.face:not(.plus)')].every((face) => face.innerText === '•')`)
	p.until("neither does the field",
		`document.querySelector('input[name=name]').value === '••••••••' && document.querySelector('input[name=name]').readOnly`)
	if left := eval[string](p, `document.querySelector('main').innerText.match(/Zul|4711|0098/)?.[0] || ''`); left != "" {
		t.Errorf("%s is still shown", left)
	}
	p.accessible()
	p.press(".")
	p.find("link", "Zulfikar")
	p.until("the field has it again",
		`document.querySelector('input[name=name]').value === 'Zulfikar' && !document.querySelector('input[name=name]').readOnly`)
}
