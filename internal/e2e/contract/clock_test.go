package contract_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/parleytest"
)

// TestClockIsOff makes sure that a clock which differs from the network's is told of, and no longer once it is
// put right.
func TestClockIsOff(t *testing.T) {
	e := parleytest.StartOnLoopback(t)
	admin := parleytest.As(e.Admin)
	e.Net.SetClock(20 * time.Second)
	e.WhatsAppChannel("shop")
	link := e.Pair("shop", e.Net.Phone(ownNumber, whatsapptest.Named("Shop")))
	of := func(path, list, field string) (sentence string) {
		a := e.Get(path, admin).Expect(200)
		for i := range a.Count(list) {
			if at := fmt.Sprintf("%s.%d.", list, i); a.Text(at+field) == "clock" {
				sentence = a.Text(at + "sentence")
			}
		}
		return sentence
	}
	need := of("/api/manage/overview", "data.needs", "kind")
	if !strings.HasPrefix(need, "The clock of this machine is ") || !strings.Contains(need, " s behind WhatsApp's.") {
		t.Errorf("what is needed is %q", need)
	}
	if found := of("/api/manage/doctor", "data.findings", "name"); found == "" || !strings.HasPrefix(need, found) {
		t.Errorf("the doctor found %q", found)
	}
	e.Net.SetClock(0)
	link.End(whatsapptest.Cut)
	e.Eventually("it is all right", func() bool { return of("/api/manage/overview", "data.needs", "kind") == "" })
	if found := of("/api/manage/doctor", "data.findings", "name"); found != "agrees with WhatsApp's" {
		t.Errorf("the doctor found %q", found)
	}
}
