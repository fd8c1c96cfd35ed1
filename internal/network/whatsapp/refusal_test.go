package whatsapp

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
)

// TestRefusals sends messages that the network refuses: each code has one consequence, after the first answer,
// and its number is in the reason.
func TestRefusals(t *testing.T) {
	const permanent, temporary = network.Permanent, network.Temporary
	w := newWorld(t)
	s, _ := w.paired()
	w.sent(s, w.text(friendID, "hello"))
	until := time.Now().Add(time.Hour)
	s.(*session).mu.Lock()
	s.(*session).restricted = until
	s.(*session).mu.Unlock()
	for code, want := range map[int]struct {
		class   network.Class
		failure parley.FailureCode
	}{
		400: {permanent, parley.Refused}, 401: {permanent, parley.Refused}, 403: {permanent, parley.Refused}, 404: {permanent, parley.NotOnNetwork},
		405: {permanent, parley.Refused}, 406: {permanent, parley.Refused}, 408: {temporary, ""}, 420: {temporary, ""}, 421: {temporary, ""},
		429: {temporary, ""}, 463: {permanent, parley.Restricted}, 475: {permanent, parley.Restricted}, 479: {permanent, parley.Refused},
		480: {temporary, ""}, 488: {permanent, parley.Refused}, 500: {temporary, ""}, 503: {temporary, ""}, 552: {temporary, ""},
	} {
		w.Inject(whatsapptest.RefuseMessage(code))
		err := send(s, w.text(friendID, "again"))
		if network.ClassOf(err) != want.class || err == nil {
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

// TestSettingsWithoutKeys changes settings while the phone has not shared their keys: they are not possible
// yet, and hold nothing up.
func TestSettingsWithoutKeys(t *testing.T) {
	w := newWorld(t)
	w.owner = w.Phone("6281234567891", whatsapptest.Silent())
	s, in := w.start()
	must(t, s.Pair(t.Context()))
	w.scan(in, 0)
	in.status(parley.Working)
	star := w.outgoing(friendID, parley.Star{Target: parley.MessageRef{Chat: friendID, ID: "3EB0"}, Starred: true})
	archive := w.outgoing(friendID, parley.Archive{Archived: true})
	text := w.text(friendID, "behind it")
	errs := s.Send(t.Context(), []*parley.Message{star, archive, text})
	for i, err := range errs[:2] {
		if network.ClassOf(err) != network.NotReady {
			t.Errorf("setting %d is %v", i, err)
		}
	}
	must(t, errs[2])
	w.friend.Expect(t, whatsapptest.ID(string(text.ID)))
}

// TestSettingsDoNotCrowd lets only a few changes of settings wait for one that gets no answer.
func TestSettingsDoNotCrowd(t *testing.T) {
	s := &settings{turn: make(chan struct{}, 1)}
	_, err := s.enter(t.Context())
	must(t, err)
	entered := make(chan error)
	for range settingsAtOnce {
		go func() {
			_, err := s.enter(t.Context())
			entered <- err
		}()
	}
	if err := <-entered; network.ClassOf(err) != network.NotReady { // the others wait for their turn
		t.Errorf("one too many: %v", err)
	}
	for range settingsAtOnce - 1 {
		<-s.turn
		must(t, <-entered)
	}
}
