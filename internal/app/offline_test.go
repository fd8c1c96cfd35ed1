package app

import (
	"archive/tar"
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"parley"
	"parley/internal/client"
	"parley/internal/store"
	"parley/internal/wire"
)

func openOffline(t *testing.T, dir Dir) (*client.Client, *Offline) {
	t.Helper()
	o, err := OpenOffline(t.Context(), Config{DataDir: dir, Log: quiet}, "parley test")
	if err != nil {
		t.Fatal(err)
	}
	return &client.Client{Base: "http://parley", Token: o.AdminToken, HTTP: &http.Client{Transport: client.Direct(o)}}, o
}

// TestOffline changes a channel while no server runs: it never works, and nothing is sent.
func TestOffline(t *testing.T) {
	dir := Dir(t.TempDir())
	api, o := openOffline(t, dir)
	ctx := t.Context()
	channels := client.Path("channels")
	for _, network := range []string{"sandbox", "whatsapp"} {
		if _, err := api.Post(ctx, channels, map[string]string{"code": network, "network": network}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, verb := range []string{"stop", "start"} {
		var ch wire.Channel
		if _, err := api.Post(ctx, client.Path("channels", "sandbox", verb), nil, &ch); err != nil {
			t.Fatal(err)
		}
		if ch.Status != parley.ChannelStopped || ch.Enabled != (verb == "start") {
			t.Errorf("after %s it is %s, enabled %v", verb, ch.Status, ch.Enabled)
		}
	}
	var all []wire.Channel
	if _, err := api.Get(ctx, channels, nil, &all); err != nil || len(all) != 2 {
		t.Fatalf("%d channels, %v", len(all), err)
	}
	for _, ch := range all {
		if ch.Status != parley.ChannelStopped || ch.Reason != parley.ServerStopped {
			t.Errorf("%s is %s: %s", ch.Code, ch.Status, ch.Reason)
		}
	}
	if _, err := api.Call(ctx, http.MethodDelete, client.Path("channels", "whatsapp"), nil, nil, nil); err != nil {
		t.Error(err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if _, running := dir.Running(); running {
		t.Error("the lock is still held")
	}
	r := start(t, Config{DataDir: dir, Log: quiet}) // which has what was made
	running, ok := dir.Running()
	if !ok || running.URL != r.url || running.AdminToken == "" {
		t.Fatalf("the lock file says %+v", running)
	}
	live := &client.Client{Base: r.url, Token: running.AdminToken}
	var ch wire.Channel
	if _, err := live.Get(ctx, client.Path("channels", "sandbox"), nil, &ch); err != nil {
		t.Error(err)
	}
	if _, err := live.Get(ctx, "/api/chat", nil, nil); err == nil {
		t.Error("the local admin token reads chats")
	}
	_, err := OpenOffline(ctx, Config{DataDir: dir, Log: quiet}, "parley test")
	if used, ok := errors.AsType[*InUseError](err); !ok || used.By.URL != r.url || !strings.Contains(err.Error(), "parley serve with pid") {
		t.Errorf("beside a server: %v", err)
	}
	r.end(t)
	if _, err := (&client.Client{Base: r.url, Token: running.AdminToken}).Get(ctx, channels, nil, nil); err == nil {
		t.Error("it still answers")
	}
	// The tokens of the server ended with it.
	api, o = openOffline(t, dir)
	defer o.Close()
	api.Token = running.AdminToken
	if _, err := api.Get(ctx, channels, nil, nil); err == nil {
		t.Error("the token of an earlier process is valid")
	}
}

// dataDir makes a data directory with a channel.
func dataDir(t *testing.T) Dir {
	t.Helper()
	dir := Dir(t.TempDir())
	api, o := openOffline(t, dir)
	_, err := api.Post(t.Context(), client.Path("channels"), map[string]string{"code": "main", "network": "sandbox"}, nil)
	if err := errors.Join(err, o.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// addMigrations makes this program a later one until the returned function is called: each step is a migration.
func addMigrations(t *testing.T, steps ...string) (end func()) {
	t.Helper()
	before := store.Migrations
	all := fstest.MapFS{}
	names, err := fs.Glob(before, "*/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(before, name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = &fstest.MapFile{Data: text}
	}
	for i, step := range steps {
		all[fmt.Sprintf("sqlite/%d_step.sql", 9001+i)] = &fstest.MapFile{Data: []byte(step)}
	}
	store.Migrations = all
	end = func() { store.Migrations = before }
	t.Cleanup(end)
	return end
}

// setVersion makes a database say that it is at another version.
func setVersion(t *testing.T, dir Dir, version int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+dir.Database())
	if err == nil {
		if _, err = db.Exec(`DELETE FROM schema_version`); err == nil {
			_, err = db.Exec(`INSERT INTO schema_version (version) VALUES ($1)`, version)
		}
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnotherVersion refuses a database of another version and leaves it as it is; a backup of it is made all the same.
func TestAnotherVersion(t *testing.T) {
	older, newer := dataDir(t), dataDir(t)
	end := addMigrations(t, `CREATE TABLE next (n INTEGER)`)
	if _, _, _, err := Migrate(t.Context(), newer, false, quiet); err != nil {
		t.Fatal(err)
	}
	expectRefused(t, older, "parley migrate")
	end()
	expectRefused(t, newer, "Run a newer parley")
}

func expectRefused(t *testing.T, dir Dir, remedy string) {
	t.Helper()
	version, _, err := dir.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := databaseBytes(t, dir)
	_, err = OpenOffline(t.Context(), Config{DataDir: dir, Log: quiet}, "parley test")
	if err == nil || !strings.Contains(err.Error(), "Nothing was changed") || !strings.Contains(err.Error(), remedy) {
		t.Errorf("opened: %v", err)
	}
	if _, err := ExamineOffline(t.Context(), Config{DataDir: dir, Log: quiet}); err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("examined: %v", err)
	}
	if at, err := backedUpVersion(t, dir); err != nil || at != version {
		t.Errorf("the backup is at version %d, want %d: %v", at, version, err)
	}
	if after := databaseBytes(t, dir); after != before {
		t.Error("the database was changed")
	}
}

// backedUpVersion makes a backup and reads the version of the database in it.
func backedUpVersion(t *testing.T, dir Dir) (at int, err error) {
	t.Helper()
	var backup bytes.Buffer
	if err := BackupOffline(t.Context(), dir, quiet, &backup, func(int64, int64) {}); err != nil {
		return 0, err
	}
	copied := filepath.Join(t.TempDir(), "parley.db")
	if err := os.WriteFile(copied, readFromBackup(t, &backup, "parley.db"), 0o600); err != nil {
		return 0, err
	}
	at, _, err = store.Version(t.Context(), copied)
	return at, err
}

// TestEarlyDatabase refuses a database from before the first release wherever it is met, with one sentence, and leaves it as it is.
func TestEarlyDatabase(t *testing.T) {
	dir := dataDir(t)
	setVersion(t, dir, 41)
	before := databaseBytes(t, dir)
	cfg := Config{DataDir: dir, Listen: "127.0.0.1:0", Log: quiet}
	for what, use := range map[string]func() error{
		"serve":     func() error { return Run(t.Context(), cfg) },
		"a command": func() error { _, err := OpenOffline(t.Context(), cfg, "parley test"); return err },
		"doctor":    func() error { _, err := ExamineOffline(t.Context(), cfg); return err },
		"migrate":   func() error { _, _, _, err := Migrate(t.Context(), dir, false, quiet); return err },
		"migrate --to": func() error {
			_, err := MigrateTo(t.Context(), dir, "", "postgres://127.0.0.1:1/other", quiet)
			return err
		},
		"restore": func() error {
			var backup bytes.Buffer
			if err := BackupOffline(t.Context(), dir, quiet, &backup, func(int64, int64) {}); err != nil {
				return err
			}
			_, err := Restore(t.Context(), Dir(t.TempDir()), &backup, quiet)
			return err
		},
	} {
		err := use()
		if _, is := errors.AsType[*DataError](err); !is || !strings.Contains(err.Error(), "start with an empty data directory") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after := databaseBytes(t, dir); after != before {
		t.Error("the database was changed")
	}
	if copies, err := filepath.Glob(dir.Database() + ".before-*"); err != nil || len(copies) > 0 {
		t.Errorf("copies: %v, %v", copies, err)
	}
}

// databaseBytes is what the database of a directory holds, byte by byte.
func databaseBytes(t *testing.T, dir Dir) string {
	t.Helper()
	file, err := os.ReadFile(dir.Database())
	if err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(dir.Database() + "-wal")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(file) + string(wal)
}

// TestMigrate brings what an older program left up to date, after copying it. One that fails on the way continues later, and the copy
// of the first attempt stays.
func TestMigrate(t *testing.T) {
	dir, served := dataDir(t), dataDir(t)
	const first = `CREATE TABLE first_step (n INTEGER)`
	end := addMigrations(t, first, `CREATE TABLE half (n INTEGER); nonsense`)
	before, to, kept, err := Migrate(t.Context(), dir, false, quiet)
	if err == nil || kept != fmt.Sprintf("%s.before-v%d", dir.Database(), to) {
		t.Fatalf("migrated from %d to %d, the copy is %q, %v", before, to, kept, err)
	}
	end()
	addMigrations(t, first, `CREATE TABLE half (n INTEGER)`)
	from, to, again, err := Migrate(t.Context(), dir, false, quiet)
	if err != nil || from != to-1 || again != kept {
		t.Fatalf("migrated from %d to %d, the copy is %q, %v", from, to, again, err)
	}
	if at, _, err := store.Version(t.Context(), kept); err != nil || at != before {
		t.Errorf("the copy is at version %d, want %d: %v", at, before, err)
	}
	api, o := openOffline(t, dir)
	if _, err := api.Get(t.Context(), client.Path("channels", "main"), nil, nil); err != nil {
		t.Error(err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if from, to, kept, err := Migrate(t.Context(), dir, false, quiet); err != nil || from != to || kept != "" {
		t.Errorf("once more: from %d to %d, the copy is %q, %v", from, to, kept, err)
	}
	// A server does the same.
	start(t, Config{DataDir: served, Log: quiet}).end(t)
	if at, _, err := store.Version(t.Context(), fmt.Sprintf("%s.before-v%d", served.Database(), to)); err != nil || at != before {
		t.Errorf("the server's copy is at version %d: %v", at, err)
	}
}

// TestMovedFile checks that nothing uses a file whose data was moved, until it is reopened.
func TestMovedFile(t *testing.T) {
	dir := Dir(t.TempDir())
	start(t, Config{DataDir: dir, Log: quiet}).end(t)
	if _, err := MigrateTo(t.Context(), dir, "", "postgres://parley:hush@127.0.0.1:1/moved", quiet); err == nil {
		t.Fatal("the data was copied to a database that is not there")
	}
	_, o := openOffline(t, dir) // a copy that failed leaves no mark
	if err := errors.Join(o.Close(), dir.markMoved(t.Context(), "postgres://parley:hush@db.example.com/moved")); err != nil {
		t.Fatal(err)
	}
	cfg := Config{DataDir: dir, Listen: "127.0.0.1:0", Log: quiet}
	for what, use := range map[string]func() error{
		"serve":     func() error { return Run(t.Context(), cfg) },
		"dev":       func() error { cfg := cfg; cfg.Dev = true; return Run(t.Context(), cfg) },
		"a command": func() error { _, err := OpenOffline(t.Context(), cfg, "parley test"); return err },
		"doctor":    func() error { _, err := ExamineOffline(t.Context(), cfg); return err },
		"backup":    func() error { return BackupOffline(t.Context(), dir, quiet, io.Discard, func(int64, int64) {}) },
		"migrate":   func() error { _, _, _, err := Migrate(t.Context(), dir, false, quiet); return err },
		"migrate --to": func() error {
			_, err := MigrateTo(t.Context(), dir, "", "postgres://127.0.0.1:1/other", quiet)
			return err
		},
	} {
		err := use()
		if _, is := errors.AsType[*DataError](err); !is || !strings.Contains(err.Error(), "@db.example.com/moved") ||
			!strings.Contains(err.Error(), "--reopen") || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, _, _, err := Migrate(t.Context(), dir, true, quiet); err != nil {
		t.Fatal(err)
	}
	start(t, Config{DataDir: dir, Log: quiet}).end(t)
}

func readFromBackup(t *testing.T, backup io.Reader, name string) []byte {
	t.Helper()
	for files := tar.NewReader(backup); ; {
		head, err := files.Next()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if head.Name == name {
			content, err := io.ReadAll(files)
			if err != nil {
				t.Fatal(err)
			}
			return content
		}
	}
}

// TestBackupOfADamagedDatabase has it as it is.
func TestBackupOfADamagedDatabase(t *testing.T) {
	dir := Dir(t.TempDir())
	_, o := openOffline(t, dir)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Repeat([]byte("not a database "), 1000)
	if err := os.WriteFile(dir.Database(), damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenOffline(t.Context(), Config{DataDir: dir, Log: quiet}, "parley test"); err == nil || !strings.Contains(err.Error(),
		"damaged") {
		t.Errorf("opened: %v", err)
	}
	var backup bytes.Buffer
	if err := BackupOffline(t.Context(), dir, quiet, &backup, func(int64, int64) {}); err != nil {
		t.Fatal(err)
	}
	if in := readFromBackup(t, &backup, "parley.db"); !bytes.Equal(in, damaged) {
		t.Errorf("the backup has %d bytes", len(in))
	}
}

// TestLockWaits opens a directory while a command has it for a moment.
func TestLockWaits(t *testing.T) {
	dir := Dir(t.TempDir())
	_, first := openOffline(t, dir)
	opened := make(chan error, 1)
	go func() {
		second, err := OpenOffline(t.Context(), Config{DataDir: dir, Log: quiet}, "parley other")
		if err == nil {
			err = second.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatalf("the second one did not wait: %v", err)
	default:
	}
	if running, ok := dir.Running(); !ok || running.Command != "parley test" || running.URL != "" {
		t.Errorf("the lock file says %+v", running)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("the second one: %v", err)
	}
}
