package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store/storetest"
)

// expectBodies compares what a phone shows, each with its copies if there are several.
func expectBodies(t *testing.T, n *Network, number string, q Query, want ...string) {
	t.Helper()
	page, err := n.Messages(t.Context(), "test", number, q)
	must(t, err)
	compareBodies(t, page.Messages, want)
}

func compareBodies(t *testing.T, list []Message, want []string) {
	t.Helper()
	var got []string
	for _, m := range list {
		if m.Copies > 1 {
			m.Body += fmt.Sprint(" x", m.Copies)
		}
		got = append(got, m.Body)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the phone shows %q, want %q", got, want)
	}
}

// expectChat compares the messages of both sides after a cursor.
func expectChat(t *testing.T, n *Network, number string, after Cursor, want ...string) {
	t.Helper()
	compareBodies(t, chatAfter(t, n, number, after), want)
}

// chatAfter returns the messages of both sides after a cursor, oldest first.
func chatAfter(t *testing.T, n *Network, number string, after Cursor) []Message {
	t.Helper()
	page, err := n.Chat(t.Context(), "test", number, "", "", 1<<20)
	must(t, err)
	slices.Reverse(page.Messages)
	from, err := after.seq("after")
	must(t, err)
	return slices.DeleteFunc(page.Messages, func(m Message) bool {
		seq, err := m.Cursor.seq("cursor")
		must(t, err)
		return seq <= from
	})
}

func takeAll(context.Context, network.Event) error { return nil }

func TestCopiesInAndAcrossBursts(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		m := text(ayu, "hi")
		d.send(m, text(ayu, "between"), m)
		d.send(m)
		expectBodies(t, d.network, ayu, Query{}, "hi x3", "between")
		d.send(text(ayu, "after"), m)
		d.send(m)
		d.order(Fault{Fault: FaultTwice})
		d.send(m)
		expectBodies(t, d.network, ayu, Query{}, "hi x7", "between", "after")
	})
}

func TestPhoneRepliesToACopyOnceAfterRestart(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "sandbox.db")
	const number = "99900000003"
	question := text(number, "question")
	for range 2 {
		n := openNetwork(t, path)
		s, err := n.Open(ctx, parley.Channel{Code: "test"}, takeAll)
		must(t, err)
		must(t, s.Send(ctx, []*parley.Message{question, text(ayu, "another")})[0])
	}
	n := openNetwork(t, path)
	expectChat(t, n, number, "", "question x2", "You wrote: question")
}

// TestPositionOfACopyIsNotUsedAgain: a cursor from before a restart finds what comes after it.
func TestPositionOfACopyIsNotUsedAgain(t *testing.T) {
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

func TestOrderOfBothDirections(t *testing.T) {
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
		for i, want := range [][]string{{"1", "2", "3", "4", "5"}, {"3", "4", "5"}, {"4", "5"}, {"5"}, {}} {
			expectChat(t, d.network, ayu, cursors[i], want...)
		}
		expectChat(t, d.network, talker, "", "a", "You wrote: a", "b", "You wrote: b")
		expectChat(t, d.network, talker, cursors[2], "b", "You wrote: b")
	})
}

func TestResetLeavesOtherChannelsAlone(t *testing.T) {
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
		d.send(text(ayu, "deleted"))
		must(t, d.session.Close())
		must(t, n.DeleteChannel(ctx, "test"))
		var orphans int
		must(t, n.db.Read(t.Context()).QueryRow(`SELECT count(*) FROM messages WHERE phone NOT IN (SELECT id FROM phones)`, nil, &orphans))
		if orphans != 0 {
			t.Errorf("%d messages belong to no phone", orphans)
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

func TestWhatHappensToAMessage(t *testing.T) {
	operation := func(content parley.Content) *parley.Message {
		return &parley.Message{Chat: parley.NewContactID(ayu), ID: network.RandomID("3EB0"), FromMe: true, Content: content}
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
		m, other := text(ayu, "mistake"), text(ayu, "other")
		operation := func(content parley.Content) *parley.Message {
			return &parley.Message{Chat: m.Chat, ID: network.RandomID("3EB0"), FromMe: true, Content: content}
		}
		errs := d.send(m, operation(parley.Delete{Target: m.Ref()}), other, operation(parley.Reaction{Emoji: "👍", Target: other.Ref()}))
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		got := d.messages(ayu, Query{})
		if len(got) != 2 || got[0].Status != parley.Deleted || got[1].Body != "other" || got[1].Reaction != "👍" {
			t.Errorf("the phone shows %+v", got)
		}
		waitFor(t, time.Second)
		if got := d.receipts(parley.Delivered); !slices.Equal(got, []parley.MessageID{m.ID, other.ID}) {
			t.Errorf("receipts for %s", got)
		}
	})
}

func TestBurstThatCannotBeWritten(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.send(text(ayu, "1"), text(budi, "1"))
		must(t, d.network.db.Close())
		archive := &parley.Message{Chat: parley.NewContactID(budi), ID: network.RandomID("3EB0"), FromMe: true, Content: parley.Archive{}}
		errs := d.send(text(ayu, "2"), text(ayu, "3"), text(budi, "2"), archive)
		for i, held := range []bool{false, true, false, true} {
			if errs[i] == nil || errors.Is(errs[i], network.ErrHeldBack) != held {
				t.Errorf("message %d: %v", i, errs[i])
			}
		}
	})
}

// TestStatementCopiesNoPages: see the test with that name of package store.
func TestStatementCopiesNoPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sandbox.db")
	n, err := openWith(t.Context(), path, nil, slog.New(slog.DiscardHandler), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if step := storetest.CopiesPages(t, path, deliverMany.Text(3)); step != "" {
		t.Errorf("SQLite copies pages because of a %s", step)
	}
}
