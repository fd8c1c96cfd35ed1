package api

import (
	"testing"
	"time"
)

// TestCarefulSettings sets the caps of a channel, sends, and reads what left today.
func TestCarefulSettings(t *testing.T) {
	e := newEnv(t)
	set := func(careful any) reply {
		return e.call("PATCH", "/api/manage/channels/main", e.admin, m{"settings": m{"careful": careful}})
	}
	if data := set("new_number").want(t, 200); data["settings"].(m)["careful"] != "new_number" || data["paired_at"] == nil ||
		data["today"].(m)["first_contacts_cap"] != 20.0 || data["today"].(m)["messages_cap"] != 1000.0 {
		t.Errorf("the preset: %v", data)
	}
	set(m{"first_contacts_per_day": 1, "zone": "Asia/Jakarta", "night": m{"from": "03:00", "to": "03:00"}}).want(t, 200)
	contacts := []string{"6281200000001@c.us", "6281200000002@c.us"}
	for _, contact := range contacts {
		e.call("POST", "/api/send-message/text", e.main, m{"contact_id": contact, "message": "hello"}, "Prefer", "respond-async")
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var rows []m
		sent, waits := 0, 0 // of two chats either may be the first
		for _, contact := range contacts {
			row := e.call("GET", "/api/chat/detail?contact_id="+contact, e.main, nil).json["data"].([]any)[0].(m)
			rows = append(rows, row)
			if waiting, ok := row["waiting"].(m); ok && waiting["reason"] == "quota" && waiting["until"] != nil {
				waits++
			}
			if row["status"] != "PENDING" {
				sent++
			}
		}
		if sent == 1 && waits == 1 {
			break
		}
		if sent == 2 || time.Now().After(deadline) {
			t.Fatalf("they are %v", rows)
		}
	}
	today := e.call("GET", "/api/manage/channels/main", e.admin, nil).want(t, 200)["today"].(m)
	if today["first_contacts"] != 1.0 || today["messages"] != 1.0 || today["messages_cap"] != nil {
		t.Errorf("today: %v", today)
	}
	if data := set("off").want(t, 200); data["today"] != nil || data["settings"].(m)["careful"] != nil {
		t.Errorf("off: %v", data)
	}
	for field, careful := range map[string]any{
		"settings.careful":                        "fast",
		"settings.careful.zone":                   m{"zone": "Mars/Base"},
		"settings.careful.night.to":               m{"night": m{"from": "22:00", "to": "7"}},
		"settings.careful.first_contacts_per_day": m{"first_contacts_per_day": 0},
		"settings.careful.messages_per_day":       m{"messages_per_day": "many"},
	} {
		if r := set(careful); r.StatusCode != 422 || r.wrong()[field] == nil {
			t.Errorf("%s: %s", field, r.text)
		}
	}
}
