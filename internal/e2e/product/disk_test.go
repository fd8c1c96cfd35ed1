//go:build linux

package product_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"parley/internal/app"
	"parley/internal/parleytest"
	"parley/internal/store"
)

// TestFullDisk lets the disk run full under load. What cannot be kept must be refused, what was
// accepted must be there afterwards, and it must work again by itself once there is room.
func TestFullDisk(t *testing.T) {
	t.Run("files that may not grow", func(t *testing.T) {
		e := parleytest.Start(t)
		runFull(t, e, func() (free func()) { return limitFiles(t, e.Data) })
	})
	t.Run("a file system without room", func(t *testing.T) {
		dir := smallFileSystem(t)
		if dir == "" {
			t.Log("no file system can be mounted here; the limit on files replaces it")
			return
		}
		e := parleytest.Start(t, func(c *app.Config) { c.DataDir = app.Dir(filepath.Join(dir, "data")) })
		runFull(t, e, func() (free func()) { return ballast(t, dir) })
	})
}

// room is what is left when the load begins: enough for some dozens of messages.
const room = 1 << 20

// limitFiles sets the size that files of this process may have a little above what they have now.
func limitFiles(t *testing.T, dir app.Dir) (free func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	largest := int64(0)
	for _, path := range []string{dir.Database(), dir.Sandbox()} {
		if info, err := os.Stat(path + "-wal"); err == nil {
			largest = max(largest, info.Size())
		}
	}
	limit := syscall.Rlimit{Cur: uint64(largest) + room, Max: before.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	free = sync.OnceFunc(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(free)
	return free
}

// smallFileSystem mounts one of a few megabytes; "": that is not permitted here.
func smallFileSystem(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		return ""
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// ballast fills a file system but for a little.
func ballast(t *testing.T, dir string) (free func()) {
	t.Helper()
	name := filepath.Join(dir, "ballast")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4<<10))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err == nil {
		err = f.Truncate(info.Size() - room)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}

// runFull sends until the disk is full, frees it, and compares what was accepted with what arrived.
func runFull(t *testing.T, e *parleytest.Env, fill func() (free func())) {
	files := parleytest.Files(t)
	e.Post("/api/send-message/text", `{"contact_id":"`+ayu+`","message":"before"}`).Expect(http.StatusOK)
	free := fill()
	accepted := sendUntilFull(t, e)
	e.Get("/api/chat").Expect(http.StatusOK) // what is there can be read
	e.Get("/livez", parleytest.As("")).Expect(http.StatusOK)
	for _, a := range []*parleytest.Response{ // there may be room for less than a message
		e.Post("/api/manage/tokens", `{"kind":"global"}`, parleytest.As(e.Admin)),
		e.Post("/api/groups/create", `{"name":"Family","participants":[{"id":"`+ayu+`"}]}`),
		e.Post("/api/send-message/image", `{"contact_id":"`+ayu+`","file":{"url":"`+files+`/dot.png"}}`, parleytest.With("Prefer",
			"respond-async")),
	} {
		if a.Status >= 300 {
			refused(t, a)
		}
	}
	free()
	e.Eventually("messages are taken again", func() bool {
		a := e.Post("/api/send-message/text", `{"contact_id":"`+ayu+`","message":"after"}`)
		return a.Status == http.StatusOK && a.Text("data.status") == "SENT"
	})
	for worker, ids := range accepted {
		number := workerContact(worker)
		e.Eventually("everything accepted is sent", func() bool {
			history := string(e.Get("/api/chat/detail?limit=100&contact_id=" + number + "@c.us").Body)
			return !strings.Contains(history, "PENDING")
		})
		var arrived []string
		for _, m := range e.Phone(number).Messages() {
			arrived = append(arrived, m.MessageID)
		}
		if !slices.Equal(arrived, ids) {
			t.Errorf("accepted for %s: %d %v\narrived: %d %v", number, len(ids), ids, len(arrived), arrived)
		}
	}
	e.Stop()
	db, err := store.Open(t.Context(), e.Data.Database())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func workerContact(worker int) string { return fmt.Sprintf("62812900%05d", worker) }

// sendUntilFull has several callers send until each was refused a few times. It returns the ids of
// what was accepted, by caller and in order.
func sendUntilFull(t *testing.T, e *parleytest.Env) map[int][]string {
	t.Helper()
	const workers, refusals, most = 4, 5, 90 // a phone lists its newest hundred
	accepted := map[int][]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			no := 0
			for n := 0; no < refusals; n++ {
				body := fmt.Sprintf(`{"contact_id":"%s@c.us","message":"%d %s"}`, workerContact(worker), n, strings.Repeat("x", 3000))
				a, err := e.TryCall("POST", "/api/send-message/text", body, parleytest.With("Prefer", "respond-async"))
				switch {
				case err != nil || n == most:
					t.Errorf("request %d: %v; the disk did not run full", n, err)
					return
				case a.Status == http.StatusOK:
					mu.Lock()
					accepted[worker] = append(accepted[worker], a.Text("data.message_id"))
					mu.Unlock()
				default:
					refused(t, a)
					no++
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d callers: %d messages accepted before the disk was full", workers, len(slices.Concat(slices.Collect(maps.Values(accepted))...)))
	return accepted
}

// refused checks the answer to what cannot be kept.
func refused(t *testing.T, a *parleytest.Response) {
	t.Helper()
	if a.Status != http.StatusServiceUnavailable && a.Status != http.StatusInsufficientStorage || a.Header.Get("Retry-After") == "" {
		t.Errorf("%s on a full disk: answer %d, Retry-After %q: %s", a.Request, a.Status, a.Header.Get("Retry-After"), a.Body)
	}
}
