package browsertest

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/internal/app"
	"parley/internal/store"
)

// TestDraftsSurvive: what was written and what it answers stays with its chat, through other chats, a reload and Escape.
func TestDraftsSurvive(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.role = parley.Support
	c.Phone(budi).Types("From Budi")
	c.Phone(ayu).Types("Where is it?")
	p := c.open("/conversations/demo/" + ayu + "@c.us")
	p.said("Where is it?")
	p.click("button", "Actions for: Where is it?")
	p.click("button", "Reply")
	p.see("Reply to")
	p.fill("Type a message", "It left at no")
	const kept = `document.querySelector('.thread textarea')?.value === 'It left at no' && document.body.innerText.includes('Reply to')`

	p.click("link", "+62 812-9000…")
	p.said("From Budi")
	p.until("the other chat has none of it", `document.querySelector('.thread textarea')?.value === ''`)
	p.click("link", "Ayu…")
	p.said("Where is it?")
	p.until("the draft is back", kept)
	p.visit("/conversations/demo/" + ayu + "@c.us")
	p.live()
	p.until("it survives a reload", kept)

	p.click("button", "Actions for: Where is it?")
	p.find("button", "React with 👍")
	p.press(kb.Escape)
	p.lost("button", "React with 👍")
	p.until("Escape closed no more than the actions", kept)
	p.press(kb.Escape)
	p.until("then what is answered", `!document.body.innerText.includes('Reply to') && document.querySelector('.thread textarea')`)
	p.press(kb.Escape)
	p.see("Choose a chat")
	p.click("link", "Ayu…")
	p.until("the text is there still", `document.querySelector('.thread textarea')?.value === 'It left at no'`)

	p.fill("Type a message", "It left at noon")
	p.press(kb.Enter)
	p.said("It left at noon")
	p.visit("/conversations/demo/" + ayu + "@c.us")
	p.live()
	p.said("It left at noon")
	p.until("what was sent is no draft", `document.querySelector('.thread textarea')?.value === ''`)

	p.fill("Type a message", "a secret of this person")
	p.click("button", "Account")
	p.click("button", "Sign out")
	p.until("nothing is left for the next one", `location.pathname.endsWith('/login') && !JSON.stringify(sessionStorage).includes('secret')`)
}

// longChat is a change that gives Ayu a chat of 5,000 messages: LINE1 says "Line 1.", and so on.
func longChat(t *testing.T) func(*app.Config) {
	return before(t, func(ctx context.Context, tx *store.Tx) error {
		for i := range 5000 {
			m := parley.Message{Channel: app.DemoChannel, Chat: parley.NewContactID(ayu), ID: parley.MessageID(fmt.Sprint("LINE", i+1)),
				FromMe: i%2 == 0, Content: parley.Text{Body: fmt.Sprintf("Line %d.", i+1)}, Status: parley.Delivered,
				CreatedAt: time.Now().Add(time.Duration(i-5000) * time.Minute)}
			if err := tx.AddMessage(ctx, &m); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestLongConversation: the page around a long chat does not scroll, and only a part of the chat is drawn, which follows the reader.
func TestLongConversation(t *testing.T) {
	t.Parallel()
	c := start(t, longChat(t))
	p := c.open("/conversations/demo/" + ayu + "@c.us")
	p.said("Line 5000.")
	const still = `document.documentElement.scrollHeight <= innerHeight && scrollY === 0`
	const lines = `[...document.querySelectorAll('.thread .bubble .body')].map((one) => one.innerText)`
	p.until("the page does not scroll", still)
	const scroll = `(document.querySelector('[role=log]').scrollTop = %s, window.drawn = Math.max(window.drawn || 0, ` + lines + `.length), ` +
		lines + `.includes(%s))`
	p.until("scrolling up shows what was before", fmt.Sprintf(scroll, "0", "'Line 4660.'"))
	if eval[bool](p, lines+`.includes('Line 5000.')`) {
		t.Error("the end is drawn too")
	}
	c.Phone(ayu).Types("Are you there?")
	p.until("scrolling down shows the end", fmt.Sprintf(scroll, "1e6", "'Are you there?'"))
	if n := eval[int](p, `window.drawn`); n > 120 {
		t.Errorf("%d messages were drawn at once", n)
	}
	p.until("it is without gaps", `(() => { const all = `+lines+`.filter((one) => /^Line/.test(one)).map((one) => parseInt(one.slice(5)));
		return all.length > 100 && all.every((n, i) => n === all[0] + i) && all.at(-1) === 5000; })()`)
	p.until("the page does not scroll", still)

	p.visit("/conversations/demo/" + ayu + "@c.us?message=LINE40")
	p.live()
	p.until("a link shows its message", `(() => { const at = document.querySelector('.bubble.marked')?.getBoundingClientRect();
		return at && at.top > 100 && at.bottom < innerHeight - 50; })()`)
	p.until("the page does not scroll", still)
	p.until("scrolling up shows the beginning", fmt.Sprintf(scroll, "0", "'Line 1.'"))
	if n := eval[int](p, `window.drawn`); n > 120 {
		t.Errorf("%d messages were drawn at once", n)
	}
}

// typing has TestTyping measure.
var typing = flag.Bool("typing", false, "measure typing in a long chat: see make bench")

// TestTyping measures how long a typed letter takes until it is painted, in a chat of 5,000 messages of which as many are drawn as
// ever are, and in an empty one.
func TestTyping(t *testing.T) {
	if !*typing {
		t.Skip("make bench measures it")
	}
	c := start(t, longChat(t))
	p := c.open("/conversations/demo/" + ayu + "@c.us")
	p.allow("404") // the empty one
	measure := func(chat string) float64 {
		p.visit("/conversations/demo/" + chat + "@c.us")
		p.live()
		p.rest()
		p.until("it is drawn as far as it ever is", `document.querySelector('.thread .empty') ||
			document.querySelectorAll('.thread .bubble').length === 120 || (document.querySelector('[role=log]').scrollTop = 0, false)`)
		eval[any](p, `(window.took = [], document.querySelector('.thread textarea').focus(), null)`)
		eval[any](p, `document.activeElement.addEventListener('keydown', ({ timeStamp }) => requestAnimationFrame(() => {
			const { port1, port2 } = new MessageChannel();
			port2.onmessage = () => took.push(performance.now() - timeStamp);
			port1.postMessage(null); // arrives after the frame was painted
		})), null`)
		for i := range 100 {
			p.press("a")
			p.until("it is painted", fmt.Sprintf(`took.length > %d`, i))
		}
		return eval[float64](p, `took.sort((a, b) => a - b)[50]`)
	}
	var ratios []float64
	for range 3 {
		empty, long := measure(budi), measure(ayu)
		t.Logf("a letter in a chat of 5,000 messages: %.1f ms, in an empty one: %.1f ms", long, empty)
		ratios = append(ratios, long/empty)
	}
	slices.Sort(ratios)
	t.Logf("%.2f times as long, at most 1.5", ratios[1])
	if ratios[1] > 1.5 {
		t.Error("MISSED")
	}
}

// TestSupportBeginsWithConversations: support lands where it works and is not offered what it has no use for.
func TestSupportBeginsWithConversations(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.role = parley.Support
	c.Phone(ayu).Types("Hello?")
	p := c.open("/")
	p.until("it is among the conversations", `location.pathname === '/console/conversations'`)
	p.find("link", "Ayu…")
	const rail = `[...document.querySelectorAll('.rail .rail-item')].map((one) => new URL(one.href).pathname.replace('/console', ''))`
	p.until("the rail has what support needs", rail+`.join() === '/conversations,/,/channels,/messages,/phone,/otp'`)
	p.click("link", "Overview")
	p.until("it can still look at the overview", `location.pathname === '/console/'`)
	p.accessible()
}

// TestNumbersAsPeopleWriteThem finds a customer by the number as it is dialled at home, abroad, or by its last digits.
func TestNumbersAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.say("text", "6281230039595", `"message":"Your parcel leaves today."`)
	c.Phone(ayu).Types("Is it me?")
	p := c.open("/conversations")
	p.find("link", "Ayu…")
	for _, written := range []string{"0812-3003-9595", "+62 812 3003 9595", "39595", "0062 812-3003"} {
		p.fill("Search chats and messages", written)
		p.until(written+" is found", `location.search.includes('q=') && document.querySelectorAll('a.chat-row').length === 1 &&
			document.querySelector('a.chat-row').innerText.includes('3003')`)
	}
	for _, written := range []string{"0812-3003-9595", "+62 812-3003-9595", "to:39595"} {
		p.visit("/messages")
		p.live()
		p.fill("Filter messages", written)
		p.until(written+" is found", `document.body.innerText.includes('One message found')`)
	}
}

// TestListsHoldStillUnderLoad: what flows into a list that nobody touches moves nothing.
func TestListsHoldStillUnderLoad(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.addManyChats(30)
	p := c.open("/conversations")
	for i, path := range []string{"/conversations", "/messages"} {
		p.visit(path)
		p.live()
		p.rest()
		eval[any](p, `(window.jumps = 0, new PerformanceObserver((list) => {
			for (const e of list.getEntries()) if (!e.hadRecentInput) jumps += e.value;
		}).observe({ type: 'layout-shift' }), null)`)
		for n := range 40 {
			c.Phone(fmt.Sprintf("6281290%06d", n%30)).Types(fmt.Sprintf("Message %d of round %d, with some more words", n, i))
		}
		p.see(fmt.Sprintf("Message 39 of round %d", i))
		p.rest()
		if jumps := eval[float64](p, `jumps`); jumps > 0.05 {
			t.Errorf("%s jumps by %f", path, jumps)
		}
	}
}
