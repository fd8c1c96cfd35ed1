package crash_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"parley"
	"parley/internal/otp/rule"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// TestKillLoopDeletion ends the server with SIGKILL again and again while a channel with many messages and codes is deleted or
// reset. Meanwhile another channel sends codes to the same contacts, and every request for one succeeds.
func TestKillLoopDeletion(t *testing.T) {
	const messages, contacts, kills = 6000, 60, 3
	for name, remove := range map[string]func(*testing.T, *testServer){
		"deleted": deleteBig,
		"reset": func(t *testing.T, s *testServer) {
			if status, answer, err := s.call("DELETE", "/api/sandbox", "big", "", ""); err != nil || status != http.StatusOK {
				t.Fatal(status, string(answer), err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t)
			s.command(t, "channel", "create", "big")
			s.kill(t)
			path := filepath.Join(s.data, "parley.db")
			seed(t, path, messages, contacts)
			s.start(t)
			s.awaitChannel(t, "demo")
			s.awaitChannel(t, "big")
			left := func() int { return storetest.ChannelRows(t, path, "none")["message"] } // of numbers that no channel has
			next := 0
			requestCode := func() {
				t.Helper()
				body := fmt.Sprintf(`{"contact_id":"%s","length":6,"expires":60}`, contact(next))
				s.insist(t, "/api/otp/code/request", "demo", body, fmt.Sprint("code-", next))
				next++
			}
			remove(t, s)
			for k := range kills {
				for n := left(); n > messages*(kills-k)/(kills+1); n = left() {
					requestCode()
				}
				if left() == 0 {
					t.Fatalf("it was over before kill %d", k+1)
				}
				s.kill(t)
				s.start(t)
				s.awaitChannel(t, "demo")
				requestCode()
			}
			for deadline := time.Now().Add(waitLimit); len(storetest.ChannelRows(t, path, "none")) > 0; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("left: %v", storetest.ChannelRows(t, path, "none"))
				}
			}
			requestCode()
			// The channel of that name has nothing of the old one, and works.
			s.awaitChannel(t, "big")
			if _, answer, err := s.call("GET", "/api/chat", "big", "", ""); err != nil || !json.Valid(answer) || total(t, answer) != 0 {
				t.Errorf("chats of the new channel: %s %v", answer, err)
			}
			s.insist(t, "/api/send-message/text", "big", `{"contact_id":"`+string(contact(0))+`","message":"hi"}`, "new")
			if got := s.arrived(t, "big", contact(0).Number(), 1); len(got) != 1 || got[0] != "hi" {
				t.Errorf("the phone got %q", got)
			}
		})
	}
}

// deleteBig deletes a channel and creates another one with its code at once.
func deleteBig(t *testing.T, s *testServer) {
	t.Helper()
	admin := []string{"Authorization", "Bearer " + s.admin}
	status, answer, err := s.call("DELETE", "/api/manage/channels/big", "", "", "", admin...)
	if err != nil || status != http.StatusAccepted {
		t.Fatal(status, string(answer), err)
	}
	status, answer, err = s.call("POST", "/api/manage/channels", "", `{"code":"big","network":"sandbox"}`, "", admin...)
	if err != nil || status != http.StatusCreated {
		t.Fatal(status, string(answer), err)
	}
}

func contact(n int) parley.ContactID { return parley.NewContactID(fmt.Sprintf("62812345%05d", n)) }

// seed adds messages and codes to channel big, directly in the database.
func seed(t *testing.T, path string, messages, contacts int) {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Tx(t.Context(), func(tx *store.Tx) error {
		for i := range messages {
			m := parley.Message{Channel: "big", Chat: contact(i % contacts), ID: parley.MessageID(rand.Text()), FromMe: true,
				Content: parley.Text{Body: "hi"}, Status: parley.Delivered, CreatedAt: time.Now()}
			if err := tx.AddMessage(t.Context(), &m); err != nil {
				return err
			}
		}
		for i := range contacts {
			err := tx.PutLedger(t.Context(), rule.Ledger{Code: parley.OTPCode{Channel: "big", Contact: contact(i), Hash: []byte{1},
				ID: parley.OTPID(fmt.Sprint("otc_", i)), CreatedAt: time.Now().Add(-time.Hour), ExpiresAt: time.Now().Add(-time.Minute),
				Status: parley.OTPStatusExpired}})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func total(t *testing.T, answer []byte) int {
	t.Helper()
	var list struct{ Meta struct{ Total int } }
	if err := json.Unmarshal(answer, &list); err != nil {
		t.Fatal(err)
	}
	return list.Meta.Total
}
