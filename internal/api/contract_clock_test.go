package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/internal/network/whatsapp/loopback"
	"parley/internal/parleytest"
)

// TestClockIsOff makes sure that a clock which differs from the network's is told of, and no longer once it is
// put right.
func TestClockIsOff(t *testing.T) {
	e := parleytest.StartOnLoopback(t)
	admin := parleytest.As(e.Admin)
	e.Net.SetClock(20 * time.Second)
	e.WhatsAppChannel("shop")
	link := e.Pair("shop", e.Net.Phone(ownNumber, loopback.Named("Shop")))
	of := func(path, list, kind string) (found map[string]string) {
		a := e.Get(path, admin).Expect(200)
		for i := range a.Count(list) {
			at := fmt.Sprintf("%s.%d.", list, i)
			if name := a.Text(at + "case"); strings.HasPrefix(name, kind) {
				found = map[string]string{"case": name, "sentence": a.Text(at + "sentence"), "ms": fmt.Sprint(a.Number(at + "values.by_ms"))}
			}
		}
		return found
	}
	need := of("/api/manage/overview", "data.needs", "clock.")
	if need["case"] != "clock.behind" || !strings.HasPrefix(need["sentence"], "The clock of this machine is ") || !strings.Contains(need["sentence"], " s behind WhatsApp's.") {
		t.Errorf("what is needed is %q", need)
	}
	if found := of("/api/manage/doctor", "data.findings", "clock."); found["case"] != "clock.behind" || found["ms"] != need["ms"] {
		t.Errorf("the doctor found %q", found)
	}
	e.Net.SetClock(0)
	link.End(loopback.Cut)
	e.Eventually("it is all right", func() bool { return of("/api/manage/overview", "data.needs", "clock.") == nil })
	if found := of("/api/manage/doctor", "data.findings", "clock."); found["case"] != "clock.fine" {
		t.Errorf("the doctor found %q", found)
	}
}
