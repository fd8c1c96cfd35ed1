package contract_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// TestGroups holds messages in groups, and changes of groups, to the contract.
func TestGroups(t *testing.T) {
	t.Parallel() // much of it is waiting
	e := parleytest.Start(t)
	for name, test := range map[string]func(*testing.T, *parleytest.Env){
		"sending":       sendInGroup,
		"receiving":     receiveInGroup,
		"operations":    operateInGroup,
		"one of two":    oneOfContactAndGroup,
		"members":       changeMembers,
		"login":         loginInGroup,
		"unknown group": useUnknownGroup,
	} {
		t.Run(name, func(t *testing.T) { test(t, within(t, e)) })
	}
}

const ayuNumber, budiNumber = "6281234567890", "6281234567891"

// newGroup makes a group with both phones of a new channel, whose token it returns.
func newGroup(e *parleytest.Env, code string) (group string, token string) {
	token = e.CreateChannel(code)
	made := e.Post("/api/groups/create", `{"name":"Family","participants":["`+ayuNumber+`@c.us","`+budiNumber+`@s.whatsapp.net"]}`,
		parleytest.As(token)).Expect(http.StatusOK)
	return made.Text("data.id"), token
}

func sendInGroup(t *testing.T, e *parleytest.Env) {
	group, token := newGroup(e, "group-send")
	as := parleytest.As(token)
	files := parleytest.Files(t)
	var sent []string
	for endpoint, rest := range map[string]string{
		"text":     `"message":"Halo @` + ayuNumber + `","mentions":["` + ayuNumber + `@c.us","` + ayuNumber + `@s.us"]`,
		"image":    `"file":{"url":"` + files + `/dot.png"}`,
		"file":     `"file":{"url":"` + files + `/notes.txt"}`,
		"video":    `"videoUrl":"` + files + `/film.mp4"`,
		"voice":    `"audioUrl":"` + files + `/hello.ogg"`,
		"sticker":  `"file":{"url":"` + files + `/dot.png"}`,
		"location": `"latitude":"-6.2","longitude":"106.8"`,
		"poll":     `"title":"When?","options":["Now","Later"]`,
	} {
		a := e.Post("/api/send-message/"+endpoint, `{"group_id":"`+group+`",`+rest+`}`, as).Expect(http.StatusOK)
		if want := "true_" + group + "_" + a.Text("data.id"); a.Text("data.message_id") != want {
			t.Errorf("%s: message_id %q, want %q", endpoint, a.Text("data.message_id"), want)
		}
		wantValue(t, a, "data.status", "SENT")
		sent = append(sent, a.Text("data.message_id"))
	}
	for _, number := range []string{ayuNumber, budiNumber} {
		var got []string
		for _, m := range e.PhoneFor(token, number).Messages() {
			got = append(got, m.MessageID)
		}
		if !slices.Equal(got, sent) {
			t.Errorf("%s has %q, want %q", number, got, sent)
		}
	}
	history := e.Get("/api/chat/detail?group_id="+group, as).Expect(http.StatusOK)
	wantValue(t, history, "meta.total", float64(len(sent)))
	wantValue(t, history, "data.0.group_id", group)
	text := rowWhere(history, "type", "text")
	wantValue(t, history, text+".mentions.0", ayuNumber+"@c.us")
	if history.Count(text+".mentions") != 1 {
		t.Errorf("mentions are not unique: %s", history.Body)
	}
	chats := e.Get("/api/chat", as).Expect(http.StatusOK)
	wantValue(t, chats, "data.0.group_id", group)
	e.Post("/api/send-message/typing", `{"group_id":"`+group+`"}`, as).Expect(http.StatusOK)
	archived := e.Post("/api/chat/archive", `{"group_id":"`+group+`"}`, as).Expect(http.StatusOK)
	wantValue(t, archived, "meta.total", float64(len(sent)))
	e.Eventually("the message is read", func() bool {
		e.PhoneFor(token, ayuNumber).Reads()
		a := e.Get("/api/chat/detail?group_id="+group, as)
		return a.Text(rowWhere(a, "type", "text")+".status") == "READ"
	})
}

func receiveInGroup(t *testing.T, e *parleytest.Env) {
	group, token := newGroup(e, "group-receive")
	as := parleytest.As(token)
	var want []string
	for i := range 10 {
		number := []string{ayuNumber, budiNumber}[i%2]
		body := fmt.Sprint("message ", i)
		a := e.PhoneFor(token, number).Sends(`{"type":"text","group_id":"` + group + `","message":"` + body + `"}`)
		if id := a.Text("data.message_id"); !strings.HasPrefix(id, "false_"+group+"_") {
			t.Errorf("message_id %q", id)
		}
		want = append([]string{number + "@c.us " + body}, want...)
	}
	var got []string
	e.Eventually("all came", func() bool {
		a := e.Get("/api/chat/detail?group_id="+group, as).Expect(http.StatusOK)
		got = nil
		for i := range a.Count("data") {
			row := fmt.Sprintf("data.%d.", i)
			got = append(got, a.Text(row+"contact_id")+" "+a.Text(row+"body"))
			wantValue(t, a, row+"group_id", group)
		}
		return len(got) >= len(want)
	})
	if !slices.Equal(got, want) {
		t.Errorf("the history has %q, want %q", got, want)
	}
	direct := e.Get("/api/chat/detail?contact_id="+ayuNumber+"@c.us", as).Expect(http.StatusOK)
	wantValue(t, direct, "meta.total", 0.0)
	e.Post("/api/sandbox/phones/6281299999999/send", `{"type":"text","group_id":"`+group+`","message":"x"}`, as).ExpectFields("group_id")
}

func operateInGroup(t *testing.T, e *parleytest.Env) {
	group, token := newGroup(e, "group-operate")
	as := parleytest.As(token)
	theirs := e.PhoneFor(token, budiNumber).Sends(`{"type":"text","group_id":"` + group + `","message":"hi"}`).Text("data.message_id")
	e.Eventually("it came", func() bool { return e.Get("/api/chat/detail?group_id="+group, as).Number("meta.total") == 1 })
	ours := e.Post("/api/send-message/text", `{"group_id":"`+group+`","message":"oops"}`, as).Expect(http.StatusOK).Text("data.message_id")
	e.Call("PUT", "/api/send-message/reaction", `{"message_id":"`+theirs+`","reaction":"👍"}`, as).Expect(http.StatusOK)
	e.Post("/api/send-message/seen", `{"message_id":"`+theirs+`"}`, as).Expect(http.StatusOK)
	e.Call("PUT", "/api/send-message/star", `{"message_id":"`+theirs+`","starred":true}`, as).Expect(http.StatusOK)
	e.Call("DELETE", "/api/send-message/delete?message_id="+ours, "", as).Expect(http.StatusOK)
	e.Call("DELETE", "/api/send-message/delete?message_id="+theirs, "", as).ExpectFields("message_id")
	a := e.Get("/api/chat/detail?group_id="+group, as).Expect(http.StatusOK)
	wantValue(t, a, "data.0.status", "DELETED")
	wantValue(t, a, "data.1.status", "READ")
	wantValue(t, a, "data.1.reactions.0", "👍")
	e.PhoneFor(token, ayuNumber).Sends(`{"type":"reaction","message_id":"` + theirs + `","reaction":"❤️"}`)
	e.Eventually("the reaction came", func() bool {
		return e.Get("/api/chat/detail?group_id="+group, as).Count("data.1.reactions") == 2
	})
}

func oneOfContactAndGroup(t *testing.T, e *parleytest.Env) {
	group, token := newGroup(e, "group-one")
	as := parleytest.As(token)
	both := `"contact_id":"` + ayuNumber + `@c.us","group_id":"` + group + `"`
	for _, path := range []string{"/api/send-message/text", "/api/send-message/typing", "/api/chat/archive"} {
		e.Post(path, `{`+both+`,"message":"x"}`, as).ExpectFields("group_id")
		e.Post(path, `{"message":"x"}`, as).ExpectFields("contact_id")
		e.Post(path, `{"message":"x","contact_id":null,"group_id":null}`, as).ExpectFields("contact_id")
		e.Post(path, `{"message":"x","contact_id":"`+group+`"}`, as).ExpectFields("contact_id")
		for _, bad := range []string{`1`, `""`, `"x"`, `"` + ayuNumber + `@c.us"`, `"@g.us"`,
			`"` + strings.Repeat("1", 65) + `@g.us"`, `["` + group + `"]`} {
			e.Post(path, `{"message":"x","group_id":`+bad+`}`, as).ExpectFields("group_id")
		}
	}
	e.Get("/api/chat/detail?group_id="+group+"&contact_id="+ayuNumber+"@c.us", as).ExpectFields("group_id")
	e.Get("/api/chat/detail", as).ExpectFields("contact_id")
	e.Post("/api/send-message/text", `{"contact_id":null,"group_id":"`+group+`","message":"x"}`, as).Expect(http.StatusOK)
	for _, bad := range []string{`"x"`, `["x"]`, `[1]`, `[null]`, `["` + group + `"]`, `{}`} {
		e.Post("/api/send-message/text", `{"group_id":"`+group+`","message":"x","mentions":`+bad+`}`, as).Expect(http.StatusUnprocessableEntity)
	}
	e.Post("/api/send-message/pool", `{"group_id":"`+group+`","pools":[{"type":"text","data":["x"]}]}`, parleytest.As(e.Global)).
		ExpectFields("contact_id")
}

func changeMembers(t *testing.T, e *parleytest.Env) {
	group, token := newGroup(e, "group-members")
	as := parleytest.As(token)
	of := `{"group_id":"` + group + `"`
	for range 2 { // twice is no error
		a := e.Post("/api/groups/add", of+`,"participants":["6281200000031@c.us",{"id":"6281200000032@s.whatsapp.net"}]}`, as).
			Expect(http.StatusOK)
		wantValue(t, a, "success", true)
		wantValue(t, a, "data.participants.1.id", "6281200000032@c.us")
	}
	a := e.Post("/api/groups/add", of+`,"participants":["99912000000@c.us","6281200000033@c.us"]}`, as).Expect(http.StatusOK)
	wantValue(t, a, "success", false)
	wantValue(t, a, "data.participants.0.error.code", "not_on_network")
	a = e.Post("/api/groups/remove", of+`,"participants":["6281200000031@c.us","6281200000099@c.us"]}`, as).Expect(http.StatusOK)
	wantValue(t, a, "success", true)
	members := column(e.Get("/api/groups/participants?group_id="+group, as), "id")
	for id, want := range map[string]bool{"6281200000031@c.us": false, "6281200000032@c.us": true, "6281200000033@c.us": true} {
		if slices.Contains(members, id) != want {
			t.Errorf("the members are %q", members)
		}
	}
	if link := e.Get("/api/groups/invite?group_id="+group, as).Expect(http.StatusOK).Text("data.link"); !strings.HasPrefix(link, "https://") {
		t.Errorf("the link is %q", link)
	}
	for _, path := range []string{"/api/groups/add", "/api/groups/remove"} {
		e.Post(path, `{}`, as).ExpectFields("group_id", "participants")
		e.Post(path, of+`,"participants":[]}`, as).ExpectFields("participants")
		e.Post(path, of+`,"participants":["x"]}`, as).ExpectFields("participants.0")
	}
	e.Post("/api/sandbox/phones/"+ayuNumber+"/group", of+`,"action":"leave"}`, as).Expect(http.StatusOK)
	e.Post("/api/sandbox/phones/"+ayuNumber+"/group", of+`,"action":"leave"}`, as).ExpectFields("group_id")
	e.Post("/api/sandbox/phones/"+budiNumber+"/group", of+`,"action":"rename"}`, as).ExpectFields("name")
	total := e.Get("/api/groups", as).Number("meta.total")
	e.Post("/api/groups/leave", of+`}`, as).Expect(http.StatusOK)
	e.Post("/api/groups/leave", of+`}`, as).ExpectFields("group_id")
	if left := e.Get("/api/groups", as).Number("meta.total"); left != total-1 {
		t.Errorf("%d groups, want %d", left, total-1)
	}
	e.Get("/api/chat/detail?group_id="+group, as).Expect(http.StatusOK)
}

// loginInGroup posts the prompt of a login link in a group: it is no login.
func loginInGroup(t *testing.T, e *parleytest.Env) {
	group, token := newGroup(e, "group-login")
	as := parleytest.As(token)
	link := e.Post("/api/otp/link/request", `{"contact_id":"`+ayuNumber+`@c.us","expires":300,"message":{"prompt":"Login ##code##",`+
		`"success":"s","failed":"f","expired":"e"}}`, as).Expect(http.StatusOK)
	code := link.Text("data.code")
	e.PhoneFor(token, ayuNumber).Sends(`{"type":"text","group_id":"` + group + `","message":"Login ` + code + `"}`)
	e.Eventually("it came", func() bool { return e.Get("/api/chat/detail?group_id="+group, as).Number("meta.total") == 1 })
	wantValue(t, e.Get("/api/otp/link/"+link.Text("data.id"), as).Expect(http.StatusOK), "data.status", "PENDING")
	if body := e.Get("/api/chat/detail?group_id="+group, as).Text("data.0.body"); strings.Contains(body, code) {
		t.Errorf("the code is readable: %q", body)
	}
}

func useUnknownGroup(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("group-unknown"))
	other, _ := newGroup(e, "group-other")
	for _, group := range []string{"120363999999999999@g.us", other} {
		a := e.Post("/api/send-message/text", `{"group_id":"`+group+`","message":"x"}`, as).Expect(http.StatusOK)
		wantValue(t, a, "success", false)
		wantValue(t, a, "data.error.code", "refused")
		for _, path := range []string{"add", "remove", "leave"} {
			e.Post("/api/groups/"+path, `{"group_id":"`+group+`","participants":["`+ayuNumber+`@c.us"]}`, as).ExpectFields("group_id")
		}
		e.Get("/api/groups/invite?group_id="+group, as).ExpectFields("group_id")
	}
	e.Post("/api/chat/archive", `{"group_id":"120363888888888888@g.us"}`, as).ExpectFields("group_id")
	wantValue(t, e.Get("/api/chat/detail?group_id=120363888888888888@g.us", as).Expect(http.StatusOK), "meta.total", 0.0)
}
