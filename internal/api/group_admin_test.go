package api

import (
	"fmt"
	"testing"
)

func TestGroupAdmin(t *testing.T) {
	e := newEnv(t)
	made := e.call("POST", "/api/groups/create", e.main, m{"name": "A group", "participants": []string{ayu}}).want(t, 200)
	group, budi := made["id"], "6281234567891@c.us"
	call := func(method, path string, body m) reply {
		t.Helper()
		body["group_id"] = group
		return e.call(method, "/api/groups/"+path, e.main, body)
	}
	for _, path := range []string{"promote", "demote"} {
		r := call("PUT", path, m{"participants": []string{ayu, budi}})
		r.want(t, 200)
		if list := fmt.Sprint(r.json["data"].(m)["participants"]); r.json["success"] != false ||
			list != "[map[id:"+ayu+"] map[error:map[code:refused message:This contact is not in the group.] id:"+budi+"]]" {
			t.Errorf("%s: %s", path, r.text)
		}
	}
	call("PUT", "name", m{"name": "Family"}).want(t, 200)
	call("PUT", "description", m{"description": "Who cooks"}).want(t, 200)
	call("PUT", "settings", m{"only_admins_send": true, "only_admins_edit": true, "join_approval": true}).want(t, 200)
	for _, row := range e.call("GET", "/api/groups", e.main, nil).json["data"].([]any) {
		if g := row.(m); g["id"] == group && (g["name"] != "Family" || g["description"] != "Who cooks" || g["only_admins_send"] != true ||
			g["restricted"] != true || g["actions"].(m)["join_approval"] != true) {
			t.Errorf("the group is %v", g)
		}
	}
	for path, body := range map[string]m{
		"6281234567890/send": {"type": "text", "message": "hi"}, "6281234567890/group": {"action": "rename", "name": "x"},
	} {
		body["group_id"] = group
		if r := e.call("POST", "/api/sandbox/phones/"+path, e.main, body); r.StatusCode != 422 {
			t.Errorf("%s as a plain member: %s", path, r.text)
		}
	}
	e.call("POST", "/api/sandbox/phones/6281234567891/group", e.main, m{"group_id": group, "action": "join"}).want(t, 200)
	asked := e.call("GET", "/api/groups/requests?group_id="+group.(string), e.main, nil)
	if list := asked.json["data"].([]any); len(list) != 1 || list[0].(m)["id"] != budi {
		t.Errorf("there ask %s", asked.text)
	}
	if r := call("POST", "requests", m{"participants": []string{budi}, "approve": true}); r.json["success"] != true {
		t.Errorf("letting in: %s", r.text)
	}
	for path, field := range map[string]string{"settings": "only_admins_send", "name": "name", "description": "description"} {
		if r := call("PUT", path, m{}); r.StatusCode != 422 || r.wrong()[field] == nil {
			t.Errorf("%s without anything: %s", path, r.text)
		}
	}
	link := e.call("GET", "/api/groups/invite?group_id="+group.(string), e.main, nil).want(t, 200)["link"]
	call("POST", "leave", m{}).want(t, 200)
	joined := e.call("POST", "/api/groups/join", e.main, m{"link": link}).want(t, 200)
	if joined["group_id"] != group || joined["waits"] != false {
		t.Errorf("joining: %v", joined)
	}
	if r := e.call("POST", "/api/groups/join", e.main, m{"link": "nowhere"}); r.StatusCode != 422 || r.wrong()["link"] == nil {
		t.Errorf("joining nowhere: %s", r.text)
	}
}
