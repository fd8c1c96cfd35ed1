package contract_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

const foundMessages = "/api/manage/messages"

// foundKeys are the members of every message that is found; what a message does not have is missing.
var foundKeys = append([]string{"channel", "updated_at"}, recordKeys...)

// TestFoundMessages checks the search for messages and the details of one.
func TestFoundMessages(t *testing.T) {
	e := parleytest.Start(t)
	for name, test := range map[string]func(*testing.T, *parleytest.Env, parleytest.Option){
		"filters":      findFiltered,
		"pages":        findPages,
		"bad filters":  findBad,
		"detail":       findDetail,
		"polls":        findPoll,
		"files":        findFiles,
		"codes hidden": findCodes,
		"no text kept": findTextless,
		"not there":    findNothing,
	} {
		t.Run(name, func(t *testing.T) { test(t, within(t, e), parleytest.As(e.Admin)) })
	}
}

func findFiltered(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	const number = "6281500001001"
	token := e.CreateChannel("filters")
	as := parleytest.As(token)
	phone := e.PhoneFor(token, number)
	phone.Becomes(`{"name":"Sari"}`)
	sent := e.Post("/api/send-message/text", `{"contact_id":"`+number+`@c.us","message":"Selamat PAGI"}`, as, parleytest.With("X-Request-Id",
		"req-filters")).Expect(200)
	refused := e.Post("/api/send-message/text", `{"contact_id":"99900000000@c.us","message":"nobody"}`, as).Expect(200)
	phone.Types("makasih")
	phone.Received("makasih")

	find := func(query string) *parleytest.Response {
		t.Helper()
		return e.Get(foundMessages+"?channel=filters&"+query, admin).Expect(200)
	}
	all := find("limit=200")
	wantKeys(t, all, "", "success", "message", "data", "meta")
	wantKeys(t, all, "meta", "next_cursor")
	wantValue(t, all, "meta.next_cursor", nil)
	wantValue(t, all, "message", "OK")
	if got := column(all, "body"); !slices.Equal(got, []string{"makasih", "nobody", "Selamat PAGI"}) {
		t.Errorf("not newest first: %q", got)
	}
	wantKeys(t, all, "data.0", foundKeys...)
	wantKeys(t, all, "data.1", append(slices.Clone(foundKeys), "request_id", "error")...)
	wantKeys(t, all, "data.2", append(slices.Clone(foundKeys), "request_id")...)
	wantValue(t, all, "data.0.from_me", "false")
	wantValue(t, all, "data.0.outgoing", false)
	wantValue(t, all, "data.0.contact_name", "Sari")
	wantValue(t, all, "data.0.status", "RECEIVED")
	wantValue(t, all, "data.2.from_me", "true")
	wantValue(t, all, "data.2.outgoing", true)
	wantValue(t, all, "data.1.status", "FAILED")
	wantValue(t, all, "data.1.error.code", "not_on_network")
	wantValue(t, all, "data.1.message_id", refused.Text("data.message_id"))
	wantValue(t, all, "data.2.message_id", sent.Text("data.message_id"))
	wantValue(t, all, "data.2.error", nil)
	wantValue(t, all, "data.2.request_id", "req-filters")
	wantRecent(t, all, "data.2.updated_at")

	for query, want := range map[string][]string{
		"status=FAILED":                       {"nobody"},
		"status=RECEIVED":                     {"makasih"},
		"status=PENDING":                      nil,
		"direction=in":                        {"makasih"},
		"direction=out":                       {"nobody", "Selamat PAGI"},
		"contact=" + number:                   {"makasih", "Selamat PAGI"},
		"contact=" + number + "@c.us":         {"makasih", "Selamat PAGI"},
		"contact=%2B62+815-0000-1001":         {"makasih", "Selamat PAGI"},
		"contact=" + number + "&direction=in": {"makasih"},
		"contact=6281500001999":               nil,
		"contact=62815000010":                 {"makasih", "Selamat PAGI"}, // the beginning
		"contact=999&direction=out":           {"nobody"},
		"contact=628150000&direction=in":      {"makasih"},
		"contact=815":                         nil,
		"contact=0815-0000-1001":              {"makasih", "Selamat PAGI"}, // as it is dialled at home
		"contact=(0815)+0000+1001":            {"makasih", "Selamat PAGI"},
		"contact=0062815-0000-1001":           {"makasih", "Selamat PAGI"},
		"contact=00001001":                    nil,
		"contact=1001":                        {"makasih", "Selamat PAGI"}, // the end
		"text=pagi":                           {"Selamat PAGI"},
		"text=" + url.QueryEscape("%"):        nil,
		"type=text&text=NOBODY":               {"nobody"},
		"type=image":                          nil,
		"after=1h":                            {"makasih", "nobody", "Selamat PAGI"},
		"after=0s":                            nil,
		"before=1h":                           nil,
		"before=2100-01-01T00:00:00Z":         {"makasih", "nobody", "Selamat PAGI"},
		"after=2100-01-01T00:00:00Z":          nil,
	} {
		if got := column(find(query), "body"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if got := e.Get(foundMessages+"?channel=nobody", admin).Expect(200).Count("data"); got != 0 {
		t.Errorf("a channel that is not there has %d messages", got)
	}
}

func findPages(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	token := e.CreateChannel("pages")
	for i := range 7 {
		e.Post("/api/send-message/text", fmt.Sprintf(`{"contact_id":"628150000200%d@c.us","message":"m%d"}`, i%2, i), parleytest.As(token)).
			Expect(200)
	}
	for _, query := range []string{"channel=pages", "channel=pages&direction=out", "contact=6281500002000",
		"contact=6281500002000&channel=pages",
		"contact=62815000020", "contact=628150000200&direction=out&channel=pages"} {
		var got []string
		for cursor := ""; ; {
			page := e.Get(foundMessages+"?limit=2&"+query+cursor, admin).Expect(200)
			got = append(got, column(page, "body")...)
			if page.Value("meta.next_cursor") == nil {
				break
			}
			cursor = "&cursor=" + page.Text("meta.next_cursor")
		}
		want := []string{"m6", "m5", "m4", "m3", "m2", "m1", "m0"}
		if strings.Contains(query, "contact=6281500002000") {
			want = []string{"m6", "m4", "m2", "m0"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", query, got)
		}
	}
}

func findBad(_ *testing.T, e *parleytest.Env, admin parleytest.Option) {
	for query, field := range map[string]string{
		"status=sent": "status", "type=reaction": "type", "direction=up": "direction", "limit=0": "limit", "limit=201": "limit",
		"limit=x":         "limit",
		"after=yesterday": "after", "before=5": "before", "before=-1h": "before", "after=99999d": "after", "cursor=5": "cursor",
		"cursor=m-5": "cursor", "cursor=m!": "cursor",
		"contact=x": "contact", "contact=62": "contact", "contact=0-62": "contact", "contact=6281234567890123": "contact",
		"contact=x@g.us": "contact", "text=" + strings.Repeat("x", 201): "text",
	} {
		e.Get(foundMessages+"?"+query, admin).ExpectFields(field)
	}
}

func findDetail(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	const number = "6281500003001"
	phone := e.Phone(number)
	makeWebhook(e, `{"url":"`+quiet+`","events":["message.status"]}`)
	first := e.Post("/api/send-message/text", `{"contact_id":"`+number+`@c.us","message":"first"}`).Expect(200)
	sent := e.Post("/api/send-message/text", `{"contact_id":"`+number+`@c.us","message":"second","reply_to":"`+first.Text("data.id")+`"}`,
		parleytest.With("Idempotency-Key", "detail-1")).Expect(200)
	id := sent.Text("data.message_id")
	phone.Expect("second")
	phone.Reads()
	phone.Sends(`{"type":"reaction","message_id":"` + id + `","reaction":"👍"}`)
	var a *parleytest.Response
	e.Eventually("it was read, reacted to and published", func() bool {
		a = e.Get(foundMessages+"/"+id+"?channel=demo", admin).Expect(200)
		return a.Text("data.status") == "READ" && a.Text("data.reactions.0") == "👍" && a.Count("data.deliveries") >= 3
	})
	wantKeys(t, a, "", "success", "message", "data")
	wantKeys(t, a, "data", append(slices.Clone(foundKeys), "request_id", "timeline", "reply_to", "quoted", "deliveries", "idempotency_key",
		"sent_by")...)
	wantKeys(t, a, "data.sent_by", "kind", "id", "name", "role")
	wantValue(t, a, "data.sent_by.kind", "token")
	wantValue(t, a, "data.reply_to", first.Text("data.id"))
	wantValue(t, a, "data.idempotency_key", "detail-1")
	wantValue(t, a, "data.body", "second")
	var line []string
	for i := range a.Count("data.timeline") {
		line = append(line, a.Text(fmt.Sprintf("data.timeline.%d.status", i)))
		wantRecent(t, a, fmt.Sprintf("data.timeline.%d.at", i))
	}
	if !slices.Equal(line, []string{"PENDING", "SENT", "DELIVERED", "READ"}) {
		t.Errorf("the timeline is %q", line)
	}
	for i := range a.Count("data.deliveries") {
		wantValue(t, a, fmt.Sprintf("data.deliveries.%d.type", i), "message.status")
		wantValue(t, a, fmt.Sprintf("data.deliveries.%d.url", i), quiet)
	}
	bare := e.Get(foundMessages+"/"+sent.Text("data.id")+"?channel=demo", admin).Expect(200)
	wantValue(t, bare, "data.message_id", id)

	phone.Types("thanks")
	in := phone.Received("thanks")
	e.Post("/api/send-message/seen", `{"message_id":"`+in+`"}`).Expect(200)
	e.Eventually("it is seen", func() bool {
		a = e.Get(foundMessages+"/"+in+"?channel=demo", admin).Expect(200)
		return a.Text("data.status") == "READ"
	})
	wantValue(t, a, "data.timeline.0.status", "RECEIVED")
	wantValue(t, a, "data.timeline.1.status", "READ")
	wantValue(t, a, "data.idempotency_key", nil)

	e.Delete("/api/send-message/delete?message_id=" + id).Expect(200)
	e.Eventually("it is deleted", func() bool {
		a = e.Get(foundMessages+"/"+id+"?channel=demo", admin).Expect(200)
		return a.Text("data.status") == "DELETED"
	})
	wantValue(t, a, "data.body", "")
}

func findPoll(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	phone := e.Phone("6281500003002")
	sent := e.Post("/api/send-message/poll",
		`{"contact_id":"`+phone.Contact()+`","title":"Lunch?","options":["Soto","Bakso"],"is_multiple_answer":true}`).Expect(200)
	id := sent.Text("data.message_id")
	phone.Expect("Lunch?")
	phone.Sends(`{"type":"vote","message_id":"` + id + `","options":["Soto"]}`)
	phone.Sends(`{"type":"vote","message_id":"` + id + `","options":["Bakso"]}`)
	var a *parleytest.Response
	e.Eventually("the last vote counts", func() bool {
		a = e.Get(foundMessages+"/"+id+"?channel=demo", admin).Expect(200)
		return a.Number("data.poll.options.1.votes") == 1
	})
	wantKeys(t, a, "data.poll", "title", "options", "multiple")
	wantValue(t, a, "data.poll.title", "Lunch?")
	wantValue(t, a, "data.poll.multiple", true)
	wantValue(t, a, "data.poll.options.0.name", "Soto")
	wantValue(t, a, "data.poll.options.0.votes", 0.0)

	place := e.Post("/api/send-message/location",
		`{"contact_id":"`+phone.Contact()+`","latitude":"-6.2","longitude":"106.8","title":"Monas"}`).Expect(200)
	a = e.Get(foundMessages+"/"+place.Text("data.message_id")+"?channel=demo", admin).Expect(200)
	wantKeys(t, a, "data.location", "latitude", "longitude", "title", "address")
	wantValue(t, a, "data.location.title", "Monas")
}

func findFiles(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	files := parleytest.Files(t)
	phone := e.Phone("6281500003003")
	picture := served(t, files+"/dot.png")
	sent := e.Post("/api/send-message/image",
		`{"contact_id":"`+phone.Contact()+`","file":{"url":"`+files+`/dot.png","filename":"dot é\".png"},"caption":"dot"}`).Expect(200)
	path := foundMessages + "/" + sent.Text("data.message_id")
	detail := e.Get(path+"?channel=demo", admin).Expect(200)
	wantKeys(t, detail, "data.media", "id", "url", "mimetype", "filename", "size", "width", "height", "sha256", "status")
	wantValue(t, detail, "data.media.status", "ready")
	wantValue(t, detail, "data.media.mimetype", "image/png")
	wantValue(t, detail, "data.media.size", float64(len(picture)))
	file := e.Get(path+"/media?channel=demo", admin).Expect(200)
	if !bytes.Equal(file.Body, picture) {
		t.Errorf("%d bytes, want %d", len(file.Body), len(picture))
	}
	wantHeader(t, file, "Content-Type", "image/png")
	wantHeader(t, file, "X-Content-Type-Options", "nosniff")
	wantHeader(t, file, "Cache-Control", "no-store")
	wantHeader(t, file, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	if got := file.Header.Get("Content-Disposition"); !strings.HasPrefix(got, "attachment; filename") {
		t.Errorf("Content-Disposition %q", got)
	}
	head := e.Call("HEAD", path+"/media?channel=demo", "", admin).Expect(200)
	wantHeader(t, head, "Content-Length", fmt.Sprint(len(picture)))

	text := e.Post("/api/send-message/file", `{"contact_id":"`+phone.Contact()+`","file":{"url":"`+files+`/notes.txt"}}`).Expect(200)
	file = e.Get(foundMessages+"/"+text.Text("data.message_id")+"/media?channel=demo", admin).Expect(200)
	wantHeader(t, file, "Content-Type", "application/octet-stream") // never as a page

	phone.Sends(`{"type":"image","file":{"url":"` + files + `/dot.png"},"message":"back"}`)
	var in string
	e.Eventually("it arrived", func() bool {
		found := e.Get(foundMessages+"?channel=demo&direction=in&type=image&contact="+phone.Contact(), admin).Expect(200)
		in = found.Text("data.0.message_id")
		return in != ""
	})
	e.Eventually("its file was fetched", func() bool {
		file = e.Get(foundMessages+"/"+in+"/media?channel=demo", admin)
		if file.Status == http.StatusServiceUnavailable {
			wantHeader(t, file, "Retry-After", "1")
		}
		return file.Status == http.StatusOK
	})
	if !bytes.Equal(file.Body, picture) {
		t.Errorf("of an inbound message: %d bytes", len(file.Body))
	}

	e.Delete("/api/send-message/delete?message_id=" + sent.Text("data.message_id")).Expect(200)
	e.Eventually("a deleted message has no file", func() bool {
		return e.Get(path+"/media?channel=demo", admin).Status == 404
	})
}

// findCodes makes sure that nobody who looks at messages sees a code.
func findCodes(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	phone := e.Phone("6281500003004")
	e.Post("/api/otp/code/request", `{"contact_id":"`+phone.Contact()+`"}`).Expect(200)
	code := phone.Expect("").Codes[0]
	found := e.Get(foundMessages+"?channel=demo&contact="+phone.Contact(), admin).Expect(200)
	wantValue(t, found, "data.0.otp", true)
	if body := found.Text("data.0.body"); strings.Contains(body, code) || !strings.Contains(body, "•") {
		t.Errorf("the body is %q", body)
	}
	if e.Get(foundMessages+"?channel=demo&text="+code, admin).Expect(200).Count("data") != 0 {
		t.Error("a code can be searched for")
	}
	detail := e.Get(foundMessages+"/"+found.Text("data.0.message_id")+"?channel=demo", admin).Expect(200)
	if bytes.Contains(detail.Body, []byte(code)) {
		t.Errorf("the code is shown: %s", detail.Body)
	}
}

func findTextless(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	token := e.CreateChannel("textless")
	files := parleytest.Files(t)
	phone := e.PhoneFor(token, "6281500003005")
	e.Call("PATCH", "/api/manage/channels/textless", `{"settings":{"retention":"0s"}}`, admin).Expect(200)
	e.Post("/api/send-message/text", `{"contact_id":"`+phone.Contact()+`","message":"secret plans"}`, parleytest.As(token)).Expect(200)
	sent := e.Post("/api/send-message/image",
		`{"contact_id":"`+phone.Contact()+`","file":{"url":"`+files+`/dot.png"},"caption":"secret picture"}`, parleytest.As(token)).Expect(200)
	found := e.Get(foundMessages+"?channel=textless", admin).Expect(200)
	if got := column(found, "body"); !slices.Equal(got, []string{"", ""}) {
		t.Errorf("bodies %q", got)
	}
	if n := e.Get(foundMessages+"?channel=textless&text=secret", admin).Expect(200).Count("data"); n != 0 {
		t.Errorf("%d found by their text", n)
	}
	path := foundMessages + "/" + sent.Text("data.message_id")
	wantValue(t, e.Get(path+"?channel=textless", admin).Expect(200), "data.media", nil)
	e.Get(path+"/media?channel=textless", admin).ExpectError(404, "no file")
}

func findNothing(_ *testing.T, e *parleytest.Env, admin parleytest.Option) {
	for _, path := range []string{"/3EB0C4312F6A1D2E9B8870", "/true_6281234567890@c.us_3EB0C4312F6A1D2E9B8870", "/no_message", "/%00"} {
		e.Get(foundMessages+path+"?channel=demo", admin).ExpectError(404, "message does not exist")
		e.Get(foundMessages+path+"/media?channel=demo", admin).ExpectError(404, "message does not exist")
		e.Get(foundMessages+path+"?channel=nobody", admin).ExpectError(404, "message does not exist")
		e.Get(foundMessages+path, admin).ExpectFields("channel")
	}
}

func served(t *testing.T, address string) []byte {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
