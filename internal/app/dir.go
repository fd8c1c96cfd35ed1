package app

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
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
func (d Dir) Exists() bool {
	_, err := os.Stat(d.Database())
	return err == nil
}

// IsDev reports whether a development server ran on the directory.
func (d Dir) IsDev() bool {
	_, err := os.Stat(d.DevEnv())
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
	_, noSettings := os.Stat(d.Settings())
	_, noKey := os.Stat(d.Key()) // a new node has only that
	if len(entries) > 0 && !d.Exists() && noSettings != nil && noKey != nil {
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
