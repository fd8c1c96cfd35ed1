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

// A restore replaces several files, so it can be interrupted in between. While it runs, a folder of the data
// directory holds what comes and what goes, and its name is the journal: the next start finishes what it finds
// there.
const (
	replacing   = "restore-in-progress"
	comes, goes = "new", "old" // folders in it
	allGone     = "all-gone"   // a file in it: what was there before is in goes
)

func (d Dir) replacing() string { return filepath.Join(string(d), replacing) }

// rename moves a file or a folder; tests have it fail.
type rename func(from, to string) error

// replaceBy puts what a scratch folder has in its folder for what comes in the place of what is here, which goes
// into a folder of its own. If that cannot be done, everything is put back.
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

// finishRestore moves what is not moved yet, after whatever was done before the process died. It returns the
// folder with what was there before: "" where there was nothing.
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
		before, err = os.MkdirTemp(string(d), "before-restore-"+time.Now().UTC().Format("20060102T150405Z")+"-*") // no two are the same
		if err := errors.Join(err, os.Remove(before)); err != nil {
			return "", err
		}
		if err := move(out, before); err != nil {
			return "", err
		}
	}
	return before, nil
}

// undoRestore puts back what was there before. If the process dies meanwhile, the next start can still finish
// the restore.
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

// endRestore removes the folder of a restore that is done, or undone. It loses its name first, under which
// another start would finish it once more.
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

// recoverRestore finishes a restore whose process died. The caller holds the lock of the directory.
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

// checkRestored refuses a directory whose restore was interrupted: some of its files may be missing.
func (d Dir) checkRestored() error {
	if _, err := os.Stat(d.replacing()); err != nil {
		return nil
	}
	return configErrorf("A restore of %s was interrupted. Start the server, which finishes it, or restore again.", d)
}

// moveAll moves everything that a gateway keeps to another directory. Settings are of the machine and stay.
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
