package app

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"parley/internal/store"
)

// BackupOffline writes the backup of a data directory that no server runs on. Its database may be of any version, and
// damaged: it is copied as it is. See [Backup].
func BackupOffline(ctx context.Context, dir Dir, log *slog.Logger, w io.Writer, progress func(done, total int64)) error {
	if err := errors.Join(dir.checkRestored(), dir.Prepare(log)); err != nil {
		return err
	}
	lock, err := dir.Lock("parley backup")
	if err != nil {
		return err
	}
	defer lock.Close()
	wal := dir.Database() + "-wal"
	from := snapshot{size: sizeOf(dir.Database()) + sizeOf(wal)}
	from.copy = func(ctx context.Context, to string, progress func(done, total int64)) error {
		if err := copyRaw(dir.Database(), to); err != nil {
			return err
		}
		if err := copyRaw(wal, to+"-wal"); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		// The server was killed: what it wrote last is in the log of the copy, and goes into the copy itself.
		whole := filepath.Join(filepath.Dir(to), "whole.db")
		err := store.CopyFile(ctx, to, whole, progress)
		if store.IsDamage(err) {
			log.Warn("the database is damaged: the backup has it as it is", "error", err)
			return nil
		}
		if err != nil {
			return err
		}
		return os.Rename(whole, to)
	}
	return dir.explain(dir.backup(ctx, from, w, progress))
}

// copyRaw copies the bytes of a file to a new one.
func copyRaw(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
