package whatsapp

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
)

// TestLostConfirmation loses what the network says about a message: the outcome is unknown, and sent again
// under the same id it is shown once.
func TestLostConfirmation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.paired()
	for name, send := range map[string]func(*session, *parley.Message) error{"the ack": w.losesAck, "the socket": w.losesSocket} {
		t.Run(name, func(t *testing.T) {
			m := w.text(friendID, name)
			if err := send(s, m); network.ToClass(err) != network.Unknown {
				t.Fatalf("without a confirmation: %v, class %d", err, network.ToClass(err))
			}
			w.friend.Expect(t, whatsapptest.ID(string(m.ID)))
			w.sentSoon(s, m)
			after := w.sentSoon(s, w.text(friendID, "after "+name))
			w.friend.Expect(t, whatsapptest.ID(string(after.ID)))
			shown := slices.DeleteFunc(w.friend.Inbox(), func(x whatsapptest.Message) bool { return x.ID != string(m.ID) })
			if len(shown) != 1 || shown[0].Text != name {
				t.Errorf("the phone shows %+v", shown)
			}
			if e, _ := w.Trace(string(m.ID)); e.Stanzas != 2 {
				t.Errorf("the network was given it %d times", e.Stanzas)
			}
		})
	}
	w.sealedAll()
}

// losesSocket sends a message after which the network hangs up.
func (w *world) losesSocket(s *session, m *parley.Message) error {
	w.Inject(whatsapptest.DropAfterAccept().To(w.friend))
	return send(s, m)
}

// sentSoon sends a message as the outbox does: again while there is no connection.
func (w *world) sentSoon(s *session, m *parley.Message) *parley.Message {
	w.t.Helper()
	deadline := time.Now().Add(hang)
	for {
		err := send(s, m)
		switch {
		case err == nil:
			return m
		case network.ToClass(err) == network.Permanent || time.Now().After(deadline):
			w.t.Fatal(err)
		}
		must(w.t, w.link.Online(within(w.t)))
	}
}

// TestLostBeforeTaking cuts the socket under a message that the network never saw.
func TestLostBeforeTaking(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	w.Inject(whatsapptest.DropBeforeAccept().To(w.friend))
	m := w.text(friendID, "once")
	if err := send(s, m); err != nil && network.ToClass(err) != network.Unknown {
		t.Fatalf("a broken socket: %v", err)
	}
	w.sentSoon(s, m)
	if got := w.friend.Expect(t, whatsapptest.ID(string(m.ID))); got.Copies != 1 {
		t.Errorf("the phone shows %+v", got)
	}
}

// TestNothingUnsealedIsSent fails everything that encrypting needs: the send fails, nothing reaches the
// network, and later the same message goes out under the same id.
func TestNothingUnsealedIsSent(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.dir, "whatsapp.db")+"?_pragma=busy_timeout(10000)")
	must(t, err)
	defer db.Close()
	run := func(statement string) func() {
		return func() {
			t.Helper()
			_, err := db.ExecContext(t.Context(), statement)
			must(t, err)
		}
	}
	w.sent(s, w.text(friendID, "the devices are known"))
	for name, test := range map[string]struct {
		to          *whatsapptest.Phone
		break_, fix func()
	}{
		"the server gives no keys": {w.other, func() { w.Inject(whatsapptest.FailIQ("encrypt", 500)) }, w.ClearFaults},
		"sessions cannot be read": {w.Phone("6289876543220"),
			run(`ALTER TABLE states RENAME TO gone`), run(`ALTER TABLE gone RENAME TO states`)},
		"sessions cannot be kept": {w.Phone("6289876543221"),
			run(`CREATE TRIGGER broken BEFORE INSERT ON states BEGIN SELECT RAISE(ABORT, 'broken'); END`), run(`DROP TRIGGER broken`)},
	} {
		t.Run(name, func(t *testing.T) {
			m := w.text(parley.NewContactID(test.to.Number()), name)
			test.break_()
			if err := send(s, m); err == nil || network.ToClass(err) != network.Temporary {
				t.Errorf("it was sent: %v", err)
			}
			if e, ok := w.Trace(string(m.ID)); ok {
				t.Errorf("the network was given %+v", e)
			}
			test.fix()
			w.sent(s, m)
			test.to.Expect(t, whatsapptest.ID(string(m.ID)))
		})
	}
	w.sealedAll()
}

// TestRestricted reports that the account may not write to strangers, and until when.
func TestRestricted(t *testing.T) {
	w := newWorld(t, whatsapptest.RefusesStrangers(463))
	s, _ := w.paired()
	refused := func() *network.Error {
		t.Helper()
		e, ok := errors.AsType[*network.Error](send(s, w.text(friendID, "hello")))
		if !ok || e.Class != network.Permanent || e.Failure.Code != parley.Restricted || e.Failure.Message == "" {
			t.Fatalf("it was answered %+v", e)
		}
		return e
	}
	if e := refused(); !e.Failure.Until.IsZero() {
		t.Errorf("nobody said until when, and yet: %s", e.Failure.Until)
	}
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	lock := &events.NotifyAccountReachoutTimelock{IsActive: true}
	lock.TimeEnforcementEnds.Time = until
	s.current.Load().handleEvent(lock)
	if e := refused(); !e.Failure.Until.Equal(until) {
		t.Errorf("it holds until %s, want %s", e.Failure.Until, until)
	}
	w.Inject(whatsapptest.RefuseMessage(475).To(w.other))
	if e, ok := errors.AsType[*network.Error](send(s, w.text(otherID, "hello"))); !ok || e.Failure.Code != parley.Restricted {
		t.Errorf("475 is answered %+v", e)
	}
	w.sent(s, w.text(otherID, "the channel works on"))
}

// TestFailedUpload is tried again, unless there is nothing to upload.
func TestFailedUpload(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	w.Inject(whatsapptest.FailUpload(500))
	picture := w.keepFile(t, []byte("a picture"), parley.Media{MIME: "image/png"})
	m := w.outgoing(friendID, parley.Image{Media: picture})
	if err := send(s, m); err == nil || network.ToClass(err) != network.Temporary {
		t.Errorf("a failed upload: %v", err)
	}
	w.sent(s, m)
	m = w.outgoing(friendID, parley.Image{Media: parley.Media{Key: "none"}})
	if err := send(s, m); network.ToClass(err) != network.Permanent {
		t.Errorf("a file that is gone: %v", err)
	}
}

// TestAbsentNumberIsAskedForOnce remembers who is not on the network, and who is.
func TestAbsentNumberIsAskedForOnce(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	absent := parley.NewContactID(absentNumber)
	for range 2 {
		if err := send(s, w.text(absent, "hello")); !errors.Is(err, errAbsent) {
			t.Errorf("to nobody: %v", err)
		}
		w.Inject(whatsapptest.FailIQ("usync", 500)) // another question would fail
	}
	w.ClearFaults()
	w.Phone(absentNumber)
	if _, exists, err := s.CheckNumber(t.Context(), absentNumber); err != nil || !exists {
		t.Errorf("somebody joined: %t, %v", exists, err)
	}
	w.sent(s, w.text(absent, "welcome"))
}

// TestLeftTheNetwork writes to somebody whose address is known and who is not there any more.
func TestLeftTheNetwork(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	absent := parley.NewContactID(absentNumber)
	must(t, s.current.Load().client.Store.LIDs.PutLIDMapping(t.Context(),
		types.NewJID("123456789012345", types.HiddenUserServer), phoneJID(absent)))
	if err := send(s, w.text(absent, "hello")); !errors.Is(err, errAbsent) {
		t.Errorf("to somebody who left: %v", err)
	}
	w.sealedAll()
}

// TestNoAddress writes to somebody whom the network knows and gives no address for: that may change.
func TestNoAddress(t *testing.T) {
	w := newWorld(t, whatsapptest.Shown(whatsapptest.OnlyNumber))
	s, _ := w.paired()
	if err := send(s, w.text(friendID, "hello")); err == nil || network.ToClass(err) != network.Temporary {
		t.Errorf("without an address: %v", err)
	}
}

// TestDeadSocketIsNotAbsence asks the network while it does not answer: nobody is said not to be there.
func TestDeadSocketIsNotAbsence(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	skip := in.count()
	w.Down()
	err := send(s, w.text(friendID, "hello"))
	if class := network.ToClass(err); class != network.Disconnected && class != network.Unknown {
		t.Errorf("a dead socket: %v, class %d", err, class)
	}
	if _, exists, err := s.CheckNumber(t.Context(), otherNumber); err == nil || exists || network.ToClass(err) != network.Disconnected {
		t.Errorf("a dead socket: exists %t, %v", exists, err)
	}
	in.statusAfter(skip, parley.ChannelReconnecting)
	w.Up()
	in.statusAfter(in.count()-1, parley.ChannelWorking)
	w.sent(s, w.text(otherID, "back"))
}

// TestSettingsConflict changes what the phone has changed meanwhile.
func TestSettingsConflict(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	w.link.HoldNotifications(true)
	must(t, w.owner.Change(t.Context(), appstate.BuildPin(w.friend.JID(), true)))
	w.sent(s, w.outgoing(friendID, parley.Archive{Archived: true}))
	w.link.HoldNotifications(false)
	archived := func(want bool) {
		t.Helper()
		_, err := w.owner.AwaitSetting(within(t), func(m appstate.Mutation) bool {
			return m.Index[0] == appstate.IndexArchive && m.Index[1] == w.friend.JID().String() &&
				m.Action.GetArchiveChatAction().GetArchived() == want
		})
		must(t, err)
	}
	archived(true)
	w.sent(s, w.outgoing(friendID, parley.Archive{}))
	archived(false)
	m := w.sent(s, w.text(friendID, "keep this"))
	w.sent(s, w.outgoing(friendID, parley.Star{Target: m.Ref(), Starred: true}))
	_, err := w.owner.AwaitSetting(within(t), func(x appstate.Mutation) bool {
		return x.Index[0] == appstate.IndexStar && x.Index[2] == string(m.ID) && x.Index[3] == "1" && x.Action.GetStarAction().GetStarred()
	})
	must(t, err)
}

// TestReadableAgainAfterRestart has a contact that lost its keys ask for messages of before our restart, all at once.
func TestReadableAgainAfterRestart(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	in.got(parley.Delivered, w.sent(s, w.text(friendID, "before")).ID)
	w.friend.SwitchOff()
	var missed []*parley.Message
	for i := range 12 {
		missed = append(missed, w.sent(s, w.text(friendID, fmt.Sprint("for a new phone ", i))))
	}
	file := w.keepFile(t, []byte("a paper"), parley.Media{MIME: "application/pdf", Filename: "a.pdf"})
	paper := w.sent(s, w.outgoing(friendID, parley.File{Caption: "read it", Media: file}))
	must(t, w.driver.Close())
	w.friend.Reinstall()
	w.open()
	var log safeBuffer
	w.driver.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	_, in = w.start()
	in.status(parley.ChannelWorking)
	w.friend.SwitchOn()
	for _, m := range append(missed, paper) {
		got := w.friend.Expect(t, whatsapptest.ID(string(m.ID)))
		if got.Retries == 0 || got.Text != m.Content.Text() {
			t.Errorf("the phone shows %+v", got)
		}
	}
	in.got(parley.Delivered, paper.ID)
	if strings.Contains(log.String(), "clearing stored identity") { // and with it a session that another message may be using
		t.Errorf("log: %s", log.String())
	}
}

// TestGoesOnAfterACrash starts the driver on the database as it was in the middle of sending: what was sent with
// keys that are only ahead in the database and what is sent after it can all be read, both ways.
func TestGoesOnAfterACrash(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	for i := range 5 {
		w.sent(s, w.text(friendID, fmt.Sprint("before ", i)))
	}
	_, err := w.friend.Send(within(t), w.owner, "before")
	must(t, err)
	in.said("before")
	w.sent(s, w.text(friendID, "the last"))
	must(t, w.link.Idle(within(t)))
	crashed := t.TempDir()
	for _, name := range []string{"whatsapp.db", "whatsapp.db-wal"} {
		file, err := os.ReadFile(filepath.Join(w.dir, name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(crashed, name), file, 0o600))
	}
	must(t, w.driver.Close())
	w.dir = crashed
	w.open()
	s, in = w.start()
	in.status(parley.ChannelWorking)
	for i := range 20 {
		m := w.sent(s, w.text(friendID, fmt.Sprint("after ", i)))
		if got := w.friend.Expect(t, whatsapptest.ID(string(m.ID))); got.Retries != 0 {
			t.Errorf("the phone had to ask for message %d again", i)
		}
	}
	_, err = w.friend.Send(within(t), w.owner, "after")
	must(t, err)
	in.said("after")
	w.sealedAll()
	if all := w.Unreadable(); len(all) != 0 {
		t.Errorf("nobody could read %+v", all)
	}
}

// TestRefusals sends messages that the network refuses: each code has one consequence, after the first answer,
// and its number is in the reason.
func TestRefusals(t *testing.T) {
	const permanent, temporary = network.Permanent, network.Temporary
	w := newWorld(t)
	s, _ := w.paired()
	w.sent(s, w.text(friendID, "hello"))
	until := time.Now().Add(time.Hour)
	s.mu.Lock()
	s.restricted = network.Restriction{Active: true, Until: until}
	s.mu.Unlock()
	for code, want := range map[int]struct {
		class   network.Class
		failure parley.FailureCode
	}{
		400: {permanent, parley.Refused}, 401: {permanent, parley.Refused}, 403: {permanent, parley.Refused},
		404: {permanent, parley.NotOnNetwork},
		405: {permanent, parley.Refused}, 406: {permanent, parley.Refused}, 408: {temporary, ""}, 420: {temporary, ""},
		421: {temporary, ""},
		429: {temporary, ""}, 463: {permanent, parley.Restricted}, 475: {permanent, parley.Restricted}, 479: {permanent, parley.Refused},
		480: {temporary, ""}, 488: {permanent, parley.Refused}, 500: {temporary, ""}, 503: {temporary, ""}, 552: {temporary, ""},
	} {
		w.Inject(whatsapptest.RefuseMessage(code))
		err := send(s, w.text(friendID, "again"))
		if network.ToClass(err) != want.class || err == nil {
			t.Errorf("%d is %v", code, err)
			continue
		}
		if code != 404 && !strings.Contains(err.Error(), strconv.Itoa(code)) {
			t.Errorf("%d is not named: %v", code, err)
		}
		if want.class == permanent {
			refusal, _ := errors.AsType[*network.Error](err)
			if refusal.Failure.Code != want.failure || refusal.Failure.Message == "" {
				t.Errorf("%d is %+v", code, refusal.Failure)
			}
			if isLimit := want.failure == parley.Restricted; isLimit != refusal.Failure.Until.Equal(until) {
				t.Errorf("%d lasts until %s", code, refusal.Failure.Until)
			}
		}
	}
	w.sent(s, w.text(friendID, "at last"))
}

// wantPause checks that an error pauses the whole channel.
func wantPause(t *testing.T, err error) {
	t.Helper()
	if e, ok := errors.AsType[*network.Error](err); !ok || e.Class != network.Temporary || !e.PauseChannel || e.RetryAfter <= 0 {
		t.Errorf("the error is %+v, want a pause of the channel", err)
	}
}

// TestTooManyQueries has the network answer the queries of a send with the errors that mean too much: the whole channel pauses.
func TestTooManyQueries(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	w.sent(s, w.text(otherID, "so that our own devices are known"))
	m := w.text(friendID, "to a stranger")
	w.Inject(whatsapptest.FailIQ("usync", 429))
	wantPause(t, send(s, m)) // for the number
	found, err := s.current.Load().lookUpNumber(t.Context(), friendID)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	for namespace, code := range map[string]int{"usync": 420, "encrypt": 429} {
		before := w.Asked(namespace)
		w.Inject(whatsapptest.FailIQ(namespace, code))
		wantPause(t, send(s, m)) // for its devices and their keys
		if asked := w.Asked(namespace) - before; asked != 1 {
			t.Errorf("%s was asked for %d times", namespace, asked)
		}
		s.devices.invalidate(w.friend.LID())
	}
	w.sent(s, m)
	w.friend.Expect(t, whatsapptest.ID(string(m.ID)))
}

// TestSettingsWithoutKeys changes settings while the phone has not shared their keys: they are not possible
// yet, and hold nothing up.
func TestSettingsWithoutKeys(t *testing.T) {
	w := newWorld(t)
	w.owner = w.Phone("6281234567891", whatsapptest.Silent())
	s, in := w.start()
	must(t, s.Pair(t.Context()))
	w.scan(in, 0)
	in.status(parley.ChannelWorking)
	star := w.outgoing(friendID, parley.Star{Target: parley.MessageRef{Chat: friendID, ID: "3EB0"}, Starred: true})
	archive := w.outgoing(friendID, parley.Archive{Archived: true})
	text := w.text(friendID, "behind it")
	errs := s.Send(t.Context(), []*parley.Message{star, archive, text})
	for i, err := range errs[:2] {
		if network.ToClass(err) != network.NotReady {
			t.Errorf("setting %d is %v", i, err)
		}
	}
	must(t, errs[2])
	w.friend.Expect(t, whatsapptest.ID(string(text.ID)))
}

// TestSettingsAreBounded lets only a few changes of settings wait for one that gets no answer.
func TestSettingsAreBounded(t *testing.T) {
	s := &settingsQueue{slot: make(chan struct{}, 1)}
	_, err := s.acquire(t.Context())
	must(t, err)
	entered := make(chan error)
	for range maxPendingSettings {
		go func() {
			_, err := s.acquire(t.Context())
			entered <- err
		}()
	}
	if err := <-entered; network.ToClass(err) != network.NotReady { // the others wait for their turn
		t.Errorf("one too many: %v", err)
	}
	for range maxPendingSettings - 1 {
		<-s.slot
		must(t, <-entered)
	}
}
