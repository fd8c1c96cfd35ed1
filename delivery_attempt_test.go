package parley_test

import (
	"strings"
	"testing"
	"time"

	"parley"
)

// TestEarlierAttemptsAreBounded has one delivery tried far more often than its schedule says, as that of
// a webhook that is down for days.
func TestEarlierAttemptsAreBounded(t *testing.T) {
	var d parley.Delivery
	for n := range 100 {
		d.SaveAttempt()
		d.TriedAt, d.Code, d.Response = time.UnixMilli(int64(n+1)), 500, strings.Repeat("x", 511)+"é and more"
	}
	all := d.History()
	if len(all) != 21 || all[0].Number != 1 || all[1].Number != 81 || all[20].Number != 100 {
		t.Errorf("%d attempts: %+v", len(all), all)
	}
	for i, a := range all {
		if !a.At.Equal(time.UnixMilli(int64(a.Number))) {
			t.Errorf("attempt %d was made at %v", a.Number, a.At)
		}
		if isLast := i == len(all)-1; isLast && a.Response != d.Response || !isLast && a.Response != strings.Repeat("x", 511) {
			t.Errorf("of the answer to attempt %d %d bytes are left", a.Number, len(a.Response))
		}
	}
}

// TestHistoryOfAnOldDelivery begins where its attempts were not kept yet.
func TestHistoryOfAnOldDelivery(t *testing.T) {
	d := parley.Delivery{Attempts: 3, TriedAt: time.UnixMilli(1), Code: 503, Problem: "http_status: busy"}
	d.SaveAttempt()
	if !d.TriedAt.IsZero() || d.Code != 0 || d.Problem != "" {
		t.Errorf("the last attempt is still there: %+v", d)
	}
	d.Attempts, d.TriedAt, d.Code = 4, time.UnixMilli(2), 200
	if all := d.History(); len(all) != 2 || all[0].Number != 3 || all[1].Number != 4 || all[0].Code != 503 || all[1].Code != 200 {
		t.Errorf("%+v", all)
	}
	if none := (&parley.Delivery{}).History(); len(none) != 0 {
		t.Errorf("of one that was not tried: %+v", none)
	}
}
