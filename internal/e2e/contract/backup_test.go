package contract_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"parley/internal/parleytest"
)

// TestBackupFile fetches the newest backup, as it is on disk.
func TestBackupFile(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	admin := parleytest.As(e.Admin)
	const file = "/api/manage/backup/file"
	e.Get(file, admin).ExpectError(http.StatusNotFound, "There is no backup on this server yet.")
	e.Post("/api/manage/backup", "", admin).Expect(http.StatusOK)
	made := e.Post("/api/manage/backup", "", admin).Expect(http.StatusOK).Text("data.path")

	a := e.Get(file, admin).Expect(http.StatusOK)
	wantHeader(t, a, "Content-Type", "application/x-tar")
	wantHeader(t, a, "Cache-Control", "no-store")
	wantHeader(t, a, "Content-Disposition", `attachment; filename="`+filepath.Base(made)+`"`)
	stored, err := os.ReadFile(made)
	if err != nil || !bytes.Equal(stored, a.Body) {
		t.Errorf("fetched were %d bytes, on disk are %d (%v)", len(a.Body), len(stored), err)
	}
	expectBackup(t, a.Body)
	head := e.Call(http.MethodHead, file, "", admin).Expect(http.StatusOK)
	if head.Header.Get("Content-Length") != a.Header.Get("Content-Length") || len(head.Body) > 0 {
		t.Errorf("HEAD answers %v with %d bytes", head.Header, len(head.Body))
	}
	e.Get(file, parleytest.As(e.Global)).Expect(http.StatusForbidden)

	if err := os.RemoveAll(filepath.Dir(made)); err != nil {
		t.Fatal(err)
	}
	e.Get(file, admin).ExpectError(http.StatusNotFound, "Create one first.")
}

func expectBackup(t *testing.T, body []byte) {
	t.Helper()
	var names []string
	for files := tar.NewReader(bytes.NewReader(body)); ; {
		head, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, head.Name)
	}
	if !slices.Contains(names, "parley.db") || !slices.Contains(names, "secret.key") {
		t.Errorf("it has %q", names)
	}
}

// TestBackupOfThisMoment fetches a backup that is kept nowhere.
func TestBackupOfThisMoment(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	admin := parleytest.As(e.Admin)
	const now = "/api/manage/backup/now"
	a := e.Get(now, admin).Expect(http.StatusOK)
	wantHeader(t, a, "Content-Type", "application/x-tar")
	wantHeader(t, a, "Content-Length", "")
	expectBackup(t, a.Body)
	e.Get("/api/manage/backup/file", admin).Expect(http.StatusNotFound)
	e.Get(now, admin).Expect(http.StatusOK) // the one before has ended
	e.Get(now, parleytest.As(e.Global)).Expect(http.StatusForbidden)
}
