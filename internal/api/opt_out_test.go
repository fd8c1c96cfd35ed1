package api

import (
	"strings"
	"testing"
)

// TestOptOuts lets a simulated phone opt out with a word, lists, exports, imports and removes opt-outs.
func TestOptOuts(t *testing.T) {
	e := newEnv(t)
	settings := m{"opt_out": m{"words": []any{" stop "}, "reply": "Bye."}}
	e.call("PATCH", "/api/manage/channels/main", e.admin, m{"settings": settings}).want(t, 200)
	sent := e.call("POST", "/api/sandbox/phones/6281234567890/send", e.main, m{"type": "text", "message": "Stop"}).want(t, 200)
	e.waitMessage(sent["message_id"].(string))
	send := func(want string) {
		t.Helper()
		r := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "news"})
		data := r.want(t, 200)
		code := ""
		if failure, ok := data["error"].(m); ok {
			code = failure["code"].(string)
		}
		if code != want {
			t.Errorf("a message: %s", r.text)
		}
	}
	send("opted_out")
	many := e.call("POST", "/api/contact/opt-outs", e.main, m{"contact_ids": []any{"6281200000001@c.us", ayu}}).want(t, 200)
	if many["changed"] != 1.0 {
		t.Errorf("added %v", many)
	}
	first := e.call("GET", "/api/contact/opt-outs?limit=1", e.main, nil)
	next := first.json["meta"].(m)["next_cursor"].(string)
	second := e.call("GET", "/api/contact/opt-outs?limit=1&cursor="+next, e.main, nil)
	last := second.json["meta"].(m)["next_cursor"]
	if !strings.Contains(first.text, "6281200000001@c.us") || !strings.Contains(second.text, ayu) || last != nil {
		t.Errorf("the pages are %s and %s", first.text, second.text)
	}
	file := e.call("GET", "/api/contact/opt-outs/export", e.main, nil)
	if lines := strings.Split(file.text, "\n"); lines[0] != "contact_id,contact_name,opted_out_at" || !strings.HasPrefix(lines[2], ayu+",") {
		t.Errorf("the export is %q", file.text)
	}
	e.call("DELETE", "/api/contact/opt-outs?contact_id="+ayu, e.main, nil).want(t, 200)
	send("")
	for field, body := range map[string]m{
		"contact_id":               {},
		"contact_ids":              {"contact_ids": []any{ayu}, "contact_id": ayu},
		"contact_ids.0":            {"contact_ids": []any{"nobody"}},
		"settings.opt_out.words":   {"settings": m{"opt_out": m{"words": []any{"Start"}}}},
		"settings.opt_out.words.0": {"settings": m{"opt_out": m{"words": []any{""}}}},
		"settings.opt_out.reply":   {"settings": m{"opt_out": m{"words": []any{"stop"}, "reply": strings.Repeat("x", 5000)}}},
	} {
		method, path, token := "POST", "/api/contact/opt-outs", e.main
		if strings.HasPrefix(field, "settings") {
			method, path, token = "PATCH", "/api/manage/channels/main", e.admin
		}
		if r := e.call(method, path, token, body); r.StatusCode != 422 || r.wrong()[field] == nil {
			t.Errorf("%s: %s", field, r.text)
		}
	}
}
