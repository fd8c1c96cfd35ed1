package parley_test

import (
	"encoding/json"
	"testing"
	"time"

	"parley"
)

func TestCareful(t *testing.T) {
	at := func(text string) time.Time {
		moment, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return moment
	}
	c := parley.Careful{Zone: "Asia/Jakarta", Night: &parley.Night{From: "22:00", To: "07:30"}} // seven hours ahead
	if day, next := c.Day(at("2026-11-15T16:59:00Z")); day != "2026-11-15" || !next.Equal(at("2026-11-15T17:00:00Z")) {
		t.Errorf("the day is %s, until %s", day, next)
	}
	for now, want := range map[string]string{
		"2026-11-15T14:59:59Z": "",
		"2026-11-15T15:00:00Z": "2026-11-16T00:30:00Z", // in the evening
		"2026-11-15T20:00:00Z": "2026-11-16T00:30:00Z", // after midnight
		"2026-11-16T00:30:00Z": "",
	} {
		if got := c.NightEnd(at(now)); want == "" && !got.IsZero() || want != "" && !got.Equal(at(want)) {
			t.Errorf("at %s the night ends at %s, want %s", now, got, want)
		}
	}
	for days, want := range map[int]int{-1: 20, 0: 20, 6: 20, 7: 50, 14: 100, 21: 250, 1000: 250} {
		careful := parley.Careful{NewNumber: true}
		if firsts, messages := careful.Caps(time.Duration(days) * 24 * time.Hour); firsts != want || messages != 1000 {
			t.Errorf("after %d days %d first messages, %d in all", days, firsts, messages)
		}
	}
	for _, c := range []parley.Careful{{NewNumber: true}, {FirstContacts: 3, Night: &parley.Night{From: "22:00", To: "07:00"}, Typing: true}} {
		var back parley.Careful
		data, err := json.Marshal(&c)
		if err == nil {
			err = json.Unmarshal(data, &back)
		}
		if again, _ := json.Marshal(back); err != nil || string(again) != string(data) {
			t.Errorf("%s is read as %s, %v", data, again, err)
		}
	}
}
