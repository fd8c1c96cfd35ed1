package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"parley/internal/console"
	"parley/internal/doctor"
	"parley/internal/encrypt"
	"parley/internal/media"
	"parley/internal/store"
	"parley/internal/store/sqldb"
	"parley/internal/token"
)

// Dir is a data directory. Everything is stored in it.
type Dir string

func (d Dir) Database() string { return filepath.Join(string(d), "parley.db") }   // everything but keys of linked devices and files
func (d Dir) Sandbox() string  { return filepath.Join(string(d), "sandbox.db") }  // what the simulated phones received
func (d Dir) WhatsApp() string { return filepath.Join(string(d), "whatsapp.db") } // the keys of linked devices
func (d Dir) Media() string    { return filepath.Join(string(d), "media") }       // files that messages carry
func (d Dir) Key() string      { return filepath.Join(string(d), "secret.key") }  // what secrets in the database are encrypted with
func (d Dir) DevEnv() string   { return filepath.Join(string(d), "dev.env") }     // address and tokens of a development server
func (d Dir) LockFile() string { return filepath.Join(string(d), "parley.lock") }
func (d Dir) Settings() string { return filepath.Join(string(d), "parley.toml") }

// Exists reports whether a gateway ever ran on the directory.
func (d Dir) Exists() bool { return exists(d.Database()) }

// IsDev reports whether a development server ran on the directory.
func (d Dir) IsDev() bool { return exists(d.DevEnv()) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// checkKey rejects a database without its key. The key is created before the database, so it was lost; a new one would
// decrypt nothing and hide the loss.
func (d Dir) checkKey() error {
	if _, err := os.Stat(d.Key()); !errors.Is(err, fs.ErrNotExist) || !d.Exists() {
		return nil
	}
	return &DataError{fmt.Sprintf("%s is missing: without it the secrets in %s cannot be read. Nothing was changed. "+
		"Put it back from your backup (tar -xf FILE -C %s secret.key), or restore the whole backup with: parley restore FILE --data %s",
		d.Key(), d.Database(), d, d)}
}

// Prepare creates the directory with mode 0700. An existing one that others can read is closed to them; one that
// contains other files is rejected.
func (d Dir) Prepare(log *slog.Logger) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	if IsReadOnly(string(d)) {
		return configErrorf("%s is on a read-only file system. Mount it writable, or give another directory with --data.", d)
	}
	info, err := os.Stat(string(d))
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	if !info.IsDir() {
		return configErrorf("%s is not a directory.", d)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := d.tighten(info.Mode().Perm(), log); err != nil {
			return err
		}
	}
	for _, path := range []string{d.Database(), d.Sandbox(), d.WhatsApp(), d.DevEnv(), d.LockFile()} {
		if err := tightenFile(path, log); err != nil {
			return err
		}
	}
	return nil
}

// IsReadOnly reports whether a path is on a file system that cannot be written to.
func IsReadOnly(path string) bool {
	const writable = 2 // W_OK
	return errors.Is(syscall.Access(path, writable), syscall.EROFS)
}

func (d Dir) tighten(mode fs.FileMode, log *slog.Logger) error {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return fmt.Errorf("look into the data directory: %w", err)
	}
	if len(entries) > 0 && !d.Exists() && !exists(d.Settings()) && !exists(d.Key()) { // a new node has only the key
		return configErrorf("%s is open to other users (mode %04o) and contains other files. Give another directory with --data.", d, mode)
	}
	if err := os.Chmod(string(d), 0o700); err != nil {
		return configErrorf("%s is open to other users (mode %04o) and cannot be closed to them: %v. Run: chmod 700 %s", d, mode,
			errors.Unwrap(err), d)
	}
	log.Warn("the data directory was open to other users and is closed to them now", "data", string(d), "was", fmt.Sprintf("%04o", mode))
	return nil
}

func tightenFile(path string, log *slog.Logger) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return configErrorf("%s is open to other users and cannot be closed to them: %v. Run: chmod 600 %s", path, errors.Unwrap(err), path)
	}
	log.Warn("a file was open to other users and is closed to them now", "file", path)
	return nil
}

// Data is an open data directory: the store and the signing of tokens. Only the process that holds the directory's lock
// opens it.
type Data struct {
	Dir     Dir
	Store   *store.DB
	Keyring *encrypt.Keyring // encrypts what is secret in the store
	Tokens  *token.Authority
}

// OpenData opens a data directory. It creates what is missing and migrates an older database.
func OpenData(ctx context.Context, dir Dir, log *slog.Logger) (*Data, error) {
	return OpenDataAt(ctx, dir, dir.Database(), log)
}

// openFor opens the data directory of a server, with a number of connections for reading.
func (d Dir) openFor(ctx context.Context, log *slog.Logger, readers int) (*Data, error) {
	data, err := openData(ctx, d, d.Database(), log, readers)
	return data, d.explain(err)
}

// OpenDataAt is OpenData for a database that may be elsewhere.
func OpenDataAt(ctx context.Context, dir Dir, database string, log *slog.Logger) (*Data, error) {
	data, err := openData(ctx, dir, database, log, 0)
	return data, dir.explain(err)
}

func openData(ctx context.Context, dir Dir, database string, log *slog.Logger, readers int) (*Data, error) {
	if err := errors.Join(dir.checkRestored(), dir.Prepare(log)); err != nil {
		return nil, err
	}
	if err := dir.checkKey(); err != nil {
		return nil, err
	}
	keyring, err := encrypt.OpenKeyFile(dir.Key())
	if err != nil {
		return nil, err
	}
	db, err := store.OpenAs(store.WithProgress(ctx, func(text string) { log.Info(text) }), database, nil, readers)
	if err != nil {
		return nil, err
	}
	tokens, err := token.Open(ctx, db, keyring)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Data{Dir: dir, Store: db, Keyring: keyring, Tokens: tokens}, nil
}

// Close closes the database. It may be called twice.
func (d *Data) Close() error {
	if d.Tokens != nil {
		d.Tokens.Close()
	}
	return d.Store.Close()
}

// SignInLink creates a single-use link that signs in to the console at an address.
func (d *Data) SignInLink(ctx context.Context, url string) (string, error) {
	return console.NewLink(ctx, d.Store, url)
}

// DataError says what is wrong with a data directory and how to fix it.
type DataError struct{ Sentence string }

func (e *DataError) Error() string { return e.Sentence }

// explain replaces an error about the data by a sentence, if the cause is known.
func (d Dir) explain(err error) error {
	if err == nil {
		return nil
	}
	if _, done := errors.AsType[*ConfigError](err); done {
		return err
	}
	if _, done := errors.AsType[*DataError](err); done {
		return err
	}
	if early, is := errors.AsType[*sqldb.EarlyError](err); is {
		return &DataError{early.Error()}
	}
	switch {
	case store.IsDamage(err):
		return &DataError{fmt.Sprintf("The database %s is damaged (%s). Nothing was changed. Restore a backup with: parley restore FILE "+
			"--data %s",
			d.Database(), Cause(err), d)}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), store.IsFull(err),
		store.IsDiskError(err) && doctor.FreeDisk(string(d)) < doctor.NoDisk:
		return &DataError{fmt.Sprintf("The disk that holds %s is full (%s). Free some space, then start again.", d, Cause(err))}
	}
	return err
}

// Cause is the text of the innermost error.
func Cause(err error) string {
	if found := store.FoundDamage(err); found != "" {
		return found
	}
	return media.Innermost(err)
}

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
