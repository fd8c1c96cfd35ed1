package browsertest

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/internal/parleytest"
)

// chatPictures is a directory into which pictures of conversations with a lot of data are written.
var chatPictures = flag.String("chat-screenshots", "", "write pictures of conversations into this directory")

// addManyChats gives the gateway many chats on three channels.
func (c *console) addManyChats(n int) {
	c.t.Helper()
	names := []string{"Ayu Lestari", "Budi Santoso", "Citra Dewi", "João da Silva Sauro", "محمد الأمين", "👩‍👩‍👧 Keluarga Wijaya", "Dewi",
		strings.Repeat("Panjang sekali ", 6)}
	for i := range n {
		number := fmt.Sprintf("6281290%06d", i)
		c.Post("/api/sandbox/phones", fmt.Sprintf(`{"number":"%s","name":%s}`, number, quote(names[i%len(names)]))).Expect(http.StatusOK)
		c.say("text", number, fmt.Sprintf(`"message":"Pesanan %d sudah kami kirim."`, i))
		if i%3 == 0 {
			c.Phone(number).Types(fmt.Sprintf("Terima kasih untuk pesanan %d!", i))
		}
	}
}

// said waits until the conversation shows a text.
func (p *tab) said(text string) {
	p.t.Helper()
	p.until("the conversation shows "+text, `document.querySelector('.thread [role=log]')?.innerText.includes(`+quote(text)+`)`)
}

// TestConversations finds chats by name, by number and by text, and follows what is said in one.
func TestConversations(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Post("/api/sandbox/phones", `{"number":"`+budi+`","name":"Budi Santoso"}`).Expect(http.StatusOK)
	c.say("text", budi, `"message":"Your parcel 77 leaves today."`)
	c.Phone(ayu).Types("Is the cake ready?")
	p := c.open("/conversations")
	p.find("link", "Budi Santoso…")
	p.accessible()

	p.fill("Search chats and messages", "santoso")
	p.until("Ayu is not among them", `document.querySelectorAll('a.chat-row').length === 1`)
	p.click("link", "Budi Santoso…")
	p.said("Your parcel 77 leaves today.")
	p.fill("Search chats and messages", "+62 812-9000")
	p.until("one is found by number", `document.querySelectorAll('a.chat-row').length === 1`)
	p.fill("Search chats and messages", "cake READY")
	p.until("one is found by text", `location.search.includes('cake') && document.querySelectorAll('a.chat-row').length === 1`)
	p.press(kb.Enter)
	p.said("Is the cake ready?")
	p.until("the message is marked", `document.querySelector('.thread .bubble.marked')?.innerText.includes('cake')`)
	p.fill("Search chats and messages", "nothing like it")
	p.see("Nothing found for")
	p.accessible()
	p.press(kb.Escape)
	p.find("link", "Budi Santoso…")

	c.Phone(ayu).Types("Hello? It is me.")
	p.said("Hello? It is me.")
	c.Phone(budi).Types("Thank you")
	p.until("the list shows it", `[...document.querySelectorAll('a.chat-row.unseen')].some((row) => row.innerText.includes('Thank you'))`)
}

// TestConversationReply writes, sees the ticks, attaches, reacts, marks as seen and deletes. All of it is in the audit log.
func TestConversationReply(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.role = parley.Support
	c.Phone(ayu).Types("Shall I come?")
	p := c.open("/conversations/demo/" + ayu + "@c.us")
	p.said("Shall I come?")
	p.click("button", "Mark as seen")
	p.lost("button", "Mark as seen")
	p.until("it is not unread", `!document.querySelector('a.chat-row.unseen')`)

	p.click("button", "Actions for: Shall I come?")
	p.click("button", "Reply")
	p.see("Reply to Ayu")
	p.fill("Type a message", "Yes, at noon")
	p.press(kb.Enter)
	p.until("it was delivered", `[...document.querySelectorAll('.bubble.own')].some((one) => one.innerText.includes('Yes, at noon')
		&& one.querySelector('.quoted') && /DELIVERED|READ/.test(one.querySelector('.tick').dataset.status))`)
	p.see("sent by support in the console")
	c.Phone(ayu).Reads()
	p.until("it was read", `document.querySelector('.bubble.own .tick').dataset.status === 'READ'`)

	p.click("button", "Actions for: Shall I come?")
	p.accessible()
	p.click("button", "React with 👍")
	p.until("the reaction is there", `document.querySelector('.theirs .reactions')?.innerText === '👍'`)

	eval[any](p, `(() => {
		const bag = new DataTransfer();
		bag.items.add(new File(['Some notes'], 'daftar harga.txt', { type: 'text/plain' }));
		const input = document.querySelector('.composer input[type=file]');
		input.files = bag.files;
		input.dispatchEvent(new Event('change', { bubbles: true }));
	})()`)
	p.fill("Caption", "Our prices")
	p.accessible()
	p.click("button", "Send")
	p.find("button", "Download daftar harga.txt")
	p.said("Our prices")

	p.click("button", "Actions for: Yes, at noon")
	p.click("button", "Delete")
	p.said("This message was deleted")
	c.Eventually("all of it is in the audit log", func() bool {
		log := string(c.Get("/api/manage/audit", parleytest.As(c.Admin)).Body)
		for _, action := range []string{"message.send", "message.react", "message.mark_seen", "message.delete"} {
			if !strings.Contains(log, `"`+action+`"`) {
				return false
			}
		}
		return strings.Contains(log, `"support"`)
	})
}

// TestSeveralFiles drops three files into a chat: all of them are sent, one after the other.
func TestSeveralFiles(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.say("text", ayu, `"message":"Send me your lists"`)
	p := c.open("/conversations/demo/" + ayu + "@c.us")
	p.find("button", "Attach a file")
	eval[any](p, `(() => {
		const bag = new DataTransfer();
		for (const name of ['cakes.txt', 'breads.txt', 'drinks.txt']) bag.items.add(new File([name], name, { type: 'text/plain' }));
		document.querySelector('.thread .chat').dispatchEvent(new DragEvent('drop', { dataTransfer: bag, bubbles: true, cancelable: true }));
	})()`)
	for i, name := range []string{"cakes.txt", "breads.txt", "drinks.txt"} {
		p.until("it is offered with an empty caption", `(([dialog]) => dialog?.innerText.includes('`+name+`')
			&& dialog.querySelector('input').value === '')(document.querySelectorAll('dialog:modal'))`)
		p.until("the others are announced", fmt.Sprintf(`/(\w+) more files? follows?/.exec(document.querySelector('dialog:modal').innerText)?.[1]
			=== %q`, []string{"2", "One", ""}[i])+` || `+fmt.Sprint(i == 2))
		p.fill("Caption", "list "+name)
		p.click("button", "Send")
		p.until("it was sent", fmt.Sprintf(`document.querySelectorAll('.bubble.own .document').length === %d`, i+1))
	}
	p.until("nothing is left to send", `!document.querySelector('dialog:modal')`)
	p.find("button", "Download drinks.txt")
}

// TestConversationRoles: viewers read and are offered nothing else.
// TestConversationTimer sets when the messages of a chat and of a group disappear.
func TestConversationTimer(t *testing.T) {
	t.Parallel()
	c := start(t)
	group := c.Get("/api/groups").Text("data.0.id")
	for _, chat := range []string{"6281234567890@c.us", group} {
		to := `"contact_id":"` + chat + `"`
		if chat == group {
			to = `"group_id":"` + chat + `"`
		}
		c.Post("/api/send-message/text", `{`+to+`,"message":"Halo"}`).Expect(http.StatusOK)
		p := c.open("/conversations/demo/" + chat)
		p.click("button", "Disappearing messages")
		p.choose("New messages in this chat", "604800")
		p.accessible()
		p.click("button", "Save")
		p.see("Saved")
		p.click("button", "Disappearing messages")
		p.until("it is shown", `document.querySelector('dialog select')?.value === '604800'`)
	}
	if a := c.Get("/api/contact/info?contact_id=6281234567890@c.us").Expect(http.StatusOK); a.Number("data.disappearing_seconds") != 604800 {
		t.Errorf("the contact is %s", a.Body)
	}
	if a := c.Get("/api/groups").Expect(http.StatusOK); a.Number("data.0.disappearing_seconds") != 604800 {
		t.Errorf("the group is %s", a.Body)
	}
}

func TestConversationRoles(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.role = parley.Viewer
	c.Phone(ayu).Types("Shall I come?")
	p := c.open("/conversations/demo/" + ayu + "@c.us")
	p.said("Shall I come?")
	p.see("needs the role support")
	p.lost("button", "Mark as seen")
	p.lost("button", "Attach a file")
	p.lost("textbox", "Type a message")
	p.click("button", "Actions for: Shall I come?")
	p.find("link", "Details")
	p.lost("button", "Reply")
	p.lost("button", "React with 👍")
	p.accessible()
}

// TestConversationLinks opens a chat at a message in its middle, goes on from there, and comes from the drawer and the palette.
func TestConversationLinks(t *testing.T) {
	t.Parallel()
	c := start(t)
	var ids []string
	for i := range 130 {
		answer := c.Post("/api/send-message/text", fmt.Sprintf(`{"contact_id":"%s@c.us","message":"Line %d."}`, ayu, i+1)).Expect(http.StatusOK)
		ids = append(ids, answer.Text("data.id"))
	}
	p := c.open("/conversations/demo/" + ayu + "@c.us?message=" + ids[39])
	p.said("Line 40.")
	p.until("it is in view", `(() => { const at = document.querySelector('.bubble.marked').getBoundingClientRect();
		return at.top > 100 && at.bottom < innerHeight - 50; })()`)
	if eval[bool](p, `document.querySelector('[role=log]').innerText.includes('Line 130.')`) {
		t.Error("the end of the chat was loaded too")
	}
	p.click("button", "Go to the newest")
	p.said("Line 130.")
	p.until("scrolling to the top loads earlier ones, up to the first", `(() => { const log = document.querySelector('[role=log]');
		log.scrollTop = 0; return log.innerText.includes('Line 1.'); })()`)

	p.visit("/messages?open=demo." + ids[9])
	p.live()
	p.click("link", "Open chat")
	p.said("Line 10.")

	p.visit("/")
	p.live()
	p.rest()
	for _, search := range []string{"ayu", "62812345"} {
		p.press("k", 2)
		p.fill("Find pages, channels, phones, messages, actions", search)
		const customer = `[...document.querySelectorAll('.palette [role=option]')].find((one) => /\+62 812-3456-7890.*demo/s.test(one.innerText))`
		p.until("the palette finds the customer", customer)
		eval[any](p, customer+`.click(), null`)
		p.said("Line 130.")
		p.visit("/")
		p.live()
		p.rest()
	}
	p.visit("/conversations/demo/6281999999999@c.us")
	p.allow("404")
	p.see("No messages with +62 819-9999-9999 yet.")
	p.accessible()
}

// TestConversationKeys goes through the chats by the keyboard alone, and in a hand.
func TestConversationKeys(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Phone(budi).Types("From Budi")
	c.Phone(ayu).Types("From Ayu")
	p := c.open("/conversations")
	p.see("From Ayu")
	p.press(kb.ArrowDown)
	p.until("the first row has the focus", `document.activeElement.innerText.includes('From Ayu')`)
	p.press(kb.ArrowDown)
	p.press(kb.Enter)
	p.said("From Budi")
	p.press("r")
	p.until("the field has the focus", `document.activeElement.tagName === 'TEXTAREA'`)
	p.press(kb.Escape)
	p.press(kb.Escape)
	p.see("Choose a chat")
	p.press("/")
	p.until("the search has the focus", `document.activeElement.type === 'search'`)

	p.size(390, 844)
	p.visit("/conversations")
	p.live()
	p.rest()
	p.click("link", "Ayu…")
	p.said("From Ayu")
	p.until("the conversation fills the screen", `(() => { const at = document.querySelector('.thread').getBoundingClientRect();
		return at.left === 0 && at.width === innerWidth && at.bottom === innerHeight; })()`)
	p.accessible()
	p.fill("Type a message", "On my way")
	p.click("button", "Send")
	p.said("On my way")
	p.click("button", "Back to the chats")
	p.see("From Budi")
	p.fits("chats")
}

// TestConversationInGroup shows who wrote.
func TestConversationInGroup(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Post("/api/sandbox/phones", `{"number":"`+budi+`","name":"Budi Santoso"}`).Expect(http.StatusOK)
	members := `["` + budi + `@c.us","` + ayu + `@c.us"]`
	group := c.Post("/api/groups/create", `{"name":"Drivers","participants":`+members+`}`).Expect(http.StatusOK).Text("data.id")
	c.Phone(budi).Sends(`{"type":"text","message":"I am late","group_id":"` + group + `"}`).Expect(http.StatusOK)
	p := c.open("/conversations")
	p.click("link", "Drivers…")
	p.said("I am late")
	p.until("the writer is named", `document.querySelector('.bubble .author')?.innerText === 'Budi Santoso'`)
	p.fill("Type a message", "No problem")
	p.press(kb.Enter)
	p.said("No problem")
	c.Phone(ayu).Sends(`{"type":"text","message":"Me too","group_id":"` + group + `"}`).Expect(http.StatusOK)
	p.said("Me too")
	p.accessible()
}

// TestContactPage shows what all channels know of a contact.
func TestContactPage(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.populate()
	p := c.open("/contacts/" + ayu)
	p.see("In touch with one channel.")
	p.find("table", "One-time passwords")
	p.see("approved")
	p.accessible()
	p.click("link", "Open conversation")
	p.said("makasih!")
	p.click("link", "About this contact")
	p.find("table", "Latest messages")
	p.visit("/contacts/6281377700011")
	p.live()
	p.see("One message failed.")
	p.until("what failed is there with its reason", `(() => {
		const row = document.querySelector('table[aria-label="Failed messages"] tbody tr')?.innerText || '';
		return row.includes('Kak, pesanannya siap diambil.') && row.includes('The network refused the message.');
	})()`)
	p.allow("404")
	p.visit("/contacts/6281999999999")
	p.see("No channel knows this contact.")
}

// TestConversationsHoldStill: with many chats the page loads without jumps, and a reader's list stays.
func TestConversationsHoldStill(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.populate()
	c.addManyChats(70)
	c.Post("/api/groups/create", `{"name":"Kurir pagi","participants":["`+budi+`@c.us"]}`).Expect(http.StatusOK)
	p := c.open("/conversations?channel=demo")
	p.until("a first page is there", `document.querySelectorAll('a.chat-row').length >= 50`)
	eval[any](p, `document.querySelector('.chat-rows').scrollTop = 1e6, null`)
	p.until("the second page came", `document.querySelectorAll('a.chat-row').length > 60`)
	p.visit("/conversations/demo/" + ayu + "@c.us?channel=demo")
	eval[any](p, `(window.jumps = 0, new PerformanceObserver((list) => {
		for (const e of list.getEntries()) if (!e.hadRecentInput) jumps += e.value;
	}).observe({ type: 'layout-shift', buffered: true }), null)`)
	p.live()
	p.said("makasih!")
	p.rest()
	if jumps := eval[float64](p, `jumps`); jumps > 0.05 {
		t.Errorf("the page jumps by %f", jumps)
	}
	if *chatPictures == "" {
		return
	}
	for _, s := range []screen{{"light", "light", 1440, 900, 1}, {"dark", "dark", 1440, 900, 1}, {"light-phone", "light", 390, 844, 2},
		{"dark-phone", "dark", 390, 844, 2}} {
		p := (&console{Env: c.Env, t: t}).on(s)
		for name, path := range map[string]string{"list": "/conversations", "chat": "/conversations/demo/" + ayu + "@c.us",
			"search": "/conversations?q=pesanan", "contact": "/contacts/" + ayu} {
			p.visit(path)
			p.live()
			p.rest()
			p.must(do(p.ctx, func(ctx context.Context) error { return emulation.SetScrollbarsHidden(true).Do(ctx) }))
			p.shoot(filepath.Join(*chatPictures, name+"-"+s.name+".png"))
		}
	}
}
