package crash_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/e2e/runs"
)

// TestKillLoopDelivery ends the server with SIGKILL again and again between the moment at which
// an event is durable and the moment at which every subscriber has received it. A subscriber,
// a webhook, the addresses of login links and a reader of the event stream, must in the end have
// received everything in the event log.
//
// PARLEY_KILLS makes it longer: see "make kills" and "make torture".
func TestKillLoopDelivery(t *testing.T) {
	kills := 3 * number(t, "PARLEY_KILLS", 5) // each is quick: little is done between two
	record := runs.Begin(t)
	s := startServer(t)
	s.record = record
	r := &deliveryRun{testServer: s, t: t, links: map[parley.OTPID]linkUse{}}
	r.listener = newListener(t, &r.fuse)
	s.command(t, "webhook", "add", r.listener.url("/hook"))
	r.stream = followStream(t, s, &r.fuse)

	work := r.startClients()
	for range kills {
		lit := r.fuse.set(moment(rand.N(int(moments))))
		work.allow()
		select {
		case <-lit:
		case <-time.After(waitLimit):
			t.Fatalf("nothing happens\n%s", readFile(t, s.data+".log"))
		}
		s.kill(t)
		record.Times++
		r.fuse.release()
		s.start(t)
	}
	work.finish()
	if t.Failed() {
		return
	}
	log := r.awaitTold()
	record.Messages = len(log)
	r.judgeLog(log)
	r.judgeLinks(log)
	if t.Failed() {
		return
	}
	calls, again := r.listener.counts()
	t.Logf("%d kills, %d events: all delivered to the webhook in order, %d of %d calls were repeats; %d login links, %d came back to the "+
		"stream; slowest recovery %s",
		kills, len(log), again, calls, len(r.links), r.stream.returns(), s.slowest)
}

type deliveryRun struct {
	*testServer
	t        *testing.T
	fuse     fuse
	listener *listener
	stream   *streamReader

	mu    sync.Mutex
	links map[parley.OTPID]linkUse
}

// linkUse is what becomes of a login link.
type linkUse int

const (
	tapped linkUse = iota // by the right phone
	stolen                // tapped by another phone
	unused
	linkUses
)

// clientWork hands out what clients may do: so much in each life of the server, so that there is always
// something to do and never too much.
type clientWork struct {
	wg    sync.WaitGroup
	kinds []chan struct{} // each holds what may be done of one kind
}

// startClients starts clients that have phones write, that send, and that use login links.
func (r *deliveryRun) startClients() *clientWork {
	w := &clientWork{}
	for _, kind := range []struct {
		inALife int
		do      func(client, n int) bool
	}{{12, r.phoneWrites}, {6, r.sends}, {4, r.usesLink}} {
		allowed := make(chan struct{}, kind.inALife)
		w.kinds = append(w.kinds, allowed)
		for client := range 2 {
			w.wg.Go(func() {
				for n := 0; ; n++ {
					if _, more := <-allowed; !more || !kind.do(client, n) {
						return
					}
					r.fuse.pass(committed)
				}
			})
		}
	}
	return w
}

// allow lets the clients do what is meant for one life of the server.
func (w *clientWork) allow() {
	for _, allowed := range w.kinds {
		for len(allowed) < cap(allowed) {
			allowed <- struct{}{}
		}
	}
}

// finish ends the clients, after what they may still do.
func (w *clientWork) finish() {
	for _, allowed := range w.kinds {
		close(allowed)
	}
	w.wg.Wait()
}

// phoneWrites has a phone write to the channel.
func (r *deliveryRun) phoneWrites(client, n int) bool {
	path := fmt.Sprintf("/api/sandbox/phones/62815%04d%03d/send", client, n%3)
	return r.insist(r.t, path, "demo", fmt.Sprintf(`{"type":"text","message":"in %d %d"}`, client, n), fmt.Sprintf("phone-%d-%d", client,
		n)) != nil
}

func (r *deliveryRun) sends(client, n int) bool {
	body := fmt.Sprintf(`{"contact_id":"62815%04d%03d@c.us","message":"out %d %d","linkPreview":false}`, client, n%3, client, n)
	return r.insist(r.t, "/api/send-message/text", "demo", body, fmt.Sprintf("send-%d-%d", client, n)) != nil
}

// usesLink makes a login link and has it tapped, or not.
func (r *deliveryRun) usesLink(client, n int) bool {
	owner, thief := fmt.Sprintf("62816%03d%05d", client, n), fmt.Sprintf("62817%03d%05d", client, n)
	use := linkUse(n % int(linkUses))
	body := fmt.Sprintf(`{"contact_id":"%s@c.us","expires":3600,"callback":{"success":"%s","failed":"%s"}}`, owner, r.listener.url("/ok"),
		r.listener.url("/no"))
	answer := r.insist(r.t, "/api/otp/link/request", "demo", body, fmt.Sprintf("link-%d-%d", client, n))
	if answer == nil {
		return false
	}
	var made struct {
		Data struct {
			ID   parley.OTPID
			Link string
		}
	}
	if err := json.Unmarshal(answer, &made); err != nil {
		r.t.Error(err)
		return false
	}
	r.mu.Lock()
	r.links[made.Data.ID] = use
	r.mu.Unlock()
	phone := owner
	switch use {
	case unused:
		return true
	case stolen:
		phone = thief
	}
	open, err := json.Marshal(map[string]string{"link": made.Data.Link})
	if err != nil {
		r.t.Error(err)
		return false
	}
	return r.insist(r.t, "/api/sandbox/phones/"+phone+"/open", "demo", string(open), fmt.Sprintf("tap-%d-%d", client, n)) != nil
}

// awaitTold waits until nothing more happens and the webhook, the callbacks and the stream know of all
// that is in the log, or until it is clear that they will not.
func (r *deliveryRun) awaitTold() []parley.Event {
	r.t.Helper()
	before := -1
	deadline := time.After(waitLimit)
	for tick := time.Tick(100 * time.Millisecond); ; {
		var log []parley.Event
		r.eachEvent(r.t, r.stream.began, parley.EventFilter{}, func(e parley.Event) { log = append(log, e) })
		hook, links, stream := r.missing(log)
		if len(log) == before && len(hook)+len(links)+stream == 0 {
			return log
		}
		before = len(log)
		select {
		case <-tick:
		case <-deadline:
			r.record.Skipped = len(hook) + len(links) + stream
			r.t.Fatalf("of %d events the webhook missed %v, login links' addresses %v, the stream %d", len(log), hook, links, stream)
		}
	}
}

// missing lists the events that the webhook or the address of a login link did not receive, and
// counts those that did not come on the stream.
func (r *deliveryRun) missing(log []parley.Event) (hook, links []parley.EventID, stream int) {
	r.listener.mu.Lock()
	defer r.listener.mu.Unlock()
	for _, e := range log {
		if r.listener.bodies[e.ID] == "" {
			hook = append(hook, e.ID)
		}
		if id, ok := toLink(e); ok && !slices.ContainsFunc(r.listener.callbacks, func(c linkCall) bool { return c.event == e.ID && c.id == id }) {
			links = append(links, e.ID)
		}
	}
	return hook, links, len(log) - len(r.stream.ids())
}

// toLink returns the login link whose approval or failed use an event tells of.
func toLink(e parley.Event) (parley.OTPID, bool) {
	if e.Type != parley.OTPApproved && e.Type != parley.OTPFailed {
		return "", false
	}
	var data struct{ ID parley.OTPID }
	return data.ID, json.Unmarshal(e.Data, &data) == nil && data.ID != ""
}

// judgeLog compares what the webhook and the stream received with the log.
func (r *deliveryRun) judgeLog(log []parley.Event) {
	t := r.t
	var want []parley.EventID
	kinds := map[parley.EventType]int{}
	for _, e := range log {
		want = append(want, e.ID)
		kinds[e.Type]++
	}
	for _, kind := range []parley.EventType{parley.MessageReceived, parley.MessageStatus, parley.OTPApproved, parley.OTPFailed,
		parley.ChannelStatusChanged} {
		if kinds[kind] == 0 {
			t.Errorf("no %s happened: the test tests nothing of it", kind)
		}
	}
	if got := r.stream.ids(); !slices.Equal(got, want) {
		t.Errorf("the stream sent %d events, the log has %d; they part at %d", len(got), len(want), parting(got, want))
	}
	r.listener.mu.Lock()
	defer r.listener.mu.Unlock()
	for _, wrong := range r.listener.wrong {
		t.Error(wrong)
	}
	for id := range r.listener.bodies {
		if !slices.Contains(want, id) {
			t.Errorf("the webhook received %s, which is not in the log", id)
		}
	}
}

// parting is the first place where two lists differ.
func parting(a, b []parley.EventID) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// judgeLinks compares the calls of login links' addresses with the log, and the log with what was done.
func (r *deliveryRun) judgeLinks(log []parley.Event) {
	t := r.t
	happened := map[parley.EventID]linkCall{} // what may be called
	approved := map[parley.OTPID]int{}
	for _, e := range log {
		id, ok := toLink(e)
		if !ok {
			continue
		}
		call := linkCall{path: "/no", id: id, event: e.ID, status: "failed", reason: "wrong_sender"}
		if e.Type == parley.OTPApproved {
			approved[id]++
			call = linkCall{path: "/ok", id: id, event: e.ID, status: "success"}
		}
		happened[e.ID] = call
	}
	r.listener.mu.Lock()
	defer r.listener.mu.Unlock()
	for _, got := range r.listener.callbacks {
		if want := happened[got.event]; got != want {
			t.Errorf("login link was reported as %+v, want %+v", got, want)
		}
		if use, known := r.links[got.id]; !known || use == unused {
			t.Errorf("login link %s was not used, and is reported as %s", got.id, got.status)
		}
	}
	for id, use := range r.links {
		want := 0
		if use == tapped {
			want = 1
		}
		if approved[id] != want {
			t.Errorf("login link %s was approved %d times, want %d", id, approved[id], want)
		}
	}
}
