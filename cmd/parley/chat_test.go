package main

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// runChat runs parley chat with lines from a pipe.
func runChat(t *testing.T, e *parleytest.Env, typed string, args ...string) (code exitCode, out, complaints string) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	var stdout, stderr bytes.Buffer
	c := &cli{in: strings.NewReader(typed), out: &stdout, err: &stderr, getenv: func(string) (string, bool) { return "", false },
		size: terminalSize}
	code = run(t.Context(), c, append([]string{"chat", "--url", e.URL, "--token", e.Token}, args...))
	return code, stdout.String(), stderr.String()
}

// TestChatInGroup talks in a group. What its members write to the channel alone is not shown there, and the other way round.
func TestChatInGroup(t *testing.T) {
	e := parleytest.Start(t)
	const ayu, budi = "6281234567890", "6281234567891"
	group := e.Post("/api/groups/create", `{"name":"Family","participants":["`+ayu+`@c.us","`+budi+`@c.us"]}`).Expect(http.StatusOK).
		Text("data.id")
	say := func(number, fields string) {
		t.Helper()
		e.Post("/api/sandbox/phones/"+number+"/send", `{"type":"text",`+fields+`}`).Expect(http.StatusOK)
	}
	say(ayu, `"message":"dari ayu","group_id":"`+group+`"`)
	say(budi, `"message":"dari budi","group_id":"`+group+`"`)
	say(ayu, `"message":"rahasia"`)
	for query, want := range map[string]int{"group_id=" + group: 2, "contact_id=" + ayu + "@c.us": 1} {
		e.Eventually("the messages are there", func() bool {
			a := e.Get("/api/chat/detail?" + query)
			return a.Status == http.StatusOK && a.Count("data") == want
		})
	}
	code, out, complaints := runChat(t, e, "halo semua\n", group)
	shown := regexp.MustCompile(`^\S+  \+62 812-3456-7890: dari ayu\n\S+  \+62 812-3456-7891: dari budi\n\S+  you: halo semua\n$`)
	if code != exitDone || !shown.MatchString(out) {
		t.Errorf("exit %d, output:\n%s%s", code, out, complaints)
	}
	for _, number := range []string{ayu, budi} {
		messages := e.Phone(number).Messages()
		if n := len(messages); n == 0 || messages[n-1].Body != "halo semua" {
			t.Errorf("%s has %+v", number, messages)
		}
	}
	code, out, _ = runChat(t, e, "", "+"+ayu)
	if code != exitDone || !strings.HasSuffix(out, ": rahasia\n") || strings.Contains(out, "dari") {
		t.Errorf("the chat of the contact: exit %d, %s", code, out)
	}
	for id, want := range map[string]string{"x@g.us": "is not the id of a group", "120363029999999999@g.us": "group"} {
		if code, _, complaints := runChat(t, e, "halo\n", id); code == exitDone || !strings.Contains(complaints, want) {
			t.Errorf("%s: exit %d, %s", id, code, complaints)
		}
	}
}

// TestChatAwaitsGroup waits for a message of a group: what a member writes to the channel alone does not count.
func TestChatAwaitsGroup(t *testing.T) {
	e := parleytest.Start(t)
	const ayu = "6281234567890"
	group := e.Post("/api/groups/create", `{"name":"Family","participants":["`+ayu+`@c.us"]}`).Expect(http.StatusOK).Text("data.id")
	done := make(chan string, 1)
	go func() {
		_, out, complaints := runChat(t, e, "siapa?\n", group, "--wait", "2m")
		done <- out + complaints
	}()
	phone := e.Phone(ayu)
	e.Eventually("the question is there", func() bool { return len(phone.Messages()) == 1 })
	phone.Types("hanya untukmu")
	phone.Received("hanya untukmu")
	phone.Sends(`{"type":"text","message":"saya","group_id":"` + group + `"}`)
	if out := <-done; !strings.Contains(out, "+62 812-3456-7890: saya\n") || strings.Contains(out, "hanya untukmu") {
		t.Errorf("the output:\n%s", out)
	}
}
