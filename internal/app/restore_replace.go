package app

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A restore replaces several files, so it can be interrupted. While it runs, a folder of the data directory has the new
// and the old files, and its name is the journal: the next start finishes the restore.
const (
	replacing   = "restore-in-progress"
	comes, goes = "new", "old" // folders in it
	allGone     = "all-gone"   // a file in it: all old files are in goes
)

func (d Dir) replacing() string { return filepath.Join(string(d), replacing) }

// rename moves a file or a folder. Tests make it fail.
type rename func(from, to string) error

// replaceBy replaces the data by the files in a scratch folder, and moves the old ones to a folder. If that fails, it
// moves everything back.
func (d Dir) replaceBy(scratch string, move rename) (before string, err error) {
	if err := os.Mkdir(filepath.Join(scratch, goes), 0o700); err != nil {
		return "", fmt.Errorf("restore: %w. Nothing was changed", err)
	}
	if err := errors.Join(syncFolders(scratch), move(scratch, d.replacing()), syncFolders(string(d))); err != nil {
		return "", fmt.Errorf("restore: %w. Nothing was changed", err)
	}
	before, err = d.finishRestore(move)
	if err == nil {
		return before, d.endRestore(move)
	}
	if back := d.undoRestore(move); back != nil {
		return "", fmt.Errorf("restore: %w. What was there before is in %s", errors.Join(err, back), filepath.Join(d.replacing(), goes))
	}
	return "", errors.Join(fmt.Errorf("restore: %w. Nothing was changed", err), d.endRestore(os.Rename))
}

// finishRestore moves the remaining files, at whatever point the process died. It returns the folder with the old data,
// or "".
func (d Dir) finishRestore(move rename) (before string, err error) {
	folder := d.replacing()
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	in, out, mark := filepath.Join(folder, comes), filepath.Join(folder, goes), filepath.Join(folder, allGone)
	if _, err := os.Stat(mark); errors.Is(err, fs.ErrNotExist) {
		if err := d.moveAll(out, move); err != nil {
			return "", err
		}
		if err := errors.Join(syncFolders(out, string(d)), os.WriteFile(mark, nil, 0o600), syncFolders(folder)); err != nil {
			return "", err
		}
	}
	if err := errors.Join(Dir(in).moveAll(string(d), move), syncFolders(string(d), in)); err != nil {
		return "", err
	}
	if left, err := os.ReadDir(out); err == nil && len(left) > 0 {
		before, err = os.MkdirTemp(string(d), "before-restore-"+time.Now().UTC().Format("20060102T150405Z")+"-*") // unique
		if err := errors.Join(err, os.Remove(before)); err != nil {
			return "", err
		}
		if err := move(out, before); err != nil {
			return "", err
		}
	}
	return before, nil
}

// undoRestore moves the old files back. If the process dies meanwhile, the next start can still finish the restore.
func (d Dir) undoRestore(move rename) error {
	folder := d.replacing()
	mark := filepath.Join(folder, allGone)
	if _, err := os.Stat(mark); err == nil {
		if err := d.moveAll(filepath.Join(folder, comes), move); err != nil {
			return err
		}
		if err := errors.Join(syncFolders(string(d)), os.Remove(mark), syncFolders(folder)); err != nil {
			return err
		}
	}
	return Dir(filepath.Join(folder, goes)).moveAll(string(d), move)
}

// endRestore removes the folder of a finished restore. It renames it first: under the old name another start would
// finish it again.
func (d Dir) endRestore(move rename) error {
	done, err := os.MkdirTemp(string(d), restoreScratch)
	if err != nil {
		return fmt.Errorf("end the restore: %w", err)
	}
	if err := errors.Join(syncFolders(string(d)), move(d.replacing(), filepath.Join(done, replacing))); err != nil {
		return errors.Join(fmt.Errorf("end the restore: %w", err), os.Remove(done))
	}
	return errors.Join(syncFolders(string(d)), os.RemoveAll(done))
}

// recoverRestore finishes a restore whose process died. The caller has the lock of the directory.
func (d Dir) recoverRestore(log *slog.Logger) error {
	if _, err := os.Stat(d.replacing()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	before, err := d.finishRestore(os.Rename)
	if err == nil {
		err = d.endRestore(os.Rename)
	}
	if err != nil {
		return fmt.Errorf("finish the restore that was interrupted: %w. What was there before is in %s, the backup in %s",
			err, filepath.Join(d.replacing(), goes), filepath.Join(d.replacing(), comes))
	}
	log.Warn("a restore that was interrupted is finished now", "before", before)
	return nil
}

// checkRestored rejects a directory with an interrupted restore: files may be missing.
func (d Dir) checkRestored() error {
	if !exists(d.replacing()) {
		return nil
	}
	return configErrorf("A restore of %s was interrupted. Start the server, which finishes it, or restore again.", d)
}

// moveAll moves all data to another directory. Settings stay.
func (d Dir) moveAll(to string, move rename) error {
	side := func(database string) []string { return []string{database, database + "-wal", database + "-shm"} }
	pieces := slices.Concat(side(d.Database()), side(d.Sandbox()), side(d.WhatsApp()), []string{d.Media(), d.Key()})
	for _, piece := range pieces {
		if _, err := os.Stat(piece); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		target := filepath.Join(to, filepath.Base(piece))
		if _, err := os.Lstat(target); err == nil { // a rename would destroy it
			return &fs.PathError{Op: "move to", Path: target, Err: fs.ErrExist}
		}
		if err := move(piece, target); err != nil {
			return err
		}
	}
	return nil
}
