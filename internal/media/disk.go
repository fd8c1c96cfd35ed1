package media

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// tempDir holds incomplete files. It is in the library's folder, so that a rename completes a file.
const tempDir = "tmp"

var keyForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

func NewKey() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// path uses two levels of folders, so that none grows too large.
func (l *Library) path(key string) (string, error) {
	if !keyForm.MatchString(key) {
		return "", fmt.Errorf("media key %q: %w", key, os.ErrNotExist)
	}
	return filepath.Join(l.dir, key[:2], key[2:4], key), nil
}

// prepare makes the library's folders, for its owner alone, and empties the one for temporary files.
func (l *Library) prepare() error {
	if err := os.RemoveAll(l.TempDir()); err != nil {
		return err
	}
	if err := os.MkdirAll(l.TempDir(), 0o700); err != nil {
		return err
	}
	return os.Chmod(l.dir, 0o700) // it may have been there
}

// TempDir is for files that must not outlive the process: the next start removes what a crash leaves there.
func (l *Library) TempDir() string { return TempDir(l.dir) }

// TempDir is that folder of the library in a folder.
func TempDir(dir string) string { return filepath.Join(dir, tempDir) }

// draft is a file that is being written. discard removes it unless it was stored.
type draft struct {
	*os.File
	kept bool
}

func (l *Library) newDraft() (*draft, error) {
	f, err := os.CreateTemp(l.TempDir(), "*") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("make temporary file: %w", err)
	}
	return &draft{File: f}, nil
}

func (d *draft) discard() {
	d.Close()
	if !d.kept {
		os.Remove(d.Name())
	}
}

// persist renames a draft to its final path. When it returns, the file survives power loss.
func (l *Library) persist(d *draft, key string) error {
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync media file: %w", err)
	}
	path, err := l.path(key)
	if err != nil {
		return err
	}
	folder := filepath.Dir(path)
	if err := l.makeFolder(folder); err != nil {
		return fmt.Errorf("make media folder: %w", err)
	}
	if err := os.Rename(d.Name(), path); err != nil {
		return fmt.Errorf("rename media file: %w", err)
	}
	d.kept = true
	if err := syncFolder(folder); err != nil {
		os.Remove(path)
		return fmt.Errorf("sync media folder: %w", err)
	}
	return nil
}

// makeFolder creates a folder and syncs it and its parent. An existing folder proves nothing: another call may not have
// synced it yet, or a crash came before.
func (l *Library) makeFolder(folder string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.durable[folder] {
		return nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	parent := filepath.Dir(folder)
	if err := errors.Join(syncFolder(parent), syncFolder(l.dir)); err != nil {
		return err
	}
	l.durable[folder] = true
	return nil
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (d *draft) head() ([]byte, error) {
	buf := make([]byte, sniffLen)
	n, err := d.ReadAt(buf, 0)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read media file: %w", err)
	}
	return buf[:n], nil
}

func (d *draft) contains(sequence []byte) (bool, error) {
	const piece = 1 << 20
	buf := make([]byte, piece+len(sequence))
	for at := int64(0); ; at += piece {
		n, err := d.ReadAt(buf, at)
		if bytes.Contains(buf[:n], sequence) {
			return true, nil
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read media file: %w", err)
		}
	}
}

// Older lists the keys of up to limit complete files that were last changed before a time, in order, behind a
// key.
func (l *Library) Older(before time.Time, after string, limit int) (keys []string, err error) {
	err = filepath.WalkDir(l.dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path == l.TempDir() || !l.mayHold(path, after) {
				return fs.SkipDir
			}
			return nil
		}
		if key := entry.Name(); keyForm.MatchString(key) && key > after {
			if info, err := entry.Info(); err == nil && info.ModTime().Before(before) {
				keys = append(keys, key)
			}
		}
		if len(keys) == limit {
			return fs.SkipAll
		}
		return nil
	})
	return keys, err
}

// mayHold reports whether a folder may hold keys behind one: its name and that of the folder it is in begin them.
func (l *Library) mayHold(folder, after string) bool {
	path, err := filepath.Rel(l.dir, folder)
	if err != nil || path == "." {
		return true
	}
	begin := strings.ReplaceAll(filepath.ToSlash(path), "/", "")
	return begin >= after[:min(len(begin), len(after))]
}
