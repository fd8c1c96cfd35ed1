package media

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"parley"
)

// tempDir holds incomplete files. It is in the library's folder, so that a rename completes a file.
const tempDir = "tmp"

var keyForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

func NewKey() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// prepare makes the library's folders, for its owner alone, and removes abandoned temporary files.
func (l *Library) prepare(shared bool) error {
	all := TempDir(l.dir)
	if !shared { // the owner of the folder is the only one to write here
		if err := os.RemoveAll(all); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(l.temp, 0o700); err != nil {
		return err
	}
	if shared {
		return l.RemoveAbandoned()
	}
	return os.Chmod(l.dir, 0o700) // it may have been there
}

// TempDir is for files that must not outlive the process. Other nodes have folders of their own beside it.
func (l *Library) TempDir() string { return l.temp }

// TempDir holds the temporary files of all nodes that use a folder.
func TempDir(dir string) string { return filepath.Join(dir, tempDir) }

const (
	// abandonedAfter is the minimum age of a temporary file of a crashed node: no request and no fetch takes that long.
	abandonedAfter = 24 * time.Hour
	// emptyAfter is the minimum age of an empty folder of a crashed node.
	emptyAfter = 7 * 24 * time.Hour
)

// RemoveAbandoned removes temporary files that crashed nodes left in a shared folder, by the clock of its file server.
func (l *Library) RemoveAbandoned() error {
	d, err := l.newDraft()
	if err != nil {
		return err
	}
	defer d.discard()
	info, err := d.Stat()
	if err != nil {
		return err
	}
	now := info.ModTime()
	return filepath.WalkDir(TempDir(l.dir), func(path string, entry fs.DirEntry, err error) error {
		if path == TempDir(l.dir) || path == l.temp {
			return err
		}
		if err != nil {
			return nil // removed meanwhile, or of another user
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		age := abandonedAfter
		if entry.IsDir() {
			age = emptyAfter
		}
		if now.Sub(info.ModTime()) > age {
			_ = os.Remove(path) // fails for a folder with files
		}
		return nil
	})
}

// draft is a file that is being written. discard removes it unless it was stored.
type draft struct {
	*os.File
	kept     bool
	borrowed bool // it is a stored file
}

func (l *Library) newDraft() (*draft, error) {
	f, err := os.CreateTemp(l.temp, "*")                                  // mode 0600
	if errors.Is(err, fs.ErrNotExist) && os.Mkdir(l.temp, 0o700) == nil { // removed as abandoned; not if the disk is not mounted
		f, err = os.CreateTemp(l.temp, "*")
	}
	if errors.Is(err, fs.ErrNotExist) || isOutage(err) {
		return nil, unavailable(fmt.Errorf("make temporary file: %v", err))
	}
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

// persist stores a draft under a key. When it returns, the file is durable.
func (l *Library) persist(ctx context.Context, d *draft, key string) error {
	name, err := storedName(key)
	if err != nil {
		return err
	}
	return l.files.put(ctx, name, d)
}

func (d *draft) head() ([]byte, error) {
	buf := make([]byte, sniffLen)
	n, err := d.ReadAt(buf, 0)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read media file: %w", err)
	}
	return buf[:n], nil
}

// Older lists the keys of up to limit complete files that were last changed before a time, in order, behind a
// key.
func (l *Library) Older(ctx context.Context, before time.Time, after string, limit int) (keys []string, err error) {
	if after != "" {
		if after, err = storedName(after); err != nil {
			return nil, err
		}
	}
	err = l.files.list(ctx, "", after, func(name string, changed time.Time) bool {
		key := path.Base(name)
		if own, err := storedName(key); err == nil && own == name && changed.Before(before) {
			keys = append(keys, key)
		}
		return len(keys) < limit
	})
	return keys, err
}

// MayStore fails if a channel may not store a file of a size now: it stored too much today, or there is no room.
func (l *Library) MayStore(ctx context.Context, channel parley.ChannelCode, size int64) error {
	if err := l.checkSpace(); err != nil || l.config.Store == nil {
		return err
	}
	return l.config.Store.MayStore(ctx, channel, size, time.Now(), l.config.Limits.PerDay)
}

// Free returns the free space of the directory of files, and below how much no file is stored. ok is false for a bucket and
// without such a limit.
func (l *Library) Free() (free, least int64, ok bool) {
	least = l.config.Limits.MinFree
	if l.config.Bucket != nil || least == 0 {
		return 0, 0, false
	}
	var fs syscall.Statfs_t
	if syscall.Statfs(l.dir, &fs) != nil {
		return 0, 0, false // the storage says what is wrong with it
	}
	return int64(fs.Bavail) * int64(fs.Bsize), least, true
}

func (l *Library) checkSpace() error {
	free, least, ok := l.Free()
	if !ok || free >= least {
		return nil
	}
	return &parley.Error{Code: parley.StorageFull, Message: fmt.Sprintf("The server has no room for files: less than %d MiB are free. "+
		"Messages without a file are sent. Free space on its disk, or lower --media-min-free-mib.", least>>20)}
}

// spaceEvery is after how many bytes of a file the free space is checked again.
const spaceEvery = 4 << 20

// newSpaceWriter returns a writer that fails when a file that is being written leaves too little space.
func (l *Library) newSpaceWriter() io.Writer {
	left := 0
	return writerFunc(func(p []byte) (int, error) {
		if left -= len(p); left >= 0 {
			return len(p), nil
		}
		left = spaceEvery
		return len(p), l.checkSpace()
	})
}
