package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

func testEdit(t *testing.T, e *parleytest.Env, shop string) {
	c := converse(e, shop)
	edit := endpoint{method: "PUT", path: "edit", body: object{"message_id": c.own, "message": "And you?"}, fields: []member{
		{name: "message_id", kind: "string", required: true},
		{name: "message", kind: "string", required: true},
	}}
	for spelling, id := range spellings(c.own) {
		part(t, e, spelling, func(e *parleytest.Env) {
			for _, text := range []string{"Are you well?", "And " + spelling, strings.Repeat("é", 4096), "x"} {
				expectOperation(edit.call(e, object{"message_id": id, "message": text}), "EDITED", "edit")
				row := findHistory(e, c.phone.Contact(), toBareID(c.own))
				if row["body"] != text || row["edited_at"] == nil || row["status"] == "DELETED" {
					e.T.Errorf("history has %v", row)
				}
				if arrived := c.phone.Messages(); len(arrived) != 1 || arrived[0].Body != text || arrived[0].EditedAt == "" {
					e.T.Errorf("the phone shows %+v", arrived)
				}
			}
		})
	}
	edit.expectTypes(t, e)
	targets := badTargets(c)
	targets["theirs"], targets["theirs and bare"] = c.theirs, toBareID(c.theirs)
	for name, id := range targets {
		part(t, e, "message_id "+name, func(e *parleytest.Env) {
			expectInvalid(edit.call(e, edit.body.with("message_id", id)), "message_id")
		})
	}
	for name, text := range map[string]string{"nothing": "", "4097 characters": strings.Repeat("x", 4097)} {
		part(t, e, "message "+name, func(e *parleytest.Env) { expectInvalid(edit.call(e, edit.body.with("message", text)), "message") })
	}
	part(t, e, "what cannot be edited", func(e *parleytest.Env) { testNotEditable(e, edit) })
	part(t, e, "the old text is not found", func(e *parleytest.Env) {
		c := converse(e, shop)
		expectOperation(edit.call(e, object{"message_id": c.own, "message": "Findable words"}), "EDITED", "edit")
		for text, want := range map[string]int{"How are you": 0, "findable": 1} {
			found := e.Get("/api/messages?text=" + strings.ReplaceAll(text, " ", "+") + "&contact=" + c.number).Expect(http.StatusOK)
			if found.Count("data") != want {
				e.T.Errorf("%q finds %s", text, found.Body)
			}
		}
		detail := e.Get("/api/messages/" + c.own).Expect(http.StatusOK)
		last := detail.Count("data.timeline") - 1
		if detail.Value("data.edited_at") == nil || !detail.Bool(fmt.Sprintf("data.timeline.%d.edited", last)) {
			e.T.Errorf("the message is %s", detail.Body)
		}
	})
	part(t, e, "by the phone", func(e *parleytest.Env) { testPhoneEdits(e, converse(e, shop)) })
	part(t, e, "after 15 minutes", func(e *parleytest.Env) {
		token := e.CreateChannel("late")
		as := parleytest.As(token)
		own := expectSent(submit(e, "text", object{"contact_id": "6281234567890@c.us", "message": "x"}, as)).Text("data.message_id")
		advance := func(seconds int) {
			e.Post("/api/sandbox/clock", toJSON(e.T, object{"advance": seconds}), as).Expect(http.StatusOK)
		}
		findHistory(e, "6281234567890@c.us", toBareID(own), as) // the confirmation is stored
		advance(14 * 60)
		edit.call(e, object{"message_id": own, "message": "y"}, as).Expect(http.StatusOK)
		advance(61)
		late := expectInvalid(edit.call(e, object{"message_id": own, "message": "z"}, as), "message_id")
		expectSentence(late, "message_id", "15 minutes")
	})
}

// testNotEditable edits messages that are no texts, or not any more.
func testNotEditable(e *parleytest.Env, edit endpoint) {
	phone, _ := newPhone(e)
	to := phone.Contact()
	reject := func(id, part string) {
		e.T.Helper()
		expectSentence(expectInvalid(edit.call(e, object{"message_id": id, "message": "x"}), "message_id"), "message_id", part)
	}
	place := expectSent(submit(e, "location", object{"contact_id": to, "latitude": "1", "longitude": "2"}))
	reject(place.Text("data.message_id"), "not a text")
	file := object{"url": parleytest.Files(e.T) + "/dot.png"}
	image := expectSent(submit(e, "image", object{"contact_id": to, "caption": "c", "file": file}))
	reject(image.Text("data.message_id"), "not a text")
	deleted := expectSent(submit(e, "text", object{"contact_id": to, "message": "x"})).Text("data.message_id")
	e.Delete("/api/send-message/delete?message_id=" + deleted).Expect(http.StatusOK)
	reject(deleted, "deleted")
	failed := expectFailed(submit(e, "text", object{"contact_id": "99912345670@c.us", "message": "x"}), "not_on_network")
	reject(failed.Text("data.message_id"), "not sent")
	e.Post("/api/otp/code/request", toJSON(e.T, object{"contact_id": to})).Expect(http.StatusOK)
	reject(phone.Expect("code").MessageID, "one-time code")
}

// testPhoneEdits has the phone change its text.
func testPhoneEdits(e *parleytest.Env, c conversation) {
	send := func(body object) *parleytest.Response {
		return e.Post("/api/sandbox/phones/"+c.number+"/send", toJSON(e.T, body))
	}
	change := object{"type": "edit", "message_id": c.theirs, "message": "Not so well."}
	send(change).Expect(http.StatusOK)
	if got := c.phone.Received("Not so well."); got != c.theirs {
		e.T.Errorf("the edited message is %s, want %s", got, c.theirs)
	}
	if row := findHistory(e, c.phone.Contact(), toBareID(c.theirs)); row["edited_at"] == nil || row["status"] != "RECEIVED" {
		e.T.Errorf("history has %v", row)
	}
	shown := e.Get("/api/sandbox/phones/" + c.number + "/chat").Expect(http.StatusOK)
	if row := rowWhere(shown, "message_id", c.theirs); shown.Value(row+".body") != "Not so well." || shown.Value(row+".edited_at") == nil {
		e.T.Errorf("the phone shows %s", shown.Body)
	}
	expectInvalid(send(change.with("message", "")), "message")
	expectInvalid(send(change.with("message", strings.Repeat("x", 4097))), "message")
	expectInvalid(send(change.with("message_id", c.own)), "message_id")
	expectInvalid(send(change.with("message_id", "3EB0000000000000000000")), "message_id")
	send(object{"type": "delete", "message_id": c.theirs}).Expect(http.StatusOK)
	expectInvalid(send(change), "message_id")
}
