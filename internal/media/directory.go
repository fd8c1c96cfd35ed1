package media

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// directory stores files in a folder, which may be shared by nodes.
type directory struct {
	dir  string
	temp string // a folder in it that exists as long as it is mounted

	mu      sync.Mutex
	durable map[string]bool // folders known to be on disk
}

func newDirectory(dir, temp string) *directory {
	return &directory{dir: dir, temp: temp, durable: map[string]bool{}}
}

func (s *directory) String() string { return s.dir }

func (s *directory) close() {}

func (s *directory) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

// put renames a draft to its final path. When it returns, the file survives power loss.
func (s *directory) put(_ context.Context, name string, d *draft) error {
	if err := d.Sync(); err != nil {
		return s.classify(fmt.Errorf("sync media file: %w", err))
	}
	path := s.path(name)
	folder := filepath.Dir(path)
	if err := s.makeFolder(folder); err != nil {
		return s.classify(fmt.Errorf("make media folder: %w", err))
	}
	if err := os.Rename(d.Name(), path); err != nil {
		return s.classify(fmt.Errorf("rename media file: %w", err))
	}
	d.kept = true
	if err := syncFolder(folder); err != nil {
		os.Remove(path)
		return s.classify(fmt.Errorf("sync media folder: %w", err))
	}
	return nil
}

// makeFolder creates a folder and syncs it and its parent. An existing folder proves nothing: another call may not have
// synced it yet, or a crash came before.
func (s *directory) makeFolder(folder string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.durable[folder] {
		return nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	parent := filepath.Dir(folder)
	if err := errors.Join(syncFolder(parent), syncFolder(s.dir)); err != nil {
		return err
	}
	s.durable[folder] = true
	return nil
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (s *directory) get(_ context.Context, name string) (*File, error) {
	f, err := os.Open(s.path(name))
	if err != nil {
		return nil, s.classify(err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, s.classify(err)
	}
	return &File{f, info.Size()}, nil
}

func (s *directory) has(_ context.Context, name string) (bool, error) {
	_, err := os.Stat(s.path(name))
	if err = s.classify(err); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (s *directory) remove(_ context.Context, name string) error {
	if err := s.classify(os.Remove(s.path(name))); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// classify tells an outage from a missing file: in a folder that is not mounted any more every file seems to be missing.
func (s *directory) classify(err error) error {
	if err == nil {
		return nil
	}
	if isOutage(err) {
		return unavailable(err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := os.Stat(s.temp); gone != nil {
			return unavailable(fmt.Errorf("%s is not mounted or was removed: %v", s.dir, err))
		}
	}
	return err
}

func (s *directory) list(ctx context.Context, prefix, after string, visit func(name string, changed time.Time) bool) error {
	err := filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != s.dir {
			return nil // removed meanwhile
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		rel, err := filepath.Rel(s.dir, path)
		if err != nil || rel == "." {
			return err
		}
		name := filepath.ToSlash(rel)
		if entry.IsDir() {
			if name == tempDir || !mayHold(name+"/", prefix, after) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasPrefix(name, prefix) || name <= after {
			return nil
		}
		info, err := entry.Info()
		if err == nil && !visit(name, info.ModTime()) {
			return fs.SkipAll
		}
		return nil
	})
	return s.classify(err)
}

// mayHold reports whether a folder, whose name ends with a slash, may hold names that begin with prefix and follow after.
func mayHold(folder, prefix, after string) bool {
	common := min(len(folder), len(prefix))
	return folder[:common] == prefix[:common] && folder >= after[:min(len(folder), len(after))]
}

func (s *directory) describe(err error) string {
	if isOutage(err) {
		return fmt.Sprintf("The directory %s for files does not respond: %s. Check the disk or the server that holds it.", s.dir, Innermost(err))
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("The directory %s for files cannot be written: %s. Give this user access, or set another directory with --media.",
			s.dir, Innermost(err))
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("The directory %s for files was removed or is not mounted.", s.dir)
	}
	return fmt.Sprintf("The directory %s for files cannot be used: %s.", s.dir, Innermost(err))
}

// Innermost is the text of the innermost error.
func Innermost(err error) string {
	for {
		inner := errors.Unwrap(err)
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			inner = several.Unwrap()[0]
		}
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
