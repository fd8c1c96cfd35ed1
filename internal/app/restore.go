package app

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"parley"
	"parley/internal/callback"
	"parley/internal/encrypt"
	"parley/internal/network/whatsapp"
	"parley/internal/store"
)

// Restored is the result of a restore.
type Restored struct {
	// Before is the folder with the old data, or "".
	Before string
	// Files is the number of files of messages in the backup.
	Files int
	// Ended is what the restore ended, and what stays revoked or rotated.
	Ended store.Ended
	// Compared means that the old database could be read: its revocations and rotations stay.
	Compared bool
	// Back are the tokens that are valid again because the old database did not have them: their channels were deleted
	// since.
	Back []parley.Token
}

// Restore replaces the data by a backup. The backup is unpacked and checked first; if it is not usable, nothing changes.
// The old data is moved to a folder of the data directory.
func Restore(ctx context.Context, dir Dir, backup io.Reader, log *slog.Logger) (Restored, error) {
	if err := dir.Prepare(log); err != nil {
		return Restored{}, err
	}
	lock, err := dir.Lock("parley restore") // the data must not be in use
	if err != nil {
		return Restored{}, err
	}
	defer lock.Close()
	if err := dir.recoverRestore(log); err != nil {
		return Restored{}, err
	}
	_ = dir.removeLeftovers() // a leftover does not prevent a restore
	scratch, owner, err := newScratch(string(dir), restoreScratch)
	if err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	defer owner.Close()
	defer os.RemoveAll(scratch)

	unpacked := Dir(filepath.Join(scratch, comes))
	if err := unpack(ctx, backup, unpacked); err != nil {
		return Restored{}, fmt.Errorf("restore: %w. Nothing was changed", err)
	}
	r, err := tryOut(ctx, unpacked, dir, log)
	if err != nil {
		return Restored{}, fmt.Errorf("restore: the backup cannot be used: %w. Nothing was changed", err)
	}
	if err := syncTree(string(unpacked)); err != nil {
		return Restored{}, fmt.Errorf("restore: %w. Nothing was changed", err)
	}
	files, _ := unpacked.mediaFiles()
	r.Files = len(files)
	r.Before, err = dir.replaceBy(scratch, os.Rename)
	return r, err
}

func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return syncFolders(path)
	})
}

// unpack writes the files of a backup to a directory. It rejects other names: a tar file can contain any path.
func unpack(ctx context.Context, backup io.Reader, into Dir) error {
	if err := os.MkdirAll(into.Media(), 0o700); err != nil {
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
			return fmt.Errorf("not a backup: it contains %q", head.Name)
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

// tryOut opens the unpacked data like a server: the databases must be whole and the key the right one. It ends what must
// not be valid again.
func tryOut(ctx context.Context, unpacked, present Dir, log *slog.Logger) (Restored, error) {
	for _, needed := range []string{unpacked.Database(), unpacked.Key()} {
		if _, err := os.Stat(needed); err != nil {
			return Restored{}, fmt.Errorf("it contains no %s", filepath.Base(needed))
		}
	}
	data, err := OpenData(ctx, unpacked, log)
	if err != nil {
		return Restored{}, err
	}
	if err := data.Store.Check(ctx); err != nil {
		return Restored{}, errors.Join(err, data.Close())
	}
	r, err := data.endRestored(ctx, present, log)
	if err := errors.Join(err, data.Close()); err != nil {
		return Restored{}, err
	}
	if _, err := os.Stat(unpacked.WhatsApp()); errors.Is(err, fs.ErrNotExist) {
		return r, nil // there was no WhatsApp channel
	}
	return r, whatsapp.PrepareRestored(ctx, unpacked.WhatsApp(), log)
}

// interrupted is the response to a request whose idempotency key had none when the backup was made.
const interrupted = `{"message":"The data were restored from a backup of a moment at which this request was under way. ` +
	`See whether it was done; if not, send it with a new Idempotency-Key.","code":"conflict"}`

// endRestored ends what was open in a backup. What the old database knows as revoked or rotated stays so. If that cannot
// be read, the restore continues: it may be the reason for it.
func (d *Data) endRestored(ctx context.Context, present Dir, log *slog.Logger) (Restored, error) {
	r := Restored{}
	var known store.Credentials
	if present.Exists() {
		var err error
		if known, err = d.credentialsOf(ctx, present); err != nil {
			log.Warn("the present database cannot be read: what was revoked or rotated since the backup is as it was", "error", err)
		}
		r.Compared = err == nil
	}
	response := parley.StoredResponse{StatusCode: http.StatusConflict, ContentType: "application/json", Body: []byte(interrupted)}
	var err error
	if r.Ended, err = d.Store.EndRestored(ctx, known, response, time.Now()); err != nil || !r.Compared {
		return r, err
	}
	tokens, err := d.Store.Tokens(ctx)
	for _, t := range tokens {
		if _, was := known.Tokens[t.ID]; !was && t.RevokedAt.IsZero() && (t.ExpiresAt.IsZero() || t.ExpiresAt.After(time.Now())) {
			r.Back = append(r.Back, t)
		}
	}
	return r, err
}

// credentialsOf reads the tokens and secrets of another data directory, which is not in use. The secrets are encrypted
// for this one.
func (d *Data) credentialsOf(ctx context.Context, other Dir) (store.Credentials, error) {
	known, err := store.ReadCredentials(ctx, other.Database())
	if err != nil || len(known.Secrets) == 0 {
		return known, err
	}
	if _, err := os.Stat(other.Key()); err != nil { // opening would create it
		return store.Credentials{}, err
	}
	keyring, err := encrypt.OpenKeyFile(other.Key())
	if err != nil {
		return store.Credentials{}, err
	}
	for i, s := range known.Secrets {
		if known.Secrets[i], err = callback.Reencrypt(s, keyring, d.Keyring); err != nil {
			return store.Credentials{}, err
		}
	}
	return known, nil
}
