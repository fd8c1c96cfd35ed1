package app

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/api"
	"parley/internal/doctor"
	"parley/internal/media"
	"parley/internal/store"
)

// The names in a backup: the same as in a data directory.
const (
	backupDatabase = "parley.db"
	backupWhatsApp = "whatsapp.db"
	backupKey      = "secret.key"
	backupMedia    = "media"
)

type snapshot struct {
	size int64
	copy func(ctx context.Context, to string, progress func(done, total int64)) error
}

// Backup writes a data directory as a tar file while it is in use: a snapshot of each database, the key and all files.
// Settings and the messages of simulated phones are not included. It calls progress, which must not be nil, with the
// bytes done and the total.
func Backup(ctx context.Context, data *Data, w io.Writer, progress func(done, total int64)) error {
	size, err := data.Store.Size(ctx)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return data.Dir.backup(ctx, snapshot{size, func(ctx context.Context, to string, progress func(done, total int64)) error {
		return store.Backup(ctx, data.Store, to, progress)
	}}, w, progress)
}

func (d Dir) backup(ctx context.Context, from snapshot, w io.Writer, progress func(done, total int64)) error {
	_ = d.removeLeftovers() // a leftover does not prevent a backup
	scratch, owner, err := newScratch(string(d), backupScratch)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer owner.Close()
	defer os.RemoveAll(scratch)
	snapshot, devices := filepath.Join(scratch, backupDatabase), filepath.Join(scratch, backupWhatsApp)

	_, rest := d.mediaFiles() // an estimate
	database, keys := from.size, fileSize(d.WhatsApp())
	// The databases are written twice: into the snapshots and into the file.
	total := 2*(database+keys) + rest
	if err := from.copy(ctx, snapshot, func(done, of int64) {
		progress(min(done, database), total)
	}); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if keys > 0 { // after the main database: a channel that the backup knows as paired has its keys in it
		if err := store.CopyFile(ctx, d.WhatsApp(), devices, func(done, of int64) {
			progress(database+min(done, keys), total)
		}); err != nil {
			return fmt.Errorf("backup: the keys of linked devices: %w", err)
		}
	}

	// After the snapshot: a file is on disk before its message is stored, so every file that the snapshot names exists.
	files, rest := d.mediaFiles()
	b := &backup{tar: tar.NewWriter(w), done: database + keys, total: 2*(database+keys) + rest, progress: progress}
	b.add(ctx, snapshot, backupDatabase)
	b.add(ctx, devices, backupWhatsApp)
	b.add(ctx, d.Key(), backupKey)
	for _, name := range files {
		b.add(ctx, filepath.Join(d.Media(), name), backupMedia+"/"+filepath.ToSlash(name))
	}
	if err := errors.Join(b.err, b.tar.Close()); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

// fileSize is the size of a file, or zero if it does not exist.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// mediaFiles lists the files of messages in the data directory, with their total size.
func (d Dir) mediaFiles() (names []string, size int64) {
	filepath.WalkDir(d.Media(), func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && path == media.TempDir(d.Media()) {
			return fs.SkipDir // incomplete files are not needed
		}
		if err != nil || !entry.Type().IsRegular() {
			return nil // removed meanwhile
		}
		if info, err := entry.Info(); err == nil {
			name, _ := filepath.Rel(d.Media(), path) // never fails: path is below it
			names, size = append(names, name), size+info.Size()
		}
		return nil
	})
	return names, size
}

type backup struct {
	tar         *tar.Writer
	done, total int64
	progress    func(done, total int64)
	err         error
}

// add writes one file. A missing one is skipped: files are removed when no message needs them.
func (b *backup) add(ctx context.Context, path, name string) {
	if b.err == nil {
		b.err = ctx.Err()
	}
	if b.err != nil {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			b.err = err
		}
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = b.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: info.Size(), ModTime: info.ModTime(), Format: tar.FormatPAX})
	}
	if err == nil {
		_, err = io.Copy(b, io.LimitReader(f, info.Size()))
	}
	b.err = err
}

// Write counts the bytes for the progress.
func (b *backup) Write(p []byte) (int, error) {
	n, err := b.tar.Write(p)
	b.done += int64(n)
	b.progress(min(b.done, b.total), b.total)
	return n, err
}

// SaveBackup writes a backup to a temporary file and renames it when it is complete and on disk. It returns the size. If
// the path exists, it returns fs.ErrExist, unless it is a file and may be replaced.
func SaveBackup(path string, replace bool, write func(io.Writer) error) (int64, error) {
	if info, err := os.Lstat(path); err == nil && !(replace && info.Mode().IsRegular()) {
		return 0, &os.PathError{Op: "write the backup", Path: path, Err: os.ErrExist}
	}
	folder := filepath.Dir(path)
	_ = removeLeftovers(folder, backupPart) // may fail: other users have some
	f, err := newPart(folder, backupPart)
	if err != nil {
		return 0, fmt.Errorf("write the backup: %w", err)
	}
	defer os.Remove(f.Name()) // after the rename there is nothing to remove
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

// Backups is the folder of the backups that the API creates.
func (d Dir) Backups() string { return filepath.Join(string(d), "backups") }

// The names sort by time.
const (
	backupName  = "parley-%s.tar"
	backupStamp = "20060102T150405.000Z"
)

// backup writes a backup to the data directory.
func (s *server) backup(ctx context.Context) (api.Backup, error) {
	if s.node != nil {
		return api.Backup{}, errBackupOfNode
	}
	folder := s.cfg.DataDir.Backups()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return api.Backup{}, fmt.Errorf("make the folder of backups: %w", err)
	}
	if err := s.checkRoom(ctx); err != nil {
		return api.Backup{}, err
	}
	now := time.Now().UTC()
	b := api.Backup{Path: filepath.Join(folder, fmt.Sprintf(backupName, now.Format(backupStamp))), At: now}
	var err error
	b.Bytes, err = SaveBackup(b.Path, false, func(w io.Writer) error { return s.writeBackup(ctx, w) })
	if err == nil {
		s.pruneBackups()
	}
	return b, err
}

const (
	keptBackups   = 3         // by default
	backupReserve = 100 << 20 // bytes that a backup leaves free, so that the server goes on
)

// checkRoom refuses a backup that would fill the disk. The databases are copied first, so they need twice their size.
func (s *server) checkRoom(ctx context.Context) error {
	size, err := s.data.Store.Size(ctx)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	_, files := s.cfg.DataDir.mediaFiles()
	freeDisk := s.cfg.freeDisk
	if freeDisk == nil {
		freeDisk = doctor.FreeDisk
	}
	need := 2*(size+fileSize(s.cfg.DataDir.WhatsApp())) + files + backupReserve
	if free := freeDisk(string(s.cfg.DataDir)); free < need {
		return parley.Errorf(parley.Unavailable, "There is no room for a backup on the server: it needs %s, and %s are free. "+
			"Free some space, or write it elsewhere with: parley backup FILE", doctor.Size(need), doctor.Size(free))
	}
	return nil
}

// pruneBackups removes old backups that the server made. Other files in the folder are not touched.
func (s *server) pruneBackups() {
	made := s.cfg.DataDir.madeBackups()
	keep := cmp.Or(s.cfg.KeepBackups, keptBackups)
	if keep < 0 {
		return
	}
	for len(made) > keep {
		if err := os.Remove(made[0]); err != nil {
			s.log.Warn("an old backup cannot be removed", "file", made[0], "error", err)
		}
		made = made[1:]
	}
}

// madeBackups lists the backups that a server made in the data directory, the oldest first.
func (d Dir) madeBackups() []string {
	found, err := filepath.Glob(filepath.Join(d.Backups(), fmt.Sprintf(backupName, "*"))) // sorted
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(found, func(path string) bool {
		stamp := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "parley-"), ".tar")
		_, err := time.Parse(backupStamp, stamp)
		info, failed := os.Lstat(path)
		return err != nil || failed != nil || !info.Mode().IsRegular()
	})
}

func (s *server) writeBackup(ctx context.Context, w io.Writer) error {
	if s.node != nil {
		return errBackupOfNode
	}
	return Backup(ctx, s.data, w, func(int64, int64) {})
}

// lastBackup finds the newest backup in the data directory.
func (d Dir) lastBackup() (api.Backup, bool) {
	made := d.madeBackups()
	if len(made) == 0 {
		return api.Backup{}, false
	}
	path := made[len(made)-1]
	info, err := os.Stat(path)
	if err != nil {
		return api.Backup{}, false
	}
	return api.Backup{Path: path, Bytes: info.Size(), At: info.ModTime()}, true
}

// BackupOffline writes the backup of a data directory without a server. The database is copied unchanged, of any
// version, even if it is damaged. See [Backup].
func BackupOffline(ctx context.Context, dir Dir, log *slog.Logger, w io.Writer, progress func(done, total int64)) error {
	lock, err := dir.acquire("parley backup", log)
	if err != nil {
		return err
	}
	defer lock.Close()
	err = dir.checkMoved(ctx)
	if _, moved := errors.AsType[*DataError](err); moved { // any other error is one of a damaged database
		return err
	}
	wal := dir.Database() + "-wal"
	from := snapshot{size: fileSize(dir.Database()) + fileSize(wal)}
	from.copy = func(ctx context.Context, to string, progress func(done, total int64)) error {
		if err := copyRaw(dir.Database(), to); err != nil {
			return err
		}
		if err := copyRaw(wal, to+"-wal"); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		// The server was killed: its last writes are in the WAL of the copy, and are merged into the copy.
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

func copyRaw(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return unpackFile(in, to)
}
