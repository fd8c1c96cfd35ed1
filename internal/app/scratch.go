package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Temporary files of backups and restores. A lock shows that a process owns one. Leftovers of dead processes are removed
// by the next start, backup or restore.
const (
	backupScratch  = ".backup-*"        // a folder with copies of the databases
	restoreScratch = ".restore-*"       // a folder with the files of a backup
	backupPart     = ".parley-backup-*" // an incomplete backup
)

// newScratch creates and locks a folder. The caller closes the returned file after removing the folder.
func newScratch(in, pattern string) (path string, owner *os.File, err error) {
	for {
		if path, err = os.MkdirTemp(in, pattern); err != nil {
			return "", nil, err
		}
		if owner, err = os.Open(path); errors.Is(err, fs.ErrNotExist) {
			continue // another process removed it as a leftover
		}
		if err != nil {
			return "", nil, err
		}
		if own(owner, path) {
			return path, owner, nil
		}
		owner.Close()
	}
}

// newPart creates a file and locks it until it is closed.
func newPart(in, pattern string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(in, pattern) // mode 0600
		if err != nil || own(f, f.Name()) {
			return f, err
		}
		f.Close()
	}
}

// own locks an open file or folder; false: another process removed it as a leftover. On file systems without locks there
// are no leftovers.
func own(f *os.File, path string) bool {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return false
	}
	opened, err := f.Stat()
	named, gone := os.Stat(path)
	return err == nil && gone == nil && os.SameFile(opened, named)
}

// removeLeftovers removes the files of dead processes from a folder, by name patterns.
func removeLeftovers(in string, patterns ...string) error {
	entries, err := os.ReadDir(in)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for leftovers: %w", err)
	}
	var errs []error
	for _, entry := range entries {
		for _, pattern := range patterns {
			if match, _ := filepath.Match(pattern, entry.Name()); match { // the patterns are valid
				errs = append(errs, removeLeftover(filepath.Join(in, entry.Name())))
			}
		}
	}
	return errors.Join(errs...)
}

// removeLeftover removes a file or a folder unless a process owns it.
func removeLeftover(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return nil
	}
	return os.RemoveAll(path)
}

// removeLeftovers removes the files of dead backups and restores from the data directory.
func (d Dir) removeLeftovers() error {
	return errors.Join(removeLeftovers(string(d), backupScratch, restoreScratch), removeLeftovers(d.Backups(), backupPart))
}

func syncFolders(paths ...string) error {
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
