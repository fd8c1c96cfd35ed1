package media

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/media/mediatest"
	"parley/internal/store"
)

// place is a storage to test.
type place struct {
	name   string
	config func(t *testing.T) Config
	// age makes the files of a library older.
	age func(t *testing.T, l *Library, by time.Duration, store func())
}

// places are the storages that every test of this file runs on.
func places() []place {
	byChtimes := func(t *testing.T, l *Library, by time.Duration, store func()) {
		before := listFiles(t, l)
		store()
		then := time.Now().Add(-by)
		for _, path := range listFiles(t, l) {
			if slices.Contains(before, path) {
				continue
			}
			if err := os.Chtimes(path, then, then); err != nil {
				t.Fatal(err)
			}
		}
	}
	return []place{
		{"own directory", func(t *testing.T) Config { return Config{Dir: filepath.Join(t.TempDir(), "media")} }, byChtimes},
		{"shared directory", func(t *testing.T) Config { return Config{Dir: filepath.Join(t.TempDir(), "media"), Shared: true} }, byChtimes},
		{"bucket", func(t *testing.T) Config { return bucketConfig(t, mediatest.New(t, "files"), "") }, byServerTime},
		{"bucket with a prefix", func(t *testing.T) Config { return bucketConfig(t, mediatest.New(t, "files"), "chat/prod/") }, byServerTime},
	}
}

// servers finds the server of a library's bucket.
var servers sync.Map // by URL

func byServerTime(t *testing.T, l *Library, by time.Duration, store func()) {
	server := findServer(t, l)
	server.SetTime(time.Now().Add(-by))
	store()
	server.SetTime(time.Now())
}

func findServer(t *testing.T, l *Library) *mediatest.Server {
	t.Helper()
	server, ok := servers.Load(l.config.Bucket.Endpoint)
	if !ok {
		t.Fatal("no server")
	}
	return server.(*mediatest.Server)
}

func bucketConfig(t *testing.T, server *mediatest.Server, prefix string) Config {
	t.Helper()
	servers.Store(server.URL, server)
	return Config{Dir: filepath.Join(t.TempDir(), "media"), Bucket: &Bucket{Name: server.Bucket, Prefix: prefix, Endpoint: server.URL,
		Region: mediatest.Region, AccessKey: mediatest.AccessKey, SecretKey: mediatest.SecretKey}}
}

func openPlace(t *testing.T, config Config) *Library {
	t.Helper()
	l, err := Open(config, loopback)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func onBoth(t *testing.T, test func(t *testing.T, p place, config Config)) {
	for _, p := range places() {
		t.Run(p.name, func(t *testing.T) { test(t, p, p.config(t)) })
	}
}

// stored lists the names of all files in the storage.
func stored(t *testing.T, l *Library) (names []string) {
	t.Helper()
	if err := l.files.list(t.Context(), "", "", func(name string, _ time.Time) bool {
		names = append(names, name)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return names
}

func drafts(t *testing.T, l *Library) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(l.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func random(t *testing.T, size int) []byte {
	t.Helper()
	data := make([]byte, size)
	rand.Read(data)
	return data
}

func TestStorageKeepsFiles(t *testing.T) {
	onBoth(t, func(t *testing.T, _ place, config Config) {
		l := openPlace(t, config)
		if err := l.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		if names := stored(t, l); len(names) != 0 {
			t.Errorf("the check left %v", names)
		}
		for _, size := range []int{0, 1, 1000, 3 << 20, 17 << 20} {
			data := random(t, size)
			m, err := l.Store(t.Context(), "demo", data, "a.bin")
			if err != nil || m.Size != int64(size) || !bytes.Equal(m.SHA256, sha(data)) {
				t.Fatalf("%d bytes: %+v, %v", size, m, err)
			}
			f, err := l.Open(t.Context(), m.Key)
			if err != nil || f.Size != int64(size) {
				t.Fatalf("%d bytes: %v, %v", size, f, err)
			}
			got, err := io.ReadAll(f)
			if err := errors.Join(err, f.Close()); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes: %d were read, %v", size, len(got), err)
			}
			if name, _ := storedName(m.Key); !slices.Contains(stored(t, l), name) {
				t.Errorf("%s is not listed", name)
			}
			if err := errors.Join(l.Remove(t.Context(), m.Key), l.Remove(t.Context(), m.Key)); err != nil {
				t.Error(err)
			}
			if _, err := l.Open(t.Context(), m.Key); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("after removal: %v", err)
			}
		}
		if left := drafts(t, l); len(left) != 0 {
			t.Errorf("temporary files left: %v", left)
		}
		for _, key := range []string{"", "../x", "tmp", "nodes/1", strings.Repeat("A", 32)} {
			if _, err := l.Open(t.Context(), key); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%q: %v", key, err)
			}
			if err := l.Remove(t.Context(), key); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("removing %q: %v", key, err)
			}
		}
	})
}

// TestEqualFilesAreStoredOnce stores a content twice for one channel, once for another, and again after it was lost.
func TestEqualFilesAreStoredOnce(t *testing.T) {
	picture, note := toPNG(t, halves(30, 20)), tone(t, "a.wav", 1)
	base := serve(t, map[string][]byte{"/a.png": picture, "/b.png": picture, "/a.wav": note})
	onBoth(t, func(t *testing.T, _ place, config Config) {
		config.Store = newStore(t)
		l := openPlace(t, config)
		kept := func(m parley.Media, err error) string {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			return m.Key
		}
		first := kept(l.Image(t.Context(), Source{Channel: "demo", URL: base + "/a.png"}))
		for what, key := range map[string]string{
			"another address": kept(l.Image(t.Context(), Source{Channel: "demo", URL: base + "/b.png"})),
			"a document":      kept(l.File(t.Context(), Source{Channel: "demo", URL: base + "/b.png"})),
			"one that came":   kept(l.Store(t.Context(), "demo", picture, "b.png")),
		} {
			if key != first {
				t.Errorf("%s is stored as %s, the same file as %s", what, key, first)
			}
		}
		if other := kept(l.Store(t.Context(), "other", picture, "b.png")); other == first {
			t.Error("two channels share a file")
		}
		sound := kept(l.Voice(t.Context(), Source{Channel: "demo", URL: base + "/a.wav"}))
		if again := kept(l.Voice(t.Context(), Source{Channel: "demo", URL: base + "/a.wav"})); again != sound {
			t.Errorf("two conversions of a sound are stored as %s and %s", sound, again)
		}
		if names := stored(t, l); len(names) != 3 {
			t.Errorf("stored: %v", names)
		}
		file, err := config.Store.File(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		m, err := l.Image(t.Context(), Source{Channel: "demo", URL: "med_1", Stored: &file})
		if err != nil || m.Key != first || m.Width != 30 || len(m.Thumbnail) == 0 || m.Size != int64(len(picture)) {
			t.Errorf("made of the stored file: %+v, %v", m, err)
		}
		if err := l.Remove(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Image(t.Context(), Source{Channel: "demo", URL: "med_1", Stored: &file}); err != ErrNoFile {
			t.Errorf("made of a file that is gone: %v", err)
		}
		if again := kept(l.Store(t.Context(), "demo", picture, "b.png")); again != first || !bytes.Equal(read(t, l, first), picture) {
			t.Errorf("after it was lost it is stored as %s", again)
		}
		if left := drafts(t, l); len(left) != 0 {
			t.Errorf("temporary files left: %v", left)
		}
	})
}

// TestLimitsOfStorage refuses what is too much for a day, and everything while there is no room.
func TestLimitsOfStorage(t *testing.T) {
	config := Config{Dir: t.TempDir(), Store: newStore(t), Limits: store.StorageLimits{PerDay: 10}}
	l := openPlace(t, config)
	first, err := l.Store(t.Context(), "demo", []byte("1234567"), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Store(t.Context(), "demo", []byte("abcd"), "")
	if e, ok := errors.AsType[*parley.Error](err); !ok || e.Code != parley.StorageLimit || e.RetryAfter < 22*time.Hour {
		t.Errorf("too much for a day: %v", err)
	}
	if again, err := l.Store(t.Context(), "demo", []byte("1234567"), ""); err != nil || again.Key != first.Key {
		t.Errorf("a file that it has: %v, %v", again, err)
	}
	if _, err := l.Store(t.Context(), "other", []byte("abcd"), ""); err != nil {
		t.Errorf("another channel: %v", err)
	}
	if names := stored(t, l); len(names) != 2 {
		t.Errorf("stored: %v", names)
	}
	l.config.Limits = store.StorageLimits{MinFree: 1 << 60}
	if _, err := l.Store(t.Context(), "demo", []byte("x"), ""); parley.ToCode(err) != parley.StorageFull {
		t.Errorf("without room: %v", err)
	}
	if left := drafts(t, l); len(left) != 0 {
		t.Errorf("temporary files left: %v", left)
	}
}

// newStore makes a store with the channels demo and other.
func newStore(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), "memory:"+t.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	err = db.Tx(t.Context(), func(tx *store.Tx) error {
		return errors.Join(tx.AddChannel(t.Context(), parley.Channel{Code: "demo", Network: parley.Sandbox}),
			tx.AddChannel(t.Context(), parley.Channel{Code: "other", Network: parley.Sandbox}))
	})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestStorageFetches(t *testing.T) {
	picture, note := toPNG(t, halves(30, 20)), tone(t, "a.wav", 1)
	base := serve(t, map[string][]byte{"/a.png": picture, "/a.wav": note, "/a.txt": []byte("hello")})
	onBoth(t, func(t *testing.T, _ place, config Config) {
		l := openPlace(t, config)
		image, err := l.Image(t.Context(), Source{URL: base + "/a.png"})
		if err != nil || image.Width != 30 || !bytes.Equal(read(t, l, image.Key), picture) {
			t.Errorf("%+v, %v", image, err)
		}
		voice, err := l.Voice(t.Context(), Source{URL: base + "/a.wav"})
		if err != nil || voice.Seconds != 1 || int64(len(read(t, l, voice.Key))) != voice.Size {
			t.Errorf("%+v, %v", voice, err)
		}
		file, err := l.File(t.Context(), Source{URL: base + "/a.txt"})
		if err != nil || string(read(t, l, file.Key)) != "hello" {
			t.Errorf("%+v, %v", file, err)
		}
		if left := drafts(t, l); len(left) != 0 {
			t.Errorf("temporary files left: %v", left)
		}
	})
}

func TestStorageListsOlder(t *testing.T) {
	onBoth(t, func(t *testing.T, p place, config Config) {
		l := openPlace(t, config)
		var old []string
		p.age(t, l, 2*time.Hour, func() {
			for range 12 {
				m, err := l.Store(t.Context(), "demo", []byte("old"), "")
				if err != nil {
					t.Fatal(err)
				}
				old = append(old, m.Key)
			}
			if _, err := l.CheckShared(t.Context(), "1", nil); err != nil { // no file of a message
				t.Fatal(err)
			}
		})
		for range 5 {
			if _, err := l.Store(t.Context(), "demo", []byte("new"), ""); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(old)
		for _, limit := range []int{1, 5, 100} {
			var got []string
			for after := ""; ; {
				keys, err := l.Older(t.Context(), time.Now().Add(-time.Hour), after, limit)
				if err != nil {
					t.Fatal(err)
				}
				if got = append(got, keys...); len(keys) < limit {
					break
				}
				after = keys[len(keys)-1]
			}
			if !slices.Equal(got, old) {
				t.Errorf("%d at a time: %v, want %v", limit, got, old)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if keys, err := l.Older(ended, time.Now(), "", 100); err == nil {
			t.Errorf("after the end of its context: %d keys", len(keys))
		}
	})
}

func TestStorageInParallel(t *testing.T) {
	onBoth(t, func(t *testing.T, _ place, config Config) {
		l := openPlace(t, config)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				data := random(t, 10_000+i)
				m, err := l.Store(t.Context(), "demo", data, "")
				if err != nil {
					t.Error(err)
					return
				}
				f, err := l.Open(t.Context(), m.Key)
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
				if err := l.Remove(t.Context(), m.Key); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if names := stored(t, l); len(names) != 0 {
			t.Errorf("left: %v", names)
		}
	})
}

// The temporary files of a node survive the start of another one, and its files are readable there.
func TestNodesShareAStorage(t *testing.T) {
	onBoth(t, func(t *testing.T, p place, config Config) {
		if !config.Shared && config.Bucket == nil {
			t.Skip("not shared")
		}
		first := openPlace(t, config)
		upload, err := first.newDraft()
		if err != nil {
			t.Fatal(err)
		}
		defer upload.discard()
		upload.WriteString("in progress")

		other := config
		if config.Bucket != nil { // each node has its own folder of temporary files
			other.Dir = filepath.Join(t.TempDir(), "media")
		}
		second := openPlace(t, other)
		if first.TempDir() == second.TempDir() {
			t.Error("one folder of temporary files")
		}
		key := NewKey()
		if err := first.persist(t.Context(), upload, key); err != nil {
			t.Fatalf("the upload in progress: %v", err)
		}
		if got := read(t, second, key); string(got) != "in progress" {
			t.Errorf("%q", got)
		}

		if apart, err := first.CheckShared(t.Context(), "1", nil); err != nil || len(apart) != 0 {
			t.Errorf("%v, %v", apart, err)
		}
		if apart, err := second.CheckShared(t.Context(), "2", []string{"1"}); err != nil || len(apart) != 0 {
			t.Errorf("%v, %v", apart, err)
		}
		elsewhere := openPlace(t, p.config(t))
		if apart, err := elsewhere.CheckShared(t.Context(), "3", []string{"1", "2"}); err != nil || !slices.Equal(apart, []string{"1", "2"}) {
			t.Errorf("another storage: %v, %v", apart, err)
		}
		if err := first.files.remove(t.Context(), probeFolder+"1"); err != nil {
			t.Error(err)
		}
		if apart, err := second.CheckShared(t.Context(), "2", []string{"1"}); err != nil || !slices.Equal(apart, []string{"1"}) {
			t.Errorf("without its probe: %v, %v", apart, err)
		}
		for _, bad := range []string{"", "..", "a/b", ".hidden", strings.Repeat("x", 65)} {
			if _, err := first.CheckShared(t.Context(), bad, nil); err == nil {
				t.Errorf("%q is accepted as a node", bad)
			}
			if _, err := first.CheckShared(t.Context(), "1", []string{bad}); err == nil {
				t.Errorf("%q is accepted as another node", bad)
			}
		}
	})
}

func TestOldProbesAreRemoved(t *testing.T) {
	onBoth(t, func(t *testing.T, p place, config Config) {
		l := openPlace(t, config)
		p.age(t, l, 25*time.Hour, func() {
			for _, node := range []string{"1", "2"} {
				if _, err := l.CheckShared(t.Context(), node, []string{"1"}); err != nil {
					t.Fatal(err)
				}
			}
		})
		if _, err := l.CheckShared(t.Context(), "3", nil); err != nil { // removes 1 and 2 ...
			t.Fatal(err)
		}
		if _, err := l.CheckShared(t.Context(), "4", []string{"3"}); err != nil { // ... but neither 3 nor 4
			t.Fatal(err)
		}
		if names := stored(t, l); !slices.Equal(names, []string{"nodes/3", "nodes/4"}) {
			t.Errorf("%v", names)
		}
	})
}

// Another installation would remove the files as orphans.
func TestStorageBelongsToOneInstallation(t *testing.T) {
	onBoth(t, func(t *testing.T, _ place, config Config) {
		config.Installation = []string{"ours"}
		if err := openPlace(t, config).Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		config.Installation = []string{"rotated", "ours"}
		if err := openPlace(t, config).Check(t.Context()); err != nil {
			t.Errorf("after a rotation: %v", err)
		}
		config.Installation = []string{"theirs"}
		err := openPlace(t, config).Check(t.Context())
		if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), "belong to another installation") {
			t.Errorf("another installation: %v", err)
		}
	})
}

func TestAbandonedTemporaryFiles(t *testing.T) {
	config := Config{Dir: filepath.Join(t.TempDir(), "media"), Shared: true}
	l := openPlace(t, config)
	make := func(node string, age time.Duration, file bool) string {
		folder := filepath.Join(TempDir(config.Dir), node)
		path := filepath.Join(folder, "upload")
		then := time.Now().Add(-age)
		err := os.MkdirAll(folder, 0o700)
		if file {
			err = errors.Join(err, os.WriteFile(path, nil, 0o600), os.Chtimes(path, then, then))
		}
		if err := errors.Join(err, os.Chtimes(folder, then, then)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	live, crashed, empty := make("live", time.Hour, true), make("crashed", 25*time.Hour, true), make("empty", 8*24*time.Hour, false)
	idle := make("idle", 3*24*time.Hour, false)
	another := openPlace(t, config)
	there := func(path string) bool { _, err := os.Stat(path); return err == nil }
	if !there(live) || there(crashed) || there(filepath.Dir(empty)) || !there(filepath.Dir(idle)) {
		t.Errorf("live %v, crashed %v, empty %v, idle %v", there(live), there(crashed), there(filepath.Dir(empty)), there(filepath.Dir(idle)))
	}
	if err := os.Remove(another.TempDir()); err != nil { // as if idle for long
		t.Fatal(err)
	}
	if _, err := another.Store(t.Context(), "demo", []byte("x"), ""); err != nil {
		t.Errorf("after the folder was removed: %v", err)
	}
	l.Close()
	if there(l.TempDir()) {
		t.Error("the folder of a closed library is left")
	}
}

// In a folder that is not mounted any more every file seems to be missing. It must not look deleted.
func TestUnmountedDirectoryIsUnavailable(t *testing.T) {
	config := Config{Dir: filepath.Join(t.TempDir(), "media"), Shared: true}
	l := openPlace(t, config)
	m, err := l.Store(t.Context(), "demo", []byte("x"), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(config.Dir, config.Dir+"-away"), os.Mkdir(config.Dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	_, opened := l.Open(t.Context(), m.Key)
	_, storing := l.Store(t.Context(), "demo", []byte("y"), "")
	for what, err := range map[string]error{"open": opened, "store": storing, "remove": l.Remove(t.Context(), m.Key)} {
		mustBeUnavailable(t, what, err)
	}
	if err := l.Check(t.Context()); err == nil || !strings.Contains(err.Error(), config.Dir) {
		t.Errorf("check: %v", err)
	}
	if files := listFiles(t, l); len(files) != 0 {
		t.Errorf("written below the mount: %v", files)
	}
}

func TestDirectoryThatCannotBeWritten(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err := Open(Config{Dir: dir, Shared: true}, loopback)
	if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("%v", err)
	}
}

func TestDirectoryThatIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(Config{Dir: path, Shared: true}, loopback)
	if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), path) || !strings.HasSuffix(err.Error(), ".") {
		t.Errorf("%v", err)
	}
}

func mustBeUnavailable(t *testing.T, what string, err error) {
	t.Helper()
	e, ok := errors.AsType[*parley.Error](err)
	if !ok || e.Code != parley.Unavailable || e.RetryAfter <= 0 || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v, want Unavailable with a delay", what, err)
	}
}

// faulty opens a library on a server that fails.
func faulty(t *testing.T) (*Library, *mediatest.Server) {
	t.Helper()
	server := mediatest.New(t, "files")
	return openPlace(t, bucketConfig(t, server, "p/")), server
}

// stallsAfter sets how long a request may make no progress: little while the server hangs, more while it works on a busy machine.
func (l *Library) stallsAfter(limit time.Duration) { l.files.(*objects).stall = limit }

func TestBucketRetries(t *testing.T) {
	l, server := faulty(t)
	data := random(t, 200_000)
	server.Inject(mediatest.Status(503, "SlowDown").For("PUT", "/p/"), mediatest.Status(500, "InternalError").For("PUT", "/p/"))
	m, err := l.Store(t.Context(), "demo", data, "")
	if err != nil {
		t.Fatal(err)
	}
	server.Inject(mediatest.Status(503, "SlowDown").For("GET", m.Key), mediatest.Cut(50_000).For("GET", m.Key),
		mediatest.Cut(70_000).For("GET", m.Key))
	if got := read(t, l, m.Key); !bytes.Equal(got, data) {
		t.Errorf("%d bytes after broken connections, want %d", len(got), len(data))
	}
	ranges := 0
	for _, request := range server.Requests() {
		if strings.Contains(request, "bytes=") {
			ranges++
		}
	}
	if ranges != 2 || server.Heal() != 0 {
		t.Errorf("%d requests for the rest: %v", ranges, server.Requests())
	}
	l.stallsAfter(time.Second)
	server.Inject(mediatest.Stall(1000).For("GET", m.Key))
	if got := read(t, l, m.Key); !bytes.Equal(got, data) {
		t.Errorf("%d bytes after a stall, want %d", len(got), len(data))
	}
}

// A download that cannot be completed is an error, never a short file.
func TestBucketDownloadNeverEndsEarly(t *testing.T) {
	for name, faults := range map[string]func(*mediatest.Server) []mediatest.Fault{
		"cut for ever": func(*mediatest.Server) []mediatest.Fault { return mediatest.Cut(1000).For("GET", "/p/").Times(20) },
		"ignores range": func(s *mediatest.Server) []mediatest.Fault {
			return append([]mediatest.Fault{mediatest.Cut(1000).For("GET", "/p/")}, s.IgnoreRange().For("GET", "/p/").Times(20)...)
		},
		"denied later": func(*mediatest.Server) []mediatest.Fault {
			return append([]mediatest.Fault{mediatest.Cut(1000).For("GET", "/p/")},
				mediatest.Status(403, "AccessDenied").For("GET", "/p/").Times(20)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, server := faulty(t)
			m, err := l.Store(t.Context(), "demo", random(t, 100_000), "")
			if err != nil {
				t.Fatal(err)
			}
			server.Inject(faults(server)...)
			f, err := l.Open(t.Context(), m.Key)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			n, err := io.Copy(io.Discard, f)
			if n >= m.Size {
				t.Errorf("%d bytes", n)
			}
			mustBeUnavailable(t, "read", err)
		})
	}
}

func TestBucketOutages(t *testing.T) {
	for name, fault := range map[string]func(*mediatest.Server) mediatest.Fault{
		"fails":           func(*mediatest.Server) mediatest.Fault { return mediatest.Status(503, "ServiceUnavailable") },
		"denies":          func(*mediatest.Server) mediatest.Fault { return mediatest.Status(403, "AccessDenied") },
		"lost its bucket": func(*mediatest.Server) mediatest.Fault { return mediatest.Status(404, "NoSuchBucket") },
		"hangs":           func(s *mediatest.Server) mediatest.Fault { return s.Slow(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			l, server := faulty(t)
			m, err := l.Store(t.Context(), "demo", random(t, 3<<20), "")
			if err != nil {
				t.Fatal(err)
			}
			server.Inject(fault(server).Times(100)...)
			l.stallsAfter(time.Second)
			began := time.Now()
			_, opened := l.Open(t.Context(), m.Key)
			_, storing := l.Store(t.Context(), "demo", random(t, 3<<20), "")
			_, listing := l.Older(t.Context(), time.Now(), "", 10)
			for what, err := range map[string]error{"open": opened, "store": storing, "list": listing,
				"remove": l.Remove(t.Context(), m.Key)} {
				mustBeUnavailable(t, what, err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
			if left := drafts(t, l); len(left) != 0 {
				t.Errorf("temporary files left: %v", left)
			}
			server.Heal()
			l.stallsAfter(stallTimeout)
			if got := read(t, l, m.Key); int64(len(got)) != m.Size {
				t.Errorf("after it: %d bytes", len(got))
			}
		})
	}
}

func TestBucketHonoursContexts(t *testing.T) {
	l, server := faulty(t)
	l.stallsAfter(time.Minute)
	m, err := l.Store(t.Context(), "demo", random(t, 100_000), "")
	if err != nil {
		t.Fatal(err)
	}
	within := func(what string, do func(ctx context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := do(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 10*time.Second {
			t.Errorf("%s: %v after %s", what, err, time.Since(began))
		}
		mustBeUnavailable(t, what, err)
	}
	server.Inject(server.Slow(time.Minute).Times(3)...)
	within("open", func(ctx context.Context) error { _, err := l.Open(ctx, m.Key); return err })
	within("store", func(ctx context.Context) error { _, err := l.Store(ctx, "demo", random(t, 1<<20), ""); return err })
	within("remove", func(ctx context.Context) error { return l.Remove(ctx, m.Key) })
	server.Heal()
	server.Inject(mediatest.Stall(1000).For("GET", m.Key))
	within("read", func(ctx context.Context) error {
		f, err := l.Open(ctx, m.Key)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(io.Discard, f)
		return err
	})
}

// The check says in a sentence what to do.
func TestBucketCheckExplains(t *testing.T) {
	server := mediatest.New(t, "files")
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, test := range map[string]struct {
		change func(b *Bucket)
		fault  []mediatest.Fault
		says   string
	}{
		"no bucket":      {func(b *Bucket) { b.Name = "other" }, nil, "was not found. Create the bucket"},
		"wrong key":      {func(b *Bucket) { b.AccessKey = "X" }, nil, "rejects the keys (InvalidAccessKeyId)"},
		"wrong secret":   {func(b *Bucket) { b.SecretKey = "X" }, nil, "rejects the keys (SignatureDoesNotMatch)"},
		"wrong region":   {func(b *Bucket) { b.Region = "test-2" }, nil, "another region than test-2"},
		"refused":        {func(b *Bucket) { b.Endpoint = closed.URL }, nil, "does not respond: "},
		"no such host":   {func(b *Bucket) { b.Endpoint = "http://nowhere.invalid" }, nil, "does not respond: "},
		"may not delete": {nil, mediatest.Status(403, "AccessDenied").For("DELETE", "").Times(5), "denies access. Allow these keys"},
		"may not list":   {nil, mediatest.Status(403, "AccessDenied").For("GET", "/files/").Times(5), "denies access"},
		"wrong clock":    {nil, mediatest.Status(403, "RequestTimeTooSkewed").Times(5), "Correct the clock"},
		"something else": {nil, mediatest.Status(501, "NotImplemented").Times(5), "NotImplemented, status 501"},
		"no S3 server":   {nil, mediatest.Status(400, "").Times(5), "status 400"},
		"works":          {nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := bucketConfig(t, server, "")
			if test.change != nil {
				test.change(config.Bucket)
			}
			server.Inject(test.fault...)
			defer server.Heal()
			err := openPlace(t, config).Check(t.Context())
			if test.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want a sentence with %q", err, test.says)
			}
			if text := fmt.Sprintf("%v %+v", err, errors.Unwrap(err)); strings.Contains(text, mediatest.SecretKey) {
				t.Errorf("%s has the secret key", text)
			}
		})
	}
	if server.Verified() == 0 {
		t.Error("no signature was checked")
	}
}

func TestParseBucket(t *testing.T) {
	for text, want := range map[string]string{
		"s3://files": "s3://files/", "s3://files/": "s3://files/", "s3://files/a": "s3://files/a/", "s3://files/a/b/": "s3://files/a/b/",
		"s3://": "", "s3:///a": "", "files": "", "https://files/a": "", "s3://files/a//b": "", "s3://files/../b": "", "s3://key:secret@files": "",
		"s3://files/a b": "", "s3://files/a+b": "",
		"s3://files?x": "",
	} {
		b, err := ParseBucket(text)
		if (err == nil) != (want != "") || err == nil && b.String() != want {
			t.Errorf("%q: %v, %v", text, b, err)
		}
	}
	for _, b := range []Bucket{{Name: "UPPER"}, {Name: "a"}, {Name: "files", Endpoint: "s3.example.com"}, {Name: "files", Endpoint: "ftp://x"},
		{Name: "files", Endpoint: "https://key:secret@x"}, {Name: "files", Endpoint: "https://x/path"}} {
		if b.Check() == nil {
			t.Errorf("%+v is accepted", b)
		}
	}
	if err := (Bucket{Name: "files"}).Check(); err != nil {
		t.Error(err)
	}
}

// Neither an upload nor a download holds a file in memory.
func TestBucketMemoryIsBounded(t *testing.T) {
	const size = 64 << 20
	zeros := make([]byte, 1<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodPut:
			buf := make([]byte, 64<<10)
			for {
				if _, err := r.Body.Read(buf); err != nil {
					break
				}
			}
			w.Header().Set("ETag", `"1"`)
		case http.MethodGet:
			w.Header().Set("Content-Length", fmt.Sprint(size))
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
			for range size / len(zeros) {
				w.Write(zeros)
			}
		}
	}))
	t.Cleanup(server.Close)
	l := openPlace(t, Config{Dir: filepath.Join(t.TempDir(), "media"), Bucket: &Bucket{Name: "files", Endpoint: server.URL, AccessKey: "a",
		SecretKey: "b"}})
	d, err := l.newDraft()
	if err != nil {
		t.Fatal(err)
	}
	defer d.discard()
	for range size / len(zeros) {
		if _, err := d.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	allocated := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.TotalAlloc
	}
	before := allocated()
	key := NewKey()
	err = l.persist(t.Context(), d, key)
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := io.Copy(io.Discard, f); n != size || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if used := allocated() - before; used > 8<<20 {
		t.Errorf("%d bytes were allocated for a file of %d", used, size)
	}
}

// TestStorageReadsFromAnyPosition: callers fetch ranges of files.
func TestStorageReadsFromAnyPosition(t *testing.T) {
	for _, p := range places() {
		t.Run(p.name, func(t *testing.T) {
			l := openPlace(t, p.config(t))
			m, err := l.Store(t.Context(), "demo", []byte("0123456789"), "a.txt")
			if err != nil {
				t.Fatal(err)
			}
			f, err := l.Open(t.Context(), m.Key)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, c := range []struct {
				offset int64
				whence int
				want   string
			}{{7, io.SeekStart, "789"}, {0, io.SeekStart, "0123456789"}, {-2, io.SeekEnd, "89"}, {-4, io.SeekCurrent, "6789"},
				{10, io.SeekStart, ""}} {
				if _, err := f.Seek(c.offset, c.whence); err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(f); err != nil || string(got) != c.want {
					t.Errorf("from %d: %q, %v", c.offset, got, err)
				}
			}
			if _, err := f.Seek(-1, io.SeekStart); err == nil {
				t.Error("a negative position is accepted")
			}
		})
	}
}
