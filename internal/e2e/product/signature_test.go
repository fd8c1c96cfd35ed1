package product_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/callback"
	"parley/internal/parleytest"
)

const (
	secret    = "whsec_9m0pS3Zk1yq4T7uGQfX2bVhN8rLwEa5cJdYiKoPtUvM="
	oldSecret = "whsec_Vb3nXc8mLq1ZsKd9fGhJ2wErTyUiOpAaS5dF6gH7jK4="
)

// TestWebhookSnippets has the snippets of webhooks.md check signatures that the gateway makes, and
// others that they must refuse.
func TestWebhookSnippets(t *testing.T) {
	body := readEventDoc(t, "message.reaction.example.json") // more than ASCII
	file := filepath.Join(t.TempDir(), "body.json")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	const id = "evt_06GXWMZ3GSDC67G00000000088"
	now := time.Now()
	signed := func(keys callback.Keys, at time.Time, body []byte) (timestamp, signatures string) {
		h := http.Header{}
		if err := keys.SignRequest(h, id, at, body); err != nil {
			t.Fatal(err)
		}
		return h.Get("Webhook-Timestamp"), h.Get("Webhook-Signature")
	}
	timestamp, signature := signed(callback.Keys{Secret: secret}, now, body)
	_, both := signed(callback.Keys{Secret: secret, Old: oldSecret, OldUntil: now.Add(time.Hour)}, now, body)
	if strings.Count(both, " ") != 1 {
		t.Fatalf("after a rotation the signatures are %q", both)
	}
	late, lateSignature := signed(callback.Keys{Secret: secret}, now.Add(-4*time.Minute), body)
	old, oldSignature := signed(callback.Keys{Secret: secret}, now.Add(-6*time.Minute), body)
	early, earlySignature := signed(callback.Keys{Secret: secret}, now.Add(6*time.Minute), body)
	_, otherBody := signed(callback.Keys{Secret: secret}, now, append(bytes.Clone(body), '\n'))
	const taken, refused = "204 204 1", "401 401 0"
	cases := []struct{ name, secret, id, timestamp, signatures, want string }{
		{"good", secret, id, timestamp, signature, taken},
		{"both, the new secret", secret, id, timestamp, both, taken},
		{"both, the old secret", oldSecret, id, timestamp, both, taken},
		{"four minutes old", secret, id, late, lateSignature, taken},
		{"six minutes old", secret, id, old, oldSignature, refused},
		{"from the future", secret, id, early, earlySignature, refused},
		{"the wrong secret", oldSecret, id, timestamp, signature, refused},
		{"another id", secret, "evt_06GXWMZ3GSDC67G00000000089", timestamp, signature, refused},
		{"another time", secret, id, strconv.FormatInt(now.Unix()+1, 10), signature, refused},
		{"another body", secret, id, timestamp, otherBody, refused},
		{"no secret at all", "", id, timestamp, sign(nil, id+"."+timestamp+"."+string(body)), refused},
		{"another version", secret, id, timestamp, strings.Replace(signature, "v1,", "v2,", 1), refused},
		{"no version", secret, id, timestamp, strings.TrimPrefix(signature, "v1,"), refused},
		{"half a signature", secret, id, timestamp, signature[:20], refused},
		{"no signature", secret, id, timestamp, "", refused},
		{"no time", secret, id, "", signature, refused},
		{"a time that is none", secret, id, "now", signature, refused},
	}
	var input []string
	for _, c := range cases {
		input = append(input, strings.Join([]string{c.secret, c.id, c.timestamp, c.signatures}, "|"))
	}
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			for i, got := range l.ask(t, "webhooks.md", l.webhook, input, file) {
				if got != cases[i].want {
					t.Errorf("%s: %s, want %s", cases[i].name, got, cases[i].want)
				}
			}
		})
	}
}

// sign signs as the documents say, independently of the gateway.
func sign(key []byte, text string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func keyFromSecret(t *testing.T, secret string) []byte {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestCallSnippet has the shell call a server as the gateway does, and checks what arrives.
func TestCallSnippet(t *testing.T) {
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed: make deps installs it, or names its package", program)
		}
	}
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	dir := t.TempDir()
	example := readEventDoc(t, "poll.vote.example.json")
	if err := os.WriteFile(filepath.Join(dir, "body.json"), example, 0o600); err != nil {
		t.Fatal(err)
	}
	script := blocks(t, "webhooks.md", "bash")[1] + "\ncall \"$1\" \"$2\" body.json\n"
	if out := run(t, dir, "", "bash", "-c", script, "call", secret, server.URL); !strings.Contains(out, "204") {
		t.Fatal(out)
	}
	if !bytes.Equal(body, example) || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v arrived with %q", got.Header, body)
	}
	text := got.Header.Get("webhook-id") + "." + got.Header.Get("webhook-timestamp") + "." + string(body)
	if want := sign(keyFromSecret(t, secret), text); got.Header.Get("webhook-signature") != want {
		t.Errorf("signed %s, want %s", got.Header.Get("webhook-signature"), want)
	}
	if _, err := parley.EventID(got.Header.Get("webhook-id")).Seq(); err != nil {
		t.Errorf("the id %s: %v", got.Header.Get("webhook-id"), err)
	}
}

// TestCallbackSnippets has the snippets of otp.md check what a whole gateway calls when a login link is
// used, before and after its secret was changed, and others that they must refuse.
func TestCallbackSnippets(t *testing.T) {
	e := parleytest.Start(t)
	calls := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls <- r.URL.RawQuery
	}))
	defer server.Close()
	before := e.Get("/api/manage/channels/demo/secret", parleytest.As(e.Admin)).Expect(http.StatusOK).Text("data.secret")

	link := e.Post("/api/otp/link/request",
		`{"contact_id":"`+ayu+`","expires":300,"callback":{"success":"`+server.URL+`/ok?shop=1&x=a+b","failed":"`+server.URL+`/no"}}`).
		Expect(http.StatusOK)
	id := link.Text("data.id")
	open := func(number string) (query string) {
		e.Post("/api/sandbox/phones/"+number+"/open", `{"link":"`+link.Text("data.app_uri")+`"}`).Expect(http.StatusOK)
		return <-calls
	}
	failed := open("6281290000012")
	after := e.Post("/api/manage/channels/demo/secret/rotate", "", parleytest.As(e.Admin)).Expect(http.StatusOK).Text("data.secret")
	approved := open("6281234567890")
	if !strings.HasPrefix(approved, "shop=1&x=a+b&") {
		t.Errorf("the caller's own query became %s", approved)
	}
	if strings.Contains(failed+approved, link.Text("data.code")) {
		t.Errorf("the code is shown: %s, %s", failed, approved)
	}

	// What the gateway signs is what the document says.
	values, err := url.ParseQuery(failed)
	if err != nil {
		t.Fatal(err)
	}
	if want := sign(keyFromSecret(t, before), lines(values)); values.Get("signature") != want {
		t.Fatalf("signed %s, want %s for\n%s", values.Get("signature"), want, lines(values))
	}
	made := func(change func(url.Values)) string {
		v, err := url.ParseQuery(failed)
		if err != nil {
			t.Fatal(err)
		}
		change(v)
		v.Set("signature", sign(keyFromSecret(t, before), lines(v)))
		return v.Encode()
	}
	changed := func(from, to string) string {
		if !strings.Contains(failed, from) {
			t.Fatalf("%s is not in %s", from, failed)
		}
		return strings.Replace(failed, from, to, 1)
	}
	cases := []struct{ name, secret, query, want string }{
		{"failed", before, failed, "failed " + id},
		{"approved, the new secret", after, approved, "success " + id},
		{"approved, the old secret", before, approved, "success " + id},
		{"failed, the new secret", after, failed, "no"},
		{"another status", before, changed("status=failed", "status=success"), "no"},
		{"another link", before, changed("&id=otl_", "&id=otl_0"), "no"},
		{"another contact", before, changed("contact_id=6", "contact_id=7"), "no"},
		{"no reason", before, changed("&reason=wrong_sender", ""), "no"},
		{"a status put after it", before, failed + "&status=success", "no"},
		{"no signature", before, changed("&signature=", "&x="), "no"},
		{"no secret at all", "", changed(url.QueryEscape(values.Get("signature")), url.QueryEscape(sign(nil, lines(values)))), "no"},
		{"nothing", before, "", "no"},
		{"four minutes old", before, made(func(v url.Values) { v.Set("timestamp", parley.Stamp(time.Now().Add(-4*time.Minute))) }), "failed " +
			id},
		{"six minutes old", before, made(func(v url.Values) { v.Set("timestamp", parley.Stamp(time.Now().Add(-6*time.Minute))) }), "no"},
		{"from the future", before, made(func(v url.Values) { v.Set("timestamp", parley.Stamp(time.Now().Add(6*time.Minute))) }), "no"},
		{"a time that is none", before, made(func(v url.Values) { v.Set("timestamp", "at noon?") }), "no"},
	}
	var input []string
	for _, c := range cases {
		input = append(input, c.secret+"|"+c.query)
	}
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			for i, got := range l.ask(t, "otp.md", l.callback, input) {
				if got != cases[i].want {
					t.Errorf("%s: %s, want %s", cases[i].name, got, cases[i].want)
				}
			}
		})
	}
}

// lines is what is signed of the parameters of a callback.
func lines(v url.Values) string {
	var all []string
	for _, name := range []string{"contact_id", "event_id", "id", "reason", "status", "timestamp"} {
		if v.Has(name) {
			all = append(all, name+"="+v.Get(name))
		}
	}
	return strings.Join(all, "\n")
}
