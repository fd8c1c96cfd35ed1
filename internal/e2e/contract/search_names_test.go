package contract_test

import (
	"net/http"
	"testing"

	"parley/internal/parleytest"
)

// TestSearchOfNames finds contacts and groups by a part of their name, and contacts by their number as people write it. Lists of chats
// name them and have their last message.
func TestSearchOfNames(t *testing.T) {
	e := parleytest.Start(t)
	_, token := newGroup(e, "names")
	as := parleytest.As(token)
	e.Post("/api/sandbox/phones", `{"number":"6281500007401","name":"Siti Rahma"}`, as).Expect(http.StatusOK)
	phone := e.PhoneFor(token, "6281500007401")
	phone.Types("halo")
	phone.Received("halo")
	for query, want := range map[string]int{"siti": 1, "RAHMA": 1, "0815-0000-7401": 1, "%2B62815": 1, "7401": 1, "nobody": 0} {
		a := e.Get("/api/contact?search="+query, as, parleytest.With("Accept", "application/json")).Expect(http.StatusOK)
		if a.Number("meta.total") != want || want == 1 && a.Text("data.0.name") != "Siti Rahma" {
			t.Errorf("%s: %s", query, a.Body)
		}
	}
	all := e.Get("/api/groups", as).Expect(http.StatusOK)
	name := all.Text("data.0.name")
	if found := e.Get("/api/groups?search="+name[1:3], as).Expect(http.StatusOK); found.Text("data.0.id") != all.Text("data.0.id") {
		t.Errorf("the group %s: %s", name, found.Body)
	}
	if none := e.Get("/api/groups?search=zzz", as).Expect(http.StatusOK); none.Number("meta.total") != 0 {
		t.Errorf("no group: %s", none.Body)
	}
	if past := e.Get("/api/groups?offset=5&search="+name[1:3], as).Expect(http.StatusOK); past.Number("meta.total") != 1 {
		t.Errorf("after the last: %s", past.Body)
	}
	chats := e.Get("/api/chat", as).Expect(http.StatusOK)
	if chats.Text("data.0.name") != "Siti Rahma" || chats.Text("data.0.last.body") != "halo" {
		t.Errorf("the chats are %s", chats.Body)
	}
}

// TestLinkTextsOfNull: null for all texts of a login link is the same as no texts. A null beside a text is a missing one.
func TestLinkTextsOfNull(t *testing.T) {
	e := parleytest.Start(t)
	link := func(texts string) *parleytest.Response {
		return e.Post("/api/otp/link/request", `{"contact_id":"6281500007402@c.us","expires":300,"message":`+texts+`}`)
	}
	link(`{"prompt":null,"success":null,"failed":null,"expired":null}`).Expect(http.StatusOK)
	link(`null`).Expect(http.StatusOK)
	link(`{"prompt":"Log me in: ##code##","success":null,"failed":"no","expired":"late"}`).Expect(http.StatusUnprocessableEntity)
	link(`{}`).Expect(http.StatusUnprocessableEntity)
}
