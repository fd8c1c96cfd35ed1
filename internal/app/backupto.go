package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"parley/internal/api"
)

// SaveBackup has write write a backup beside its name and gives it the name when it is complete and on disk. It
// returns its size. A file of that name makes it fs.ErrExist.
func SaveBackup(path string, write func(io.Writer) error) (int64, error) {
	if _, err := os.Stat(path); err == nil {
		return 0, &os.PathError{Op: "write the backup", Path: path, Err: os.ErrExist}
	}
	folder := filepath.Dir(path)
	_ = removeLeftovers(folder, backupPart) // some may be another user's
	f, err := newPart(folder, backupPart)
	if err != nil {
		return 0, fmt.Errorf("write the backup: %w", err)
	}
	defer os.Remove(f.Name()) // gone already when all went well
	if err := errors.Join(write(f), f.Sync()); err != nil {
		f.Close()
		return 0, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, fmt.Errorf("write the backup: %w", err)
	}
	if err := errors.Join(os.Rename(f.Name(), path), syncFolders(folder)); err != nil {
		return 0, fmt.Errorf("write the backup: %w", err)
	}
	return size, nil
}

// Backups is where a server puts the backups that it is told to make.
func (d Dir) Backups() string { return filepath.Join(string(d), "backups") }

// The names of such backups sort by time.
const (
	backupName  = "parley-%s.tar"
	backupStamp = "20060102T150405.000Z"
)

// backup makes a backup in the data directory.
func (s *server) backup(ctx context.Context) (api.Backup, error) {
	folder := s.cfg.DataDir.Backups()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return api.Backup{}, fmt.Errorf("make the folder of backups: %w", err)
	}
	now := time.Now().UTC()
	b := api.Backup{Path: filepath.Join(folder, fmt.Sprintf(backupName, now.Format(backupStamp))), At: now}
	var err error
	b.Bytes, err = SaveBackup(b.Path, func(w io.Writer) error { return s.writeBackup(ctx, w) })
	return b, err
}

func (s *server) writeBackup(ctx context.Context, w io.Writer) error {
	return Backup(ctx, s.data, w, func(int64, int64) {})
}

// lastBackup finds the newest backup in the data directory.
func (d Dir) lastBackup() (api.Backup, bool) {
	made, err := filepath.Glob(filepath.Join(d.Backups(), fmt.Sprintf(backupName, "*"))) // sorted
	if err != nil || len(made) == 0 {
		return api.Backup{}, false
	}
	path := made[len(made)-1]
	info, err := os.Stat(path)
	if err != nil {
		return api.Backup{}, false
	}
	return api.Backup{Path: path, Bytes: info.Size(), At: info.ModTime()}, true
}
