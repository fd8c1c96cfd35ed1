package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley"
)

func TestSendText(t *testing.T) {
	e := newEnv(t)
	r := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": "6281234567890@s.us", "message": "Hello"})
	data := r.want(t, http.StatusOK)
	if data["status"] != "SENT" || data["message"] != "Hello" || r.json["success"] != true {
		t.Errorf("response: %s", r.text)
	}
	full, _ := data["message_id"].(string)
	if full != "true_"+ayu+"_"+data["id"].(string) {
		t.Errorf("message_id %q, id %q", full, data["id"])
	}
	reply := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "Again", "reply_to": data["id"]})
	reply.want(t, http.StatusOK)
	history := e.call("GET", "/api/chat/detail?contact_id="+ayu, e.main, nil)
	history.want(t, http.StatusOK)
	if rows := history.json["data"].([]any); len(rows) != 2 || rows[1].(m)["body"] != "Hello" || rows[0].(m)["reply_to"] != data["id"] {
		t.Errorf("history: %s", history.text)
	}
}

func TestReplyToMustExist(t *testing.T) {
	e := newEnv(t)
	data := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "Hello"}).want(t, 200)
	for name, reply := range map[string]any{
		"full id":     data["message_id"],
		"unknown":     "3EB0000000000000000000",
		"a number":    7,
		"empty":       "",
		"too long":    strings.Repeat("A", 101),
		"wrong signs": "3EB0!",
	} {
		r := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "x", "reply_to": reply})
		if r.StatusCode != 422 || r.wrong()["reply_to"] == nil {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.text)
		}
		if name == "full id" && !strings.Contains(r.text, "send "+data["id"].(string)) {
			t.Errorf("the bare id is not named: %s", r.text)
		}
	}
	r := e.call("POST", "/api/send-message/text", e.second, m{"contact_id": ayu, "message": "x", "reply_to": data["id"]})
	if r.StatusCode != 422 {
		t.Errorf("a message of another channel: %d %s", r.StatusCode, r.text)
	}
}

// sentForm is the data of an response to a send as a struct.
type sentForm struct {
	Status    string     `json:"status"`
	Message   any        `json:"message"` // a string, or sentFile
	Timestamp string     `json:"timestamp"`
	MessageID string     `json:"message_id"`
	ID        string     `json:"id"`
	Error     *sentError `json:"error,omitempty"`
}

// FuzzSent holds what is written by hand to what the encoder writes.
func FuzzSent(f *testing.F) {
	texts := []string{
		"Your order is on its way.", "", "\"quoted\" \\ /slashed/", "<b>&amp;</b> 'x'", "line\r\n\ttab\b\f", "\x00\x01\x1f\x7f",
		"né 日本 🙏🏽", "\u2028\u2029\ufeff\ufffd", "cut \xf0\x9f\x99", "\xff\xfe", "\xed\xa0\x80", strings.Repeat("long ", 900),
	}
	for i, text := range texts {
		for kind := range uint8(8) {
			status := parley.Statuses[(i+int(kind))%len(parley.Statuses)]
			f.Add(kind, int(status), ayu, "3EB0C4312F6A1D2E9B8870", text, texts[(i+1)%len(texts)], kind%2 == 0, int64(1_800_000_000_000+i))
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, status int, chat, id, text, other string, failed bool, ms int64) {
		message := parley.Message{
			Chat: parley.ContactID(chat), ID: parley.MessageID(id), FromMe: kind < 128,
			Status: parley.Status(status), CreatedAt: time.UnixMilli(ms),
		}
		if failed {
			message.Failure = &parley.Failure{Code: parley.FailureCode(other), Message: text}
		}
		file := parley.Media{Source: other, MIME: text, Width: int(kind), Height: status, SHA256: []byte(text), MediaKey: []byte(other)}
		var said any = text
		switch kind % 8 {
		case 0:
			message.Content = parley.Text{Body: text}
		case 1:
			message.Content = parley.Poll{Title: text}
		case 2:
			message.Content, said = parley.Voice{Media: file}, other
		case 3:
			message.Content, said = parley.Location{Latitude: text, Longitude: other}, text+","+other
		case 4:
			message.Content, said = parley.Location{Latitude: "1", Longitude: "2", Title: text + "!"}, text+"!"
		case 5:
			message.Content, said = parley.Image{Caption: text, Media: file}, sentFile{Caption: text, Image: &other, Details: details(&message,
				file)}
		case 6:
			message.Content, said = parley.Video{Caption: text, Media: file}, sentFile{Caption: text, Video: &other, Details: details(&message,
				file)}
		case 7:
			message.Content, said = parley.File{Caption: text, Media: file}, sentFile{Caption: text, File: &other, Details: details(&message, file)}
		}
		want := must(encode(envelope{
			Success: message.Status != parley.Failed,
			Message: outcome(&message, "Message sent", "Message accepted; it will be sent"),
			Data: sentForm{
				Status: message.Status.String(), Message: said, Timestamp: parley.Stamp(message.CreatedAt),
				MessageID: message.Ref().String(), ID: id, Error: toFailure(&message),
			},
		}))(t)
		got := must(sendResponse(t.Context(), nil, []parley.Message{message}))(t)
		if string(got.body) != string(want) {
			t.Errorf("written\n%s\nwant\n%s", got.body, want)
		}
		if got.status != http.StatusOK || got.contentType[0] != "application/json" {
			t.Errorf("%d %s", got.status, got.contentType)
		}
	})
}

func TestPreferences(t *testing.T) {
	for header, want := range map[string]preference{
		"":                             {10 * time.Second, ""},
		"respond-async":                {0, "respond-async"},
		"Respond-Async":                {0, "respond-async"},
		"wait=0":                       {0, "wait=0"},
		"wait=5":                       {5 * time.Second, "wait=5"},
		`wait="5"`:                     {5 * time.Second, "wait=5"},
		" wait = 5 ":                   {5 * time.Second, "wait=5"},
		"wait=30":                      {30 * time.Second, "wait=30"},
		"wait=31":                      {30 * time.Second, "wait=30"},
		"wait=4000000000":              {30 * time.Second, "wait=30"},
		"wait=99999999999999":          {10 * time.Second, ""},
		"wait=-1":                      {10 * time.Second, ""},
		"wait=x":                       {10 * time.Second, ""},
		"wait":                         {10 * time.Second, ""},
		"wait=1, wait=9":               {time.Second, "wait=1"},
		"respond-async, wait=3":        {3 * time.Second, "respond-async, wait=3"},
		"handling=lenient; x=1,wait=2": {2 * time.Second, "wait=2"},
		"return=minimal":               {10 * time.Second, ""},
	} {
		if got := readPreference(http.Header{"Prefer": {header}}); got != want {
			t.Errorf("%q: %+v, want %+v", header, got, want)
		}
	}
	if got := readPreference(http.Header{"Prefer": {"respond-async", "wait=3"}}); got.applied != "respond-async, wait=3" {
		t.Errorf("two headers: %+v", got)
	}
}

func TestPreferOnSends(t *testing.T) {
	e := newEnv(t)
	// The network of one channel confirms late, so that nothing is confirmed at once.
	e.call("POST", "/api/sandbox/faults", e.main, m{"fault": "late", "times": 2}).want(t, 200)
	for _, c := range []struct{ token, prefer, status string }{
		{e.main, "respond-async", "PENDING"},
		{e.main, "wait=0", "PENDING"},
		{e.second, "wait=20", "SENT"},
		{e.second, "", "SENT"},
	} {
		r := e.call("POST", "/api/send-message/text", c.token, m{"contact_id": ayu, "message": "x"}, "Prefer", c.prefer)
		if data := r.want(t, 200); data["status"] != c.status || r.Header.Get("Preference-Applied") != c.prefer || r.json["success"] != true {
			t.Errorf("%q: %q, %s", c.prefer, r.Header.Get("Preference-Applied"), r.text)
		}
	}
}
