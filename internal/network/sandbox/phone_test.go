package sandbox

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/network"
)

// waitFor lets the bubble's time pass.
func waitFor(t *testing.T, d time.Duration) {
	t.Helper()
	time.Sleep(d) // in the bubble: no real time passes
	synctest.Wait()
}

func TestMagicNumbers(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		for _, test := range []struct {
			number string
			want   parley.FailureCode
			status parley.Status
		}{
			{"99900000000", parley.NotOnNetwork, 0},
			{"99900000001", "", parley.Sent},
			{"99900000002", parley.Blocked, 0},
			{"99900000003", "", parley.Read},
			{"99900000004", "", parley.Delivered},
			{"99900000005", "", parley.Delivered},
			{"6281200000002", "", parley.Delivered}, // no ordinary number is magic
		} {
			err := d.send(text(test.number, "hi"))[0]
			waitFor(t, time.Second)
			if test.want != "" {
				if refusal, ok := err.(*network.Error); !ok || refusal.Failure.Code != test.want {
					t.Errorf("%s: %v, want %s", test.number, err, test.want)
				}
				continue
			}
			if got := d.messages(test.number, Query{}); err != nil || len(got) != 1 || got[0].Status != test.status {
				t.Errorf("%s: %+v (%v), want %s", test.number, got, err, test.status)
			}
		}
		replies := came[network.Message](d)
		if len(replies) != 1 || replies[0].From != "99900000003@c.us" || replies[0].Content.Text() != "You wrote: hi" {
			t.Errorf("the replies are %+v", replies)
		}
	})
}

func TestPhoneRepliesToACopyOnce(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		m := text("99900000003", "hi")
		d.send(m)
		d.send(m)
		waitFor(t, time.Second)
		if got := came[network.Message](d); len(got) != 1 {
			t.Errorf("the replies are %+v", got)
		}
	})
}

func TestNeverReadsEvenWhenOpened(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.send(text("99900000004", "hi"))
		read, err := d.network.Read(t.Context(), "test", "99900000004", "")
		waitFor(t, time.Second)
		if err != nil || read != 0 || len(d.receipts(parley.Read)) != 0 {
			t.Errorf("it read %d (%v)", read, err)
		}
	})
}

func TestDelayedDelivery(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.patch(ayu, PhonePatch{Delay: new(5 * time.Second)})
		m := text(ayu, "hi")
		d.send(m)
		waitFor(t, 4900*time.Millisecond)
		if got := d.receipts(parley.Delivered); len(got) != 0 {
			t.Errorf("%s was delivered early", got)
		}
		waitFor(t, 200*time.Millisecond)
		if got := d.receipts(parley.Delivered); !slices.Equal(got, []parley.MessageID{m.ID}) {
			t.Errorf("delivered are %s, want %s", got, m.ID)
		}
	})
}

func TestReadsAtOnce(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		before, after := text(ayu, "before"), text(ayu, "after")
		d.send(before)
		waitFor(t, time.Second)
		d.patch(ayu, PhonePatch{Reads: new(AtOnce)})
		waitFor(t, time.Second)
		d.send(after)
		waitFor(t, time.Second)
		if got := d.receipts(parley.Read); !slices.Equal(got, []parley.MessageID{before.ID, after.ID}) {
			t.Errorf("read are %s", got)
		}
	})
}

func TestReadOne(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		first, second := text(ayu, "first"), text(ayu, "second")
		d.send(first, second)
		for want := range []int{1, 0} {
			if read, err := d.network.Read(t.Context(), "test", ayu, second.Ref().String()); err != nil || read != 1-want {
				t.Errorf("it read %d (%v)", read, err)
			}
		}
		waitFor(t, time.Second)
		if got := d.receipts(parley.Read); !slices.Equal(got, []parley.MessageID{second.ID}) {
			t.Errorf("read are %s", got)
		}
		if read, err := d.network.Read(t.Context(), "test", ayu, ""); err != nil || read != 1 {
			t.Errorf("then it read %d (%v), want the other one", read, err)
		}
	})
}

func TestReceiptsAreCollected(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		const count = 1200
		var ms []*parley.Message
		for i := range count {
			ms = append(ms, text(ayu, fmt.Sprint(i)))
		}
		d.send(ms...)
		waitFor(t, time.Second)
		if got := len(d.receipts(parley.Delivered)); got != count {
			t.Errorf("%d receipts came, want %d", got, count)
		}
		if got := len(came[network.Receipt](d)); got > 4 {
			t.Errorf("it took %d receipts for %d messages", got, count)
		}
	})
}

func TestBacklogOfAnOfflinePhone(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.patch(ayu, PhonePatch{Online: new(false)})
		const count = 2*maxReceipt + 1
		var want []parley.MessageID
		for i := range count {
			m := text(ayu, fmt.Sprint(i))
			d.send(m)
			want = append(want, m.ID)
		}
		waitFor(t, time.Second)
		if got := d.messages(ayu, Query{Limit: 1}); got[0].Status != parley.Sent {
			t.Errorf("a phone that is offline has %s", got[0].Status)
		}
		if read, err := d.network.Read(t.Context(), "test", ayu, ""); err != nil || read != 0 {
			t.Errorf("a phone that is offline read %d (%v)", read, err)
		}
		d.patch(ayu, PhonePatch{Online: new(true)})
		waitFor(t, time.Second)
		if got := d.receipts(parley.Delivered); !slices.Equal(got, want) {
			t.Errorf("%d receipts came, want %d in order", len(got), count)
		}
	})
}

// TestDeliveredAfterItWasSent sends a message while the receipts of earlier ones take long. It is reported with them, but its
// receipt has a later time than the message.
func TestDeliveredAfterItWasSent(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.patch(ayu, PhonePatch{Online: new(false)})
		for chunk := range slices.Chunk(texts(ayu, maxReceipt), 50) {
			d.send(chunk...)
		}
		var late *parley.Message
		var sent time.Time
		d.refuseWith(func(e network.Event) error {
			if r, ok := e.(network.Receipt); ok && r.Status == parley.Delivered && late == nil {
				time.Sleep(time.Minute)
				late, sent = text(ayu, "late"), time.Now()
				return d.send(late)[0]
			}
			return nil
		})
		d.patch(ayu, PhonePatch{Online: new(true)})
		waitFor(t, time.Hour)
		list := came[network.Receipt](d)
		i := slices.IndexFunc(list, func(r network.Receipt) bool { return r.Status == parley.Delivered && slices.Contains(r.IDs, late.ID) })
		if i < 0 {
			t.Fatalf("%s was not reported", late.ID)
		}
		if list[i].At.Before(sent.Truncate(time.Millisecond)) {
			t.Errorf("sent at %s, delivered at %s", sent, list[i].At)
		}
		if list[0].At.After(sent.Add(-time.Minute)) { // so it was one round
			t.Errorf("the first ones were delivered at %s", list[0].At)
		}
	})
}

func TestOfflinePhoneSendsLater(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.patch(ayu, PhonePatch{Online: new(false)})
		_, err := d.network.SendAs(t.Context(), "test", ayu, Outgoing{Content: parley.Text{Body: "hi"}})
		must(t, err)
		waitFor(t, time.Minute)
		if got := came[network.Message](d); len(got) != 0 {
			t.Errorf("there came %+v", got)
		}
		d.patch(ayu, PhonePatch{Online: new(true)})
		waitFor(t, time.Second)
		if got := came[network.Message](d); len(got) != 1 {
			t.Errorf("there came %+v", got)
		}
	})
}

func TestLIDIsMappedToTheNumber(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.patch(ayu, PhonePatch{LIDOnly: new(true)})
		_, err := d.network.SendAs(t.Context(), "test", ayu, Outgoing{Content: parley.Text{Body: "hi"}})
		must(t, err)
		waitFor(t, time.Second)
		if got := came[network.Message](d); len(got) != 1 || got[0].From != parley.NewContactID(ayu) {
			t.Errorf("there came %+v", got)
		}
	})
}

func TestUnknownReceiptIsGivenUp(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		unknown, known := text(ayu, "unknown"), text(ayu, "known")
		d.refuseWith(func(e network.Event) error {
			if r, ok := e.(network.Receipt); ok && slices.Contains(r.IDs, unknown.ID) {
				return parley.ErrNotFound
			}
			return nil
		})
		d.send(unknown, known)
		waitFor(t, 10*time.Second)
		if got := d.receipts(parley.Delivered); len(got) != 0 {
			t.Errorf("%s was reported out of turn", got)
		}
		waitFor(t, time.Minute)
		if got := d.receipts(parley.Delivered); !slices.Equal(got, []parley.MessageID{known.ID}) {
			t.Errorf("receipts for %s, want only the known one", got)
		}
	})
}

func TestInboundIsGivenForEver(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.refuseWith(func(e network.Event) error {
			if _, ok := e.(network.Message); ok {
				return parley.ErrNotFound
			}
			return nil
		})
		_, err := d.network.SendAs(t.Context(), "test", ayu, Outgoing{Content: parley.Text{Body: "hi"}})
		must(t, err)
		waitFor(t, 5*time.Minute)
		d.refuseWith(nil)
		waitFor(t, lastRetry)
		if got := came[network.Message](d); len(got) != 1 {
			t.Errorf("there came %+v", got)
		}
	})
}

func TestTypingFades(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		typing := func() bool {
			p, err := d.network.Phone(t.Context(), "test", ayu)
			must(t, err)
			return !p.TypingUntil.IsZero()
		}
		must(t, d.session.Typing(t.Context(), parley.NewContactID(ayu), true))
		if !typing() {
			t.Error("typing is not shown")
		}
		d.send(text(ayu, "hi"))
		if typing() {
			t.Error("typing is shown after the message")
		}
		must(t, d.session.Typing(t.Context(), parley.NewContactID(ayu), true))
		waitFor(t, typingFor)
		if typing() {
			t.Error("typing does not fade")
		}
	})
}

func TestCreatePhone(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		ctx := t.Context()
		for _, want := range []string{"6281290000001", "6281290000002"} {
			p, err := d.network.CreatePhone(ctx, "test", "", "")
			if err != nil || p.Number != want || !p.Online || !p.OnNetwork || p.Reads != WhenOpen {
				t.Errorf("the new phone is %+v (%v), want %s", p, err, want)
			}
		}
		p, err := d.network.CreatePhone(ctx, "test", "+62 855-1", "Citra")
		if err != nil || p.Number != "628551" || p.Name != "Citra" {
			t.Errorf("the new phone is %+v (%v)", p, err)
		}
		contacts, total, err := d.session.Contacts(ctx, parley.Page{Limit: 10})
		if err != nil || total != 3 || contacts[2].Name != "Citra" {
			t.Errorf("contacts are %+v (%v)", contacts, err)
		}
		for _, number := range []string{"12", "no number", "6281234567890@c.us"} {
			if _, err := d.network.CreatePhone(ctx, "test", number, ""); parley.ToCode(err) != parley.Invalid {
				t.Errorf("%q: %v", number, err)
			}
		}
	})
}

func TestActsThatMakeNoSense(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		ctx, n := t.Context(), d.network
		poll := &parley.Message{Chat: parley.NewContactID(ayu), ID: network.RandomID("3EB0"), FromMe: true,
			Content: parley.Poll{Title: "?", Options: []string{"a", "b"}}}
		hello := text(ayu, "hi")
		d.send(poll, hello)
		theirs, err := n.SendAs(ctx, "test", ayu, Outgoing{Content: parley.Text{Body: "hi"}})
		must(t, err)
		for what, err := range map[string]error{
			"a vote for no option":        n.Vote(ctx, "test", ayu, string(poll.ID), []string{"c"}),
			"two votes in a single poll":  n.Vote(ctx, "test", ayu, string(poll.ID), []string{"a", "b"}),
			"a vote on a text":            n.Vote(ctx, "test", ayu, string(hello.ID), []string{"a"}),
			"a reaction to nothing":       n.React(ctx, "test", ayu, "3EB0FFFF", "👍"),
			"a reaction in another chat":  n.React(ctx, "test", budi, hello.Ref().String(), "👍"),
			"deleting another's":          n.Delete(ctx, "test", ayu, hello.Ref().String()),
			"reading one's own":           second(n.Read(ctx, "test", ayu, theirs.ID.String())),
			"a reply to nothing":          second(n.SendAs(ctx, "test", ayu, Outgoing{Content: parley.Text{Body: "hi"}, ReplyTo: "3EB0FFFF"})),
			"a picture without a picture": second(n.SendAs(ctx, "test", ayu, Outgoing{Content: parley.Image{}})),
		} {
			if parley.ToCode(err) != parley.Invalid {
				t.Errorf("%s: %v", what, err)
			}
		}
		d.patch(ayu, PhonePatch{OnNetwork: new(false)})
		if _, err := n.SendAs(ctx, "test", ayu, Outgoing{Content: parley.Text{Body: "hi"}}); parley.ToCode(err) != parley.BadRequest {
			t.Errorf("a phone that is not on the network: %v", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestFilesAreDescribed(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		const file = "a file"
		for _, content := range []parley.Content{parley.Image{}, parley.Voice{}, parley.Video{}, parley.File{}} {
			m, err := d.network.SendAs(t.Context(), "test", ayu, Outgoing{Content: withFile(content, file)})
			must(t, err)
			if m.Kind != content.Kind() || m.Media == nil || m.Media.Size != int64(len(file)) || len(m.Media.SHA256) != 32 ||
				m.Status != parley.Received {
				t.Errorf("the %s is %+v", content.Kind(), m)
			}
		}
		waitFor(t, time.Second)
		if got := came[network.Message](d); len(got) != 4 || got[0].File == nil {
			t.Errorf("there came %d", len(got))
		}
	})
}
