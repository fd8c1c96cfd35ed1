package app_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/app"
	"parley/internal/media/mediatest"
	"parley/internal/parleytest"
)

func inBucket(server *mediatest.Server) app.Media {
	return app.Media{Location: "s3://" + server.Bucket + "/chat", Endpoint: server.URL, Region: mediatest.Region,
		AccessKey: mediatest.AccessKey, SecretKey: mediatest.SecretKey}
}

// files are the names of stored files of messages.
func files(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return len(filepath.Base(name)) != 32 })
}

func expectDoctor(e *parleytest.Env, says string) {
	e.T.Helper()
	if found := e.Get("/api/manage/doctor", parleytest.As(e.Admin)).Expect(http.StatusOK).Body; !bytes.Contains(found, []byte(says)) {
		e.T.Errorf("the doctor says %s, want %q", found, says)
	}
}

// TestFilesInABucket sends and receives files that are stored in a bucket, also while it fails.
func TestFilesInABucket(t *testing.T) {
	server := mediatest.New(t, "files")
	e := parleytest.StartOnLoopback(t, func(c *app.Config) { c.Media = inBucket(server) })
	source := parleytest.Files(t)
	owner, ayu := e.Net.Phone("6281234567890"), e.Net.Phone("6281100000001")
	as := parleytest.As(e.WhatsAppChannel("shop"))
	admin := parleytest.As(e.Admin)
	e.Pair("shop", owner)
	events := e.Events(parley.MessageMedia)

	image := `{"contact_id":"6281100000001@c.us","caption":"look","file":{"url":"` + source + `/dot.png"}}`
	sent := e.Post("/api/send-message/image", image, as).Expect(http.StatusOK)
	if err := ayu.AwaitCount(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if names := files(server.Objects(t)); len(names) != 1 || !strings.HasPrefix(names[0], "chat/") {
		t.Errorf("the bucket has %v", names)
	}
	path := "/api/manage/messages/" + url.PathEscape(sent.Text("data.message_id")) + "/media?channel=shop"
	whole := e.Get(path, admin).Expect(http.StatusOK).Body

	picture := bytes.Repeat([]byte("\x89PNG\r\n\x1a\n picture"), 10_000)
	if _, err := ayu.SendImage(t.Context(), owner, picture, "image/png", "back"); err != nil {
		t.Fatal(err)
	}
	event := events.Expect(func(event parleytest.Event) bool { return event.Data["body"] == "back" })
	received := "/api/manage/messages/" + url.PathEscape(event.Data["message_id"].(string)) + "/media?channel=shop"
	server.Inject(mediatest.Cut(30_000).For("GET", "/chat/"))
	if got := e.Get(received, admin).Expect(http.StatusOK).Body; !bytes.Equal(got, picture) {
		t.Errorf("%d bytes of %d", len(got), len(picture))
	}

	// An outage is 503 with a delay, and nothing is lost.
	server.Inject(mediatest.Status(503, "ServiceUnavailable").Times(200)...)
	for _, a := range []*parleytest.Response{e.Get(path, admin), e.Post("/api/send-message/image", image, as)} {
		a.ExpectError(http.StatusServiceUnavailable, "The storage of files does not respond.")
		if a.Header.Get("Retry-After") == "" {
			t.Error("it does not say when to try again")
		}
	}
	expectDoctor(e.Env, "files cannot be stored in s3://files/chat/")
	if _, err := ayu.SendImage(t.Context(), owner, picture, "image/png", "meanwhile"); err != nil {
		t.Fatal(err)
	}
	e.Post("/api/send-message/text", `{"contact_id":"6281100000001@c.us","message":"texts need no storage"}`, as).Expect(http.StatusOK)
	server.Heal()
	events.Expect(func(event parleytest.Event) bool {
		return event.Data["body"] == "meanwhile" && event.Data["media"].(map[string]any)["status"] == "ready"
	})
	if got := e.Get(path, admin).Expect(http.StatusOK).Body; !bytes.Equal(got, whole) {
		t.Error("another file after the outage")
	}
	expectDoctor(e.Env, "files are in s3://files/chat/")

	// Files go with their messages, and no file was ever in the data directory.
	e.Delete("/api/manage/channels/shop", admin).Expect(http.StatusAccepted)
	e.Eventually("the files are removed", func() bool { return len(files(server.Objects(t))) == 0 })
	if left, _ := filepath.Glob(filepath.Join(e.Data.Media(), "*", "*", "*")); len(left) != 0 {
		t.Errorf("the data directory has %v", left)
	}
	if strings.Contains(e.Log.String(), mediatest.SecretKey) {
		t.Error("the log has the secret key")
	}
}

// TestStorageThatCannotBeUsed does not start, and says why.
func TestStorageThatCannotBeUsed(t *testing.T) {
	server := mediatest.New(t, "files")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(m *app.Media)
		says   string
		usage  bool
	}{
		"another bucket": {func(m *app.Media) { m.Location = "s3://other" }, "was not found. Create the bucket", false},
		"wrong secret":   {func(m *app.Media) { m.SecretKey = "wrong" }, "rejects the keys", false},
		"no server":      {func(m *app.Media) { m.Endpoint = "http://127.0.0.1:1" }, "does not respond: connection refused", false},
		"no keys":        {func(m *app.Media) { m.AccessKey = "" }, "A bucket needs keys", true},
		"no endpoint":    {func(m *app.Media) { m.Endpoint = "s3.example.com" }, "is not an address such as", true},
		"no bucket":      {func(m *app.Media) { m.Location = "s3:///a" }, "is not an address such as s3://bucket/prefix", true},
		"another scheme": {func(m *app.Media) { *m = app.Media{Location: "gs://files"} }, "is neither a directory nor", true},
		"endpoint only":  {func(m *app.Media) { m.Location = "" }, "--media-endpoint is for a bucket", true},
		"a file":         {func(m *app.Media) { *m = app.Media{Location: file} }, file, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := app.Config{DataDir: app.Dir(filepath.Join(t.TempDir(), "data")), Listen: "127.0.0.1:0", Dev: true, Media: inBucket(server),
				OnReady: func(string) { t.Error("it started") }}
			test.change(&config.Media)
			ctx, cancel := context.WithTimeout(t.Context(), parleytest.WaitLimit)
			defer cancel()
			err := app.Run(ctx, config)
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.HasSuffix(err.Error(), ".") {
				t.Errorf("%v, want %q", err, test.says)
			}
			if _, usage := errors.AsType[*app.ConfigError](err); usage != test.usage {
				t.Errorf("%T", err)
			}
		})
	}
}

// TestFilesInADirectory stores files outside the data directory, for one installation only.
func TestFilesInADirectory(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "shared")
	e := parleytest.Start(t, func(c *app.Config) { c.Media = app.Media{Location: shared} })
	source := parleytest.Files(t)
	sent := e.Post("/api/send-message/file", `{"contact_id":"6281100000001@c.us","file":{"url":"`+source+`/notes.txt"}}`).Expect(http.StatusOK)
	found, err := filepath.Glob(filepath.Join(shared, "??", "??", "*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	path := "/api/manage/messages/" + url.PathEscape(sent.Text("data.message_id")) + "/media?channel=demo"
	if got := e.Get(path, parleytest.As(e.Admin)).Expect(http.StatusOK).Body; string(got) != "Milk, bread.\n" {
		t.Errorf("%q", got)
	}
	if running, ok := e.Data.Running(); !ok || running.Media != shared {
		t.Errorf("commands read that files are in %q", running.Media)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = app.Run(ctx, app.Config{DataDir: app.Dir(filepath.Join(t.TempDir(), "data")), Listen: "127.0.0.1:0", Dev: true,
		Media: app.Media{Location: shared}, OnReady: func(string) { cancel() }})
	if err == nil || !strings.Contains(err.Error(), "belong to another installation") {
		t.Errorf("another installation: %v", err)
	}
	e.Restart()
	if got := e.Get(path, parleytest.As(e.Admin)).Expect(http.StatusOK).Body; string(got) != "Milk, bread.\n" {
		t.Errorf("after a restart: %q", got)
	}
	if temporary, err := os.ReadDir(filepath.Join(shared, "tmp")); err != nil || len(temporary) != 1 {
		t.Errorf("folders of temporary files: %v, %v", temporary, err)
	}
}
