package whatsapp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
)

// seedVariable carries the seed to the process that is fed with broken stanzas.
const seedVariable = "WHATSAPP_FUZZ_SEED"

// FuzzNodes feeds a driver with broken stanzas, at the login, while it pairs, in place of answers, and as
// messages. It runs in a process of its own: a panic on one of whatsmeow's goroutines ends it.
func FuzzNodes(f *testing.F) {
	f.Add(uint64(1))
	f.Add(uint64(2))
	f.Fuzz(func(t *testing.T, seed uint64) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
		defer cancel()
		child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestBrokenStanzas$", "-test.v")
		child.Env = append(os.Environ(), seedVariable+"="+strconv.FormatUint(seed, 10))
		out, err := child.CombinedOutput()
		survived := regexp.MustCompile(`survived \d+ stanzas.*`).Find(out)
		if err != nil || survived == nil {
			const most = 8000
			t.Fatalf("seed %d: %v\n%s", seed, err, out[max(0, len(out)-most):])
		}
		t.Logf("seed %d %s", seed, survived)
	})
}

// TestBrokenStanzas is the process of FuzzNodes.
func TestBrokenStanzas(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
	if err != nil {
		t.Skip("it is part of FuzzNodes")
	}
	server, err := whatsapptest.Start() // which is no witness: what we break is no fault of the client
	must(t, err)
	t.Cleanup(server.Close)
	w := newWorldOn(t, server)
	f := &stanzaFuzz{t: t, w: w, breaker: newBreaker(seed, w)}
	f.connect()
	f.handlers(1200)
	f.answers(6 * atOnce)
	f.logins(8)
	f.pairings(6)
	w.Mangle(nil)
	f.connect()
	for end := w.text(friendID, "the end"); send(f.s, end) != nil; { // the last broken stanza may still end a connection
		f.connect()
	}
	w.friend.Expect(t, whatsapptest.Text("the end"))
	fmt.Printf("survived %d stanzas; %d were too broken for their handler\n", f.breaker.count, w.driver.panics.Load())
}

// stanzaFuzz feeds one driver.
type stanzaFuzz struct {
	t       *testing.T
	w       *world
	breaker *breaker
	s       *session
	in      *inbox
}

// shortly is how long the fuzz waits for what may never come.
const shortly = 300 * time.Millisecond

// connect makes sure that there is a session that works; a broken stanza may have ended it, or its pairing.
func (f *stanzaFuzz) connect() {
	f.t.Helper()
	if f.s != nil {
		for range 10 {
			if f.answersPing() {
				return
			}
			time.Sleep(shortly / 2)
		}
		must(f.t, f.s.Close())
		must(f.t, f.w.driver.DeleteChannel(f.t.Context(), code))
	}
	f.s, f.in = f.w.start()
	f.in.status(parley.ChannelScanQRCode)
	must(f.t, f.s.Pair(f.t.Context()))
	f.w.scan(f.in, 0)
	f.in.status(parley.ChannelWorking)
}

// handlers injects stanzas into a connection that works.
func (f *stanzaFuzz) handlers(stanzas int) {
	for i := range stanzas {
		sent := f.w.link.Inject(f.breaker.stanza())
		if !sent || i%10 == 9 {
			f.drain()
			f.connect()
		}
	}
}

// answersPing reports whether the connection works. The answer comes after everything that was injected.
func (f *stanzaFuzz) answersPing() bool {
	conn := f.s.current.Load()
	if conn == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(conn.ctx, 10*shortly)
	defer cancel()
	ok, _ := conn.inner().SendKeepAlive(ctx)
	return ok
}

// drain waits until what was injected is handled.
func (f *stanzaFuzz) drain() {
	conn := f.s.current.Load()
	for alive := f.answersPing(); alive && conn.ctx.Err() == nil; time.Sleep(time.Millisecond) {
		conn.stanzas.mu.Lock()
		idle := conn.stanzas.running == 0
		conn.stanzas.mu.Unlock()
		if idle {
			return
		}
	}
}

// atOnce is in how many ways, at the same time, the session is used.
const atOnce = 12

// answers breaks what the network answers while the session is used.
func (f *stanzaFuzz) answers(calls int) {
	must(f.t, os.WriteFile(f.w.dir+"/file", []byte("a file"), 0o600))
	group := f.w.owner.CreateGroup("Friends", f.w.friend)
	for i := 0; i < calls; i += atOnce {
		f.w.Mangle(f.breaker.mangle(func(n waBinary.Node) bool { return !isFinal(n) && n.Tag != "success" }))
		var using sync.WaitGroup
		for j := range atOnce {
			using.Go(func() {
				ctx, cancel := context.WithTimeout(f.t.Context(), shortly)
				defer cancel()
				f.use(ctx, i+j, group)
			})
		}
		using.Wait()
		f.w.Mangle(nil)
		f.connect()
	}
}

// use calls the session in one of the ways in which it can be called.
func (f *stanzaFuzz) use(ctx context.Context, i int, group *whatsapptest.Group) {
	ref := parley.MessageRef{FromMe: i%2 == 0, Chat: friendID, ID: "3EB0AA"}
	send := func(to parley.ContactID, c parley.Content) { f.s.Send(ctx, []*parley.Message{f.w.outgoing(to, c)}) }
	switch i % atOnce {
	case 0:
		send(friendID, parley.Text{Body: "hello"})
	case 1:
		p := f.w.Phone(fmt.Sprintf("62897%08d", i))
		send(parley.NewContactID(p.Number()), parley.Text{Body: "hello stranger"})
	case 2:
		f.s.Contact(ctx, friendID)
	case 3:
		f.s.CheckNumber(ctx, otherNumber)
	case 4:
		f.s.Groups(ctx, parley.Page{Limit: 10})
	case 5:
		f.s.CreateGroup(ctx, "New", []parley.ContactID{friendID})
	case 6:
		f.s.Participants(ctx, parley.GroupID(group.JID().String()))
	case 7:
		send(friendID, parley.Star{Target: ref, Starred: true})
	case 8:
		send(friendID, parley.Seen{Target: ref})
	case 9:
		f.s.Typing(ctx, friendID, true)
	case 10:
		send(friendID, parley.File{Media: parley.Media{Key: "file", MIME: "text/plain", Size: 6}})
	case 11:
		f.w.friend.Send(ctx, f.w.owner, "hello yourself")
	}
}

// logins breaks what the network says when a device logs in.
func (f *stanzaFuzz) logins(logins int) {
	f.w.Mangle(f.breaker.mangle(func(n waBinary.Node) bool { return n.Tag != "iq" && n.Tag != "message" }))
	for range logins {
		skip := f.in.count()
		f.w.link.End(whatsapptest.Cut)
		for deadline := time.Now().Add(shortly); f.in.count() < skip+2 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		if f.s.current.Load() == nil && f.in.count() > skip+1 {
			f.w.Mangle(nil)
			f.connect()
			f.w.Mangle(f.breaker.mangle(func(n waBinary.Node) bool { return n.Tag != "iq" && n.Tag != "message" }))
		}
	}
	f.w.Mangle(nil)
	f.connect()
}

// pairings breaks what the network says while devices are linked, by QR code and by a code to type.
func (f *stanzaFuzz) pairings(pairings int) {
	f.w.Mangle(f.breaker.mangle(func(n waBinary.Node) bool { return n.Attrs["type"] != "result" && n.Attrs["type"] != "error" }))
	var linking sync.WaitGroup
	turns := make(chan struct{}, 4)
	for i := range pairings {
		turns <- struct{}{}
		linking.Go(func() {
			defer func() { <-turns }()
			f.pairing(i)
		})
	}
	linking.Wait()
	f.w.Mangle(nil)
}

func (f *stanzaFuzz) pairing(i int) {
	owner := f.w.Phone(fmt.Sprintf("62896%08d", i))
	in := newInbox(f.t)
	name := parley.ChannelCode(fmt.Sprint("pairing", i))
	opened, err := f.w.driver.Open(f.t.Context(), parley.Channel{Code: name}, in.sink)
	must(f.t, err)
	s := opened.(*session)
	ctx, cancel := context.WithTimeout(f.t.Context(), 3*shortly)
	defer cancel()
	if i%3 == 0 {
		err = s.PairWithCode(ctx, owner.Number())
	} else {
		err = s.Pair(ctx)
	}
	must(f.t, err)
	var step network.Pairing
	for step.Code == "" && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
		for _, e := range in.all() {
			if p, ok := e.(network.Pairing); ok && p.Code != "" {
				step = p
			}
		}
	}
	switch step.Step {
	case parley.QRStep:
		owner.Scan(ctx, step.Code)
	case parley.CodeStep:
		owner.EnterCode(ctx, step.Code)
	}
	must(f.t, s.Close())
	must(f.t, f.w.driver.DeleteChannel(f.t.Context(), name))
}

// breaker makes broken stanzas, the same ones for the same seed as long as they are asked for in one order.
type breaker struct {
	mu      sync.Mutex
	random  *rand.Rand
	samples []waBinary.Node
	jids    []any
	count   int
}

func newBreaker(seed uint64, w *world) *breaker {
	return &breaker{random: rand.New(rand.NewPCG(seed, 1)), samples: sampleStanzas(w.owner.JID(), w.owner.LID(), w.friend.JID(),
		w.friend.LID()), jids: oddAddresses(w.owner.LID(), w.friend.JID())}
}

// stanza breaks one of the samples.
func (b *breaker) stanza() waBinary.Node {
	b.mu.Lock()
	defer b.mu.Unlock()
	sample := b.samples[b.random.IntN(len(b.samples))]
	for isFinal(sample) && b.random.IntN(50) > 0 { // it costs a new connection
		sample = b.samples[b.random.IntN(len(b.samples))]
	}
	broken := b.broken(sample)
	if id, ok := broken.Attrs["id"].(string); ok && id != "" && b.random.IntN(4) > 0 {
		broken.Attrs["id"] = fmt.Sprintf("%s%06X", id, b.random.IntN(1<<24)) // what comes again is not always handled
	}
	return broken
}

func isFinal(n waBinary.Node) bool { return n.Tag == "failure" || n.Tag == "stream:error" }

// mangle breaks most of the stanzas that match.
func (b *breaker) mangle(match func(waBinary.Node) bool) func(waBinary.Node) waBinary.Node {
	return func(n waBinary.Node) waBinary.Node {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !match(n) || b.random.IntN(4) == 0 {
			return n
		}
		id := n.Attrs["id"]
		n = b.broken(n)
		if n.Attrs != nil && id != nil && b.random.IntN(10) > 0 { // else nobody knows what it answers
			n.Attrs["id"] = id
		}
		return n
	}
}

// broken changes a copy of a stanza in a few places.
func (b *breaker) broken(n waBinary.Node) waBinary.Node {
	b.count++
	n = clone(n)
	for range 1 + b.random.IntN(3) {
		b.change(b.pick(&n))
	}
	return n
}

// pick chooses a node of a tree.
func (b *breaker) pick(n *waBinary.Node) *waBinary.Node {
	for {
		children, _ := n.Content.([]waBinary.Node)
		if len(children) == 0 || b.random.IntN(3) == 0 {
			return n
		}
		n = &children[b.random.IntN(len(children))]
	}
}

// change breaks one node.
func (b *breaker) change(n *waBinary.Node) {
	children, _ := n.Content.([]waBinary.Node)
	bytes, _ := n.Content.([]byte)
	switch b.random.IntN(10) {
	case 0, 1:
		delete(n.Attrs, b.attr(n))
	case 2, 3:
		if name := b.attr(n); name != "" {
			n.Attrs[name] = b.value()
		}
	case 4:
		n.Content = b.content()
	case 5:
		if len(children) > 0 {
			i := b.random.IntN(len(children))
			n.Content = append(append([]waBinary.Node{}, children[:i]...), children[i+1:]...)
		}
	case 6:
		if len(children) > 0 {
			n.Content = append(children, clone(children[b.random.IntN(len(children))]))
		}
	case 7:
		if len(bytes) > 0 {
			n.Content = bytes[:b.random.IntN(len(bytes))]
		}
	case 8:
		if len(bytes) > 0 {
			bytes[b.random.IntN(len(bytes))] ^= byte(1 + b.random.IntN(255))
		}
	case 9:
		other := b.samples[b.random.IntN(len(b.samples))]
		n.Content = append(children, clone(*b.pick(&other)))
	}
}

// attr chooses an attribute of a node; empty: it has none.
func (b *breaker) attr(n *waBinary.Node) string {
	skip := 0
	if len(n.Attrs) > 0 {
		skip = b.random.IntN(len(n.Attrs))
	}
	for _, name := range sortedNames(n.Attrs) {
		if skip--; skip < 0 {
			return name
		}
	}
	return ""
}

func (b *breaker) value() any {
	odd := []any{"", "0", "-1", "1", "99999999999999999999", "result", "error", "true", "x", []waBinary.Node{{Tag: "x"}}}
	if b.random.IntN(2) == 0 {
		return b.jids[b.random.IntN(len(b.jids))]
	}
	return odd[b.random.IntN(len(odd))]
}

func (b *breaker) content() any {
	long := make([]byte, b.random.IntN(300))
	for i := range long {
		long[i] = byte(b.random.Uint32())
	}
	odd := []any{nil, long, []byte{}, []byte{5}, "text", "0", b.jids[0], []waBinary.Node{}, []waBinary.Node{{Tag: "x", Content: long}}}
	return odd[b.random.IntN(len(odd))]
}
