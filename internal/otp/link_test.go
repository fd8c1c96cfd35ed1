package otp

import (
	"bytes"
	crand "crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/encrypt"
	"parley/internal/store"
)

const (
	ayu  = parley.ContactID("6281234567890@c.us")
	budi = parley.ContactID("6289876543210@c.us")
)

// linkEnv is a store with two channels, and an issuer on it.
type linkEnv struct {
	*testing.T
	store   *store.DB
	issuer  *Issuer
	channel parley.Channel
	said    int
}

func newLinkEnv(t *testing.T) *linkEnv {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(dir, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	keyring, err := encrypt.OpenKeyFile(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	e := &linkEnv{T: t, store: db, issuer: New(Config{Store: db, Keyring: keyring, Network: describe,
		Now: func(parley.ChannelCode) time.Time { return time.Now() }})}
	for _, code := range []parley.ChannelCode{"other", "main"} {
		e.channel = parley.Channel{Code: code, Name: "Toko Ayu", Network: parley.WhatsApp, Number: "6281100000001"}
		e.channel.Begin(time.Now())
		e.tx(func(tx *store.Tx) error { return tx.AddChannel(t.Context(), e.channel) })
	}
	return e
}

func (e *linkEnv) tx(do func(tx *store.Tx) error) {
	e.Helper()
	if err := e.store.Tx(e.Context(), do); err != nil {
		e.Fatal(err)
	}
}

// request is a link for Ann with callbacks, to be changed.
func (e *linkEnv) request() LinkRequest {
	return LinkRequest{
		Channel: e.channel, Contact: ayu, OnSuccess: "https://a.example/ok?x=1", OnFailure: "https://a.example/no",
		Expires: 5 * time.Minute, Now: time.Now(), Base: "http://127.0.0.1:7275",
	}
}

// make makes a link and keeps it.
func (e *linkEnv) make(r LinkRequest) NewLink {
	e.Helper()
	l, err := e.issuer.NewLink(r)
	if err != nil {
		e.Fatal(err)
	}
	e.tx(func(tx *store.Tx) error { return tx.AddLink(e.Context(), l.OTPLink) })
	return l
}

// promptOf is what the link has typed in.
func (e *linkEnv) promptOf(l NewLink) string {
	e.Helper()
	u, err := url.Parse(l.Address)
	if err != nil {
		e.Fatal(err)
	}
	return u.Query().Get("text")
}

// message is a new text from somebody.
func (e *linkEnv) codeText(from parley.ContactID, text string) parley.Message {
	e.said++
	return parley.Message{Channel: e.channel.Code, Chat: from, ID: parley.MessageID(fmt.Sprintf("3A%06d", e.said)),
		Content: parley.Text{Body: text}, Status: parley.Received, CreatedAt: time.Now(), UpdatedAt: time.Now()}
}

// receive keeps a message as a gateway does, and returns the answers. One that exists already is
// stored once.
func (e *linkEnv) receive(m parley.Message) (answers []Reply) {
	e.Helper()
	hit, err := e.issuer.MatchMessage(e.Context(), e.channel, &m)
	if err != nil {
		e.Fatal(err)
	}
	err = e.store.Tx(e.Context(), func(tx *store.Tx) (err error) {
		answers = nil
		if err := tx.AddMessage(e.Context(), &m); err != nil || hit == nil {
			return err
		}
		reply, err := e.issuer.Redeem(e.Context(), tx, e.channel, hit)
		if reply != nil {
			answers = []Reply{*reply}
		}
		return err
	})
	if errors.Is(err, parley.ErrExists) {
		return nil
	}
	if err != nil {
		e.Fatal(err)
	}
	return answers
}

func (e *linkEnv) says(from parley.ContactID, text string) []Reply {
	e.Helper()
	return e.receive(e.codeText(from, text))
}

// stored returns the stored link.
func (e *linkEnv) stored(l NewLink) parley.OTPLink {
	e.Helper()
	now, err := e.store.Link(e.Context(), l.ID)
	if err != nil {
		e.Fatal(err)
	}
	return now
}

// otpEvents lists the events of one-time passwords, with their reasons, oldest first.
func (e *linkEnv) otpEvents() (events []string) {
	e.Helper()
	for after := int64(0); ; {
		page, reached, err := e.store.Events(e.Context(), after, parley.EventFilter{Types: []parley.EventType{parley.OTPApproved,
			parley.OTPFailed, parley.OTPExpired}}, 100)
		if err != nil {
			e.Fatal(err)
		}
		for _, event := range page {
			events = append(events, string(event.Type)+string(event.Data))
		}
		if reached == after {
			return events
		}
		after = reached
	}
}

// calls lists the addresses that are to be called, newest first.
func (e *linkEnv) calls() (list []string) {
	e.Helper()
	deliveries, _, err := e.store.Deliveries(e.Context(), parley.DeliveryQuery{}, parley.Page{Limit: 100})
	if err != nil {
		e.Fatal(err)
	}
	for _, d := range deliveries {
		if d.Webhook != "" || d.Event == 0 || d.EventID == "" || d.Chat != ayu || d.Channel != e.channel.Code ||
			d.State != parley.DeliveryWaiting {
			e.Errorf("a callback is not as it should be: %+v", d)
		}
		list = append(list, d.URL)
	}
	return list
}

func (e *linkEnv) same(what string, got, want any) {
	e.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		e.Errorf("%s: %s, want %s", what, g, w)
	}
}

// answered checks who was answered what.
func (e *linkEnv) answered(got []Reply, to parley.ContactID, text string) {
	e.Helper()
	if len(got) != 1 || got[0].To != to || got[0].Content.Text() != text {
		e.Errorf("answered %v, want %q to %s", got, text, to)
	}
}

func filled(l NewLink, which parley.LinkReply) string {
	return fill(l.Messages.Text(which), l.Code, l.Name)
}

func TestLinkCodesAreUniform(t *testing.T) {
	t.Parallel()
	const codes = 100_000
	var counts [linkCodeLength][256]int
	for range codes {
		code := randomCode(crand.Reader, linkAlphabet, linkCodeLength)
		if len(code) != linkCodeLength {
			t.Fatalf("%q", code)
		}
		for i := range len(code) {
			counts[i][code[i]]++
		}
	}
	expected := float64(codes) / float64(len(linkAlphabet))
	for i, count := range counts {
		chi, seen := 0.0, 0
		for _, c := range []byte(linkAlphabet) {
			d := float64(count[c]) - expected
			chi += d * d / expected
			seen += count[c]
		}
		if seen != codes {
			t.Errorf("position %d: %d characters are not of the alphabet", i, codes-seen)
		}
		if chi > 70 { // 30 degrees of freedom: once in 20,000 for one position
			t.Errorf("position %d: chi-square %.1f", i, chi)
		}
	}
}

func TestNewLinkStoresNoCode(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	l := e.make(e.request())
	kept := fmt.Sprintf("%+v", e.stored(l))
	if strings.Contains(kept, l.Code) || strings.Contains(kept, fmt.Sprint([]byte(l.Code))) {
		t.Errorf("what is kept holds the code %s: %s", l.Code, kept)
	}
	prompt := e.promptOf(l)
	for _, part := range []string{"Toko Ayu", l.Code, "If you did not start this, do not send."} {
		if !strings.Contains(prompt, part) {
			t.Errorf("our own prompt is %q, without %q", prompt, part)
		}
	}
	for _, which := range []parley.LinkReply{parley.ReplySuccess, parley.ReplyFailed, parley.ReplyExpired} {
		if text := filled(l, which); !strings.Contains(text, "Toko Ayu") || strings.Contains(text, l.Code) {
			t.Errorf("our own answer %q must name the application, and not the code", text)
		}
	}
	e.same("app_uri", strings.HasPrefix(l.AppURI, "whatsapp://send?phone=6281100000001&text=Log%20me%20in%20to%20Toko%20Ayu."), true)
	e.same("link", strings.HasPrefix(l.Address, "https://wa.me/6281100000001?text=Log%20me%20in%20to%20Toko%20Ayu."), true)
	e.same("life", l.ExpiresAt.Sub(l.CreatedAt), 5*time.Minute)
	e.same("encrypted outside of the sandbox", len(l.Encrypted), 0)
}

func TestNewLinkTexts(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	with := func(name string, m parley.LinkMessages) LinkRequest {
		r := e.request()
		r.Name, r.Messages = name, &m
		return r
	}
	m := parley.LinkMessages{Prompt: "Masuk ##name##", Success: "ok ##code##", Failed: "f", Expired: "e"}
	l := e.make(with("Warung", m))
	e.same("a prompt without the code", e.promptOf(l), "Masuk Warung "+l.Code)
	m.Prompt = "##code##: ##name##, ##code##!"
	l = e.make(with("##code##", m))
	e.same("a name that looks like a placeholder", e.promptOf(l), l.Code+": ##code##, "+l.Code+"!")

	for name, wrong := range map[string]struct {
		name string
		m    parley.LinkMessages
	}{
		"message.success": {strings.Repeat("n", 60), parley.LinkMessages{Prompt: "p", Success: strings.Repeat("##name##", 100),
			Failed: "f", Expired: "e"}},
		"message.prompt": {manyLetters(60), parley.LinkMessages{Prompt: amidNames("##code##"), Success: "s", Failed: "f", Expired: "e"}},
	} {
		_, err := e.issuer.NewLink(with(wrong.name, wrong.m))
		problem, ok := errors.AsType[*parley.Error](err)
		if !ok || problem.Code != parley.Invalid || len(problem.Fields) != 1 || problem.Fields[0].Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// amidNames is a prompt with a text amid more letters than are searched.
func amidNames(text string) string {
	letters, prompt := manyLetters(480), ""
	for at := 0; at < len(letters); at += 8 {
		if at == len(letters)/2 {
			prompt += text
		}
		prompt += letters[at:at+8] + "##name##"
	}
	return prompt
}

func TestSandboxLink(t *testing.T) {
	t.Parallel()
	e := newLinkEnv(t)
	e.channel.Network = parley.Sandbox
	l := e.make(e.request())
	u, err := url.Parse(l.Address)
	if err != nil {
		t.Fatal(err)
	}
	e.same("page", u.Scheme+"://"+u.Host+u.Path, "http://127.0.0.1:7275/phone/6281234567890")
	e.same("channel", u.Query().Get("to"), "main")
	prompt, err := e.issuer.Prompt(e.stored(l))
	e.same("encrypted prompt", prompt, e.promptOf(l))
	e.same("error", err, nil)
	if bytes.Contains(l.Encrypted, []byte(l.Code)) {
		t.Error("what is encrypted can be read")
	}

	ticket := strings.TrimPrefix(u.Fragment, "ticket=")
	if id, ok := e.issuer.LinkOfTicket(ticket); !ok || id != l.ID {
		t.Errorf("the ticket is for %q, %t", id, ok)
	}
	other := e.make(e.request())
	for name, forged := range map[string]string{
		"empty": "", "an id": string(l.ID), "cut": ticket[:len(ticket)-1], "longer": ticket + "A",
		"of another": string(other.ID) + ticket[len(other.ID):], "changed": ticket[:len(ticket)-2] + "zz", "garbage": strings.Repeat("x", 200),
	} {
		if id, ok := e.issuer.LinkOfTicket(forged); ok {
			t.Errorf("%s: a forged ticket is good for %s", name, id)
		}
	}
	// The second link ended the first, which may be tapped no more by its id.
	if _, err := e.issuer.Prompt(e.stored(l)); !errors.Is(err, parley.ErrNotFound) {
		t.Errorf("the prompt of a link that ended: %v", err)
	}
}
