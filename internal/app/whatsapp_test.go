package app_test

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"testing"

	"parley"
	"parley/internal/app"
	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/parleytest"
)

// TestWhatsAppOpensLazily finds no trace of WhatsApp beside sandbox channels, and a private
// file as soon as there is a channel on it.
func TestWhatsAppOpensLazily(t *testing.T) {
	e := parleytest.StartOnLoopback(t)
	e.CreateChannel("another")
	e.Delete("/api/manage/channels/another", parleytest.As(e.Admin)).Expect(http.StatusAccepted)
	if _, err := os.Stat(e.Data.WhatsApp()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a server with sandbox channels has %s (%v)", e.Data.WhatsApp(), err)
	}
	e.WhatsAppChannel("shop")
	info, err := os.Stat(e.Data.WhatsApp())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the keys have the mode %04o", info.Mode().Perm())
	}
	e.Delete("/api/manage/channels/shop", parleytest.As(e.Admin)).Expect(http.StatusAccepted)
}

// TestBackupIncludesPairings makes a backup of a server with a paired channel while it works, goes on
// sending, and has another server go on from the backup: without a person, and with messages that their
// recipient can read although the keys of the backup were used since.
func TestBackupIncludesPairings(t *testing.T) {
	e := parleytest.StartOnLoopback(t)
	owner, ayu := e.Net.Phone("6281234567890"), e.Net.Phone("6289876543210")
	token := e.WhatsAppChannel("shop")
	e.Pair("shop", owner)
	send := func(text string) {
		t.Helper()
		a := e.Post("/api/send-message/text", `{"contact_id":"6289876543210@c.us","message":"`+text+`"}`,
			parleytest.As(token)).Expect(http.StatusOK)
		if a.Text("data.status") != "SENT" {
			t.Fatalf("%s was answered %s", text, a.Body)
		}
		ayu.Expect(t, whatsapptest.Text(text))
	}
	send("before")

	quiet := slog.New(slog.DiscardHandler)
	data, err := app.OpenData(t.Context(), e.Data, quiet)
	if err != nil {
		t.Fatal(err)
	}
	var backup bytes.Buffer
	var last, total int64
	if err := app.Backup(t.Context(), data, &backup, func(done, of int64) { last, total = done, of }); err != nil {
		t.Fatal(err)
	}
	if err := data.Close(); err != nil {
		t.Fatal(err)
	}
	if last > total || last < total/2 {
		t.Errorf("%d of %d bytes were done at the end", last, total)
	}
	for _, text := range []string{"after one", "after two", "after three"} {
		send(text)
	}
	e.Stop()
	if _, err := app.Restore(t.Context(), e.Data, &backup, quiet); err != nil {
		t.Fatal(err)
	}
	e.Restart()
	e.Becomes("shop", parley.ChannelWorking)
	send("from the backup")
	if _, err := ayu.Send(t.Context(), owner, "and back"); err != nil {
		t.Fatal(err)
	}
	e.Eventually("the answer is there", func() bool {
		return e.Get("/api/chat/detail?contact_id=6289876543210@c.us", parleytest.As(token)).Text("data.0.body") == "and back"
	})
}
