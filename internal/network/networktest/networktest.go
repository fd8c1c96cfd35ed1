// Package networktest holds every driver of a chat network to the contract of package network. A
// driver's test calls [Run] with a [Harness], which lends the suite phones on the other side of the
// network; it knows nothing else of the network.
//
// Invariants: the suite waits for conditions, never for a time; and what it asks of one driver it asks of all, except what a
// network cannot do according to its [network.Info], the optional interfaces of its sessions and the harness.
package networktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/network"
)

type Harness struct {
	Driver  network.Driver
	Channel parley.Channel // paired, not opened

	// Phone returns a phone of the test: online, on the network, reading only on request. The same number is the same
	// phone. At least 0 and 1 are contacts of the channel.
	Phone  func(t testing.TB, number int) Phone
	Absent parley.ContactID
	// StoreMedia stores a file where the driver looks for media and returns its description.
	StoreMedia func(t testing.TB, data []byte, m parley.Media) parley.Media
	// Pair does what an owner does to pair the channel again; nil: the network has no pairing.
	Pair func(t testing.TB, s network.Session)
	// SilentBlocks says that the network hides who blocks the channel: messages to them are confirmed and never arrive.
	SilentBlocks bool
	// SizeUnknown says that the network does not tell the size of an inbound file before it is fetched.
	SizeUnknown bool
	// TypingOnlyAfter says that typing is shown as a reply only, and ends by itself.
	TypingOnlyAfter bool
	// Disconnect breaks the connection of a session; the driver must reconnect. Nil: the network has no connections.
	Disconnect func(t testing.TB, s network.Session)
}

// Phone is a contact of the channel.
type Phone interface {
	Contact() parley.ContactID
	// Shows returns the messages from the channel that the phone shows, oldest first.
	Shows(t testing.TB) []Shown
	// Send sends a message to the channel and returns its id.
	Send(t testing.TB, content parley.Content, media []byte, replyTo parley.MessageID) parley.MessageID
	// SendInGroup sends a message to a group that the phone is in.
	SendInGroup(t testing.TB, group parley.GroupID, content parley.Content, replyTo parley.MessageID) parley.MessageID
	RenameGroup(t testing.TB, group parley.GroupID, name string)
	LeaveGroup(t testing.TB, group parley.GroupID)
	JoinGroup(t testing.TB, group parley.GroupID)
	// WasSeen reports whether the phone got a read receipt.
	WasSeen(t testing.TB, id parley.MessageID) bool
	// ReactionTo returns the channel's reaction to a message that the phone sent.
	ReactionTo(t testing.TB, id parley.MessageID) string
	React(t testing.TB, target parley.MessageRef, emoji string)
	Vote(t testing.TB, poll parley.MessageID, options ...string)
	Delete(t testing.TB, id parley.MessageID)
	// Edit changes the text of a message that the phone sent.
	Edit(t testing.TB, id parley.MessageID, text string)
	Read(t testing.TB) // everything
	SetOnline(t testing.TB, online bool)
	Block(t testing.TB)
	SeesTyping(t testing.TB) bool
	// SetTimer sets after how many seconds messages disappear, in a group or, if it is empty, in the chat with the channel.
	SetTimer(t testing.TB, group parley.GroupID, seconds int)
}

// Shown is a message as a phone shows it.
type Shown struct {
	ID       parley.MessageID
	Group    parley.GroupID // empty: the chat with the channel
	Content  parley.Content // as the network carries it
	ReplyTo  parley.MessageID
	Reaction string // the channel's own
	Edited   bool
	Deleted  bool
	Timer    int // seconds after which it disappears
}

// Run runs the suite. open makes a network of its own for each test.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, test := range []struct {
		name string
		run  func(t *fixture)
		need need // nil: every network can do it
	}{
		{"every kind of message arrives once and intact", testKinds, nil},
		{"ids have the common form, and come once", testNewIDs, nil},
		{"a reply names what it answers", testReply, nil},
		{"the same id twice is shown once", testSameID, nil},
		{"order is kept in a chat", testOrder, nil},
		{"a burst keeps order in each chat", testBurst, nil},
		{"a failure holds back the rest of its chat", testHeldBack, nil},
		{"receipts come", testReceipts, nil},
		{"a phone that was offline gets what waited", testOffline, nil},
		{"a refused receipt comes again", testReceiptRetry, nil},
		{"inbound messages come intact", testInbound, nil},
		{"a file can be fetched later", testFetchLater, sends(parley.KindFile)},
		{"inbound messages come in order, and again when refused", testInboundRetry, nil},
		{"what came while the session was closed comes later", testInboundLater, nil},
		{"reactions go both ways", testReactions, sends(parley.KindReaction)},
		{"deletions go both ways", testDeletions, sends(parley.KindDelete)},
		{"edits go both ways", testEdits, sends(parley.KindEdit, parley.KindDelete)},
		{"votes come", testVotes, sends(parley.KindPoll)},
		{"read receipts reach the sender", testSeen, sends(parley.KindSeen)},
		{"what concerns only oneself is confirmed", testOwnOperations, sends(parley.KindStar, parley.KindArchive)},
		{"a chat can be marked as read", testReadChat, sends(parley.KindReadChat)},
		{"messages carry the timer of their chat", testTimer, sends(parley.KindTimer)},
		{"messages carry the timer of their group", testGroupTimer, sends(parley.KindTimer)},
		{"nothing comes of a contact that is blocked", testBlocked, (*fixture).blocks},
		{"typing is shown", testTyping, (*fixture).types},
		{"states are published at open, logout and pairing", testStates, (*fixture).pairs},
		{"a logout outlives the session", testLogoutStays, (*fixture).pairs},
		{"a broken connection comes back", testReconnect, (*fixture).reconnects},
		{"nothing comes after close", testClose, nil},
		{"refusals are permanent", testRefusals, nil},
		{"impossible numbers are refused", testImpossibleNumbers, nil},
		{"without a connection nothing is sent", testDisconnected, nil},
		{"contacts are listed by name", testContacts, (*fixture).hasDirectory},
		{"numbers can be checked", testNumbers, (*fixture).hasDirectory},
		{"groups can be made and read", testGroups, (*fixture).hasGroups},
		{"members of a group get messages", testGroupMessages, (*fixture).hasGroups},
		{"members of a group send receipts", testGroupReceipts, (*fixture).hasGroups},
		{"messages in groups come in order, with their author", testGroupInbound, (*fixture).hasGroups},
		{"reactions, votes and deletions work in groups", testGroupOperations, (*fixture).hasGroups},
		{"members of a group change", testGroupChanges, (*fixture).hasGroups},
		{"groups are administrated", testGroupAdmin, (*fixture).administrates},
		{"a channel can be forgotten, twice", testDeleteChannel, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := open(t)
			s, in := start(t, h)
			f := &fixture{T: t, Harness: h, s: s, in: in, phone: h.Phone(t, 0)}
			f.pairer, _ = s.(network.Pairer)
			f.typist, _ = s.(network.Typist)
			f.directory, _ = s.(network.Directory)
			f.groups, _ = s.(network.Groups)
			f.blocker, _ = s.(network.Blocker)
			f.admin, _ = s.(network.GroupAdmin)
			if test.need != nil && !test.need(f) {
				t.Skip(h.Driver.Info().Title, "cannot do that")
			}
			test.run(f)
		})
	}
}

// fixture is a test with a session that works.
type fixture struct {
	*testing.T
	Harness
	s     network.Session
	in    *inbox
	phone Phone // number 0

	// The session, if it can do that; else nil.
	pairer    network.Pairer
	typist    network.Typist
	directory network.Directory
	groups    network.Groups
	blocker   network.Blocker
	admin     network.GroupAdmin
}

// need is what a network must be able to do for a test.
type need func(*fixture) bool

func sends(kinds ...parley.Kind) need {
	return func(t *fixture) bool {
		return !slices.ContainsFunc(kinds, func(k parley.Kind) bool { return !t.Driver.Info().CanSend(k) })
	}
}

func (t *fixture) pairs() bool         { return t.pairer != nil }
func (t *fixture) types() bool         { return t.typist != nil }
func (t *fixture) blocks() bool        { return t.blocker != nil }
func (t *fixture) administrates() bool { return t.admin != nil }
func (t *fixture) hasDirectory() bool  { return t.directory != nil }
func (t *fixture) hasGroups() bool     { return t.groups != nil }
func (t *fixture) reconnects() bool    { return t.Disconnect != nil }

// testTimeout is how long the suite waits for something to come. Only a program that hangs reaches it.
const testTimeout = 2 * time.Minute

// inbox is a sink that stores its events.
type inbox struct {
	mu      sync.Mutex
	events  []network.Event
	changed chan struct{}                              // closed at the next event
	refuse  func(context.Context, network.Event) error // nil: accepts everything
	inside  map[parley.ContactID]bool                  // chats with an event in delivery
	wrong   error
}

func newInbox() *inbox {
	return &inbox{changed: make(chan struct{}), inside: map[parley.ContactID]bool{}}
}

func (in *inbox) sink(ctx context.Context, e network.Event) error {
	chat := eventChat(e)
	in.mu.Lock()
	if in.inside[chat] {
		in.wrong = fmt.Errorf("two events of one chat at once, the second a %T", e)
	}
	in.inside[chat] = true
	refuse := in.refuse
	in.mu.Unlock()

	var err error
	if refuse != nil {
		err = refuse(ctx, e)
	}

	in.mu.Lock()
	defer in.mu.Unlock()
	in.inside[chat] = false
	if err != nil {
		return err
	}
	in.events = append(in.events, e)
	close(in.changed)
	in.changed = make(chan struct{})
	return nil
}

func (in *inbox) refuseWith(refuse func(context.Context, network.Event) error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.refuse = refuse
}

// await waits until enough returns true for the events so far.
func (in *inbox) await(t testing.TB, what string, enough func([]network.Event) bool) {
	t.Helper()
	timeout := time.NewTimer(testTimeout)
	defer timeout.Stop()
	for {
		in.mu.Lock()
		done, changed, wrong := enough(in.events), in.changed, in.wrong
		events := slices.Clone(in.events)
		in.mu.Unlock()
		if wrong != nil {
			t.Fatal(wrong)
		}
		if done {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			t.Fatalf("%s: not within %s; there came %+v", what, testTimeout, events)
		}
	}
}

func (in *inbox) all() []network.Event {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.events)
}

func of[E network.Event](events []network.Event) []E {
	var list []E
	for _, e := range events {
		if e, ok := e.(E); ok {
			list = append(list, e)
		}
	}
	return list
}

func awaitCount[E network.Event](t testing.TB, in *inbox, count int) []E {
	t.Helper()
	var none E
	in.await(t, fmt.Sprintf("%d of %T", count, none), func(events []network.Event) bool { return len(of[E](events)) >= count })
	return of[E](in.all())
}

// awaitStatus waits until receipts of a status came for all ids.
func (in *inbox) awaitStatus(t testing.TB, status parley.Status, ids ...parley.MessageID) {
	t.Helper()
	in.await(t, fmt.Sprintf("receipts %s", status), func(events []network.Event) bool {
		seen := map[parley.MessageID]bool{}
		for _, r := range of[network.Receipt](events) {
			for _, id := range r.IDs {
				seen[id] = seen[id] || r.Status == status
			}
		}
		return !slices.ContainsFunc(ids, func(id parley.MessageID) bool { return !seen[id] })
	})
}

// awaitState waits for a state after the first skip ones and returns how many there are up to it.
func (in *inbox) awaitState(t testing.TB, status parley.ChannelStatus, skip int) (network.State, int) {
	t.Helper()
	var found network.State
	var at int
	in.await(t, string(status), func(events []network.Event) bool {
		states := of[network.State](events)
		for i := skip; i < len(states); i++ {
			if states[i].Status == status {
				found, at = states[i], i+1
				return true
			}
		}
		return false
	})
	return found, at
}

func eventChat(e network.Event) parley.ContactID {
	switch e := e.(type) {
	case network.Message:
		return network.ToChat(e.From, e.Group)
	case network.Receipt:
		return network.ToChat(e.From, e.Group)
	case network.Reaction:
		return e.Target.Chat
	case network.Deletion:
		return network.ToChat(e.From, e.Group)
	case network.Edit:
		return network.ToChat(e.From, e.Group)
	case network.Vote:
		return network.ToChat(e.From, e.Group)
	case network.GroupChange:
		return e.GroupID.Chat()
	}
	return ""
}

var errNotNow = errors.New("not now")

// start opens the channel's session and waits until it works. It is closed when the test ends.
func start(t testing.TB, h Harness) (network.Session, *inbox) {
	t.Helper()
	in := newInbox()
	s, err := h.Driver.Open(t.Context(), h.Channel, in.sink)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	in.awaitState(t, parley.ChannelWorking, 0)
	return s, in
}

func (t *fixture) outgoing(to parley.ContactID, content parley.Content) *parley.Message {
	return &parley.Message{Channel: "test", Chat: to, ID: t.Driver.NewID(), FromMe: true, Content: content, CreatedAt: time.Now()}
}

func (t *fixture) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// send sends messages in one call and fails the test unless all are confirmed.
func (t *fixture) send(ms ...*parley.Message) {
	t.Helper()
	for i, err := range t.trySend(ms...) {
		if err != nil {
			t.Fatalf("send %s: %v", ms[i].Content.Kind(), err)
		}
	}
}

func (t *fixture) trySend(ms ...*parley.Message) []error {
	t.Helper()
	errs := t.s.Send(t.Context(), ms)
	if len(errs) != len(ms) {
		t.Fatalf("%d answers for %d messages", len(errs), len(ms))
	}
	return errs
}
