package product_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"parley"
	"parley/internal/app"
	"parley/internal/callback"
	"parley/internal/otp/rule"
	"parley/internal/parleytest"
	"parley/internal/store"
	"parley/internal/wire"
)

// TestEventsAreAsDescribed has everything happen on a whole gateway that its log tells of, and holds
// each body to the schema of its type and to the OpenAPI document.
func TestEventsAreAsDescribed(t *testing.T) {
	e := parleytest.Start(t, func(c *app.Config) { c.OTPContacts, c.OTPPrefix = 1000, -1 })
	l := openLog(t, e)
	converse(l)
	gather(l)
	edit(l)
	changeGroup(l)
	lose(l)
	useCodes(l)
	useLinks(l)
	attackCodes(l)
	optOut(l)
	restrict(l)
	pauseTemplate(l)
	e.Stop()
	err := l.data.Store.Tx(t.Context(), func(tx *store.Tx) error {
		// The owner has no other device here.
		own := parley.Message{Channel: app.DemoChannel, Chat: ayu, ID: "3EB0OWN", FromMe: true, Status: parley.Sent,
			Content: parley.Text{Body: "I'll be there at six."}, CreatedAt: time.Now()}
		return errors.Join(tx.AddMessage(t.Context(), &own),
			tx.AddEvent(t.Context(), &parley.Event{Type: parley.MessageSentOnPhone, Channel: own.Channel, At: own.CreatedAt, Message: &own}),
			tx.AddEvent(t.Context(), parley.NewUnreadableEvent(own.Channel, parley.Unreadable{From: ayu, ID: "3A8F1C22D7E09B4C51A0",
				Reason: parley.ViewOnce, At: own.CreatedAt})), // simulated phones write what can be read
			tx.AddEvent(t.Context(), parley.NewGapEvent(parley.Webhook{ID: parley.NewWebhookID(), Cursor: 1}, 2, time.Now())))
	})
	if err != nil {
		t.Fatal(err)
	}

	schemas := map[parley.EventType]*jsonschema.Schema{}
	for _, kind := range parley.EventTypes {
		schemas[kind] = readSchema(t, kind)
	}
	shapes := map[parley.EventType]map[string]bool{}
	for _, body := range l.bodies() {
		var event struct{ Type parley.EventType }
		if err := json.Unmarshal(body, &event); err != nil {
			t.Fatal(err)
		}
		value := readJSON(t, body)
		if err := schemas[event.Type].Validate(value); err != nil {
			t.Errorf("%v\n%s", err, body)
		}
		if err := parleytest.CheckSchema("Event", body); err != nil {
			t.Errorf("not as the OpenAPI document says: %v\n%s", err, body)
		}
		if shapes[event.Type] == nil {
			shapes[event.Type] = map[string]bool{}
		}
		shapes[event.Type][shape(value)] = true
	}
	for _, kind := range parley.EventTypes {
		if kind == parley.ChannelPairing {
			continue // nothing on the sandbox network is paired
		}
		if !shapes[kind][shape(readExample(t, kind))] {
			t.Errorf("no event of type %s has the fields of its example: %d had others", kind, len(shapes[kind]))
		}
	}
}

// eventLog reads the log of a gateway while that runs.
type eventLog struct {
	*parleytest.Env
	data *app.Data
}

func openLog(t *testing.T, e *parleytest.Env) *eventLog {
	t.Helper()
	data := e.OpenData()
	t.Cleanup(func() { data.Close() })
	return &eventLog{e, data}
}

// bodies are all events, as they are delivered.
func (l *eventLog) bodies() [][]byte {
	l.T.Helper()
	var bodies [][]byte
	for after := int64(0); ; {
		events, reached, err := l.data.Store.Events(l.T.Context(), after, parley.EventFilter{}, 1000)
		if err != nil {
			l.T.Fatal(err)
		}
		for i := range events {
			body, err := wire.EncodeEvent(&events[i], parley.MediaLinks{}.Plain, nil)
			if err != nil {
				l.T.Fatal(err)
			}
			bodies = append(bodies, body)
		}
		if reached == after {
			return bodies
		}
		after = reached
	}
}

// expect waits for an event whose body has all of these parts.
func (l *eventLog) expect(kind parley.EventType, parts ...string) {
	l.T.Helper()
	parts = append(parts, `"type":"`+string(kind)+`"`)
	l.Eventually(fmt.Sprintf("an event with %q", parts), func() bool {
		for _, body := range l.bodies() {
			missing := 0
			for _, part := range parts {
				if !strings.Contains(string(body), part) {
					missing++
				}
			}
			if missing == 0 {
				return true
			}
		}
		return false
	})
}

// converse sends messages of every kind both ways, reads and plays them, and fails some.
func converse(l *eventLog) {
	l.T.Helper()
	files := strings.NewReplacer("FILES", parleytest.Files(l.T), "AYU", ayu)
	phone := l.Phone("6281234567890")
	first := l.send("text", `{"contact_id":"AYU","message":"Your order is on its way."}`)
	for kind, body := range map[string]string{
		"image":    `{"contact_id":"AYU","caption":"A dot","file":{"url":"FILES/dot.png"}}`,
		"video":    `{"contact_id":"AYU","videoUrl":"FILES/film.mp4"}`,
		"file":     `{"contact_id":"AYU","file":{"url":"FILES/notes.txt"}}`,
		"voice":    `{"contact_id":"AYU","audioUrl":"FILES/hello.ogg"}`,
		"sticker":  `{"contact_id":"AYU","file":{"url":"FILES/dot.png"}}`,
		"location": `{"contact_id":"AYU","latitude":"-6.2088","longitude":"106.8456"}`,
	} {
		l.send(kind, files.Replace(body))
	}
	for _, body := range []string{
		`{"type":"text","message":"Hello"}`,
		`{"type":"text","message":"Thank you!","reply_to":"` + first.Text("data.id") + `"}`,
		`{"type":"image","file":{"url":"FILES/dot.png"}}`,
		`{"type":"sticker","file":{"url":"FILES/dot.png"}}`,
		`{"type":"location","latitude":"-6.2","longitude":"106.8","title":"Home"}`,
	} {
		phone.Sends(files.Replace(body))
	}
	received := phone.Received("Thank you!")
	l.Post("/api/send-message/seen", `{"message_id":"`+received+`"}`).Expect(http.StatusOK)
	phone.Reads()
	l.expect(parley.MessageStatus, `"status":"SENT"`)
	l.expect(parley.MessageStatus, `"status":"DELIVERED"`)
	l.expect(parley.MessageStatus, `"status":"READ"`, `"from_me":"true"`)
	l.expect(parley.MessageStatus, `"status":"READ"`, `"from_me":"false"`)
	l.expect(parley.MessageStatus, `"status":"PLAYED"`, `"type":"voice"`)
	l.expect(parley.MessageReceived, `"reply_to":"`+first.Text("data.id"))
	l.expect(parley.MessageReceived, `"type":"image"`)
	l.expect(parley.MessageReceived, `"type":"sticker"`, `"mimetype":"image/webp"`)
	l.expect(parley.MessageStatus, `"type":"sticker"`, `"mimetype":"image/webp"`)
	l.expect(parley.MessageMedia, `"status":"ready"`)

	l.Post("/api/send-message/pool", `{"contact_id":"99912345670@c.us","pools":[{"type":"text","data":["One","Two"]}]}`,
		parleytest.As(l.Global)).Expect(http.StatusOK)
	l.expect(parley.MessageStatus, `"code":"not_on_network"`)
	l.expect(parley.MessageStatus, `"code":"not_sent"`)
}

// optOut opts a contact out and in again.
func optOut(l *eventLog) {
	l.T.Helper()
	l.Post("/api/contact/opt-outs", `{"contact_id":"`+ayu+`"}`).Expect(http.StatusOK)
	l.send("text", `{"contact_id":"AYU","message":"Not any more"}`)
	l.expect(parley.MessageStatus, `"code":"opted_out"`)
	l.Delete("/api/contact/opt-outs?contact_id=" + ayu).Expect(http.StatusOK)
	l.expect(parley.ContactOptedIn, `"source":"api"`)
	call := l.Post("/api/sandbox/phones/6281234567890/call", `{"action":"start"}`).Expect(http.StatusOK).Text("data.id")
	l.Post("/api/sandbox/phones/6281234567890/call", `{"action":"end","id":"`+call+`"}`).Expect(http.StatusOK)
	l.expect(parley.CallEnded, `"id":"`+call+`"`)
}

// restrict has the network restrict the account: other first messages wait from now on.
func restrict(l *eventLog) {
	l.T.Helper()
	order(l.Env, "reachout_limit", "")
	l.send("text", `{"contact_id":"AYU","message":"Restricted"}`)
	l.expect(parley.MessageStatus, `"code":"restricted"`)
	l.expect(parley.ChannelRestricted, `"restricted":true`)
}

// pauseTemplate has the network pause a template.
func pauseTemplate(l *eventLog) {
	l.T.Helper()
	for _, status := range []string{"APPROVED", "PAUSED"} {
		l.Post("/api/templates", `{"name":"order_ready","language":"id","body":"Siap.","status":"`+status+`"}`).Expect(http.StatusCreated)
	}
	l.expect(parley.ChannelNotice, `"status":"PAUSED"`)
}

// send sends a message to Ayu, whatever becomes of it.
func (l *eventLog) send(kind, body string) *parleytest.Response {
	l.T.Helper()
	return l.Post("/api/send-message/"+kind, strings.ReplaceAll(body, "AYU", ayu)).Expect(http.StatusOK)
}

// changeGroup makes a group, talks in it, and has its member leave.
func changeGroup(l *eventLog) {
	l.T.Helper()
	group := l.Post("/api/groups/create", `{"name":"Picnic","participants":["`+ayu+`"]}`).Expect(http.StatusOK).Text("data.id")
	sent := l.send("text", `{"group_id":"`+group+`","message":"Who brings bread?"}`)
	l.expect(parley.MessageStatus, `"group_id":"`+group, `"status":"SENT"`)
	phone := l.Phone("6281234567890")
	phone.Sends(`{"type":"text","message":"I do","group_id":"` + group + `","reply_to":"` + sent.Text("data.id") + `"}`)
	l.expect(parley.MessageReceived, `"group_id":"`+group, `"contact_id":"`+ayu, "I do")
	phone.Sends(`{"type":"reaction","message_id":"` + sent.Text("data.message_id") + `","reaction":"👍"}`)
	l.expect(parley.MessageReaction, `"group_id":"`+group, `"from_me":"false","outgoing":false,"contact_id":"`+ayu)
	l.Post("/api/sandbox/phones/6281234567890/group", `{"group_id":"`+group+`","action":"leave"}`).Expect(http.StatusOK)
	l.expect(parley.GroupChanged, `"group_id":"`+group, `"contact_id":"`+ayu, `"removed":["`+ayu)
}

// gather reacts, votes and deletes, both ways and back.
func gather(l *eventLog) {
	l.T.Helper()
	phone := l.Phone("6281234567890")
	ours := l.send("text", `{"contact_id":"AYU","message":"Nice?"}`).Text("data.message_id")
	phone.Types("Very.")
	theirs := phone.Received("Very.")
	for _, emoji := range []string{"👍", ""} {
		phone.Sends(`{"type":"reaction","message_id":"` + ours + `","reaction":"` + emoji + `"}`)
		l.expect(parley.MessageReaction, `"message_id":"`+ours, `"emoji":"`+emoji+`","from_me":"false","outgoing":false,"contact_id":"`+ayu)
		l.Put("/api/send-message/reaction", `{"message_id":"`+theirs+`","reaction":"`+emoji+`"}`).Expect(http.StatusOK)
		l.expect(parley.MessageReaction, `"message_id":"`+theirs, `"emoji":"`+emoji+`","from_me":"true","outgoing":true`)
	}
	poll := l.send("poll", `{"contact_id":"AYU","title":"When?","options":["Today","Tomorrow"],"is_multiple_answer":true}`).
		Text("data.message_id")
	for _, options := range []string{`["Tomorrow","Today"]`, `["Tomorrow"]`, `[]`} {
		phone.Sends(`{"type":"vote","message_id":"` + poll + `","options":` + options + `}`)
		l.expect(parley.PollVoted, `"options":`+options)
	}
	phone.Sends(`{"type":"delete","message_id":"` + theirs + `"}`)
	l.expect(parley.MessageDeleted, `"message_id":"`+theirs)
	reply := phone.Sends(`{"type":"text","message":"Oh.","reply_to":"` + strings.TrimPrefix(ours, "true_"+ayu+"_") + `"}`).
		Text("data.message_id")
	phone.Received("Oh.")
	phone.Sends(`{"type":"delete","message_id":"` + reply + `"}`)
	l.expect(parley.MessageDeleted, `"message_id":"`+reply)
	l.Delete("/api/send-message/delete?message_id=" + ours).Expect(http.StatusOK)
	l.expect(parley.MessageDeleted, `"message_id":"`+ours)
}

// edit changes texts of both sides. Every event of theirs has the new text.
func edit(l *eventLog) {
	l.T.Helper()
	phone := l.Phone("6281234567890")
	ours := l.send("text", `{"contact_id":"AYU","message":"Monday."}`).Text("data.message_id")
	l.Put("/api/send-message/edit", `{"message_id":"`+ours+`","message":"Tuesday."}`).Expect(http.StatusOK)
	l.expect(parley.MessageEdited, `"message_id":"`+ours, `"body":"Tuesday."`)
	theirs := phone.Types("Thank you!").Text("data.message_id")
	phone.Sends(`{"type":"edit","message_id":"` + theirs + `","message":"Thank you very much!"}`)
	l.expect(parley.MessageEdited, `"message_id":"`+theirs, `"body":"Thank you very much!"`)
}

// lose breaks the connection, stops the channel and logs it out, and brings it back each time.
func lose(l *eventLog) {
	l.T.Helper()
	order(l.Env, "drop_socket", "")
	l.send("text", `{"contact_id":"AYU","message":"Dropped"}`)
	l.expect(parley.ChannelStatusChanged, `"status":"RECONNECTING"`, `"was":"WORKING"`)
	l.expect(parley.ChannelStatusChanged, `"status":"WORKING"`, `"was":"RECONNECTING"`)
	manage := func(what string) {
		l.Post("/api/manage/channels/demo/"+what, "", parleytest.As(l.Admin)).Expect(http.StatusOK)
	}
	manage("stop")
	l.expect(parley.ChannelStatusChanged, `"status":"STOPPED"`)
	manage("start")
	l.expect(parley.ChannelStatusChanged, `"status":"WORKING"`, `"was":"STARTING"`)
	manage("logout")
	l.expect(parley.ChannelStatusChanged, `"status":"LOGGED_OUT"`)
	manage("pair")
	l.Eventually("the channel works", func() bool { return l.Get("/api/channel/health").Text("data.status") == "WORKING" })
}

// useCodes has codes approved, locked, expired and not sent.
func useCodes(l *eventLog) {
	l.T.Helper()
	request := func(number, more string) (id string) {
		l.T.Helper()
		return l.Post("/api/otp/code/request", `{"contact_id":"`+number+`@c.us"`+more+`}`).Expect(http.StatusOK).Text("data.id")
	}
	try := func(number, code string) string {
		l.T.Helper()
		return l.Post("/api/otp/code/validate", `{"contact_id":"`+number+`@c.us","code":"`+code+`"}`).Expect(http.StatusOK).Text("data.status")
	}
	approved, locked := request("6281290000001", ""), request("6281290000002", "")
	code := l.Phone("6281290000001").Expect("verification code").Codes[0]
	if status := try("6281290000001", code); status != "APPROVED" {
		l.T.Errorf("the right code is %s", status)
	}
	l.expect(parley.OTPApproved, `"id":"`+approved)
	for range parley.MaxOTPTries {
		try("6281290000002", "no code")
	}
	l.expect(parley.OTPFailed, `"id":"`+locked, `"reason":"locked"`)
	unsent := request("99912345670", "")
	l.expect(parley.OTPFailed, `"id":"`+unsent, `"reason":"not_on_network"`)
	expired := request("6281290000003", `,"expires":30`)
	l.Post("/api/sandbox/clock", `{"advance":31}`).Expect(http.StatusOK)
	l.expect(parley.OTPExpired, `"id":"`+expired)
	for _, body := range l.bodies() {
		if strings.Contains(string(body), code) {
			l.T.Errorf("the log tells the code: %s", body)
		}
	}
}

// attackCodes has codes guessed, and requested for made-up numbers.
func attackCodes(l *eventLog) {
	l.T.Helper()
	request := func(number string) *parleytest.Response {
		l.T.Helper()
		return l.Post("/api/otp/code/request", `{"contact_id":"`+number+`@c.us"}`)
	}
	const contacts = 26 // each has twenty tries
	for i := range contacts {
		l.Phone(fmt.Sprintf("62813000000%02d", i)).Types("hello") // who is known is not limited
	}
	for i := range contacts {
		l.Phone(fmt.Sprintf("62813000000%02d", i)).Received("hello")
	}
	for range 4 {
		for i := range contacts {
			number := fmt.Sprintf("62813000000%02d", i)
			request(number).Expect(http.StatusOK)
			for range parley.MaxOTPTries {
				l.Post("/api/otp/code/validate", `{"contact_id":"`+number+`@c.us","code":"no code"}`).Expect(http.StatusOK)
			}
		}
		l.Post("/api/sandbox/clock", `{"advance":20}`).Expect(http.StatusOK)
	}
	l.expect(parley.OTPGuessing, `"tries":501`)
	for i := 0; request(fmt.Sprintf("6281400%06d", i)).Status == http.StatusOK; i++ {
		if i == rule.ApprovalCodes {
			l.T.Fatal("codes to strangers do not pause")
		}
	}
	l.expect(parley.OTPPaused, `"approved":`)
}

// useLinks has login links approved, failed and expired.
func useLinks(l *eventLog) {
	l.T.Helper()
	request := func(number string) *parleytest.Response {
		l.T.Helper()
		return l.Post("/api/otp/link/request", `{"contact_id":"`+number+`@c.us","expires":60}`).Expect(http.StatusOK)
	}
	open := func(number, link string) {
		l.T.Helper()
		l.Post("/api/sandbox/phones/"+number+"/open", fmt.Sprintf(`{"link":%q}`, link)).Expect(http.StatusOK)
	}
	link := request("6281290000011")
	id := `"id":"` + link.Text("data.id")
	open("6281290000012", link.Text("data.link"))
	l.expect(parley.OTPFailed, id, `"reason":"wrong_sender"`)
	l.Phone("6281290000011").Types("Hi, " + link.Text("data.code"))
	l.expect(parley.OTPFailed, id, `"reason":"edited_prompt"`)
	open("6281290000011", link.Text("data.link"))
	l.expect(parley.OTPApproved, id)
	late := request("6281290000011").Text("data.id")
	l.Post("/api/sandbox/clock", `{"advance":61}`).Expect(http.StatusOK)
	l.expect(parley.OTPExpired, `"id":"`+late)
	for _, body := range l.bodies() {
		if strings.Contains(string(body), link.Text("data.code")) {
			l.T.Errorf("the log tells the code: %s", body)
		}
	}
}

// TestWebhookTestIsAsDescribed holds the test event of a webhook to its schema and to the OpenAPI document, as every other event.
func TestWebhookTestIsAsDescribed(t *testing.T) {
	e := parleytest.Start(t)
	bodies := make(chan []byte, 2)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(callback.TestEvent)) { // the channel may say that it works only now
			bodies <- body
		}
	}))
	defer receiver.Close()
	for _, webhook := range []string{`{"url":"` + receiver.URL + `"}`, `{"url":"` + receiver.URL + `","channel":"demo"}`} {
		id := e.Post("/api/manage/webhooks", webhook, parleytest.As(e.Admin)).Expect(http.StatusCreated).Text("data.id")
		e.Post("/api/manage/webhooks/"+id+"/test", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
		body := <-bodies
		if err := readSchema(t, callback.TestEvent).Validate(readJSON(t, body)); err != nil {
			t.Errorf("%v\n%s", err, body)
		}
		if err := parleytest.CheckSchema("Event", body); err != nil {
			t.Errorf("not as the OpenAPI document says: %v\n%s", err, body)
		}
	}
}
