package api

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestSendText(t *testing.T) {
	e := newEnv(t)
	r := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": "6281234567890@s.us", "message": "Hello"})
	data := r.want(t, http.StatusOK)
	if data["status"] != "SENT" || data["message"] != "Hello" || r.json["success"] != true {
		t.Errorf("response: %s", r.text)
	}
	full, _ := data["message_id"].(string)
	if full != "true_"+ayu+"_"+data["id"].(string) {
		t.Errorf("message_id %q, id %q", full, data["id"])
	}
	reply := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "Again", "reply_to": data["id"]})
	reply.want(t, http.StatusOK)
	history := e.call("GET", "/api/chat/detail?contact_id="+ayu, e.main, nil)
	history.want(t, http.StatusOK)
	if rows := history.json["data"].([]any); len(rows) != 2 || rows[1].(m)["body"] != "Hello" || rows[0].(m)["reply_to"] != data["id"] {
		t.Errorf("history: %s", history.text)
	}
}

func TestReplyToMustExist(t *testing.T) {
	e := newEnv(t)
	data := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "Hello"}).want(t, 200)
	for name, reply := range map[string]any{
		"full id":     data["message_id"],
		"unknown":     "3EB0000000000000000000",
		"a number":    7,
		"empty":       "",
		"too long":    strings.Repeat("A", 101),
		"wrong signs": "3EB0!",
	} {
		r := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "x", "reply_to": reply})
		if r.StatusCode != 422 || r.wrong()["reply_to"] == nil {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.text)
		}
		if name == "full id" && !strings.Contains(r.text, "send "+data["id"].(string)) {
			t.Errorf("the bare id is not named: %s", r.text)
		}
	}
	r := e.call("POST", "/api/send-message/text", e.second, m{"contact_id": ayu, "message": "x", "reply_to": data["id"]})
	if r.StatusCode != 422 {
		t.Errorf("a message of another channel: %d %s", r.StatusCode, r.text)
	}
}

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
		if got := readPreference(http.Header{"Prefer": {header}}); got != want {
			t.Errorf("%q: %+v, want %+v", header, got, want)
		}
	}
	if got := readPreference(http.Header{"Prefer": {"respond-async", "wait=3"}}); got.applied != "respond-async, wait=3" {
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
