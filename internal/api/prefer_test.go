package api

import (
	"net/http"
	"testing"
	"time"
)

func TestPreferences(t *testing.T) {
	for header, want := range map[string]preference{
		"":                             {10 * time.Second, ""},
		"respond-async":                {0, "respond-async"},
		"Respond-Async":                {0, "respond-async"},
		"wait=0":                       {0, "wait=0"},
		"wait=5":                       {5 * time.Second, "wait=5"},
		`wait="5"`:                     {5 * time.Second, "wait=5"},
		" wait = 5 ":                   {5 * time.Second, "wait=5"},
		"wait=30":                      {30 * time.Second, "wait=30"},
		"wait=31":                      {30 * time.Second, "wait=30"},
		"wait=4000000000":              {30 * time.Second, "wait=30"},
		"wait=99999999999999":          {10 * time.Second, ""},
		"wait=-1":                      {10 * time.Second, ""},
		"wait=x":                       {10 * time.Second, ""},
		"wait":                         {10 * time.Second, ""},
		"wait=1, wait=9":               {time.Second, "wait=1"},
		"respond-async, wait=3":        {3 * time.Second, "respond-async, wait=3"},
		"handling=lenient; x=1,wait=2": {2 * time.Second, "wait=2"},
		"return=minimal":               {10 * time.Second, ""},
	} {
		if got := preferenceOf(http.Header{"Prefer": {header}}); got != want {
			t.Errorf("%q: %+v, want %+v", header, got, want)
		}
	}
	if got := preferenceOf(http.Header{"Prefer": {"respond-async", "wait=3"}}); got.applied != "respond-async, wait=3" {
		t.Errorf("two headers: %+v", got)
	}
}

func TestPreferOnSends(t *testing.T) {
	e := newEnv(t)
	// The network of one channel confirms late, so that nothing is confirmed at once.
	e.call("POST", "/api/sandbox/faults", e.main, m{"fault": "late", "times": 2}).want(t, 200)
	for _, c := range []struct{ token, prefer, status string }{
		{e.main, "respond-async", "PENDING"},
		{e.main, "wait=0", "PENDING"},
		{e.second, "wait=20", "SENT"},
		{e.second, "", "SENT"},
	} {
		r := e.call("POST", "/api/send-message/text", c.token, m{"contact_id": ayu, "message": "x"}, "Prefer", c.prefer)
		if data := r.want(t, 200); data["status"] != c.status || r.Header.Get("Preference-Applied") != c.prefer || r.json["success"] != true {
			t.Errorf("%q: %q, %s", c.prefer, r.Header.Get("Preference-Applied"), r.text)
		}
	}
}
