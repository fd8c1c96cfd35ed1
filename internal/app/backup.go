package app

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

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

// snapshot is the main database of a data directory, to be backed up.
type snapshot struct {
	size int64
	copy func(ctx context.Context, to string, progress func(done, total int64)) error
}

// snapshot copies the open database, while others go on using it.
func (d *Data) snapshot(ctx context.Context) (snapshot, error) {
	size, err := d.Store.Size(ctx)
	return snapshot{size, func(ctx context.Context, to string, progress func(done, total int64)) error {
		return store.Backup(ctx, d.Store, to, progress)
	}}, err
}

// Backup writes the whole of a data directory as a tar file, while others go on using it: each database
// as it is at one moment, the key and all files. Settings are of the machine and not part of it, nor is
// what simulated phones received. It calls progress, which must not be nil, with the bytes done and to do.
func Backup(ctx context.Context, data *Data, w io.Writer, progress func(done, total int64)) error {
	from, err := data.snapshot(ctx)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return data.Dir.backup(ctx, from, w, progress)
}

func (d Dir) backup(ctx context.Context, from snapshot, w io.Writer, progress func(done, total int64)) error {
	_ = d.removeLeftovers() // what cannot be removed keeps nobody from a backup
	scratch, owner, err := newScratch(string(d), backupScratch)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer owner.Close()
	defer os.RemoveAll(scratch)
	snapshot, devices := filepath.Join(scratch, backupDatabase), filepath.Join(scratch, backupWhatsApp)

	_, rest := d.mediaFiles() // how large they are about
	database, keys := from.size, sizeOf(d.WhatsApp())
	// The databases are written twice: into the snapshots and into the file.
	total := 2*(database+keys) + rest
	if err := from.copy(ctx, snapshot, func(done, of int64) {
		progress(min(done, database), total)
	}); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if keys > 0 { // after the other: a channel that the backup knows as paired has its keys in it
		if err := store.CopyFile(ctx, d.WhatsApp(), devices, func(done, of int64) {
			progress(database+min(done, keys), total)
		}); err != nil {
			return fmt.Errorf("backup: the keys of linked devices: %w", err)
		}
	}

	// After the snapshot: a file is on disk before its message is stored, so all that the snapshot names are there.
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

// sizeOf is how large a file is; zero where there is none.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// mediaFiles lists the files that messages carry and how large they are together.
func (d Dir) mediaFiles() (names []string, size int64) {
	filepath.WalkDir(d.Media(), func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && path == media.TempDir(d.Media()) {
			return fs.SkipDir // what is not complete is not needed
		}
		if err != nil || !entry.Type().IsRegular() {
			return nil // nor is what vanishes meanwhile
		}
		if info, err := entry.Info(); err == nil {
			name, _ := filepath.Rel(d.Media(), path) // it lies in there
			names, size = append(names, name), size+info.Size()
		}
		return nil
	})
	return names, size
}

// backup is a tar file being written. After an error it does nothing more.
type backup struct {
	tar         *tar.Writer
	done, total int64
	progress    func(done, total int64)
	err         error
}

// add writes one file. One that is not there is left out: a file is removed when no message needs it
// any more.
func (b *backup) add(ctx context.Context, path, name string) {
	if b.err == nil {
		b.err = ctx.Err()
	}
	if b.err != nil {
		return
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		b.err = err
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		b.err = err
		return
	}
	head := &tar.Header{Name: name, Mode: 0o600, Size: info.Size(), ModTime: info.ModTime(), Format: tar.FormatPAX}
	if b.err = b.tar.WriteHeader(head); b.err != nil {
		return
	}
	_, b.err = io.Copy(b, io.LimitReader(f, info.Size()))
}

// Write counts what goes into the file.
func (b *backup) Write(p []byte) (int, error) {
	n, err := b.tar.Write(p)
	b.done += int64(n)
	b.progress(min(b.done, b.total), b.total)
	return n, err
}
