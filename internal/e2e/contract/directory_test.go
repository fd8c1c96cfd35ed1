package contract_test

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// TestReadingGroupsAndContacts holds what the account knows of others to the contract.
func TestReadingGroupsAndContacts(t *testing.T) {
	t.Parallel() // much of it is waiting
	e := parleytest.Start(t)
	for name, test := range map[string]func(*testing.T, *parleytest.Env){
		"groups":             readGroups,
		"making groups":      makeGroups,
		"bad groups":         makeBadGroups,
		"participants":       readParticipants,
		"contacts":           readContacts,
		"contacts as string": readContactsAsString,
		"contact info":       readContactInfo,
		"picture":            readPicture,
		"numbers":            checkNumbers,
		"not connected":      readWhileConnecting,
	} {
		t.Run(name, func(t *testing.T) { test(t, within(t, e)) })
	}
}

var groupKeys = []string{"id", "name", "created_at", "owner", "restricted", "is_community", "is_owner", "actions", "participant_count",
	"description", "only_admins_send", "disappearing_seconds"}

func wantGroup(t *testing.T, a *parleytest.Response, path, name, owner string, members int) {
	t.Helper()
	wantKeys(t, a, path, groupKeys...)
	wantKeys(t, a, path+".actions", "join_approval", "can_add_member")
	if !regexp.MustCompile(`^[0-9]+@g\.us$`).MatchString(a.Text(path + ".id")) {
		t.Errorf("%s: id %q", a.Request, a.Text(path+".id"))
	}
	wantValue(t, a, path+".name", name)
	wantRecent(t, a, path+".created_at")
	wantValue(t, a, path+".owner", owner)
	for _, flag := range []string{"restricted", "is_community", "is_owner", "actions.join_approval", "actions.can_add_member"} {
		if _, isBool := a.Value(path + "." + flag).(bool); !isBool {
			t.Errorf("%s: %s is no boolean: %s", a.Request, flag, a.Body)
		}
	}
	wantValue(t, a, path+".is_owner", true)
	wantValue(t, a, path+".participant_count", float64(members))
}

func readGroups(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("groups"))
	owner := fmt.Sprintf("%d@c.us", e.Get("/api/channel/health", as).Number("data.phone.number"))
	a := e.Get("/api/groups", as).Expect(http.StatusOK)
	wantKeys(t, a, "", "success", "message", "data", "meta")
	wantValue(t, a, "success", true)
	wantPage(t, a, page{1, 50, 1, 1, false, false})
	wantGroup(t, a, "data.0", "Ayu & Budi", owner, 3)

	for _, name := range []string{"Zaitun", "Mangga", "Apel"} {
		made := e.Post("/api/groups/create", `{"name":"`+name+`","participants":[{"id":"6281234567890@c.us"}]}`, as).Expect(http.StatusOK)
		wantGroup(t, made, "data", name, owner, 2)
	}
	for _, c := range []struct {
		query string
		names []string
		meta  page
	}{
		{"", []string{"Apel", "Ayu & Budi", "Mangga", "Zaitun"}, page{1, 50, 4, 1, false, false}},
		{"?limit=1", []string{"Apel"}, page{1, 1, 4, 4, true, false}},
		{"?limit=3", []string{"Apel", "Ayu & Budi", "Mangga"}, page{1, 3, 4, 2, true, false}},
		{"?limit=3&offset=1", []string{"Ayu & Budi", "Mangga", "Zaitun"}, page{1, 3, 4, 2, false, true}},
		{"?limit=2&offset=2", []string{"Mangga", "Zaitun"}, page{2, 2, 4, 2, false, true}},
		{"?limit=100", []string{"Apel", "Ayu & Budi", "Mangga", "Zaitun"}, page{1, 100, 4, 1, false, false}},
		{"?offset=4", []string{}, page{1, 50, 4, 1, false, true}},
		{"?limit=1&offset=1000", []string{}, page{1001, 1, 4, 4, false, true}},
	} {
		a := e.Get("/api/groups"+c.query, as).Expect(http.StatusOK)
		if got := column(a, "name"); !slices.Equal(got, c.names) {
			t.Errorf("%q: %q, want %q", c.query, got, c.names)
		}
		wantPage(t, a, c.meta)
	}
	refusesBadPages(t, e, "/api/groups", as)
}

func makeGroups(t *testing.T, e *parleytest.Env) {
	owner := fmt.Sprintf("%d@c.us", e.Get("/api/channel/health").Number("data.phone.number"))
	longest := strings.Repeat("🌴", 100) // counted in characters, not in bytes
	for _, c := range []struct {
		name, participants string
		members            int
	}{
		{"x", `[{"id":"6281200000001@c.us"}]`, 2},
		{longest, `[{"id":"6281200000001@c.us"},{"id":"6281200000002@s.us"}]`, 3},
		{"Strings", `["6281200000001@c.us","6281200000002@s.whatsapp.net",{"id":"6281200000002@c.us"},{"id":"6281200000003@s.whatsapp.net"}]`, 4},
		{"Twice", `[{"id":"6281200000001@c.us"},{"id":"6281200000001@s.us"},{"id":"6281200000002@c.us","role":"ignored"}]`, 3},
	} {
		a := e.Post("/api/groups/create", `{"name":"`+c.name+`","participants":`+c.participants+`}`).Expect(http.StatusOK)
		wantKeys(t, a, "", "success", "message", "data")
		wantGroup(t, a, "data", c.name, owner, c.members)
		list := e.Get("/api/groups?limit=100").Expect(http.StatusOK)
		wantGroup(t, list, rowWhere(list, "id", a.Text("data.id")), c.name, owner, c.members)
	}
}

func makeBadGroups(t *testing.T, e *parleytest.Env) {
	before := e.Get("/api/groups").Number("meta.total")
	const good = `"participants":[{"id":"6281200000001@c.us"}]`
	many := strings.TrimSuffix(strings.Repeat(`{"id":"6281200000001@c.us"},`, 1025), ",")
	for _, c := range []struct {
		body   string
		fields []string
	}{
		{`{}`, []string{"name", "participants"}},
		{`{"name":null,"participants":null}`, []string{"name", "participants"}},
		{`{"name":"",` + good + `}`, []string{"name"}},
		{`{"name":1,` + good + `}`, []string{"name"}},
		{`{"name":["x"],` + good + `}`, []string{"name"}},
		{`{"name":"` + strings.Repeat("🌴", 101) + `",` + good + `}`, []string{"name"}},
		{`{"name":"x","participants":[]}`, []string{"participants"}},
		{`{"name":"x","participants":{}}`, []string{"participants"}},
		{`{"name":"x","participants":"6281200000001@c.us"}`, []string{"participants"}},
		{`{"name":"x","participants":[` + many + `]}`, []string{"participants"}},
		{`{"name":"x","participants":["6281200000001@g.us","x@s.whatsapp.net","1@s.whatsapp.net",["6281200000001@c.us"]]}`, []string{
			"participants.0", "participants.1", "participants.2", "participants.3"}},
		{`{"name":"x","participants":[{"id":"6281200000001@c.us"},null,1,{}]}`, []string{"participants.1", "participants.2",
			"participants.3.id"}},
		{`{"name":"","participants":[{"id":1},{"id":"x"},{"id":"120363020000000001@g.us"},{"id":null}]}`,
			[]string{"name", "participants.0.id", "participants.1.id", "participants.2.id", "participants.3.id"}},
	} {
		e.Post("/api/groups/create", c.body).ExpectFields(c.fields...)
	}
	// Somebody who is not on the network cannot join; the network says so.
	e.Post("/api/groups/create", `{"name":"x","participants":[{"id":"99912000000@c.us"}]}`).ExpectError(http.StatusBadRequest,
		"not on the network")
	if after := e.Get("/api/groups").Number("meta.total"); after != before {
		t.Errorf("%d groups, want %d as before", after, before)
	}
}

func readParticipants(t *testing.T, e *parleytest.Env) {
	e.Post("/api/sandbox/phones", `{"number":"6281200000011","name":"Citra"}`).Expect(http.StatusOK)
	made := e.Post("/api/groups/create", `{"name":"Members","participants":[{"id":"6281200000012@c.us"},{"id":"6281200000011@s.us"}]}`).
		Expect(http.StatusOK)
	a := e.Get("/api/groups/participants?group_id=" + made.Text("data.id")).Expect(http.StatusOK)
	wantKeys(t, a, "", "success", "message", "data")
	wantValue(t, a, "success", true)
	ids := column(a, "id")
	if want := []string{made.Text("data.owner"), "6281200000011@c.us", "6281200000012@c.us"}; !slices.Equal(ids, want) {
		t.Errorf("participants %q, want %q", ids, want)
	}
	for i, want := range []struct {
		name  string
		admin bool
	}{{"Demo", true}, {"Citra", false}, {"", false}} {
		row := fmt.Sprintf("data.%d", i)
		wantKeys(t, a, row, "id", "name", "is_admin", "is_owner")
		wantValue(t, a, row+".name", want.name)
		wantValue(t, a, row+".is_admin", want.admin)
		wantValue(t, a, row+".is_owner", want.admin)
	}
	e.Get("/api/groups/participants").ExpectFields("group_id")
	id := made.Text("data.id")
	for _, bad := range []string{"", "x", "6281234567890@c.us", id + "x", "@g.us", strings.TrimSuffix(id, "@g.us"), id + "&group_id=" + id} {
		e.Get("/api/groups/participants?group_id=" + bad).ExpectFields("group_id")
	}
	e.Get("/api/groups/participants?group_id=120363999999999999@g.us").ExpectFields("group_id")
	other := e.CreateChannel("participants")
	e.Get("/api/groups/participants?group_id="+id, parleytest.As(other)).ExpectFields("group_id") // a group of another channel
}

var contactKeys = []string{"id", "contact_id", "name", "number", "username", "is_business", "is_blocked", "last_seen_at"}

func readContacts(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("contacts"))
	for _, phone := range []string{
		`{"number":"6281200000022","name":"Citra"}`, `{"number":"6281200000021","name":"Citra"}`, `{"number":"6281200000023","name":"Agus"}`,
		`{"number":"6281200000024"}`, // without a name it is no contact
	} {
		e.Post("/api/sandbox/phones", phone, as).Expect(http.StatusOK)
	}
	e.Call("PATCH", "/api/sandbox/phones/6281200000023", `{"blocks":true}`, as).Expect(http.StatusOK)
	e.Post("/api/sandbox/phones", `{"number":"99912000020","name":"Nobody"}`, as).Expect(http.StatusOK) // never seen
	all := []string{"6281200000023", "6281234567890", "6281234567891", "6281200000021", "6281200000022", "99912000020"}

	a := e.Get("/api/contact", as).Expect(http.StatusOK)
	wantKeys(t, a, "", "success", "message", "data", "meta")
	wantValue(t, a, "success", true)
	if got := column(a, "number"); !slices.Equal(got, all) {
		t.Errorf("not by name, then number: %q, want %q", got, all)
	}
	for i, number := range all {
		row := fmt.Sprintf("data.%d", i)
		wantKeys(t, a, row, contactKeys...)
		wantValue(t, a, row+".id", number+"@c.us")
		wantValue(t, a, row+".is_business", false)
		wantValue(t, a, row+".is_blocked", number == "6281200000023")
		if number == "99912000020" {
			wantValue(t, a, row+".last_seen_at", nil)
		} else {
			wantRecent(t, a, row+".last_seen_at")
		}
	}
	wantPage(t, a, page{1, 50, 6, 1, false, false})
	for _, c := range []struct {
		query   string
		numbers []string
		meta    page
	}{
		{"?limit=1", all[:1], page{1, 1, 6, 6, true, false}},
		{"?limit=4&offset=1", all[1:5], page{1, 4, 6, 2, true, true}},
		{"?limit=4&offset=2", all[2:], page{1, 4, 6, 2, false, true}},
		{"?limit=100", all, page{1, 100, 6, 1, false, false}},
		{"?offset=6", []string{}, page{1, 50, 6, 1, false, true}},
	} {
		a := e.Get("/api/contact"+c.query, as).Expect(http.StatusOK)
		if got := column(a, "number"); !slices.Equal(got, c.numbers) {
			t.Errorf("%q: %q, want %q", c.query, got, c.numbers)
		}
		wantPage(t, a, c.meta)
	}
	refusesBadPages(t, e, "/api/contact", as)
}

// readContactsAsString checks the two answers that are declared as a string: plain text whose text is
// JSON, unless the caller asks for JSON, which gets the same bytes.
func readContactsAsString(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("strings"))
	for _, number := range []string{"6281234567890", "6281234567891"} { // so that last_seen_at does not change
		e.Call("PATCH", "/api/sandbox/phones/"+number, `{"online":false}`, as).Expect(http.StatusOK)
	}
	for _, path := range []string{"/api/contact", "/api/contact?limit=1", "/api/contact/info?contact_id=6281234567890@c.us"} {
		want := e.Get(path, as).Expect(http.StatusOK)
		for accept, contentType := range map[string]string{
			"":                                     "text/plain; charset=utf-8",
			"*/*":                                  "text/plain; charset=utf-8",
			"text/plain":                           "text/plain; charset=utf-8",
			"text/html, */*;q=0.8":                 "text/plain; charset=utf-8",
			"application/json":                     "application/json",
			"Application/JSON":                     "application/json",
			"application/json; charset=utf-8":      "application/json",
			"application/json, text/plain, */*":    "application/json",
			"text/plain;q=0.5, application/json;q": "application/json",
		} {
			a := e.Get(path, as, parleytest.With("Accept", accept)).Expect(http.StatusOK)
			if got := a.Header.Get("Content-Type"); got != contentType {
				t.Errorf("%s with Accept %q: Content-Type %q, want %q", path, accept, got, contentType)
			}
			if !bytes.Equal(a.Body, want.Body) {
				t.Errorf("%s with Accept %q: other bytes: %s, want %s", path, accept, a.Body, want.Body)
			}
			if a.Header.Get("Vary") != "Accept" {
				t.Errorf("%s: Vary %q", path, a.Header.Get("Vary"))
			}
		}
	}
	// Errors are no strings.
	for _, path := range []string{"/api/contact?limit=0", "/api/contact/info"} {
		if got := e.Get(path, as).Expect(http.StatusUnprocessableEntity).Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: Content-Type %q of an error", path, got)
		}
	}
}

func readContactInfo(t *testing.T, e *parleytest.Env) {
	e.Post("/api/sandbox/phones", `{"number":"6281200000031","name":"Dewi"}`).Expect(http.StatusOK)
	keys := append(slices.Clone(contactKeys), "about", "picture_url", "profile_picture_url", "on_network", "disappearing_seconds")
	phones := e.Get("/api/sandbox/phones").Count("data")
	for _, c := range []struct {
		asked, id, name string
		onNetwork       bool
	}{
		{"6281200000031@c.us", "6281200000031@c.us", "Dewi", true},
		{"6281200000031@s.us", "6281200000031@c.us", "Dewi", true},
		{"6281200000032@c.us", "6281200000032@c.us", "", true}, // no message was exchanged with it, and it is no contact
		{"99912000030@c.us", "99912000030@c.us", "", false},
		{shortestContact, shortestContact, "", false}, // cannot exist
		{longestContact, strings.Repeat("1", 45) + "@c.us", "", false},
	} {
		a := e.Get("/api/contact/info?contact_id=" + c.asked).Expect(http.StatusOK)
		wantKeys(t, a, "", "success", "message", "data")
		wantKeys(t, a, "data", keys...)
		wantValue(t, a, "success", true)
		wantValue(t, a, "data.id", c.id)
		wantValue(t, a, "data.number", strings.TrimSuffix(c.id, "@c.us"))
		wantValue(t, a, "data.name", c.name)
		wantValue(t, a, "data.on_network", c.onNetwork)
		wantValue(t, a, "data.picture_url", nil)
		wantValue(t, a, "data.is_blocked", false)
		if about := a.Text("data.about"); (about != "") != c.onNetwork {
			t.Errorf("about %s: %q", c.asked, about)
		}
	}
	if got := e.Get("/api/sandbox/phones").Count("data"); got != phones {
		t.Errorf("asking made %d phones of %d", got, phones)
	}
	e.Call("PATCH", "/api/sandbox/phones/6281200000031", `{"blocks":true,"on_network":false}`).Expect(http.StatusOK)
	a := e.Get("/api/contact/info?contact_id=6281200000031@c.us").Expect(http.StatusOK)
	wantValue(t, a, "data.is_blocked", true)
	wantValue(t, a, "data.on_network", false)
	refusesBadContacts(t, e, "/api/contact/info")
}

func readPicture(t *testing.T, e *parleytest.Env) {
	for _, id := range []string{"6281234567890@c.us", "6281234567890@s.us", "6281200000041@c.us"} {
		a := e.Get("/api/contact/picture?contact_id=" + id).Expect(http.StatusOK)
		wantKeys(t, a, "", "success", "message", "data")
		wantKeys(t, a, "data", "picture_url", "profile_picture_url")
		wantValue(t, a, "data.picture_url", nil) // no phone of the sandbox has one
		if got := a.Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("Content-Type %q", got)
		}
	}
	refusesBadContacts(t, e, "/api/contact/picture")
}

func checkNumbers(t *testing.T, e *parleytest.Env) {
	const path = "/api/channel/check-phone-number?phone="
	for spelling, id := range map[string]any{
		"6281234567890":                 "6281234567890@c.us",
		"%2B62%20812-3456-7890":         "6281234567890@c.us",
		"+62+812+3456+7890":             "6281234567890@c.us", // blanks
		"(62)%20812.3456.7890":          "6281234567890@c.us",
		"0062%20812%203456%207890":      "6281234567890@c.us",
		"6281234567890@c.us":            "6281234567890@c.us",
		"6281234567890@s.us":            "6281234567890@c.us",
		"tel:%2B6281234567890":          "6281234567890@c.us",
		"1234567":                       "1234567@c.us",
		strings.Repeat("1", 15):         strings.Repeat("1", 15) + "@c.us",
		"12345":                         nil, // cannot exist
		strings.Repeat("1", 16):         nil,
		strings.Repeat("1", 45):         nil,
		"081234567890":                  nil,
		"0812-3456":                     nil,
		"99912000040":                   nil, // not on the network
		"%2B999-1200-0040":              nil,
		"6281200000051&colour=%23ff000": "6281200000051@c.us",
	} {
		a := e.Get(path + spelling).Expect(http.StatusOK)
		wantKeys(t, a, "", "success", "message", "data")
		wantKeys(t, a, "data", "is_exists", "contact_id")
		wantValue(t, a, "success", true)
		wantValue(t, a, "data.is_exists", id != nil)
		wantValue(t, a, "data.contact_id", id)
	}
	e.Get("/api/channel/check-phone-number").ExpectFields("phone")
	for _, bad := range []string{"", "%20", "abc", "+", "1234", strings.Repeat("1", 46), strings.Repeat("-", 96) + "12345",
		"6281234567890&phone=6281234567890",
		"%EF%BC%96%EF%BC%922811555", "62%20815%205500031%20ext%205", "6281100000001@g.us", "628155500031@lid", "62x8155500031"} {
		e.Get(path + bad).ExpectFields("phone")
	}
	if strings.Contains(string(e.Get("/api/sandbox/phones").Body), "6281200000051") {
		t.Error("asking made a phone")
	}
}

// readWhileConnecting checks that a channel whose connection is being made again asks to wait.
func readWhileConnecting(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("wobbly"))
	e.Post("/api/sandbox/faults", `{"fault":"drop_socket"}`, as).Expect(http.StatusOK)
	e.Post("/api/send-message/text", `{"contact_id":"6281200000061@c.us","message":"Hello"}`, as, parleytest.With("Prefer", "respond-async")).
		Expect(http.StatusOK)
	e.Eventually("it reconnects", func() bool { return e.Get("/api/channel/health", as).Text("data.status") == "RECONNECTING" })
	a := e.Get("/api/groups", as)
	if a.Status == http.StatusOK { // it was faster than us: then it works
		wantValue(t, e.Get("/api/channel/health", as), "data.status", "WORKING")
	} else if a.ExpectError(http.StatusServiceUnavailable, "connecting").Header.Get("Retry-After") == "" {
		t.Error("the answer does not say when to try again")
	}
	e.Eventually("it works again", func() bool { return e.Get("/api/groups", as).Status == http.StatusOK })
}
