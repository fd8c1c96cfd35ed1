package store

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley"
)

// TestRecordsInSQL holds the list of kinds in the statements to the rule.
func TestRecordsInSQL(t *testing.T) {
	for _, k := range []parley.Kind{parley.KindText, parley.KindImage, parley.KindVideo, parley.KindFile, parley.KindVoice, parley.KindLocation,
		parley.KindPoll, parley.KindReaction, parley.KindSeen, parley.KindDelete, parley.KindStar, parley.KindArchive} {
		if got := strings.Contains(isRecord, "'"+string(k)+"'"); got != k.IsRecord() {
			t.Errorf("%s is a record: %t in the statements, %t by the rule", k, got, k.IsRecord())
		}
	}
}

// TestAnotherProcessRemovesAChannel deletes a channel and makes it again beside a store that remembers
// its chats, as the command line does beside a running server.
func TestAnotherProcessRemovesAChannel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "parley.db")
	server, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	beside, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	tx := func(db *DB, do func(parley.Tx) error) {
		t.Helper()
		if err := db.Tx(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	add := func(n int) {
		t.Helper()
		m := parley.Message{Channel: "demo", Chat: "6281234567890@c.us", ID: parley.MessageID(fmt.Sprint("A", n)), FromMe: true,
			Content: parley.Text{Body: "hi"}, CreatedAt: time.Now()}
		tx(server, func(tx parley.Tx) error { return tx.AddMessage(t.Context(), &m) })
	}
	demo := parley.Channel{Code: "demo", Network: parley.Sandbox}
	tx(beside, func(tx parley.Tx) error { return tx.AddChannel(t.Context(), demo) })
	add(1)
	tx(beside, func(tx parley.Tx) error {
		if _, err := tx.DeleteChannel(t.Context(), "demo"); err != nil {
			return err
		}
		return tx.AddChannel(t.Context(), demo)
	})
	add(2)
	add(3)
	if page, total, err := server.History(t.Context(), "demo", "6281234567890@c.us", parley.Page{Limit: 10}); err != nil || total != 2 || len(page) != 2 || page[0].ID != "A3" {
		t.Errorf("history: %d, %+v, %v", total, page, err)
	}
	if pending, err := server.Queue(t.Context(), "demo"); err != nil || len(pending) != 2 {
		t.Errorf("pending: %d, %v", len(pending), err)
	}
}
