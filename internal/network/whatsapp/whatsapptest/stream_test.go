package whatsapptest_test

import (
	"fmt"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types/events"
	"go.mau.fi/whatsmeow/util/keys"
	waLog "go.mau.fi/whatsmeow/util/log"
	"google.golang.org/protobuf/proto"

	"parley/internal/network/whatsapp/whatsapptest"
)

// TestStreamsThatComeBack ends streams in the ways after which a client reconnects by itself.
func TestStreamsThatComeBack(t *testing.T) {
	w := newWorld(t)
	for _, how := range []whatsapptest.End{whatsapptest.Cut, whatsapptest.Restarted, whatsapptest.Reconnect} {
		w.client.dropEvents()
		w.link.End(how)
		expect[*events.Connected](w.client, nil)
		text := fmt.Sprint("after end ", how)
		must[string](t)(w.friend.Send(within(t), w.owner, text))
		w.client.message(text)
	}
	sent := w.client.text(w.friend.JID(), "still here") // last, see TestDownAndUp
	w.friend.Expect(t, whatsapptest.ID(sent.ID))
}

// TestReplaced tells a client that another took its place.
func TestReplaced(t *testing.T) {
	w := newWorld(t)
	w.client.ended = true
	w.link.End(whatsapptest.Replaced)
	expect[*events.StreamReplaced](w.client, nil)
	if err := w.link.Offline(within(t)); err != nil {
		t.Fatal(err)
	}
}

// TestSecondConnection takes the place of the first one of the same device.
func TestSecondConnection(t *testing.T) {
	w := newWorld(t)
	second := whatsmeow.NewClient(w.client.Store, waLog.Noop)
	if err := w.Trust().Apply(second); err != nil {
		t.Fatal(err)
	}
	w.client.ended = true
	if err := second.Connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.Disconnect)
	expect[*events.StreamReplaced](w.client, nil)
	if err := w.link.Online(within(t)); err != nil {
		t.Fatal(err)
	}
}

// TestWrongKey refuses a client that has another's number but not its key.
func TestWrongKey(t *testing.T) {
	w := newWorld(t)
	w.client.Disconnect()
	if err := w.link.Offline(within(t)); err != nil {
		t.Fatal(err)
	}
	w.client.ended = true
	w.client.Store.NoiseKey = keys.NewKeyPair()
	if err := w.client.Connect(); err != nil {
		t.Fatal(err)
	}
	expect(w.client, func(e *events.LoggedOut) bool { return e.OnConnect })
}

// TestDeadSocket carries nothing any more: the client notices.
func TestDeadSocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link.Stall()
	expect[*events.KeepAliveTimeout](w.client, nil)
}

// TestUnknownStreamError sends an error that no client knows.
func TestUnknownStreamError(t *testing.T) {
	w := newWorld(t)
	w.client.ended = true
	w.link.End(whatsapptest.Unknown)
	expect[*events.StreamError](w.client, nil)
}

// TestDeviceRemoved unlinks a client that is connected.
func TestDeviceRemoved(t *testing.T) {
	w := newWorld(t)
	w.client.ended = true
	w.link.Remove()
	if e := expect[*events.LoggedOut](w.client, nil); e.OnConnect {
		t.Error("the client believes that it was refused at login")
	}
}

// TestDeviceRemovedWhileAway unlinks a client that is not connected: its next login fails.
func TestDeviceRemovedWhileAway(t *testing.T) {
	w := newWorld(t)
	w.client.Disconnect()
	if err := w.link.Offline(within(t)); err != nil {
		t.Fatal(err)
	}
	w.client.ended = true
	w.link.Remove()
	if err := w.client.Connect(); err != nil {
		t.Fatal(err)
	}
	if e := expect[*events.LoggedOut](w.client, nil); !e.OnConnect || e.Reason != events.ConnectFailureLoggedOut {
		t.Errorf("the client got %+v", e)
	}
}

// TestLogout lets the client unlink itself.
func TestLogout(t *testing.T) {
	w := newWorld(t)
	w.client.ended = true
	if err := w.client.Logout(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := w.link.Offline(within(t)); err != nil {
		t.Fatal(err)
	}
}

// TestRefusedLogins answers logins with everything but success.
func TestRefusedLogins(t *testing.T) {
	tests := map[string]struct {
		refusal whatsapptest.Refusal
		see     func(*client)
	}{
		"logged out": {whatsapptest.Refusal{Reason: 401}, func(c *client) {
			expect(c, func(e *events.LoggedOut) bool { return e.OnConnect })
		}},
		"banned": {whatsapptest.Refusal{Reason: 403}, func(c *client) {
			expect(c, func(e *events.LoggedOut) bool { return e.Reason == 403 })
		}},
		"unknown logout": {whatsapptest.Refusal{Reason: 406}, func(c *client) {
			expect(c, func(e *events.LoggedOut) bool { return e.Reason == 406 })
		}},
		"outdated": {whatsapptest.Refusal{Reason: 405}, func(c *client) { expect[*events.ClientOutdated](c, nil) }},
		"banned for a time": {whatsapptest.Refusal{Reason: 402, Code: 101, Expire: 3600}, func(c *client) {
			expect(c, func(e *events.TemporaryBan) bool { return e.Code == 101 && e.Expire == time.Hour })
		}},
		"unknown": {whatsapptest.Refusal{Reason: 418}, func(c *client) {
			expect(c, func(e *events.ConnectFailure) bool { return e.Reason == 418 })
		}},
		"comes again": {whatsapptest.Refusal{Reason: 503, Times: 1}, func(c *client) {
			expect[*events.Connected](c, nil)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.client.dropEvents()
			w.client.ended = test.refusal.Times == 0
			w.owner.RefuseLogin(test.refusal)
			w.link.End(whatsapptest.Cut)
			test.see(w.client)
		})
	}
}

// TestSendDuringLogout fails at once and does not wait for an ack that will not come.
func TestSendDuringLogout(t *testing.T) {
	w := newWorld(t)
	w.client.text(w.friend.JID(), "warm")
	w.Inject(whatsapptest.LoseAck())
	done := make(chan error, 1)
	go func() {
		_, err := w.client.SendMessage(within(t), w.friend.JID(), &waE2E.Message{Conversation: proto.String("x")},
			whatsmeow.SendRequestExtra{Timeout: testTimeout})
		done <- err
	}()
	w.friend.Expect(t, whatsapptest.Text("x"))
	w.client.ended = true
	w.link.Remove()
	select {
	case err := <-done:
		if err == nil {
			t.Error("a message that was never confirmed succeeded")
		}
	case <-time.After(testTimeout):
		t.Error("the send hangs")
	}
}
