package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/network"
)

// bundles counts the bundles that wait.
func bundles(t *testing.T, n *Network) (count int) {
	t.Helper()
	must(t, n.db.Read(t.Context()).QueryRow(`SELECT count(*) FROM bundles`, nil, &count))
	return count
}

// expectBodies compares what a phone shows, each with its copies if there are several.
func expectBodies(t *testing.T, n *Network, number string, q Query, want ...string) {
	t.Helper()
	page, err := n.Messages(t.Context(), "test", number, q)
	must(t, err)
	var got []string
	for _, m := range page.Messages {
		if m.Copies > 1 {
			m.Body += fmt.Sprint(" x", m.Copies)
		}
		got = append(got, m.Body)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the phone shows %q, want %q", got, want)
	}
}

func takeAll(context.Context, network.Event) error { return nil }

func TestPackedUntilSomebodyLooks(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		first, second := text(ayu, "1"), text(ayu, "2")
		second.ReplyTo = first.ID
		image := &parley.Message{Chat: first.Chat, ID: parley.NewMessageID(), FromMe: true, Content: parley.Image{Caption: "3", Media: parley.Media{Filename: "a.png"}}}
		d.send(first, text(budi, "not for Ayu"), second)
		d.send(image)
		if got := bundles(t, d.network); got != 2 {
			t.Errorf("there are %d bundles, want one of each burst", got)
		}
		waitFor(t, time.Second)
		if got := d.told(parley.Delivered); len(got) != 4 {
			t.Errorf("told of %s, want all", got)
		}
		if got := bundles(t, d.network); got != 2 {
			t.Errorf("receipts left %d bundles", got)
		}
		expectBodies(t, d.network, ayu, Query{}, "1", "2", "3")
		if got := bundles(t, d.network); got != 0 {
			t.Errorf("there are %d bundles after a look", got)
		}
		got := d.messages(ayu, Query{})
		if got[1].ReplyTo != first.ID || got[2].Kind != parley.KindImage || got[2].Media.Filename != "a.png" || !got[0].At.Equal(got[1].At) || got[0].Status != parley.Delivered {
			t.Errorf("the phone shows %+v", got)
		}
	})
}

func TestUnpackedWhenIdle(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		for i := range 3 {
			d.send(text(ayu, fmt.Sprint(i)))
			waitFor(t, unpackIdle-time.Second)
			if got := bundles(t, d.network); got != i+1 {
				t.Errorf("there are %d bundles, want %d: it never rested", got, i+1)
			}
		}
		waitFor(t, time.Second)
		if got := bundles(t, d.network); got != 0 {
			t.Errorf("there are %d bundles after a rest", got)
		}
		d.send(text(ayu, "later"))
		waitFor(t, unpackIdle)
		if got := bundles(t, d.network); got != 0 {
			t.Errorf("there are %d bundles after another rest", got)
		}
		expectBodies(t, d.network, ayu, Query{}, "0", "1", "2", "later")
	})
}

func TestUnpackedUnderLoadWhenTooManyWait(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.send(text(ayu, "1"))
		synctest.Wait()
		if got := bundles(t, d.network); got != 1 {
			t.Errorf("there are %d bundles", got)
		}
		d.network.packing.unpacked.Add(-unpackBeyond) // as if so many waited
		d.send(text(ayu, "2"))
		synctest.Wait()
		if got := bundles(t, d.network); got != 0 {
			t.Errorf("there are %d bundles", got)
		}
		expectBodies(t, d.network, ayu, Query{}, "1", "2")
	})
}

func TestCopiesWhereverTheyLie(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		m := text(ayu, "hi")
		d.send(m, text(ayu, "between"), m)
		d.send(m)
		expectBodies(t, d.network, ayu, Query{}, "hi x3", "between")
		d.send(text(ayu, "after"), m)
		waitFor(t, unpackIdle)
		d.send(m)
		d.order(Fault{Fault: FaultTwice})
		d.send(m)
		expectBodies(t, d.network, ayu, Query{}, "hi x7", "between", "after")
	})
}

// TestKilledBeforeUnpacking opens the record of a network that was never closed, as after a kill.
func TestKilledBeforeUnpacking(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "sandbox.db")
	killed := openNetwork(t, path)
	looked := make(chan struct{})
	s, err := killed.Open(ctx, parley.Channel{Code: "test"}, func(_ context.Context, e network.Event) error {
		if r, ok := e.(network.Receipt); ok && r.From != parley.ContactOf(budi) {
			return parley.ErrNotFound
		} else if ok {
			close(looked)
		}
		return nil
	})
	must(t, err)
	must(t, s.Send(ctx, []*parley.Message{text(budi, "hi")})[0])
	<-looked // the session looks for what there is to tell when it begins
	must(t, killed.unpack(ctx))
	first, second := text(ayu, "first"), text(ayu, "second")
	for _, err := range s.Send(ctx, []*parley.Message{first, text("99900000003", "question"), second}) {
		must(t, err)
	}
	must(t, s.Send(ctx, []*parley.Message{first})[0])
	cursor, err := killed.Cursor(ctx, "test")
	must(t, err)

	n := openNetwork(t, path)
	if got := bundles(t, n); got != 2 {
		t.Errorf("there are %d bundles, want them to wait", got)
	}
	told := make(chan parley.MessageID, 100)
	s, err = n.Open(ctx, parley.Channel{Code: "test"}, func(_ context.Context, e network.Event) error {
		if r, ok := e.(network.Receipt); ok && r.From == parley.ContactOf(ayu) {
			for _, id := range r.IDs {
				told <- id
			}
		}
		return nil
	})
	must(t, err)
	if got := []parley.MessageID{<-told, <-told}; !slices.Equal(got, []parley.MessageID{first.ID, second.ID}) {
		t.Errorf("told of %s, want %s and %s", got, first.ID, second.ID)
	}
	must(t, s.Send(ctx, []*parley.Message{second, text(ayu, "third")})[1])
	expectBodies(t, n, ayu, Query{}, "first x2", "second x2", "third")
	expectBodies(t, n, ayu, Query{After: cursor}, "third")
}

func TestPhoneAnswersACopyOnceAfterRestart(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "sandbox.db")
	const number = "99900000003"
	question := text(number, "question")
	for range 2 {
		n := openNetwork(t, path)
		s, err := n.Open(ctx, parley.Channel{Code: "test"}, takeAll)
		must(t, err)
		must(t, s.Send(ctx, []*parley.Message{question, text(ayu, "packed")})[0])
	}
	n := openNetwork(t, path)
	expectBodies(t, n, number, Query{Both: true}, "question x2", "You wrote: question")
}

// TestPlaceOfACopyIsNotUsedAgain: the place of a copy is in a cursor and in the phone's marks, though no
// message keeps it.
func TestPlaceOfACopyIsNotUsedAgain(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "sandbox.db")
	m := text(ayu, "hi")
	n := openNetwork(t, path)
	s, err := n.Open(ctx, parley.Channel{Code: "test"}, takeAll)
	must(t, err)
	must(t, s.Send(ctx, []*parley.Message{m})[0])
	must(t, s.Send(ctx, []*parley.Message{m})[0])
	cursor, err := n.Cursor(ctx, "test")
	must(t, err)
	expectBodies(t, n, ayu, Query{}, "hi x2")
	must(t, n.Close())

	n = openNetwork(t, path)
	s, err = n.Open(ctx, parley.Channel{Code: "test"}, takeAll)
	must(t, err)
	must(t, s.Send(ctx, []*parley.Message{text(ayu, "later")})[0])
	expectBodies(t, n, ayu, Query{After: cursor}, "later")
}

func TestOrderOfPackedAndOthers(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		const talker = "99900000003"
		say := func(body string) {
			_, err := d.network.SendAs(t.Context(), "test", ayu, Outgoing{Content: parley.Text{Body: body}})
			must(t, err)
		}
		var cursors []Cursor
		mark := func() {
			cursor, err := d.network.Cursor(t.Context(), "test")
			must(t, err)
			cursors = append(cursors, cursor)
		}
		mark()
		d.send(text(ayu, "1"), text(talker, "a"), text(ayu, "2"))
		mark()
		say("3")
		mark()
		d.send(text(talker, "b"), text(ayu, "4"))
		mark()
		say("5")
		mark()
		if got := bundles(t, d.network); got != 2 {
			t.Errorf("there are %d bundles", got)
		}
		for i, want := range [][]string{{"1", "2", "3", "4", "5"}, {"3", "4", "5"}, {"4", "5"}, {"5"}, {}} {
			expectBodies(t, d.network, ayu, Query{After: cursors[i], Both: true}, want...)
		}
		expectBodies(t, d.network, talker, Query{Both: true}, "a", "You wrote: a", "b", "You wrote: b")
		expectBodies(t, d.network, talker, Query{After: cursors[2], Both: true}, "b", "You wrote: b")
	})
}

func TestResetWithBundlesWaiting(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		ctx, n := t.Context(), d.network
		other, err := n.Open(ctx, parley.Channel{Code: "other"}, takeAll)
		must(t, err)
		defer other.Close()
		must(t, other.Send(ctx, []*parley.Message{text(ayu, "theirs")})[0])
		d.send(text(ayu, "old"), text("6285550001", "old"))
		must(t, n.Reset(ctx, "test"))
		expectBodies(t, n, ayu, Query{})
		d.send(text(ayu, "new"))
		expectBodies(t, n, ayu, Query{}, "new")
		page, err := n.Messages(ctx, "other", ayu, Query{})
		if err != nil || len(page.Messages) != 1 {
			t.Errorf("the other channel's phone shows %+v (%v)", page.Messages, err)
		}
		d.send(text(ayu, "forgotten"))
		must(t, d.session.Close())
		must(t, n.Forget(ctx, "test"))
		var orphans int
		must(t, n.unpack(ctx))
		must(t, n.db.Read(t.Context()).QueryRow(`SELECT count(*) FROM messages WHERE phone NOT IN (SELECT id FROM phones)`, nil, &orphans))
		if orphans != 0 {
			t.Errorf("%d messages belong to nobody", orphans)
		}
	})
}

// TestResetDuringABurst: what is sent after it goes to the phone that has the number then.
func TestResetDuringABurst(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.send(text(ayu, "old"), text(budi, "old"))
		d.order(Fault{Fault: FaultLate, To: ayu})
		sent := make(chan []error)
		go func() { sent <- d.send(text(ayu, "late"), text(budi, "new")) }()
		synctest.Wait()
		must(t, d.network.Reset(t.Context(), "test"))
		if errs := <-sent; errs[0] != nil || errs[1] != nil {
			t.Errorf("got %v", errs)
		}
		expectBodies(t, d.network, ayu, Query{})
		expectBodies(t, d.network, budi, Query{}, "new")
	})
}

func TestWhatHappensToAPackedMessage(t *testing.T) {
	operation := func(content parley.Content) *parley.Message {
		return &parley.Message{Chat: parley.ContactOf(ayu), ID: parley.NewMessageID(), FromMe: true, Content: content}
	}
	poll := parley.Poll{Title: "Lunch?", Options: []string{"yes", "no"}}
	for name, test := range map[string]struct {
		do   func(d *desk, m *parley.Message) error
		want func(m Message) bool
	}{
		"the channel deletes it": {
			func(d *desk, m *parley.Message) error { return d.send(operation(parley.Delete{Target: m.Ref()}))[0] },
			func(m Message) bool { return m.Status == parley.Deleted && m.Body == "" },
		},
		"the channel reacts": {
			func(d *desk, m *parley.Message) error {
				return d.send(operation(parley.Reaction{Emoji: "👍", Target: m.Ref()}))[0]
			},
			func(m Message) bool { return m.Reaction == "👍" },
		},
		"the phone reacts": {
			func(d *desk, m *parley.Message) error {
				return d.network.React(d.t.Context(), "test", ayu, m.Ref().String(), "❤")
			},
			func(m Message) bool { return slices.Equal(m.Reactions, []string{"❤"}) },
		},
		"the phone votes": {
			func(d *desk, m *parley.Message) error {
				return d.network.Vote(d.t.Context(), "test", ayu, string(m.ID), []string{"yes"})
			},
			func(m Message) bool { return slices.Equal(m.Votes, []string{"yes"}) },
		},
		"the phone reads it": {
			func(d *desk, m *parley.Message) error {
				return second(d.network.Read(d.t.Context(), "test", ayu, string(m.ID)))
			},
			func(m Message) bool { return m.Status == parley.Read },
		},
		"the phone reads everything": {
			func(d *desk, m *parley.Message) error { return second(d.network.Read(d.t.Context(), "test", ayu, "")) },
			func(m Message) bool { return m.Status == parley.Read },
		},
		"the phone replies": {
			func(d *desk, m *parley.Message) error {
				return second(d.network.SendAs(d.t.Context(), "test", ayu, Outgoing{Content: parley.Text{Body: "yes"}, ReplyTo: string(m.ID)}))
			},
			func(m Message) bool { return m.Copies == 1 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			withDesk(t, func(t *testing.T, d *desk) {
				m := operation(poll)
				d.send(m)
				if got := bundles(t, d.network); got != 1 {
					t.Fatalf("there are %d bundles", got)
				}
				must(t, test.do(d, m))
				if got := d.messages(ayu, Query{}); len(got) != 1 || !test.want(got[0]) {
					t.Errorf("the phone shows %+v", got)
				}
			})
		})
	}
}

func TestOperationsInTheBurstOfTheirMessage(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		m, kept := text(ayu, "mistake"), text(ayu, "kept")
		operation := func(content parley.Content) *parley.Message {
			return &parley.Message{Chat: m.Chat, ID: parley.NewMessageID(), FromMe: true, Content: content}
		}
		errs := d.send(m, operation(parley.Delete{Target: m.Ref()}), kept, operation(parley.Reaction{Emoji: "👍", Target: kept.Ref()}))
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		got := d.messages(ayu, Query{})
		if len(got) != 2 || got[0].Status != parley.Deleted || got[1].Body != "kept" || got[1].Reaction != "👍" {
			t.Errorf("the phone shows %+v", got)
		}
		waitFor(t, time.Second)
		if got := d.told(parley.Delivered); !slices.Equal(got, []parley.MessageID{m.ID, kept.ID}) {
			t.Errorf("told of %s", got)
		}
	})
}

// TestWhatIsNotKeptIsReadFromTheRecord: when the phones keep no more in memory, receipts still come.
func TestWhatIsNotKeptIsReadFromTheRecord(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		w, err := d.network.world(t.Context(), "test")
		must(t, err)
		first, later := text(ayu, "1"), text(ayu, "2")
		d.send(first)
		w.untold.Add(maxUntold)
		d.send(later)
		waitFor(t, time.Second)
		if got := d.told(parley.Delivered); !slices.Equal(got, []parley.MessageID{first.ID, later.ID}) {
			t.Errorf("told of %s, want %s and %s", got, first.ID, later.ID)
		}
		if got := w.untold.Load(); got != maxUntold {
			t.Errorf("the phones keep %d, want nothing", got-maxUntold)
		}
	})
}

// TestForgottenPhoneKeepsNothing: what a session was about to tell when the world was reset counts no more.
func TestForgottenPhoneKeepsNothing(t *testing.T) {
	p := &phone{untold: new(atomic.Int64), traits: traitsOf(ayu)}
	p.arrived(arrivalOf(text(ayu, "hi"), 1, time.Now()))
	taken, _, _ := p.takeFresh()
	p.drop()
	p.putBack(taken.due, false)
	if len(taken.due) != 1 || len(p.fresh) != 0 || p.untold.Load() != 0 {
		t.Errorf("it took %+v and keeps %+v, %d in all", taken.due, p.fresh, p.untold.Load())
	}
}

func TestBurstThatCannotBeRecorded(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.send(text(ayu, "1"), text(budi, "1"))
		must(t, d.network.db.Close())
		archive := &parley.Message{Chat: parley.ContactOf(budi), ID: parley.NewMessageID(), FromMe: true, Content: parley.Archive{}}
		errs := d.send(text(ayu, "2"), text(ayu, "3"), text(budi, "2"), archive)
		for i, held := range []bool{false, true, false, true} {
			if errs[i] == nil || errors.Is(errs[i], network.ErrHeldBack) != held {
				t.Errorf("message %d: %v", i, errs[i])
			}
		}
	})
}

func TestBundleKeepsEverything(t *testing.T) {
	var b bundle
	p := &phone{id: 1 << 40}
	want := []*parley.Message{text(ayu, "hi"), text(ayu, ""), text(ayu, "a text of more than a hundred and twenty-seven bytes, so that its length needs two of them: "+fmt.Sprint(make([]int, 100)))}
	want[1].Content, want[1].ReplyTo = parley.Location{Title: "Toko", Latitude: "-6.2", Longitude: "106.8"}, want[0].ID
	for _, m := range want {
		must(t, b.add(p, m))
	}
	got, err := appendPacked([]packed{{seq: 5}}, 12, 1000, b.body)
	if err != nil || len(got) != 4 {
		t.Fatalf("there are %+v (%v)", got, err)
	}
	for i, m := range got[1:] {
		content, err := parley.DecodeContent(parley.Kind(m.kind), m.text, []byte(m.data))
		must(t, err)
		if m.seq != int64(10+i) || m.at != 1000 || m.phone != p.id || m.id != string(want[i].ID) || m.replyTo != string(want[i].ReplyTo) || content != want[i].Content {
			t.Errorf("message %d is %+v", i, m)
		}
	}
	for cut := range b.body {
		if list, err := appendPacked(nil, 12, 1000, b.body[:cut]); err == nil && len(list) > 2 {
			t.Errorf("%d of %d bytes hold %+v", cut, len(b.body), list)
		}
	}
}
