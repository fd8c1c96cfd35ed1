package sandbox

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/network"
)

func (d *desk) order(f Fault) {
	d.t.Helper()
	must(d.t, d.network.AddFault(d.t.Context(), "test", f))
}

func TestFaultRefuse(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.order(Fault{Fault: FaultRefuse, Times: 2, To: "+" + ayu, Kind: parley.KindText, Reason: "Too rude."})
		if err := d.send(text(budi, "hi"))[0]; err != nil {
			t.Errorf("to another contact: %v", err)
		}
		for range 2 {
			refusal, ok := errors.AsType[*network.Error](d.send(text(ayu, "hi"))[0])
			if !ok || refusal.Class != network.Permanent || refusal.Failure.Code != parley.Refused || refusal.Failure.Message != "Too rude." {
				t.Errorf("got %+v", refusal)
			}
		}
		if err := d.send(text(ayu, "hi"))[0]; err != nil {
			t.Errorf("the third time: %v", err)
		}
		if got, err := d.network.Faults(t.Context(), "test"); err != nil || len(got) != 0 {
			t.Errorf("there wait %+v (%v)", got, err)
		}
	})
}

func TestFaultHitsOnlyItsMessageInABurst(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.order(Fault{Fault: FaultRefuse, To: budi})
		errs := d.send(text(ayu, "1"), text(budi, "2"), text(budi, "3"), text(ayu, "4"))
		if errs[0] != nil || errs[1] == nil || !errors.Is(errs[2], network.ErrHeldBack) || errs[3] != nil {
			t.Errorf("got %v", errs)
		}
	})
}

func TestFaultLeavesOperationsAlone(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.order(Fault{Fault: FaultRefuse})
		archive := &parley.Message{Chat: parley.NewContactID(ayu), ID: network.RandomID("3EB0"), Content: parley.Archive{Archived: true}}
		if err := d.send(archive)[0]; err != nil {
			t.Errorf("an operation: %v", err)
		}
		d.order(Fault{Fault: FaultRefuse, Kind: parley.KindArchive})
		if err := d.send(archive)[0]; network.ToClass(err) != network.Permanent {
			t.Errorf("an operation that was named: %v", err)
		}
	})
}

func TestFaultLate(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.order(Fault{Fault: FaultLate})
		began := time.Now()
		m := text(ayu, "hi")
		if err := d.send(m)[0]; err != nil || time.Since(began) != lateBy {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
		receipt := came[network.Receipt](d)[0]
		if !receipt.At.Before(began.Add(lateBy)) {
			t.Error("the receipt did not overtake the confirmation")
		}
	})
}

func TestFaultTwice(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.order(Fault{Fault: FaultTwice})
		m := text(ayu, "hi")
		if err := d.send(m)[0]; err != nil {
			t.Fatal(err)
		}
		waitFor(t, time.Second)
		if got := d.messages(ayu, Query{}); len(got) != 1 || got[0].Copies != 2 {
			t.Errorf("the phone shows %+v", got)
		}
		if got := d.receipts(parley.Delivered); !slices.Equal(got, []parley.MessageID{m.ID, m.ID}) {
			t.Errorf("receipts for %s, want twice the same", got)
		}
	})
}

func TestFaultDropSocket(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.order(Fault{Fault: FaultDrop})
		m := text(ayu, "hi")
		if err := d.send(m)[0]; network.ToClass(err) != network.Unknown {
			t.Errorf("got %v", err)
		}
		if got := d.messages(ayu, Query{}); len(got) != 1 {
			t.Errorf("the phone shows %+v, want the message", got)
		}
		if err := d.send(text(budi, "hi"))[0]; network.ToClass(err) != network.Disconnected {
			t.Errorf("without a connection: %v", err)
		}
		waitFor(t, reconnectIn)
		if err := d.send(m)[0]; err != nil {
			t.Errorf("again: %v", err)
		}
		if got := d.messages(ayu, Query{}); len(got) != 1 || got[0].Copies != 2 {
			t.Errorf("the phone shows %+v, want it once", got)
		}
		var statuses []parley.ChannelStatus
		for _, state := range came[network.State](d) {
			statuses = append(statuses, state.Status)
		}
		want := []parley.ChannelStatus{parley.ChannelStarting, parley.ChannelWorking, parley.ChannelReconnecting, parley.ChannelWorking}
		if !slices.Equal(statuses, want) {
			t.Errorf("states are %s, want %s", statuses, want)
		}
	})
}

func TestFaultLogOut(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.order(Fault{Fault: FaultLogOut})
		errs := d.send(text(ayu, "hi"), text(budi, "hi"))
		for _, err := range errs {
			if network.ToClass(err) != network.Disconnected {
				t.Errorf("got %v", err)
			}
		}
		if got := d.messages(ayu, Query{}); len(got) != 0 {
			t.Errorf("the phone shows %+v", got)
		}
		waitFor(t, time.Second)
		states := came[network.State](d)
		if last := states[len(states)-1]; last.Status != parley.ChannelLoggedOut || last.Reason == "" {
			t.Errorf("the state is %+v", last)
		}
		must(t, d.session.Pair(t.Context()))
		if err := d.send(text(ayu, "hi"))[0]; err != nil {
			t.Errorf("paired again: %v", err)
		}
	})
}

func TestFaultReachoutLimit(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		d.order(Fault{Fault: FaultReachout})
		refusal, ok := errors.AsType[*network.Error](d.send(text(ayu, "hi"))[0])
		if !ok || refusal.Failure.Code != parley.Restricted || !strings.Contains(refusal.Failure.Message, "463") ||
			!refusal.Failure.Until.After(time.Now()) {
			t.Errorf("got %+v", refusal)
		}
	})
}

func TestAddFaultRefusesNonsense(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		err := d.network.AddFault(t.Context(), "test", Fault{Fault: FaultRefuse, To: "x"})
		wrong, ok := errors.AsType[*parley.Error](err)
		if !ok || len(wrong.Fields) != 1 || wrong.Fields[0].Field != "to" {
			t.Errorf("got %+v", err)
		}
		for range maxFaults {
			d.order(Fault{Fault: FaultRefuse})
		}
		if err := d.network.AddFault(t.Context(), "test", Fault{Fault: FaultRefuse}); parley.ToCode(err) != parley.Invalid {
			t.Errorf("one too many: %v", err)
		}
	})
}
