package contract_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// conversation is a chat in which both sides said something, and one on another channel.
type conversation struct {
	phone     *parleytest.Phone
	number    string
	own       string // full id of what the channel said
	theirs    string // full id of what the phone said
	elsewhere string // full id of what another channel said to the same contact
}

func converse(e *parleytest.Env, otherChannel string) conversation {
	e.T.Helper()
	phone, number := newPhone(e)
	c := conversation{phone: phone, number: number}
	c.own = expectSent(submit(e, "text", object{"contact_id": phone.Contact(), "message": "How are you?"})).Text("data.message_id")
	phone.Types("Fine.")
	c.theirs = phone.Received("Fine.")
	c.elsewhere = expectSent(submit(e, "text", object{"contact_id": phone.Contact(), "message": "Elsewhere"}, parleytest.As(otherChannel))).
		Text("data.message_id")
	return c
}

// TestContractOperations holds what is done to messages to what is promised of it.
func TestContractOperations(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	shop := e.CreateChannel("shop")
	t.Run("reaction", func(t *testing.T) { testReaction(t, e, shop) })
	t.Run("edit", func(t *testing.T) { testEdit(t, e, shop) })
	t.Run("seen", func(t *testing.T) { testSeen(t, e, shop) })
	t.Run("delete", func(t *testing.T) { testDelete(t, e, shop) })
	t.Run("star", func(t *testing.T) { testStar(t, e, shop) })
	t.Run("typing", func(t *testing.T) { testTyping(t, e, "typing") })
	t.Run("stop-typing", func(t *testing.T) { testTyping(t, e, "stop-typing") })
}

// expectOperation demands what is answered to all operations but reactions.
func expectOperation(a *parleytest.Response, status, kind string) {
	a.T.Helper()
	a.Expect(http.StatusOK)
	if got := jsonKeys(a, ""); !slices.Equal(got, []string{"data", "message", "success"}) || !a.Bool("success") || a.Text("message") == "" {
		a.T.Errorf("%s: the envelope is %s", a.Request, a.Body)
	}
	if got := jsonKeys(a, "data"); !slices.Equal(got, []string{"status", "timestamp", "type"}) {
		a.T.Errorf("%s: the data has %v", a.Request, got)
	}
	if a.Value("data.status") != status || a.Value("data.type") != kind {
		a.T.Errorf("%s: the data is %s, want %s and %s", a.Request, a.Body, status, kind)
	}
	expectStamp(a, "data.timestamp")
}

// spellings are the ways to name a message.
func spellings(full string) map[string]string {
	return map[string]string{"full id": full, "bare id": toBareID(full), "other spelling of the contact": strings.Replace(full, "@c.us",
		"@s.us", 1)}
}

// badTargets names messages that are none, or none of this channel.
func badTargets(c conversation) map[string]string {
	flag, rest, _ := strings.Cut(c.own, "_")
	turned := map[string]string{"true": "false_", "false": "true_"}[flag] + rest
	return map[string]string{
		"nothing": "", "no id": "x y", "two parts": "true_3EB0", "an unknown flag": "maybe_" + rest, "no bare id": "true_" + c.phone.Contact() +
			"_", "four parts": c.own + "_1",
		"a group's": "true_120363020000000001@g.us_3EB0", "no contact": "true_x_" + toBareID(c.own), "101 characters": strings.Repeat("A", 101),
		"a hundred characters": strings.Repeat("A", 100),
		"unknown":              "true_" + c.phone.Contact() + "_3EB0000000000000000000", "unknown and bare": "3EB0000000000000000000",
		"the wrong side's": turned,
		"another chat's":   "true_6281234567890@c.us_" + toBareID(c.own), "another channel's": c.elsewhere,
		"another channel's, bare": toBareID(c.elsewhere),
		"with blanks":             " " + c.own, "in small letters": strings.ToLower(c.own),
	}
}

func testReaction(t *testing.T, e *parleytest.Env, shop string) {
	c := converse(e, shop)
	react := endpoint{method: "PUT", path: "reaction", body: object{"message_id": c.theirs, "reaction": "👍"}, fields: []member{
		{name: "message_id", kind: "string", required: true},
		{name: "reaction", kind: "string", required: true},
	}}
	standing := func(e *parleytest.Env, full string) []any {
		e.T.Helper()
		list, _ := findHistory(e, c.phone.Contact(), toBareID(full))["reactions"].([]any)
		return list
	}
	for side, full := range map[string]string{"own": c.own, "theirs": c.theirs} {
		for spelling, id := range spellings(full) {
			part(t, e, side+" by "+spelling, func(e *parleytest.Env) {
				for _, emoji := range []string{"😂", "👍🏽", "👍🏽", ""} { // put, replaced, put twice, taken back
					a := react.call(e, object{"message_id": id, "reaction": emoji}).Expect(http.StatusOK)
					if got := jsonKeys(a, "data"); !slices.Equal(got, []string{"id", "message", "status", "timestamp"}) || !a.Bool("success") {
						e.T.Errorf("the answer is %s", a.Body)
					}
					if a.Value("data.message") != emoji || a.Value("data.status") != "SENT" || !bareIDForm.MatchString(a.Text("data.id")) ||
						a.Text("data.id") == toBareID(full) {
						e.T.Errorf("the data is %s", a.Body)
					}
					expectStamp(a, "data.timestamp")
					want := []any{emoji}
					if emoji == "" {
						want = []any{}
					}
					if got := standing(e, full); !slices.Equal(got, want) {
						e.T.Errorf("after %q there is %v", emoji, got)
					}
				}
			})
		}
	}
	react.expectTypes(t, e)
	for name, id := range badTargets(c) {
		part(t, e, "message_id "+name, func(e *parleytest.Env) {
			expectInvalid(react.call(e, react.body.with("message_id", id)), "message_id")
		})
	}
	for _, emoji := range []string{"❤", "❤️", "👩‍👩‍👧‍👦", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🇮🇩", "1️⃣",
		"☕", "©", "🫶🏿", "🤷🏽‍♀️"} {
		part(t, e, "reaction "+emoji, func(e *parleytest.Env) {
			if a := react.call(e, react.body.with("reaction", emoji)).Expect(http.StatusOK); a.Text("data.message") != emoji {
				e.T.Errorf("the answer is %s", a.Body)
			}
		})
	}
	for _, no := range []string{"👍👍", "👍 ", " 👍", "👍x", "x", "1", "#", "ok", ":)", ":thumbsup:", "é", "字", "🇮",
		"\u200d", "\ufe0f", " ", "<3", "👍\n"} {
		part(t, e, fmt.Sprintf("reaction %q", no), func(e *parleytest.Env) {
			expectInvalid(react.call(e, react.body.with("reaction", no)), "reaction")
		})
	}
	part(t, e, "both fields wrong", func(e *parleytest.Env) {
		expectInvalid(react.call(e, object{"message_id": "a_b", "reaction": "x"}), "message_id", "reaction")
	})
	part(t, e, "a reaction is no message", func(e *parleytest.Env) {
		id := react.call(e, react.body).Expect(http.StatusOK).Text("data.id")
		expectInvalid(react.call(e, react.body.with("message_id", id)), "message_id")
		if a := e.Get("/api/chat/detail?contact_id=" + c.phone.Contact()).Expect(http.StatusOK); a.Count("data") != 2 {
			e.T.Errorf("reactions are in the history: %s", a.Body)
		}
	})
	part(t, e, "refused by the network", func(e *parleytest.Env) {
		failed := expectFailed(submit(e, "text", object{"contact_id": "99912345672@c.us", "message": "x"}), "blocked")
		a := expectFailed(react.call(e, react.body.with("message_id", failed.Text("data.message_id"))), "blocked")
		if got := jsonKeys(a, "data"); !slices.Equal(got, []string{"error", "id", "message", "status", "timestamp"}) {
			e.T.Errorf("the data has %v", got)
		}
	})
	part(t, e, "respond-async", func(e *parleytest.Env) {
		a := expectPending(react.call(e, react.body.with("reaction", "🎉"), parleytest.With("Prefer", "respond-async")))
		if a.Header.Get("Preference-Applied") != "respond-async" {
			e.T.Errorf("headers: %v", a.Header)
		}
		e.Eventually("the reaction is there", func() bool { return slices.Equal(standing(e, c.theirs), []any{"🎉"}) })
	})
}

func testSeen(t *testing.T, e *parleytest.Env, shop string) {
	for _, spelling := range []string{"full id", "bare id", "other spelling of the contact"} {
		part(t, e, spelling, func(e *parleytest.Env) {
			c := converse(e, shop)
			if row := findHistory(e, c.phone.Contact(), toBareID(c.theirs)); row["status"] != "RECEIVED" {
				e.T.Errorf("before it is seen it is %v", row)
			}
			for range 2 {
				expectOperation(e.Post("/api/send-message/seen", toJSON(e.T, object{"message_id": spellings(c.theirs)[spelling]})), "READ", "seen")
				if row := findHistory(e, c.phone.Contact(), toBareID(c.theirs)); row["status"] != "READ" || row["body"] != "Fine." {
					e.T.Errorf("after it was seen it is %v", row)
				}
			}
		})
	}
	c := converse(e, shop)
	see := endpoint{method: "POST", path: "seen", body: object{"message_id": c.theirs}, fields: []member{{name: "message_id", kind: "string",
		required: true}}}
	see.expectTypes(t, e)
	targets := badTargets(c)
	targets["own"], targets["own and bare"] = c.own, toBareID(c.own)
	for name, id := range targets {
		part(t, e, "message_id "+name, func(e *parleytest.Env) { expectInvalid(see.call(e, object{"message_id": id}), "message_id") })
	}
}

func testDelete(t *testing.T, e *parleytest.Env, shop string) {
	byQuery := func(e *parleytest.Env, id string) *parleytest.Response {
		return e.Delete("/api/send-message/delete?message_id=" + url.QueryEscape(id))
	}
	byBody := func(e *parleytest.Env, id string) *parleytest.Response {
		return e.Call("DELETE", "/api/send-message/delete", toJSON(e.T, object{"message_id": id}))
	}
	for way, del := range map[string]func(*parleytest.Env, string) *parleytest.Response{"query": byQuery, "body": byBody} {
		for _, spelling := range []string{"full id", "bare id", "other spelling of the contact"} {
			part(t, e, spelling+" in the "+way, func(e *parleytest.Env) {
				c := converse(e, shop)
				for range 2 {
					expectOperation(del(e, spellings(c.own)[spelling]), "DELETED", "delete")
					if row := findHistory(e, c.phone.Contact(), toBareID(c.own)); row["status"] != "DELETED" || row["body"] != "" {
						e.T.Errorf("history has %v", row)
					}
					if arrived := c.phone.Messages(); len(arrived) != 1 || arrived[0].Status != "DELETED" || arrived[0].Body != "" {
						e.T.Errorf("the phone shows %+v", arrived)
					}
				}
			})
		}
		c := converse(e, shop)
		targets := badTargets(c)
		targets["theirs"], targets["theirs and bare"] = c.theirs, toBareID(c.theirs)
		for name, id := range targets {
			part(t, e, way+" with message_id "+name, func(e *parleytest.Env) { expectInvalid(del(e, id), "message_id") })
		}
		part(t, e, "nothing was deleted by the "+way, func(e *parleytest.Env) {
			if row := findHistory(e, c.phone.Contact(), toBareID(c.theirs)); row["status"] != "RECEIVED" {
				e.T.Errorf("history has %v", row)
			}
		})
	}
	c := converse(e, shop)
	inBody := endpoint{method: "DELETE", path: "delete", body: object{"message_id": c.own}, fields: []member{{name: "message_id",
		kind: "string", required: true}}}
	inBody.expectTypes(t, e)
	part(t, e, "neither", func(e *parleytest.Env) {
		expectInvalid(e.Delete("/api/send-message/delete"), "message_id")
		expectInvalid(e.Delete("/api/send-message/delete?id="+c.own), "message_id")
		expectInvalid(e.Delete("/api/send-message/delete?message_id="), "message_id")
	})
	part(t, e, "both", func(e *parleytest.Env) {
		c := converse(e, shop)
		others := []string{`"3EB0"`, `"` + c.theirs + `"`, `"` + strings.Replace(c.own, "true_", "false_", 1) + `"`, `7`, `{}`, `[]`, `""`}
		for _, other := range others {
			expectInvalid(e.Call("DELETE", "/api/send-message/delete?message_id="+c.own, `{"message_id":`+other+`}`), "message_id")
		}
		for _, same := range [][2]string{{c.own, c.own}, {c.own, toBareID(c.own)}, {toBareID(c.own), c.own}} {
			expectOperation(e.Call("DELETE", "/api/send-message/delete?message_id="+same[0], `{"message_id":"`+same[1]+`"}`), "DELETED", "delete")
		}
		expectInvalid(e.Call("DELETE", "/api/send-message/delete?message_id=3EB0", toJSON(e.T, object{"message_id": c.own})), "message_id")
	})
	part(t, e, "given twice", func(e *parleytest.Env) {
		expectInvalid(e.Delete("/api/send-message/delete?message_id="+c.own+"&message_id="+c.own), "message_id")
	})
	part(t, e, "a body that is no JSON", func(e *parleytest.Env) {
		e.Call("DELETE", "/api/send-message/delete", "message_id="+c.own).Expect(http.StatusBadRequest)
		e.Call("DELETE", "/api/send-message/delete", `{"message_id":"`+c.own+`"}`, parleytest.With("Content-Type", "text/plain")).
			Expect(http.StatusBadRequest)
	})
	part(t, e, "what failed", func(e *parleytest.Env) {
		failed := expectFailed(submit(e, "text", object{"contact_id": "99912345670@c.us", "message": "x"}), "not_on_network")
		expectOperation(byQuery(e, failed.Text("data.message_id")), "DELETED", "delete")
	})
}

func testStar(t *testing.T, e *parleytest.Env, shop string) {
	c := converse(e, shop)
	db := openStore(e)
	star := endpoint{method: "PUT", path: "star", body: object{"message_id": c.own, "starred": true}, fields: []member{
		{name: "message_id", kind: "string", required: true},
		{name: "starred", kind: "boolean", required: true},
	}}
	for side, full := range map[string]string{"own": c.own, "theirs": c.theirs} {
		for spelling, id := range spellings(full) {
			part(t, e, side+" by "+spelling, func(e *parleytest.Env) {
				for _, starred := range []bool{true, true, false, false} {
					expectOperation(star.call(e, object{"message_id": id, "starred": starred}), map[bool]string{true: "STARRED",
						false: "UNSTARRED"}[starred], "star")
					if got := storedMessage(e, db, full).Starred; got != starred {
						e.T.Errorf("starred: %t, want %t", got, starred)
					}
				}
			})
		}
	}
	star.expectTypes(t, e)
	for name, id := range badTargets(c) {
		part(t, e, "message_id "+name, func(e *parleytest.Env) {
			expectInvalid(star.call(e, star.body.with("message_id", id)), "message_id")
		})
	}
	for _, value := range []any{"true", "false", 1, 0} {
		part(t, e, fmt.Sprintf("starred %#v", value), func(e *parleytest.Env) {
			expectInvalid(star.call(e, star.body.with("starred", value)),
				"starred")
		})
	}
}

// testTyping holds both endpoints that answer a plain string. That the phone shows it is not seen
// from here.
func testTyping(t *testing.T, e *parleytest.Env, path string) {
	typing := endpoint{method: "POST", path: path, body: object{"contact_id": "6281234567890@c.us"}, fields: []member{{name: "contact_id",
		kind: "string", required: true}}}
	part(t, e, "answer", func(e *parleytest.Env) {
		for _, contact := range []string{"6281234567890@c.us", "6281234567890@s.us", "99912345670@c.us", "99912345671@c.us"} {
			a := typing.call(e, object{"contact_id": contact}).Expect(http.StatusOK)
			if kind := a.Header.Get("Content-Type"); string(a.Body) != "OK" || !strings.HasPrefix(kind, "text/plain") {
				e.T.Errorf("%q as %s", a.Body, kind)
			}
		}
	})
	typing.expectTypes(t, e)
	typing.expectContacts(t, e)
	part(t, e, "no message of its own", func(e *parleytest.Env) {
		phone, _ := newPhone(e)
		typing.call(e, object{"contact_id": phone.Contact()}).Expect(http.StatusOK)
		expectBodies(e, phone)
		if a := e.Get("/api/chat/detail?contact_id=" + phone.Contact()).Expect(http.StatusOK); a.Count("data") != 0 {
			e.T.Errorf("history has %s", a.Body)
		}
	})
}
