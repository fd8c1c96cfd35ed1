package sandbox

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"parley"
	"parley/internal/network"
)

// TestChangedPhones: what a send knows of phones is no older than the last change of one.
func TestChangedPhones(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		const stranger = "6285550001"
		for range 2 { // the first sends create it and read it
			d.send(text(ayu, "hi"), text(stranger, "hi"))
		}
		for _, blocks := range []bool{true, false} {
			d.patch(stranger, PhonePatch{Blocks: &blocks})
			for range 2 {
				errs := d.session.Send(t.Context(), []*parley.Message{text(ayu, "hi"), text(stranger, "hi")})
				var refusal *network.Error
				if errs[0] != nil || errors.As(errs[1], &refusal) != blocks {
					t.Errorf("with blocks %t the send returned %v", blocks, errs)
				}
			}
		}
		expectBodies(t, d.network, stranger, Query{}, "hi", "hi", "hi", "hi")
	})
}

// TestChangedSenders: so is what is known of a phone that writes.
func TestChangedSenders(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		for i, on := range []bool{true, false, true} {
			d.patch(ayu, PhonePatch{OnNetwork: &on, Timer: &[]int{60, 0, 86_400}[i]})
			for range 2 { // the first one reads it
				m, err := d.network.SendAs(t.Context(), "test", ayu, Outgoing{Content: parley.Text{Body: "hi"}})
				if (err == nil) != on || err == nil && m.Timer != []int{60, 0, 86_400}[i] {
					t.Errorf("with on_network %t, it sent with the timer %d (%v)", on, m.Timer, err)
				}
			}
		}
		must(t, d.network.Reset(t.Context(), "test"))
		for range 2 {
			if m, err := d.network.SendAs(t.Context(), "test", ayu, Outgoing{Content: parley.Text{Body: "hi"}}); err != nil || m.Timer != 0 {
				t.Errorf("after a reset it sent with the timer %d (%v)", m.Timer, err)
			}
		}
	})
}

// TestDeletedPhones: a phone that was deleted because nothing distinguishes it exists again with its next message.
func TestDeletedPhones(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		const stranger = "6285550001"
		for range 3 {
			d.send(text(ayu, "hi"), text(stranger, "hi"))
		}
		later := time.Now().Add(retention + time.Minute)
		must(t, d.network.purge(t.Context(), later))
		must(t, d.network.sweepPhones(t.Context(), later))
		phones, err := d.network.Phones(t.Context(), "test")
		must(t, err)
		if len(phones) != 2 {
			t.Fatalf("the phones are %+v", phones)
		}
		d.send(text(ayu, "again"), text(stranger, "again"))
		expectBodies(t, d.network, stranger, Query{}, "again")
	})
}

func TestCachedPhonesAreBounded(t *testing.T) {
	var c phoneCache
	for i := range 3 * maxCachedPhones {
		c.add([]phone{{Phone: Phone{Number: fmt.Sprint(i)}, id: int64(i), world: 1}})
	}
	if len(c.all) > maxCachedPhones {
		t.Errorf("%d phones are cached", len(c.all))
	}
	last := fmt.Sprint(3*maxCachedPhones - 1)
	if p := c.take(1, []string{last})[last]; p == nil || p.Number != last {
		t.Errorf("got %+v", p)
	}
	if found := c.take(2, []string{last}); len(found) != 0 {
		t.Errorf("another world has %+v", found)
	}
}
