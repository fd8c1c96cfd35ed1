package contract_test

import (
	"net/http"
	"testing"

	"parley/internal/parleytest"
)

// TestEverythingWrongIsTold sends requests in which one field is wrong in itself and another names something that
// is not there: both are told at once.
func TestEverythingWrongIsTold(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	const number = "6281400000050"
	contact := `"contact_id":"` + number + `@c.us"`
	e.Post(phones, `{"number":"`+number+`"}`).Expect(http.StatusOK)
	admin := parleytest.As(e.Admin)
	global := parleytest.As(e.Global)

	reply := `{"type":"text","data":{"message":"x","reply_to":"nope"}}`
	pool := "/api/send-message/pool"
	e.Post(pool, `{`+contact+`,"pools":[`+reply+`,{"type":"text","data":{"message":""}}]}`, global).ExpectFields("pools.0.data.reply_to", "pools.1.data.message")
	e.Post(pool, `{"contact_id":"x","pools":[`+reply+`]}`, global).ExpectFields("contact_id", "pools.0.data.reply_to")
	e.Post(pool, `{`+contact+`,"pools":[{"type":"text","data":{"message":"x","linkPreview":"zz","reply_to":"nope"}}]}`, global).
		ExpectFields("pools.0.data.linkPreview", "pools.0.data.reply_to")

	e.Get(phones+"/"+number+"/messages?limit=0&after=zzz").ExpectFields("after", "limit")
	e.Get(phones+"/"+number+"/messages?wait=31&after=zzz").ExpectFields("after", "wait")
	e.Get(phones+"/abc/messages?limit=0").ExpectFields("limit", "number")
	e.Post(phones+"/x/send", `{"type":"text"}`).ExpectFields("message", "number")
	e.Call("PATCH", phones+"/x", `{"name":5}`).ExpectFields("name", "number")
	e.Post(phones+"/x/send", `{"type":"text","message":"halo"}`).ExpectFields("number")

	send := phones + "/" + number + "/send"
	e.Post(send, `{"type":"reaction","message_id":"nope","reaction":"aa"}`).ExpectFields("message_id", "reaction")
	e.Post(send, `{"type":"text","message":"","reply_to":"nope"}`).ExpectFields("message", "reply_to")
	e.Post(send, `{"type":"vote","message_id":"nope","options":5}`).ExpectFields("message_id", "options")

	e.Post("/api/manage/tokens", `{"kind":"channel","channel":"nope","name":5,"expires_at":"x"}`, admin).ExpectFields("channel", "expires_at", "name")
	e.Post(channels, `{"code":"demo","network":"zz","name":5}`, admin).ExpectFields("code", "name", "network")

	e.Get("/api/groups", func(r *http.Request) { r.Header["X-Channel"] = []string{"demo", "other"} }).Expect(http.StatusBadRequest)
}
