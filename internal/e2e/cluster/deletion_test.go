package cluster_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/otp/rule"
	"parley/internal/postgrestest"
	"parley/internal/store"
)

// TestNodesDeleteChannel kills the node that purges a deleted channel. The others finish the deletion, a new channel with the same
// code works meanwhile, and another channel sends codes to the contacts of the deleted one.
func TestNodesDeleteChannel(t *testing.T) {
	t.Parallel()
	const messages, contacts = 4000, 20
	server := postgrestest.Start(t)
	address := server.Schema(t)
	_, schema, _ := strings.Cut(address, "search_path=")
	c := startNodesOn(t, address)
	c.createChannels("big", "other")
	c.balanced()
	seedChannel(t, address, "big", messages, contacts)

	c.must(http.MethodDelete, "/api/manage/channels/big", "")
	c.must(http.MethodPost, "/api/manage/channels", `{"code":"big","network":"sandbox"}`)
	left := func() string {
		n, err := server.Query("SELECT count(*) FROM " + schema + ".message WHERE body = 'old'")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	c.eventually("some messages are purged", func() bool { return left() != fmt.Sprint(messages) })
	c.leader(server, schema).kill()
	if left() == "0" {
		t.Fatal("the deletion was over before the node was killed")
	}
	tried := 0
	for n := range contacts {
		body := fmt.Sprintf(`{"contact_id":"%s","length":6,"expires":60}`, seededContact(n))
		c.eventually("a code is sent", func() bool {
			tried++ // one of the nodes is dead
			status, answer, _, err := c.call(c.all[tried%len(c.all)], http.MethodPost, "/api/otp/code/request", c.global, "other", body,
				fmt.Sprint("code", n))
			if err == nil && status == http.StatusInternalServerError {
				t.Fatalf("a code: %s", answer)
			}
			return err == nil && status == http.StatusOK
		})
	}
	var list struct {
		Data []struct {
			State   string
			Deleted int  `json:"messages_deleted"`
			Left    *int `json:"messages_left"`
		}
	}
	c.eventually("the deletion finishes", func() bool {
		c.get("/api/manage/deletions", "", &list)
		return len(list.Data) == 1 && list.Data[0].State == "finished"
	})
	if d := list.Data[0]; d.Deleted != messages || d.Left == nil || *d.Left != 0 || left() != "0" {
		t.Errorf("the deletion says %+v, and %s messages are left", d, left())
	}
	c.eventually("the new channel works", func() bool {
		var health struct{ Data struct{ Status string } }
		return c.get("/api/channel/health", "big", &health) && health.Data.Status == "WORKING"
	})
	var chats struct{ Meta struct{ Total int } }
	if c.get("/api/chat", "big", &chats); chats.Meta.Total != 0 {
		t.Errorf("the new channel has %d chats", chats.Meta.Total)
	}
}

func seededContact(n int) parley.ContactID {
	return parley.NewContactID(fmt.Sprintf("62812345%05d", n))
}

// seedChannel adds messages and codes to a channel, directly in the database.
func seedChannel(t *testing.T, address string, channel parley.ChannelCode, messages, contacts int) {
	t.Helper()
	db, err := store.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Tx(t.Context(), func(tx *store.Tx) error {
		for i := range messages {
			m := parley.Message{Channel: channel, Chat: seededContact(i % contacts), ID: parley.MessageID(rand.Text()), FromMe: true,
				Content: parley.Text{Body: "old"}, Status: parley.Delivered, CreatedAt: time.Now()}
			if err := tx.AddMessage(t.Context(), &m); err != nil {
				return err
			}
		}
		for i := range contacts {
			err := tx.PutLedger(t.Context(), rule.Ledger{Code: parley.OTPCode{Channel: channel, Contact: seededContact(i), Hash: []byte{1},
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
