package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/network/cloud/cloudtest"
	"parley/internal/store"
)

const friendNumber = "6281234567890"

var friend = parley.NewContactID(friendNumber)

// inbox is a sink that stores its events.
type inbox struct {
	mu     sync.Mutex
	events []network.Event
	fail   error // the response to events; nil: they are stored
}

func (in *inbox) sink(_ context.Context, e network.Event) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.fail == nil {
		in.events = append(in.events, e)
	}
	return in.fail
}

// await waits for an event of a type that matches.
func await[E network.Event](w *world, in *inbox, matches func(E) bool) E {
	w.Helper()
	var found E
	w.await(func() bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		return slices.ContainsFunc(in.events, func(e network.Event) bool {
			var ok bool
			found, ok = e.(E)
			return ok && matches(found)
		})
	})
	return found
}

func (w *world) await(done func() bool) {
	w.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatal("it did not happen")
		}
	}
}

// open opens the channel and waits until it works.
func (w *world) open() (*session, *inbox) {
	w.Helper()
	in := &inbox{}
	s, err := w.driver.Open(w.Context(), w.channel, in.sink)
	w.must(err)
	w.Cleanup(func() { s.Close() })
	await(w, in, func(e network.State) bool { return e.Status == parley.ChannelWorking })
	return s.(*session), in
}

func (w *world) text(body string) *parley.Message {
	return &parley.Message{Channel: code, Chat: friend, ID: w.driver.NewID(), FromMe: true, Content: parley.Text{Body: body}}
}

// set changes the settings of the channel before it is opened.
func (w *world) set(c parley.CloudSettings) { w.channel.Settings.Cloud = &c }

func (w *world) copies(m *parley.Message) int { return w.meta.Copies(opaque(w.channel.ID, m.ID)) }

// TestUnknownOutcome loses responses in every way. A status resolves each, and the message was sent once.
func TestUnknownOutcome(t *testing.T) {
	for _, lost := range []string{"timeout", "reset", "5xx", "empty", "cut"} {
		t.Run(lost, func(t *testing.T) {
			w := newWorld(t)
			s, in := w.open()
			w.number.SetStatuses(cloudtest.StatusesWithheld)
			w.number.Next(cloudtest.Fault{Lost: lost})
			m := w.text("once")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if lost == "timeout" {
				go func() { w.await(func() bool { return w.copies(m) == 1 }); cancel() }()
			}
			err := s.Send(ctx, []*parley.Message{m})[0]
			e, ok := errors.AsType[*network.Error](err)
			if !ok || e.Class != network.Unknown || e.RetryAfter != defaultUnknownWait {
				t.Fatalf("got %v, want an unknown outcome that waits", err)
			}
			if err := s.Send(t.Context(), []*parley.Message{m})[0]; network.ToClass(err) != network.Unknown || w.copies(m) != 1 {
				t.Errorf("before a status came: %v, and %d copies", err, w.copies(m))
			}
			w.number.ReleaseStatuses()
			await(w, in, func(r network.Receipt) bool { return r.Status == parley.Sent && r.IDs[0] == m.ID && r.From == friend })
			if err := s.Send(t.Context(), []*parley.Message{m})[0]; err != nil || w.copies(m) != 1 {
				t.Errorf("after a status: %v, and %d copies", err, w.copies(m))
			}
		})
	}
}

// TestUnknownAfterWait has no status come: the message is sent again, or fails, and a copy is counted.
func TestUnknownAfterWait(t *testing.T) {
	for _, action := range []parley.UnknownAction{parley.ResendUnknown, parley.FailUnknown} {
		t.Run(string(action), func(t *testing.T) {
			w := newWorld(t)
			w.set(parley.CloudSettings{OnUnknown: action, UnknownWait: parley.Duration(time.Nanosecond)})
			s, _ := w.open()
			w.number.SetStatuses(cloudtest.StatusesWithheld)
			w.number.Next(cloudtest.Fault{Lost: "reset"})
			m := w.text("perhaps twice")
			m.CreatedAt, m.ExpiresAt = time.Now(), time.Now().Add(time.Hour)
			w.must(w.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.AddMessage(t.Context(), m) }))
			stored := func() int {
				now, err := w.store.Message(t.Context(), code, m.Ref())
				w.must(err)
				return now.Copies
			}
			if err := s.Send(t.Context(), []*parley.Message{m})[0]; network.ToClass(err) != network.Unknown {
				t.Fatal(err)
			}
			err := s.Send(t.Context(), []*parley.Message{m})[0]
			if action == parley.FailUnknown {
				if e, ok := errors.AsType[*network.Error](err); !ok || e.Failure.Code != parley.UnknownOutcome || w.copies(m) != 1 {
					t.Errorf("got %v, and %d copies", err, w.copies(m))
				}
				return
			}
			if err != nil || w.copies(m) != 2 || stored() != 1 {
				t.Errorf("got %v, and %d copies, of which we know %d", err, w.copies(m), stored())
			}
			w.number.ReleaseStatuses()
			w.await(func() bool { return stored() == 2 })
			w.await(func() bool { return count(t, w.driver.metrics.doubles) == 1 && count(t, w.driver.metrics.resends) == 1 })
		})
	}
}

// TestAttemptSurvives has the process end after the attempt was stored: the next one waits for a status before it sends.
func TestAttemptSurvives(t *testing.T) {
	w := newWorld(t)
	m := w.text("later")
	w.must(w.store.Tx(t.Context(), func(tx *store.Tx) error {
		return tx.BeginRemoteSend(t.Context(), code, m.ID, m.Chat, time.Now().Add(-time.Hour), false)
	}))
	s, _ := w.open() // statuses can come from now on
	err := s.Send(t.Context(), []*parley.Message{m})[0]
	if network.ToClass(err) != network.Unknown || w.copies(m) != 0 {
		t.Errorf("got %v, and %d copies", err, w.copies(m))
	}
}

// TestStatusFirst has a status come before the response.
func TestStatusFirst(t *testing.T) {
	w := newWorld(t)
	s, in := w.open()
	w.number.Next(cloudtest.Fault{StatusFirst: true})
	m := w.text("fast")
	if err := s.Send(t.Context(), []*parley.Message{m})[0]; err != nil {
		t.Fatal(err)
	}
	await(w, in, func(r network.Receipt) bool { return r.Status == parley.Delivered && r.IDs[0] == m.ID })
	if n := count(t, w.driver.metrics.doubles); n != 0 {
		t.Errorf("%v doubles", n)
	}
}

// TestRefusals has Meta refuse messages: each code has its consequence.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	s, in := w.open()
	send := func(f cloudtest.Fault) *network.Error {
		t.Helper()
		w.number.Next(f)
		err := s.Send(t.Context(), []*parley.Message{w.text("hi")})[0]
		e, ok := errors.AsType[*network.Error](err)
		if !ok {
			t.Fatalf("got %v", err)
		}
		return e
	}
	for i, pause := range []time.Duration{1, 4, 16, 64, 256, 256} {
		if e := send(cloudtest.Fault{Code: 131056}); e.RetryAfter != pause*time.Second || e.PauseChannel {
			t.Errorf("pair limit %d: %+v, want %d s for this chat", i, e, pause)
		}
	}
	if e := send(cloudtest.Fault{Code: 130429, RetryAfter: "7"}); e.RetryAfter != 7*time.Second || !e.PauseChannel {
		t.Errorf("the rate: %+v", e)
	}
	if e := send(cloudtest.Fault{Code: 80007}); e.RetryAfter != 2*time.Second || !e.PauseChannel {
		t.Errorf("the quota: %+v", e)
	}
	if e := send(cloudtest.Fault{Code: 131049}); e.Failure.Code != parley.HeldBack || time.Until(e.Failure.Until) < 23*time.Hour {
		t.Errorf("held back: %+v", e)
	}
	if err := s.Send(t.Context(), []*parley.Message{w.text("ok")})[0]; err != nil {
		t.Fatal(err)
	}
	if e := send(cloudtest.Fault{Code: 131056}); e.RetryAfter != time.Second {
		t.Errorf("after a success: %+v", e)
	}
	if e := send(cloudtest.Fault{Code: 190}); e.Class != network.Disconnected {
		t.Errorf("the token: %+v", e)
	}
	state := await(w, in, func(e network.State) bool { return e.Status == parley.ChannelFailed })
	if !strings.HasSuffix(state.Reason, "parley channel credentials test") {
		t.Errorf("the reason is %q", state.Reason)
	}
	// Open attempts would make later sends wait.
	_, total, err := w.store.RemoteContacts(t.Context(), code, parley.Page{Limit: 1})
	if err != nil || total != 0 {
		t.Errorf("%d contacts, %v", total, err)
	}
}

// TestFailsLater has a message fail after it was accepted.
func TestFailsLater(t *testing.T) {
	w := newWorld(t)
	s, in := w.open()
	w.number.SetStatuses(cloudtest.StatusesAnonymous) // it is known by Meta's id
	for code, want := range map[int]parley.FailureCode{131026: parley.NotOnNetwork, 131047: parley.OutsideWindow,
		131042: parley.PaymentProblem, 132015: parley.TemplateProblem, 999: parley.Refused} {
		w.number.Next(cloudtest.Fault{FailLater: code})
		m := w.text("hi")
		if err := s.Send(t.Context(), []*parley.Message{m})[0]; err != nil {
			t.Fatal(err)
		}
		r := await(w, in, func(r network.Receipt) bool { return r.IDs[0] == m.ID && r.Status == parley.Failed })
		if r.Failure == nil || r.Failure.Code != want || !strings.HasSuffix(r.Failure.Message, ".") {
			t.Errorf("%d: %+v", code, r.Failure)
		}
	}
	if _, exists, err := s.CheckNumber(t.Context(), friendNumber); exists || err != nil {
		t.Errorf("a contact that cannot be reached exists: %t, %v", exists, err)
	}
}

// TestSpelling has Meta spell a number in another way.
func TestSpelling(t *testing.T) {
	w := newWorld(t)
	s, in := w.open()
	for asked, number := range map[parley.ContactID]string{"5215512345678@c.us": "525512345678", friend: friendNumber, "6281@c.us": ""} {
		w.must(s.learnSpelling(asked, number))
	}
	await(w, in, func(a network.Alias) bool { return a.Asked == "5215512345678@c.us" && a.Contact == "525512345678@c.us" })
	if n := len(in.events); n != 3 { // and two states
		t.Errorf("%d events: %+v", n, in.events)
	}
}

// TestWindow sends a text to somebody who wrote long ago, and to somebody who never wrote.
func TestWindow(t *testing.T) {
	w := newWorld(t)
	w.meta.SetTemplate(cloudtest.Template{Name: "notice", Language: "id", Status: "APPROVED", Category: "UTILITY",
		Components: json.RawMessage(`[{"type":"BODY","text":"Kabar: {{1}}"}]`)})
	w.number.Window = true
	w.setAccount(func(a *account) { a.HeardSince = time.Now().Add(-25 * time.Hour) })
	s, _ := w.open()
	var m *parley.Message
	refused := func(to parley.ContactID) bool {
		t.Helper()
		m = w.text("hi\n  there  ")
		m.Chat, m.CreatedAt = to, time.Now()
		w.must(w.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.AddMessage(t.Context(), m) }))
		err := s.Send(t.Context(), []*parley.Message{m})[0]
		if e, ok := errors.AsType[*network.Error](err); ok {
			return e.Failure.Code == parley.OutsideWindow && w.copies(m) == 0
		}
		w.must(err)
		return false
	}
	if !refused(friend) {
		t.Error("a text to a stranger is sent")
	}
	if refused("5511912345678@c.us") {
		t.Error("a number with two spellings is refused without asking Meta")
	}
	w.set(parley.CloudSettings{OutsideWindow: &parley.TemplateName{Name: "notice", Language: "id"}})
	w.must(s.Close())
	s, in := w.open()
	if refused(friend) {
		t.Error("it is refused although there is a template for it")
	}
	shown := w.number.Phone(friendNumber).Shows()
	if len(shown) != 1 || shown[0].Type != "template" || shown[0].Template.Components[0].Parameters[0].Text != "hi / there" {
		t.Errorf("the phone shows %+v", shown)
	}
	sentAs := func() parley.Kind {
		t.Helper()
		stored, err := w.store.Message(t.Context(), code, m.Ref())
		w.must(err)
		return stored.Content.(parley.Text).SentAs
	}
	if as := sentAs(); as != parley.KindTemplate {
		t.Errorf("it was sent as %q", as)
	}
	w.number.Phone(friendNumber).Text("hello")
	await(w, in, func(m network.Message) bool { return m.Content.Text() == "hello" })
	if refused(friend) {
		t.Error("it is refused after they wrote")
	}
	if shown := w.number.Phone(friendNumber).Shows(); len(shown) != 2 || shown[1].Type != "text" || sentAs() != "" {
		t.Errorf("the phone shows %+v", shown)
	}
}

// TestMarkRead marks what comes in as read, if the channel is set up that way.
func TestMarkRead(t *testing.T) {
	w := newWorld(t)
	s, in := w.open()
	phone := w.number.Phone(friendNumber)
	before := phone.Text("one")
	await(w, in, func(m network.Message) bool { return m.Content.Text() == "one" })
	w.must(s.Close())
	w.set(parley.CloudSettings{MarkRead: true})
	w.open()
	after := phone.Text("two")
	w.await(func() bool { return phone.WasSeen(after) })
	if phone.WasSeen(before) {
		t.Error("a message is marked as read although the channel does not do that")
	}
}

// TestTemplateFile sends templates whose header is a file.
func TestTemplateFile(t *testing.T) {
	w := newWorld(t)
	s, _ := w.open()
	for format, mime := range map[string]string{"IMAGE": "image/png", "VIDEO": "video/mp4", "DOCUMENT": "application/pdf"} {
		name := "with_" + strings.ToLower(format)
		w.meta.SetTemplate(cloudtest.Template{Name: name, Language: "id", Status: "APPROVED", Category: "UTILITY",
			Components: json.RawMessage(`[{"type":"HEADER","format":"` + format + `"},{"type":"BODY","text":"Halo."}]`)})
		file := w.keepFile(t, []byte(format), parley.Media{MIME: mime, Filename: "a.pdf"})
		for media, refused := range map[*parley.Media]bool{&file: false, nil: true} {
			m := w.text("")
			m.Content = parley.Template{Name: name, Language: "id", Media: media}
			if media == nil {
				m.Content = parley.Template{Name: name, Language: "id", Header: "a title"}
			}
			if err := s.Send(t.Context(), []*parley.Message{m})[0]; (err != nil) != refused {
				t.Errorf("%s with %v: %v", name, media, err)
			}
		}
	}
	if shown := w.number.Phone(friendNumber).Shows(); len(shown) != 3 {
		t.Errorf("the phone shows %+v", shown)
	}
	if sentence := w.driver.CheckFile(parley.Template{Media: &parley.Media{MIME: "image/webp"}}); sentence == "" {
		t.Error("a WebP is taken as the header of a template")
	}
}

// TestCode sends a one-time code, in Meta's words.
func TestCode(t *testing.T) {
	w := newWorld(t)
	w.meta.SetTemplate(cloudtest.Template{Name: CodesTemplate.Name, Language: CodesTemplate.Language, Status: "APPROVED",
		Category: "AUTHENTICATION", Components: json.RawMessage(`[{"type":"BODY"}]`)})
	s, _ := w.open()
	m := w.text("*123456* is your code.")
	m.Content = parley.Text{Body: "*123456* is your code.", Code: "123456"}
	w.must(s.Send(t.Context(), []*parley.Message{m})[0])
	shown := w.number.Phone(friendNumber).Shows()
	if len(shown) != 1 || len(shown[0].Template.Components) != 2 {
		t.Fatalf("the phone shows %+v", shown)
	}
	for _, c := range shown[0].Template.Components {
		if c.Parameters[0].Text != "123456" {
			t.Errorf("the phone shows %+v", c)
		}
	}
	w.meta.SetTemplate(cloudtest.Template{Name: CodesTemplate.Name, Language: CodesTemplate.Language, Status: "PAUSED"})
	again := w.text("")
	again.Content = m.Content
	err := s.Send(t.Context(), []*parley.Message{again})[0]
	if e, ok := errors.AsType[*network.Error](err); !ok || e.Failure.Code != parley.TemplateProblem {
		t.Errorf("with a paused template: %v", err)
	}
}

// TestRate sends faster than the number may, which has messages wait and never be refused.
func TestRate(t *testing.T) {
	w := newWorld(t)
	s, _ := w.open()
	var sending sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	for i := range 160 {
		sending.Go(func() {
			m := w.text("hi")
			m.Chat = parley.NewContactID(fmt.Sprint(6281200000000 + i))
			if err := s.Send(t.Context(), []*parley.Message{m})[0]; err != nil {
				mu.Lock()
				failed = append(failed, err)
				mu.Unlock()
			}
		})
	}
	sending.Wait()
	if len(failed) > 0 {
		t.Errorf("%d failed: %v", len(failed), failed[0])
	}
}

// TestUploadOnce sends a file twice, which is uploaded once, and one that Meta does not accept.
func TestUploadOnce(t *testing.T) {
	w := newWorld(t)
	s, _ := w.open()
	picture := w.keepFile(t, []byte("a picture"), parley.Media{MIME: "image/png"})
	for range 2 {
		m := w.text("")
		m.Content = parley.Image{Media: picture}
		w.must(s.Send(t.Context(), []*parley.Message{m})[0])
	}
	shown := w.number.Phone(friendNumber).Shows()
	if len(shown) != 2 || shown[0].Image.ID != shown[1].Image.ID {
		t.Errorf("the phone shows %+v", shown)
	}
	m := w.text("")
	picture.MIME = "image/gif"
	m.Content = parley.Image{Media: picture}
	if e, ok := errors.AsType[*network.Error](s.Send(t.Context(), []*parley.Message{m})[0]); !ok || e.Failure.Code != parley.Refused {
		t.Errorf("a moving picture: %v", e)
	}
	if known, err := w.store.RemoteSend(t.Context(), code, m.ID); err != nil || !known.AttemptAt.IsZero() {
		t.Errorf("a file that was never sent has an attempt: %+v, %v", known, err)
	}
}

// TestUnreachable has no server respond: nothing may have left.
func TestUnreachable(t *testing.T) {
	w := newWorld(t)
	s, in := w.open()
	w.setAccount(func(a *account) { a.GraphURL = "http://127.0.0.1:1" })
	m := w.text("hi")
	if err := s.Send(t.Context(), []*parley.Message{m})[0]; network.ToClass(err) != network.Disconnected {
		t.Errorf("got %v", err)
	}
	if known, err := w.store.RemoteSend(t.Context(), code, m.ID); err != nil || !known.AttemptAt.IsZero() {
		t.Errorf("its attempt is open: %+v, %v", known, err)
	}
	s.checkSoon()
	await(w, in, func(e network.State) bool { return e.Status == parley.ChannelReconnecting })
}

// TestNumberState follows what Meta says of the number.
func TestNumberState(t *testing.T) {
	w := newWorld(t)
	s, in := w.open()
	w.number.Level = "HIGH"
	w.number.Report("phone_number_quality_update", map[string]any{"event": "THROUGHPUT_UPGRADE"})
	w.await(func() bool { _, calls := s.Limits(); return calls == 256 })
	w.meta.SetToken("EAAother")
	s.checkSoon()
	await(w, in, func(e network.State) bool { return e.Status == parley.ChannelFailed })
	w.setAccount(func(a *account) { a.AccessToken = "EAAother" })
	s.checkSoon()
	w.await(func() bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		last, ok := in.events[len(in.events)-1].(network.State)
		return ok && last.Status == parley.ChannelWorking && last.Phone.Number == ownNumber
	})
}

func (w *world) setAccount(change func(*account)) {
	w.Helper()
	a, _, err := w.driver.account(w.Context(), w.channel)
	w.must(err)
	change(&a)
	text, err := json.Marshal(a)
	w.must(err)
	w.must(w.SetCredentials(w.Context(), w.channel, text))
}

// TestExamine finds the problems of an account.
func TestExamine(t *testing.T) {
	w := newWorld(t)
	s, in := w.open()
	found := func() (words []string) {
		for _, p := range w.driver.Examine(w.channel) {
			if !strings.HasSuffix(p.Text, ".") || p.Remedy == "" || strings.Contains(p.Text, "EAA") {
				t.Errorf("no sentence, or no remedy: %+v", p)
			}
			word := strings.TrimPrefix(p.Code, "cloud_")
			if p.Serious {
				word += "!"
			}
			words = append(words, word)
		}
		return words
	}
	want := func(step string, words ...string) {
		t.Helper()
		if got := found(); !slices.Equal(got, words) {
			t.Errorf("%s: found %q, want %q", step, got, words)
		}
	}
	check := func(change func()) {
		t.Helper()
		s.mu.Lock()
		before := s.checked
		s.mu.Unlock()
		change()
		s.checkSoon()
		w.await(func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.checked.After(before)
		})
	}
	usual := []string{"codes_template"} // the server has no template yet
	check(func() { w.setAccount(func(a *account) { a.HeardSince = time.Now() }) })
	want("at first", usual...)
	check(func() { w.number.Set(func(n *cloudtest.Number) { n.Quality, n.Status = "YELLOW", "FLAGGED" }) })
	want("yellow", append([]string{"number_not_connected", "quality"}, usual...)...)
	check(func() { w.number.Set(func(n *cloudtest.Number) { n.Quality, n.Status = "RED", "CONNECTED" }) })
	want("red", append([]string{"quality!"}, usual...)...)
	check(func() { w.number.Set(func(n *cloudtest.Number) { n.Quality = "GREEN" }) })

	for left, word := range map[time.Duration]string{10 * 24 * time.Hour: "token_expires", 24 * time.Hour: "token_expires!"} {
		check(func() { w.setAccount(func(a *account) { a.TokenExpires = time.Now().Add(left) }) })
		want("a token that expires", append([]string{word}, usual...)...)
	}
	check(func() { w.setAccount(func(a *account) { a.TokenExpires, a.HeardSince = time.Time{}, time.Time{} }) })
	want("without reports", append(slices.Clone(usual), "no_webhook")...)
	check(func() { w.setAccount(func(a *account) { a.HeardSince = time.Now() }) })
	const ours = "https://gw.example.com/network/cloud/toko"
	w.driver.config.Address = func(parley.Channel) string { return ours }
	setWebhook := func(address string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.number.Webhook.Phone = address
	}
	setWebhook(ours)
	want("reports here", usual...)
	setWebhook("https://old.example.com/network/cloud/toko")
	want("reports elsewhere", append(slices.Clone(usual), "webhook_elsewhere!")...)
	w.driver.config.Address = nil

	w.number.SetStatuses(cloudtest.StatusesWithheld)
	for range silentAfter {
		if err := s.Send(t.Context(), []*parley.Message{w.text("hi")})[0]; err != nil {
			t.Fatal(err)
		}
	}
	want("only now", usual...)
	s.mu.Lock()
	s.seen.silentAt = time.Now().Add(-silentFor)
	s.mu.Unlock()
	want("silent", append(slices.Clone(usual), "webhook_silent!")...)
	w.number.ReleaseStatuses()
	w.await(func() bool { return slices.Equal(found(), usual) })

	s.noteUnknown()
	w.driver.noteBadSignature(code)
	want("unknown and forged", append(append([]string{"signature"}, usual...), "unknown")...)
	w.meta.SetToken("EAAother")
	s.checkSoon()
	await(w, in, func(e network.State) bool { return e.Status == parley.ChannelFailed })
	if got := found(); !slices.Contains(got, "token_invalid!") {
		t.Errorf("with another token: %q", got)
	}
}
