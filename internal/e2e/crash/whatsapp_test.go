package crash_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"

	"parley/internal/e2e/runs"
	"parley/internal/network/whatsapp/whatsapptest"
)

// TestKillLoopWhatsApp ends the program with SIGKILL again and again while clients send over WhatsApp's
// protocol, and has the network cut sockets and lose confirmations in between. Afterwards the phones say what
// they could read, in which order.
//
// PARLEY_KILLS and PARLEY_MESSAGES make it longer: see "make kills" and "make torture".
func TestKillLoopWhatsApp(t *testing.T) {
	kills, messages := number(t, "PARLEY_KILLS", 6), number(t, "PARLEY_MESSAGES", 600)
	const channels, contacts = 20, 3
	record := runs.Begin(t)
	w := startWhatsApp(t, channels, contacts)
	w.record = record
	each := (messages + len(w.chats) - 1) / len(w.chats)
	total := each * len(w.chats)
	shown := newCounts()
	var clients sync.WaitGroup
	for i, c := range w.chats {
		w.watch(c, shown, answersAfter)
		clients.Go(func() { w.client(i, c, each) })
	}
	w.interrupt(shown, total, 2*kills, func(i int) {
		if i%2 == 1 {
			w.drop(i / 2)
			return
		}
		w.crash()
	})
	clients.Wait()
	if err := shown.await(total); err != nil {
		t.Errorf("not everything was shown: %v", err)
	}
	w.awaitFaults()
	w.awaitAnswers(each)
	record.Messages = total
	w.judgeSends(each)
	w.judgeSealing()
	again := 0
	for _, e := range w.wa.Traces() {
		again += max(0, e.Stanzas-1)
	}
	t.Logf("%d messages, %d kills, %d sockets dropped; %d came again under their id; slowest recovery %s", total, w.crashes, kills, again,
		w.slowest)
}

// answersAfter is after how many messages a phone answers, so that keys move on in both directions.
const answersAfter = 5

// awaitAnswers waits until the program has what the phones answered.
func (w *whatsappWorld) awaitAnswers(each int) {
	w.t.Helper()
	last := each / answersAfter * answersAfter
	if last == 0 {
		return
	}
	for _, c := range w.chats {
		if err := w.until(func() bool {
			path := fmt.Sprintf("/api/chat/detail?contact_id=%s@c.us&limit=20", c.contact.Number())
			status, answer, err := w.call("GET", path, c.channel.code, "", "")
			return err == nil && status == http.StatusOK && bytes.Contains(answer, fmt.Appendf(nil, `"a %d"`, last))
		}); err != nil {
			w.t.Errorf("the last answer did not come: %v", err)
		}
	}
}

// client sends the messages of a chat, each until it is answered. After four it waits until the fifth is sent,
// so that there is always a queue, and never a long one.
func (w *whatsappWorld) client(i int, c whatsappChat, messages int) {
	for n := range messages {
		body := fmt.Sprintf(`{"contact_id":"%s@c.us","message":"m %d","linkPreview":false}`, c.contact.Number(), n)
		prefer := "respond-async"
		if n%5 == 4 {
			prefer = "wait=10"
		}
		if w.insist(w.t, "/api/send-message/text", c.channel.code, body, fmt.Sprintf("key-%d-%d", i, n), "Prefer", prefer) == nil {
			return
		}
	}
}

// drop ends the connection of a channel in one of the ways in which that happens, and sometimes loses a
// confirmation too.
func (w *whatsappWorld) drop(i int) {
	link := w.channels[rand.N(len(w.channels))].link
	switch i % 4 {
	case 0:
		link.End(whatsapptest.Cut)
	case 1:
		w.wa.Inject(whatsapptest.DropBeforeAccept())
	case 2:
		w.wa.Inject(whatsapptest.DropAfterAccept())
	case 3:
		link.End(whatsapptest.Restarted)
	}
	if i%8 == 3 {
		w.wa.Inject(whatsapptest.LoseAck())
	}
}

// judgeSends compares what the phones showed, and what the program says of it, with what was accepted; and what
// the phones answered with what the program stored and published.
func (w *whatsappWorld) judgeSends(each int) {
	t := w.t
	t.Helper()
	for _, c := range w.chats {
		if err := w.awaitFinal(c); err != nil {
			t.Errorf("something is still PENDING: %v", err)
		}
	}
	sends, answers := numbered("m", 0, each, 1), numbered("a", answersAfter, each+1, answersAfter)
	published := w.received()
	var phones, sent, received, log runs.Comparison
	for _, c := range w.chats {
		phones.Compare(c.shown(), sends)
		s, r := w.history(c)
		sent.Compare(s, sends)
		received.Compare(r, answers)
		log.Compare(published[c.contact.Number()], answers)
	}
	w.record.Add(phones)
	w.record.Add(received)
	w.record.Skipped += log.Lost
	if bad := phones.Sum() + sent.Sum() + received.Sum() + log.Sum(); bad > 0 {
		t.Errorf("%d are wrong\n%s", bad, w.tail())
	}
	t.Logf("on the phones: %s; sent, in the history: %s; answers, in the history: %s; in the event log: %s", phones, sent, received, log)
}
