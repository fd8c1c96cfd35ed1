package callback_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"parley"
	"parley/internal/store"
)

// verify checks a request with another's implementation of the standard.
func verify(t *testing.T, secret string, h hit) error {
	t.Helper()
	wh, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	return wh.Verify(h.body, h.header)
}

func TestWebhookIsSignedByTheStandard(t *testing.T) {
	inBubble(t, func(e *env) {
		w := e.webhook("https://crm.example/hook?key=1")
		e.start()
		event := e.says(ann, "hello")
		pass(time.Second)
		hits := e.servers.at("crm.example")
		if len(hits) != 1 {
			e.Fatalf("%d requests", len(hits))
		}
		h := hits[0]
		keys, err := e.secrets.Keys(e.Context(), parley.WebhookSecret(w.ID))
		if err != nil {
			e.Fatal(err)
		}
		if err := verify(e.T, keys.Secret, h); err != nil {
			e.Errorf("verify: %v", err)
		}
		body, err := encodeEvent(&event, parley.MediaLinks{}.Plain)
		if err != nil {
			e.Fatal(err)
		}
		if string(h.body) != string(body) || h.id() != string(event.ID) {
			e.Errorf("delivered %s as %s\nwant %s as %s", h.body, h.id(), body, event.ID)
		}
		if h.method != "POST" || h.url != "https://crm.example/hook?key=1" || h.header.Get("Content-Type") != "application/json" ||
			h.header.Get("User-Agent") != "parley/1.2.3" || len(h.header.Get("X-Request-Id")) < 16 {
			e.Errorf("request: %s %s %v", h.method, h.url, h.header)
		}
		for name, tamper := range map[string]func(h *hit){
			"id":       func(h *hit) { h.header.Set("webhook-id", h.id()+"0") },
			"time":     func(h *hit) { h.header.Set("webhook-timestamp", "1"+h.header.Get("webhook-timestamp")[1:]) },
			"a second": func(h *hit) { h.header.Set("webhook-timestamp", addOne(h.header.Get("webhook-timestamp"))) },
			"body":     func(h *hit) { h.body = append(slices.Clone(h.body), ' ') },
			"signature": func(h *hit) {
				h.header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(make([]byte, 32)))
			},
		} {
			bad := h
			bad.header = h.header.Clone()
			tamper(&bad)
			if verify(e.T, keys.Secret, bad) == nil {
				e.Errorf("another %s still verifies", name)
			}
		}
	})
}

func addOne(digits string) string {
	b := []byte(digits)
	b[len(b)-1] = '0' + (b[len(b)-1]-'0'+1)%10
	return string(b)
}

func TestBothSecretsSignForADayAfterRotation(t *testing.T) {
	inBubble(t, func(e *env) {
		w := e.webhook("https://crm.example/hook")
		owner := parley.WebhookSecret(w.ID)
		first, err := e.secrets.Keys(e.Context(), owner)
		if err != nil {
			e.Fatal(err)
		}
		second, err := e.secrets.Rotate(e.Context(), owner)
		if err != nil {
			e.Fatal(err)
		}
		if second.Old != first.Secret || second.Secret == first.Secret || !second.OldUntil.Equal(time.Now().Add(24*time.Hour)) {
			e.Errorf("after the rotation: %+v, before: %+v", second, first)
		}
		e.start()
		e.says(ann, "one")
		pass(time.Second)
		h := e.servers.at("crm.example")[0]
		for _, secret := range []string{first.Secret, second.Secret} {
			if err := verify(e.T, secret, h); err != nil {
				e.Errorf("during the rotation: %v", err)
			}
		}
		if n := strings.Count(h.header.Get("webhook-signature"), " "); n != 1 {
			e.Errorf("signature: %s", h.header.Get("webhook-signature"))
		}
		pass(24 * time.Hour)
		e.says(ann, "two")
		pass(time.Second)
		h = e.servers.at("crm.example")[1]
		if verify(e.T, first.Secret, h) == nil {
			e.Error("the old secret signs after a day")
		}
		if err := verify(e.T, second.Secret, h); err != nil {
			e.Errorf("after the rotation: %v", err)
		}
		// A second rotation within a day ends what was old before it.
		third, err := e.secrets.Rotate(e.Context(), owner)
		if err != nil || third.Old != second.Secret {
			e.Errorf("after another rotation: %+v, %v", third, err)
		}
	})
}

func TestSecretsAreCreatedOnceAndEncrypted(t *testing.T) {
	e := newEnv(t)
	defer e.close()
	ctx := context.Background()
	a, err := e.secrets.Keys(ctx, parley.ListenSecret)
	if err != nil {
		t.Fatal(err)
	}
	b, err := e.secrets.Keys(ctx, parley.ListenSecret)
	if err != nil || a != b {
		t.Errorf("the second time it is %v, %v", b, err)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(a.Secret, "whsec_"))
	if err != nil || len(raw) != 32 || !strings.HasPrefix(a.Secret, "whsec_") {
		t.Errorf("secret %q", a.Secret)
	}
	stored, err := e.store.Secret(ctx, parley.ListenSecret)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(stored.Encrypted), string(raw)) || strings.Contains(string(stored.Encrypted), a.Secret[6:]) {
		t.Error("the secret is stored in clear")
	}
	// One that was moved to another owner opens nothing.
	e.tx(func(tx *store.Tx) error {
		stored.Owner = parley.ChannelSecret(shop)
		return tx.SetSecret(ctx, stored)
	})
	if keys, err := e.secrets.Keys(ctx, parley.ChannelSecret(shop)); err == nil {
		t.Errorf("another's secret was opened: %+v", keys)
	}
}

// checkCallback checks a callback as the documentation tells a receiver to.
func checkCallback(secret string, query url.Values) bool {
	var lines []string
	for _, key := range []string{"contact_id", "event_id", "id", "reason", "status", "timestamp"} {
		if query.Has(key) {
			lines = append(lines, key+"="+query.Get(key))
		}
	}
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strings.Join(lines, "\n")))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return slices.Contains(strings.Split(query.Get("signature"), " "), want)
}

func TestCallbackIsSigned(t *testing.T) {
	inBubble(t, func(e *env) {
		first, err := e.secrets.Keys(e.Context(), parley.ChannelSecret(shop))
		if err != nil {
			e.Fatal(err)
		}
		e.start()
		ok := e.calls("https://app.example/ok?b=%2f&a=1&a=2&x=%e4", parley.OTPApproved, "")
		pass(time.Second)
		e.calls("https://app.example/no", parley.OTPFailed, "wrong_sender")
		pass(time.Second)
		second, err := e.secrets.Rotate(e.Context(), parley.ChannelSecret(shop))
		if err != nil {
			e.Fatal(err)
		}
		e.calls("https://app.example/no?", parley.OTPFailed, "edited_prompt")
		pass(time.Second)
		hits := e.servers.at("app.example")
		if len(hits) != 3 {
			e.Fatalf("%d requests", len(hits))
		}
		for i, want := range []struct{ prefix, status, reason string }{
			{"https://app.example/ok?b=%2f&a=1&a=2&x=%e4&contact_id=6281100000001%40c.us&event_id=evt_", "success", ""},
			{"https://app.example/no?contact_id=", "failed", "wrong_sender"},
			{"https://app.example/no?contact_id=", "failed", "edited_prompt"},
		} {
			h := hits[i]
			u, err := url.Parse(h.url)
			if err != nil {
				e.Fatal(err)
			}
			q := u.Query()
			if !strings.HasPrefix(h.url, want.prefix) || h.method != http.MethodGet || len(h.body) > 0 {
				e.Errorf("%s %s %q", h.method, h.url, h.body)
			}
			if q.Get("status") != want.status || q.Get("reason") != want.reason || q.Has("reason") != (want.reason != "") ||
				q.Get("id") != "otl_1" ||
				q.Get("contact_id") != string(ann) || q.Get("timestamp") != parley.Stamp(h.at) ||
				q.Get("signature") != h.header.Get("webhook-signature") {
				e.Errorf("parameters %v", q)
			}
			if !checkCallback(first.Secret, q) {
				e.Errorf("%s: not signed with the channel's secret", h.url)
			}
			if signed := checkCallback(second.Secret, q); signed != (i == 2) {
				e.Errorf("%s: signed with the new secret: %v", h.url, signed)
			}
			for _, key := range []string{"status", "id", "timestamp", "event_id", "contact_id", "reason"} {
				bad := url.Values{}
				for k, v := range q {
					bad[k] = v
				}
				bad.Set(key, q.Get(key)+"x")
				if checkCallback(first.Secret, bad) {
					e.Errorf("another %s still verifies", key)
				}
			}
		}
		if q, _ := url.Parse(hits[0].url); q.Query().Get("event_id") != string(ok.EventID) {
			e.Errorf("event id in %s, want %s", hits[0].url, ok.EventID)
		}
	})
}

func TestCredentialsOfAChannel(t *testing.T) {
	inBubble(t, func(e *env) {
		channel := func() parley.Channel {
			c, err := e.store.Channel(e.Context(), shop)
			if err != nil {
				e.Fatal(err)
			}
			return c
		}
		has := func(c parley.Channel, want string) {
			e.Helper()
			current, old, err := e.secrets.Credentials(e.Context(), c)
			if got := string(current) + " " + string(old); got != want || err != nil {
				e.Errorf("got %q, %v, want %q", got, err, want)
			}
		}
		first := channel()
		has(first, " ")
		for _, s := range []string{"one", "two"} {
			if err := e.secrets.SetCredentials(e.Context(), first, []byte(s)); err != nil {
				e.Fatal(err)
			}
		}
		has(first, "two one")
		stored, err := e.store.Secret(e.Context(), parley.NetworkSecret(first.ID))
		if err != nil || strings.Contains(string(stored.Encrypted)+string(stored.OldEncrypted), "one") ||
			strings.Contains(string(stored.Encrypted), "two") {
			e.Errorf("stored in clear, or %v", err)
		}
		pass(24 * time.Hour)
		has(first, "two ")
		e.tx(func(tx *store.Tx) error {
			if err := tx.DeleteChannel(e.Context(), shop); err != nil {
				return err
			}
			return tx.AddChannel(e.Context(), parley.Channel{Code: shop, Name: "Shop", Network: parley.Sandbox})
		})
		pass(time.Second)
		has(first, " ")
		has(channel(), " ") // the next channel of that code
		if err := e.secrets.SetCredentials(e.Context(), first, []byte("three")); !errors.Is(err, parley.ErrNotFound) {
			e.Errorf("credentials of a deleted channel: %v", err)
		}
	})
}
