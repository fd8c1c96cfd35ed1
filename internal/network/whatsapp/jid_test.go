package whatsapp

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"

	"parley"
)

func TestDigits(t *testing.T) {
	for number, want := range map[string]string{
		"6281234567890": "6281234567890", "+62 812-3456-7890": "6281234567890", "(62) 812.3456.7890": "6281234567890",
		"": "", "no number": "", "123456": "", "1234567890123456": "", "62812x4567890": "",
	} {
		if got := parseNumber(number); got != want {
			t.Errorf("%q gives %q, want %q", number, got, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	if got := phoneJID("6281234567890@c.us"); got.String() != "6281234567890@s.whatsapp.net" {
		t.Errorf("the address is %s", got)
	}
	for jid, want := range map[types.JID]parley.ContactID{
		types.NewJID("62811", types.DefaultUserServer): "62811@c.us",
		types.NewJID("62811", types.LegacyUserServer):  "62811@c.us",
		types.NewJID("99", types.HiddenUserServer):     "",
		types.NewJID("1", types.GroupServer):           "",
		types.EmptyJID:                                 "",
	} {
		if got, ok := toContact(jid); got != want || ok != (want != "") {
			t.Errorf("%s is %q, %t", jid, got, ok)
		}
	}
	for chat, want := range map[types.JID]bool{
		types.NewJID("62811", types.DefaultUserServer): true, types.NewJID("99", types.HiddenUserServer): true,
		types.NewJID("1", types.GroupServer): false, types.StatusBroadcastJID: false, types.PSAJID: false,
		types.NewJID("1", types.NewsletterServer): false,
	} {
		if got := isDirect(chat); got != want {
			t.Errorf("%s is a chat of two: %t", chat, got)
		}
	}
	for _, id := range []parley.GroupID{"", "1", "@g.us", "1@c.us"} {
		if jid, ok := groupJID(id); ok {
			t.Errorf("%q is the group %s", id, jid)
		}
	}
}

// TestLogsHaveNoSecrets passes on what whatsmeow says without stanzas and whole numbers.
func TestLogsHaveNoSecrets(t *testing.T) {
	var out bytes.Buffer
	l := newLogger(slog.New(slog.NewTextHandler(&out, nil)), "demo")
	stanza := &waBinary.Node{Tag: "message", Attrs: waBinary.Attrs{"from": "secret"}, Content: []byte("secret")}
	l.Sub("Recv").Warnf("Node handling took %s for %s", "6s", stanza)
	l.Errorf("no answer from %s: %v", types.NewJID("6281234567890", types.DefaultUserServer), errors.New("to 6289876543210"))
	l.Infof("secret")
	l.Debugf("secret")
	said := out.String()
	for _, wrong := range []string{"secret", "6281234567890", "6289876543210"} {
		if strings.Contains(said, wrong) {
			t.Errorf("the log has %s: %s", wrong, said)
		}
	}
	for _, want := range []string{"level=WARN", "level=ERROR", "<message>", "…7890", "channel=demo", "module=Recv"} {
		if !strings.Contains(said, want) {
			t.Errorf("the log lacks %s: %s", want, said)
		}
	}
	l.muted.Store(true)
	l.Errorf("after the end")
	if strings.Contains(out.String(), "after the end") {
		t.Error("a muted log speaks")
	}
}

// TestLogsAreBrief cuts what may be a stranger's text, and not in the midst of a character or of a number.
func TestLogsAreBrief(t *testing.T) {
	for text, want := range map[string]string{
		"short": "short", strings.Repeat("a", maxLogged): strings.Repeat("a", maxLogged), "": "", "a\xffb": "ab",
		strings.Repeat("a", maxLogged+1):           strings.Repeat("a", maxLogged-3) + "…",
		strings.Repeat("é", maxLogged):             strings.Repeat("é", (maxLogged-3)/2) + "…",
		strings.Repeat("a", 190) + "6281234567890": strings.Repeat("a", 190) + "…7890",
		strings.Repeat("a", 195) + "6281234567890": strings.Repeat("a", 195) + "…",
		strings.Repeat("1", 10_000):                "…1111",
	} {
		if got := redact("%s", []any{text}); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := redact("%v", []any{errors.New(text)}); got != want {
			t.Errorf("an error of %q: %q, want %q", text, got, want)
		}
	}
	if got := redact("%d of %v", []any{3, nil}); got != "3 of <nil>" {
		t.Error(got)
	}
}
