package contract_test

import (
	"net/http"
	"regexp"
	"testing"

	"parley/internal/parleytest"
)

// TestContractSpellings holds that other spellings of paths and fields do the same.
func TestContractSpellings(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	shop := e.CreateChannel("shop")
	c := converse(e, shop)
	t.Run("reads", func(t *testing.T) { spelledReads(t, e, c) })
	t.Run("writes", func(t *testing.T) { spelledWrites(t, e, c) })
	t.Run("contact", func(t *testing.T) { spelledContact(t, e, c) })
	t.Run("image", func(t *testing.T) { spelledImage(t, e, c) })
	t.Run("code", func(t *testing.T) { globalCode(t, e) })
}

func spelledReads(t *testing.T, e *parleytest.Env, c conversation) {
	contact := "?contact_id=" + c.phone.Contact()
	for path, spellings := range map[string][]string{
		"/api/chat":                   {"/api/chat/", "/api/chat/all"},
		"/api/chat?limit=1":           {"/api/chat/?limit=1", "/api/chat/all?limit=1"},
		"/api/chat/detail" + contact:  {"/api/chat/details" + contact},
		"/api/contact?limit=2":        {"/api/contact/?limit=2", "/api/contact/all?limit=2"},
		"/api/contact/info" + contact: {"/api/contact/detail" + contact},
		"/api/groups":                 {"/api/groups/all"},
	} {
		want := e.Get(path).Expect(http.StatusOK)
		for _, spelling := range spellings {
			got := e.Get(spelling).Expect(http.StatusOK)
			if withoutTimes(got) != withoutTimes(want) || got.Header.Get("Content-Type") != want.Header.Get("Content-Type") {
				t.Errorf("%s answers %s\n%s answers %s", path, want.Body, spelling, got.Body)
			}
		}
	}
	for _, path := range []string{"/api/chat//", "/api/chat/all/", "/api/chat/x", "/api/contact/x", "/api/groups/"} {
		e.Get(path).ExpectError(http.StatusNotFound, "does not exist")
	}
	group := e.Get("/api/groups").Text("data.0.id")
	want := e.Get("/api/groups/participants?group_id=" + group).Expect(http.StatusOK)
	got := e.Post("/api/groups/participant", toJSON(t, object{"group_id": group})).Expect(http.StatusOK)
	if string(got.Body) != string(want.Body) {
		t.Errorf("members are %s, by the other spelling %s", want.Body, got.Body)
	}
	expectInvalid(e.Post("/api/groups/participant", `{}`), "group_id")
	expectInvalid(e.Post("/api/groups/participant", `{"group_id":"1@g.us"}`), "group_id")
}

var anyTime = regexp.MustCompile(`"20[0-9-]+T[0-9:.]+Z"`)

// withoutTimes is a body without its times: phones that are online were seen just now.
func withoutTimes(a *parleytest.Response) string {
	return anyTime.ReplaceAllString(string(a.Body), `""`)
}

func spelledWrites(t *testing.T, e *parleytest.Env, c conversation) {
	reaction := e.Put("/api/send-message/react", toJSON(t, object{"message_id": c.theirs, "reaction": "👍"})).Expect(http.StatusOK)
	if reaction.Text("data.message") != "👍" {
		t.Errorf("the reaction is %s", reaction.Body)
	}
	expectInvalid(e.Put("/api/send-message/react", `{}`), "message_id", "reaction")
	poll := e.Post("/api/send-message/polling",
		toJSON(t, object{"contact_id": c.phone.Contact(), "title": "When?", "options": []string{"Now", "Later"}})).Expect(http.StatusOK)
	if poll.Text("data.status") != "SENT" || poll.Text("data.message") != "When?" {
		t.Errorf("the poll is %s", poll.Body)
	}
	e.Post("/api/chat/archive", toJSON(t, object{"contact_id": c.phone.Contact()})).Expect(http.StatusOK)
	expectOperation(e.Post("/api/chat/unarchive", toJSON(t, object{"contact_id": c.phone.Contact()})), "UNARCHIVED", "un-archive")
}

func spelledContact(t *testing.T, e *parleytest.Env, c conversation) {
	asJSON := parleytest.With("Accept", "application/json")
	list := e.Get("/api/contact", asJSON).Expect(http.StatusOK)
	if id := list.Text("data.0.contact_id"); id == "" || id != list.Text("data.0.id") {
		t.Errorf("the contacts are %s", list.Body)
	}
	info := e.Get("/api/contact/info?contact_id="+c.phone.Contact(), asJSON).Expect(http.StatusOK)
	if info.Text("data.contact_id") != c.phone.Contact() {
		t.Errorf("the contact is %s", info.Body)
	}
	for _, a := range []*parleytest.Response{info, e.Get("/api/contact/picture?contact_id=" + c.phone.Contact())} {
		if a.Value("data.profile_picture_url") != a.Value("data.picture_url") {
			t.Errorf("the picture is %s", a.Body)
		}
	}
}

func spelledImage(t *testing.T, e *parleytest.Env, c conversation) {
	files := parleytest.Files(t)
	sent := e.Post("/api/send-message/image", toJSON(t, object{"contact_id": c.phone.Contact(), "url": files + "/dot.png", "caption": "Dot"})).
		Expect(http.StatusOK)
	if sent.Text("data.message.image") != files+"/dot.png" || sent.Text("data.message.caption") != "Dot" {
		t.Errorf("the image is %s", sent.Body)
	}
	expectInvalid(e.Post("/api/send-message/image", toJSON(t, object{"contact_id": c.phone.Contact(), "url": "ftp://x/y.png"})), "url")
	expectInvalid(e.Post("/api/send-message/image", toJSON(t, object{"contact_id": c.phone.Contact(), "url": files + "/nothing.png"})), "url")
	expectInvalid(e.Post("/api/send-message/image", toJSON(t, object{"contact_id": c.phone.Contact()})), "file.url")
}

// globalCode holds POST /otp/code/global to what is promised of it.
func globalCode(t *testing.T, e *parleytest.Env) {
	const path = "/api/otp/code/global"
	as := parleytest.As(e.Global)
	e.Post(path, `{}`).ExpectError(http.StatusForbidden, "Global token")
	expectInvalid(e.Post(path, `{}`, as), "contact_id")
	number := newBuyer()
	body := toJSON(t, object{"contact_id": number + "@c.us", "name": "Acme", "length": 5})

	a := e.Post(path, body, as, parleytest.With("Idempotency-Key", "global-code")).Expect(http.StatusOK)
	again := e.Post(path, body, as, parleytest.With("Idempotency-Key", "global-code")).Expect(http.StatusOK)
	if string(a.Body) != string(again.Body) || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s is replayed as %s", a.Body, again.Body)
	}
	channel := a.Text("data.channel")
	token := e.CreateToken("channel", channel)
	phone := e.PhoneFor(token, number)
	e.Eventually("the code arrives", func() bool { return len(phone.Messages()) > 0 })
	arrived := phone.Messages()[0]
	if len(arrived.Codes) != 1 || len(arrived.Codes[0]) != 5 {
		t.Fatalf("the phone shows %q", arrived.Body)
	}
	try := toJSON(t, object{"contact_id": number + "@c.us", "code": arrived.Codes[0]})
	if status := e.Post(codeValidate, try, as, parleytest.On(channel)).Expect(http.StatusOK).Text("data.status"); status != "APPROVED" {
		t.Errorf("the code is %s", status)
	}

	// A pinned channel is used, and must work.
	other := newBuyer()
	pinned := e.Post(path, toJSON(t, object{"contact_id": other + "@c.us"}), as, parleytest.On("shop")).Expect(http.StatusOK)
	if pinned.Text("data.channel") != "shop" {
		t.Errorf("it was sent by %s", pinned.Body)
	}
	// Without the header the channel of the last message is used, so that the limits of the contact hold.
	e.Post(path, toJSON(t, object{"contact_id": other + "@c.us"}), as).ExpectError(http.StatusTooManyRequests, "")
	e.Post("/api/manage/channels/shop/stop", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	stopped := e.Post(path, toJSON(t, object{"contact_id": newBuyer() + "@c.us"}), as, parleytest.On("shop"))
	if stopped.ExpectError(http.StatusBadRequest, "No channel is WORKING").Text("code") != "channel_not_ready" {
		t.Errorf("a stopped channel: %s", stopped.Body)
	}
}
