package cloud

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/store"
)

// reports are bodies as Meta sends them, complete and not.
var reports = []string{
	`{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages","value":{"metadata":{"phone_number_id":"106"},
		"contacts":[{"profile":{"name":"Ayu"},"wa_id":"6281234567890","user_id":"ID.1349"}],
		"messages":[{"from":"6281234567890","id":"wamid.A=","timestamp":"1749416383","type":"text",
			"text":{"body":"caf\u00e9 \ud83d\ude00"}}]}}]}]}`,
	`{"entry":[{"changes":[{"field":"messages","value":{"metadata":{"phone_number_id":"107"},"statuses":[{"id":"wamid.A=","status":"failed",
		"timestamp":"x","recipient_id":"62","biz_opaque_callback_data":"p1 1 WA1","errors":[{"code":131026,"title":"no"}]}]}}]}]}`,
	`{"entry":[{"changes":[{"field":"messages","value":{"messages":[{"id":"a","type":"image","image":{"id":"1","sha256":"x","caption":"c"}},
		{"type":"location","location":{"latitude":"1.5","longitude":-2}},{"type":"contacts","contacts":[{"phones":[{}]}]},
		{"type":"interactive","interactive":{"type":"nfm_reply","nfm_reply":{"response_json":"{}"}}},{"type":"edit","edit":{}},
		{"type":"reaction"},{"type":"system"},{"type":"order"},{}]}}]}]}`,
	`{"entry":[{"changes":[{"field":"account_update","value":null},{}]},null]}`, `[]`, `null`, ``, `{"entry":{}}`,
}

// FuzzParse reads reports that may have anything in them.
func FuzzParse(f *testing.F) {
	for _, body := range reports {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var report struct {
			Entry []struct{ Changes []change }
		}
		if json.Unmarshal(body, &report) != nil {
			return
		}
		for _, entry := range report.Entry {
			for _, ch := range entry.Changes {
				var v messagesValue
				if json.Unmarshal(ch.Value, &v) != nil {
					continue
				}
				for i := range v.Messages {
					m := &v.Messages[i]
					content, _ := m.content()
					if content == nil || !content.Kind().InHistory() {
						t.Errorf("%q is %#v", m.Type, content)
					}
					if at := m.Timestamp.at(time.Now()); at.IsZero() {
						t.Error("a message without a time")
					}
					inboundID(m.ID)
				}
				for _, status := range v.Statuses {
					readOpaque(1, status.Opaque)
				}
			}
		}
	})
}

type fixedAccount []byte

func (a fixedAccount) Credentials(context.Context, parley.Channel) (current, old []byte, err error) {
	return a, nil, nil
}

func (fixedAccount) SetCredentials(context.Context, parley.Channel, []byte) error { return nil }

// FuzzVerify accepts nothing that is not signed, and whatever is signed without a crash. What it accepts goes to channels of the app.
func FuzzVerify(f *testing.F) {
	db, err := store.Open(f.Context(), "memory:fuzz")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { db.Close() })
	channel := parley.Channel{Code: code, ID: 1, Network: parley.Cloud}
	account := fixedAccount(`{"phone_number_id":"106","app_secret":"sesame"}`)
	d := New(Config{Store: db, Credentials: account, Metrics: prometheus.NewRegistry()})
	for _, body := range reports {
		f.Add([]byte(body), "sha256="+sign("sesame", []byte(body)))
		f.Add([]byte(body), "sha256="+sign("other", []byte(body)))
	}
	f.Add([]byte(`{}`), "")
	f.Fuzz(func(t *testing.T, body []byte, signature string) {
		_, err := d.Verify(t.Context(), channel, http.Header{signatureHeader: {signature}}, body)
		right := "sha256=" + sign("sesame", body)
		if err == nil && strings.ToLower(strings.TrimPrefix(signature, "sha256=")) != sign("sesame", body) {
			t.Errorf("accepted with the signature %q", signature)
		}
		calls, err := d.Verify(t.Context(), channel, http.Header{signatureHeader: {right}}, body)
		if err != nil {
			if parley.ToCode(err) != parley.BadRequest {
				t.Errorf("a signed body: %v", err)
			}
			return
		}
		for _, call := range calls {
			if call.Channel != code || !json.Valid(call.Body) {
				t.Errorf("a part for %q: %q", call.Channel, call.Body)
			}
		}
	})
}
