package app

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strings"
	"time"

	"parley"
	"parley/internal/callback"
	"parley/internal/cluster"
	"parley/internal/encrypt"
	"parley/internal/network/whatsapp"
	"parley/internal/store"
	"parley/internal/token"
)

// Restored is the result of a restore.
type Restored struct {
	// Before is the folder with the old data, or "".
	Before string
	// Files is the number of files of messages in the backup.
	Files int
	// BackupAt is the newest time that the backup knows of.
	BackupAt time.Time
	// Ended is what the restore ended, and what stays revoked, lowered or rotated.
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
	known, compared := data.knownNow(ctx, present, log)
	r, err := data.endRestored(ctx, known, compared)
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

// knownNow reads what the present data directory knows of tokens and secrets. If it cannot be read, the restore continues: it may be
// the reason for it.
func (d *Data) knownNow(ctx context.Context, present Dir, log *slog.Logger) (known store.Credentials, compared bool) {
	if !present.Exists() {
		return known, false
	}
	known, err := d.readCredentials(ctx, present)
	if err != nil {
		log.Warn("the present database cannot be read: what was revoked or rotated since the backup is as it was", "error", err)
	}
	return known, err == nil
}

// restoredEntry is what the audit log says about a restore.
type restoredEntry struct {
	BackupAt       string               `json:"backup_at"`
	Compared       bool                 `json:"compared"`
	TokensRevoked  []parley.TokenID     `json:"tokens_revoked"`
	TokensLowered  []parley.TokenID     `json:"tokens_lowered"`
	SecretsRotated []parley.SecretOwner `json:"secrets_rotated"`
	KeysRetired    []string             `json:"keys_retired"`
	AuditKept      int                  `json:"audit_kept"`
}

// endRestored ends what was open in a backup. What is known as revoked, lowered or rotated stays so. The audit log says that there was
// a restore.
func (d *Data) endRestored(ctx context.Context, known store.Credentials, compared bool) (Restored, error) {
	r := Restored{Compared: compared}
	var err error
	if r.BackupAt, err = d.Store.TrustedTime(ctx); err != nil {
		return r, err
	}
	response := store.StoredResponse{StatusCode: http.StatusConflict, ContentType: "application/json", Body: []byte(interrupted)}
	r.Ended, err = d.Store.EndRestored(ctx, known, response, time.Now(), func(tx *store.Tx, e store.Ended) error {
		after, err := json.Marshal(restoredEntry{parley.Stamp(r.BackupAt), compared, tokenIDs(e.Revoked), tokenIDs(e.Lowered),
			e.Rotated, e.Retired, e.Audit})
		return errors.Join(err, tx.AddAudit(ctx, store.AuditEntry{At: time.Now(), Actor: localActor(), Action: "server.restore", After: after}))
	})
	if err != nil || !compared {
		return r, err
	}
	tokens, err := d.Store.Tokens(ctx)
	for _, t := range tokens {
		if _, was := known.Tokens[t.ID]; !was && t.Active(time.Now()) {
			r.Back = append(r.Back, t)
		}
	}
	return r, err
}

// localActor is the user of this machine who runs a command without a server.
func localActor() store.Actor {
	local := token.LocalToken(parley.AdminToken)
	if u, err := user.Current(); err == nil {
		local.Name += " (" + u.Username + ")"
	}
	return store.Actor{Kind: store.ActorLocal, ID: string(local.ID), Name: local.Name, Role: local.Role}
}

func tokenIDs(tokens []parley.Token) []parley.TokenID {
	ids := make([]parley.TokenID, len(tokens))
	for i, t := range tokens {
		ids[i] = t.ID
	}
	return ids
}

// readCredentials reads the tokens and secrets of another data directory, which is not in use. What is encrypted is encrypted for this
// one.
func (d *Data) readCredentials(ctx context.Context, other Dir) (store.Credentials, error) {
	known, err := store.ReadCredentials(ctx, other.Database())
	if err != nil || len(known.Secrets)+len(known.Keys) == 0 {
		return known, err
	}
	if _, err := os.Stat(other.Key()); err != nil { // opening would create it
		return store.Credentials{}, err
	}
	keyring, err := encrypt.OpenKeyFile(other.Key())
	if err != nil {
		return store.Credentials{}, err
	}
	return known, reencryptCredentials(&known, keyring, d.Keyring)
}

func reencryptCredentials(known *store.Credentials, from, to *encrypt.Keyring) (err error) {
	for i, s := range known.Secrets {
		if known.Secrets[i], err = callback.Reencrypt(s, from, to); err != nil {
			return err
		}
	}
	for i, k := range known.Keys {
		seed, err := from.Decrypt(k.Encrypted, k.ID)
		if err != nil {
			return fmt.Errorf("signing key %s: %w", k.ID, err)
		}
		known.Keys[i].Encrypted = to.Encrypt(seed, k.ID)
	}
	return nil
}

// RestorePostgres does for a PostgreSQL database that was restored with other tools what [Restore] does for a file: it ends what was
// open at the backup, and takes what was revoked, lowered or rotated since from the database before, if there is one. Without it nobody
// knows which tokens were revoked, so all are. No node may run on the restored database.
func RestorePostgres(ctx context.Context, c Config, before string, log *slog.Logger) (Restored, error) {
	state, err := cluster.Inspect(ctx, c.Database)
	if err != nil {
		return Restored{}, err
	}
	for _, n := range state.Nodes {
		if n.ExpiresAt.After(time.Now().Add(-state.Ahead)) {
			return Restored{}, &DataError{fmt.Sprintf("Node %d at %s is running on this database. Stop all nodes first. Nothing was changed.",
				n.ID, n.URL)}
		}
	}
	if err := c.checkKeyFile(state.KeyPrint); err != nil {
		return Restored{}, err
	}
	keyring, err := encrypt.OpenKeyFile(c.KeyFile())
	if err != nil {
		return Restored{}, err
	}
	known, err := credentialsBefore(ctx, before, keyring)
	if err != nil {
		return Restored{}, &DataError{fmt.Sprintf("The database before the restore cannot be used: %v. Nothing was changed.", err)}
	}
	db, err := store.Open(ctx, c.Database)
	if err != nil {
		return Restored{}, err
	}
	data := &Data{Dir: c.DataDir, Store: db, Keyring: keyring}
	if before == "" {
		known, err = unverified(ctx, db)
	}
	var r Restored
	if err == nil {
		r, err = data.endRestored(ctx, known, before != "")
	}
	if err := errors.Join(err, data.Close()); err != nil {
		return Restored{}, err
	}
	return r, whatsapp.PrepareRestored(ctx, c.Database, log)
}

// credentialsBefore reads the database that a restore replaced.
func credentialsBefore(ctx context.Context, before string, keyring *encrypt.Keyring) (known store.Credentials, err error) {
	if before == "" {
		return known, nil
	}
	db, err := store.Open(ctx, before)
	if err != nil {
		return known, err
	}
	if known, err = db.Credentials(ctx); err == nil {
		err = reencryptCredentials(&known, keyring, keyring) // it must be the same key file
	}
	return known, errors.Join(err, db.Close())
}

// unverified says of every token that it was revoked: nobody can know better.
func unverified(ctx context.Context, db *store.DB) (known store.Credentials, err error) {
	tokens, err := db.Tokens(ctx)
	known.Tokens = map[parley.TokenID]parley.Token{}
	for _, t := range tokens {
		t.RevokedAt = time.Now()
		known.Tokens[t.ID] = t
	}
	return known, err
}
