package api

import (
	"net/http"
	"strings"
	"testing"
)

func TestSendText(t *testing.T) {
	e := newEnv(t)
	r := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": "6281234567890@s.us", "message": "Hello"})
	data := r.want(t, http.StatusOK)
	if data["status"] != "SENT" || data["message"] != "Hello" || r.json["success"] != true {
		t.Errorf("answer: %s", r.text)
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
