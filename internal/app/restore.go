package app

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/internal/network/whatsapp"
)

// Restore puts a backup in the place of what a data directory holds. The backup is unpacked and
// checked first; if it is not good, nothing changes. What was there before is moved into a folder of
// the data directory, whose path is returned: "" where there was nothing.
func Restore(ctx context.Context, dir Dir, backup io.Reader, log *slog.Logger) (before string, err error) {
	if err := dir.Prepare(log); err != nil {
		return "", err
	}
	lock, err := dir.Lock() // no server may use what is replaced
	if err != nil {
		return "", err
	}
	defer lock.Close()
	scratch, err := os.MkdirTemp(string(dir), ".restore-*")
	if err != nil {
		return "", fmt.Errorf("restore: %w", err)
	}
	defer os.RemoveAll(scratch)

	unpacked := Dir(scratch)
	if err := unpack(ctx, backup, unpacked); err != nil {
		return "", fmt.Errorf("restore: %w. Nothing was changed", err)
	}
	if err := tryOut(ctx, unpacked, log); err != nil {
		return "", fmt.Errorf("restore: the backup cannot be used: %w. Nothing was changed", err)
	}
	return dir.replaceBy(unpacked, os.Rename)
}

// rename moves a file or a folder; tests have it fail.
type rename func(from, to string) error

// replaceBy puts what another directory holds in the place of what is here, which goes into a folder of its own.
// If that cannot be done, everything is put back.
func (d Dir) replaceBy(other Dir, move rename) (before string, err error) {
	before, err = os.MkdirTemp(string(d), "before-restore-"+time.Now().UTC().Format("20060102T150405Z")+"-*") // no two are the same
	if err != nil {
		return "", fmt.Errorf("restore: %w. Nothing was changed", err)
	}
	moved, err := d.moveAll(before, move)
	var back error
	if err == nil {
		if _, err = other.moveAll(string(d), move); err != nil {
			_, back = d.moveAll(string(other), move)
		}
	}
	if err != nil {
		if back == nil {
			_, back = Dir(before).moveAll(string(d), move)
		}
		if back != nil {
			return "", fmt.Errorf("restore: %w. What was there before is in %s", errors.Join(err, back), before)
		}
		return "", errors.Join(fmt.Errorf("restore: %w. Nothing was changed", err), os.Remove(before))
	}
	if moved == 0 {
		return "", os.Remove(before)
	}
	return before, nil
}

// unpack writes the files of a backup into a directory. Names that a backup does not have are
// refused: a tar file can name any place.
func unpack(ctx context.Context, backup io.Reader, into Dir) error {
	if err := os.Mkdir(into.Media(), 0o700); err != nil {
		return err
	}
	archive := tar.NewReader(backup)
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the backup: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if head.Typeflag != tar.TypeReg || !isBackupName(head.Name) {
			return fmt.Errorf("this is no backup: it holds %q", head.Name)
		}
		if err := unpackFile(archive, filepath.Join(string(into), filepath.FromSlash(head.Name))); err != nil {
			return err
		}
	}
}

func isBackupName(name string) bool {
	switch name {
	case backupDatabase, backupWhatsApp, backupKey:
		return true
	}
	return strings.HasPrefix(name, backupMedia+"/") && path.Clean(name) == name && filepath.IsLocal(name)
}

func unpackFile(from io.Reader, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Sync(), f.Close())
}

// tryOut opens what was unpacked as a server would: the databases are whole, and the key is its own.
func tryOut(ctx context.Context, unpacked Dir, log *slog.Logger) error {
	for _, needed := range []string{unpacked.Database(), unpacked.Key()} {
		if _, err := os.Stat(needed); err != nil {
			return fmt.Errorf("it holds no %s", filepath.Base(needed))
		}
	}
	data, err := OpenData(ctx, unpacked, log)
	if err != nil {
		return err
	}
	if err := errors.Join(data.Store.Check(ctx), data.Close()); err != nil {
		return err
	}
	if _, err := os.Stat(unpacked.WhatsApp()); errors.Is(err, fs.ErrNotExist) {
		return nil // it had no WhatsApp channel
	}
	return whatsapp.Restored(ctx, unpacked.WhatsApp(), log)
}

// moveAll moves everything that a gateway keeps to another directory and counts the pieces. Settings
// are of the machine and stay.
func (d Dir) moveAll(to string, move rename) (moved int, err error) {
	side := func(database string) []string { return []string{database, database + "-wal", database + "-shm"} }
	pieces := slices.Concat(side(d.Database()), side(d.Sandbox()), side(d.WhatsApp()), []string{d.Media(), d.Key()})
	for _, piece := range pieces {
		if _, err := os.Stat(piece); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := move(piece, filepath.Join(to, filepath.Base(piece))); err != nil {
			return moved, err
		}
		moved++
	}
	return moved, nil
}
