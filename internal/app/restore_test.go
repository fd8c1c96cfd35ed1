package app

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/callback"
	"parley/internal/otp/rule"
	"parley/internal/store"
	"parley/internal/token"
)

// filled makes a data directory whose files all say the same.
func filled(t *testing.T, says string) Dir {
	t.Helper()
	d := Dir(t.TempDir())
	if err := os.Mkdir(d.Media(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{d.Database(), d.Database() + "-wal", d.WhatsApp(), d.Key(), filepath.Join(d.Media(), "file")} {
		if err := os.WriteFile(path, []byte(says), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// contents reads all files below a directory, by their path in it.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, path)
		all[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// incoming makes the scratch folder of a restore into a data directory, whose files all say the same.
func incoming(t *testing.T, d Dir, says string) string {
	t.Helper()
	scratch, err := os.MkdirTemp(string(d), restoreScratch)
	if err == nil {
		err = os.Rename(string(filled(t, says)), filepath.Join(scratch, comes))
	}
	if err != nil {
		t.Fatal(err)
	}
	return scratch
}

// TestRestoreTwiceAtOnce keeps what was there before each time, however fast one follows the other.
func TestRestoreTwiceAtOnce(t *testing.T) {
	d := filled(t, "first")
	var kept []string
	for _, says := range []string{"second", "third", "fourth"} {
		before, err := d.replaceBy(incoming(t, d, says), os.Rename)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, before)
	}
	for i, says := range []string{"first", "second", "third"} {
		if got := contents(t, kept[i]); len(got) != 5 || got["parley.db"] != says || got["media/file"] != says {
			t.Errorf("%s holds %v, and not what says %q", kept[i], got, says)
		}
	}
	if got, err := os.ReadFile(d.Database()); string(got) != "fourth" || err != nil {
		t.Errorf("the database says %q, %v", got, err)
	}
}

var errMoves = errors.New("no more moves")

// failing is a rename that fails once, at a number, and counts.
func failing(at int, moves *int) rename {
	return func(from, to string) error {
		if *moves++; *moves == at {
			return errMoves
		}
		return os.Rename(from, to)
	}
}

// movesOfARestore is how often a restore moves something: its folder, five pieces that go and five that come,
// and the folder with what was there.
const movesOfARestore = 1 + 5 + 5 + 1

// TestRestoreIsAtomic fails at each move in turn.
func TestRestoreIsAtomic(t *testing.T) {
	for last := range movesOfARestore {
		d := filled(t, "old")
		was := contents(t, string(d))
		scratch, moves := incoming(t, d, "new"), 0
		_, err := d.replaceBy(scratch, failing(last+1, &moves))
		if !errors.Is(err, errMoves) || !strings.Contains(err.Error(), "Nothing was changed") {
			t.Errorf("without move %d: %v", last+1, err)
		}
		os.RemoveAll(scratch)
		if got := contents(t, string(d)); !maps.Equal(got, was) {
			t.Errorf("without move %d there is %v", last+1, got)
		}
	}
}

// TestInterruptedRestore dies at each move in turn; the next start finishes it.
func TestInterruptedRestore(t *testing.T) {
	for last := 1; last <= movesOfARestore; last++ { // the first is that of its own folder: without it nothing began
		d, moves := filled(t, "old"), 1
		if err := errors.Join(os.Rename(incoming(t, d, "new"), d.replacing()), os.Mkdir(filepath.Join(d.replacing(), goes), 0o700)); err != nil {
			t.Fatal(err)
		}
		_, err := d.finishRestore(failing(last+1, &moves))
		if last < movesOfARestore && !errors.Is(err, errMoves) {
			t.Fatalf("it did not die at move %d: %v", last+1, err)
		}
		if _, err := OpenData(t.Context(), d, quiet); err == nil || !strings.Contains(err.Error(), "was interrupted") {
			t.Errorf("after move %d the directory opens: %v", last, err)
		}
		if err := d.recoverRestore(quiet); err != nil {
			t.Fatalf("after move %d: %v", last, err)
		}
		whole := 0
		for path, says := range contents(t, string(d)) {
			switch {
			case strings.HasPrefix(path, "before-restore-") && says == "old", !strings.Contains(path, "restore") && says == "new":
				whole++
			default:
				t.Errorf("after move %d, %s says %s", last, path, says)
			}
		}
		if whole != 10 {
			t.Errorf("after move %d there are %d files", last, whole)
		}
		if err := d.recoverRestore(quiet); err != nil { // there is nothing left to do
			t.Error(err)
		}
	}
}

// TestRestoreOverwritesNothing finds a file where another one is to go: somebody made it meanwhile.
func TestRestoreOverwritesNothing(t *testing.T) {
	d, moves := filled(t, "old"), 1
	if err := errors.Join(os.Rename(incoming(t, d, "new"), d.replacing()), os.Mkdir(filepath.Join(d.replacing(), goes), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.finishRestore(failing(4, &moves)); !errors.Is(err, errMoves) {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Database(), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.recoverRestore(quiet); !errors.Is(err, fs.ErrExist) {
		t.Errorf("it was finished: %v", err)
	}
	if got, err := os.ReadFile(filepath.Join(d.replacing(), goes, "parley.db")); string(got) != "old" || err != nil {
		t.Errorf("what was there says %q, %v", got, err)
	}
}

// TestLeftoversAreRemoved finds what backups and restores that died left, but not what others use now.
func TestLeftoversAreRemoved(t *testing.T) {
	dir := Dir(t.TempDir())
	if err := errors.Join(os.Chmod(string(dir), 0o700), os.MkdirAll(dir.Backups(), 0o700)); err != nil {
		t.Fatal(err)
	}
	dead := []string{filepath.Join(string(dir), ".backup-1"), filepath.Join(string(dir), ".restore-1"),
		filepath.Join(dir.Backups(), ".parley-backup-1")}
	for _, path := range dead {
		if err := errors.Join(os.MkdirAll(path, 0o700), os.WriteFile(filepath.Join(path, "parley.db"), []byte("copy"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	folder, owner, err := newScratch(string(dir), backupScratch)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	part, err := newPart(dir.Backups(), backupPart)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, Config{DataDir: dir})
	r.end(t)
	for _, path := range dead {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	for _, path := range []string{folder, part.Name()} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("somebody uses it: %v", err)
		}
	}
	part.Close() // its process ends
	data, err := OpenData(t.Context(), dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	if _, err := SaveBackup(filepath.Join(dir.Backups(), "b.tar"), false, func(w io.Writer) error {
		return Backup(t.Context(), data, w, func(int64, int64) {})
	}); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir.Backups(), ".parley-backup-*")); len(left) != 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestBackupHasFilesOfTheSnapshot adds a file while the snapshot is made: messages in the snapshot may name it.
func TestBackupHasFilesOfTheSnapshot(t *testing.T) {
	data, err := OpenData(t.Context(), Dir(t.TempDir()), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	key := "00112233445566778899aabbccddeeff"
	path := filepath.Join(data.Dir.Media(), key[:2], key[2:4], key)
	draft := filepath.Join(data.Dir.Media(), "tmp", "draft")
	var file bytes.Buffer
	add := sync.OnceFunc(func() {
		for _, path := range []string{path, draft} {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("file"), 0o600)); err != nil {
				t.Error(err)
			}
		}
	})
	if err := Backup(t.Context(), data, &file, func(int64, int64) { add() }); err != nil {
		t.Fatal(err)
	}
	var names []string
	for archive := tar.NewReader(&file); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, head.Name)
	}
	if !slices.Contains(names, "media/00/11/"+key) || slices.Contains(names, "media/tmp/draft") {
		t.Errorf("the backup holds %v", names)
	}
}

// TestRestoreEndsOpenSessions takes things away after a backup: a restore does not bring them back.
func TestRestoreEndsOpenSessions(t *testing.T) {
	for _, rotatesKey := range []bool{false, true} {
		dir := Dir(t.TempDir())
		data, backup, was := backedUp(t, dir)
		ctx := t.Context()
		revoked, err := data.Tokens.Verify(ctx, was.revoked)
		if err != nil {
			t.Fatal(err)
		}
		secrets := callback.NewSecrets(data.Store, data.Keyring)
		hook, err := secrets.Rotate(ctx, was.hook)
		channel, err2 := secrets.Keys(ctx, parley.ChannelSecret("demo")) // the first of its kind
		gone := data.Store.Tx(ctx, func(tx *store.Tx) error {
			return tx.DeleteChannel(ctx, "gone")
		})
		if err := errors.Join(err, err2, gone, data.Tokens.Revoke(ctx, revoked.ID), data.Close()); err != nil {
			t.Fatal(err)
		}
		if rotatesKey { // what is stored from now on is under another key than the backup has
			old, err := os.ReadFile(dir.Key())
			fresh := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32)) + "\n"
			if err := errors.Join(err, os.WriteFile(dir.Key(), append([]byte(fresh), old...), 0o600)); err != nil {
				t.Fatal(err)
			}
		}

		r, err := Restore(ctx, dir, backup, quiet)
		if err != nil {
			t.Fatal(err)
		}
		e := r.Ended
		if e.Sessions != 1 || e.Tickets != 2 || e.Codes != 1 || e.LoginLinks != 1 || e.Keys != 1 || !r.Compared ||
			len(e.Revoked) != 1 || e.Revoked[0].ID != revoked.ID || len(e.Rotated) != 2 || len(r.Back) != 1 || r.Back[0].Channel != "gone" {
			t.Errorf("it says %+v", r)
		}
		data, err = OpenData(ctx, dir, quiet)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := data.Tokens.Verify(ctx, was.revoked); parley.ToCode(err) != parley.Unauthenticated {
			t.Errorf("the revoked token: %v", err)
		}
		if _, err := data.Tokens.Verify(ctx, was.good); err != nil {
			t.Errorf("the other token: %v", err)
		}
		secrets = callback.NewSecrets(data.Store, data.Keyring)
		if got, err := secrets.Keys(ctx, was.hook); err != nil || got.Secret != hook.Secret || got.Old != hook.Old {
			t.Errorf("the webhook's secret is another one, %v", err)
		}
		if got, err := secrets.Keys(ctx, parley.ChannelSecret("demo")); err != nil || got.Secret != channel.Secret {
			t.Errorf("the channel's secret: %v", err)
		}
		for _, hash := range was.tickets {
			if ticket, err := data.Store.Ticket(ctx, hash); err == nil && ticket.Active(time.Now()) {
				t.Errorf("the %s ticket is good", ticket.Purpose)
			}
		}
		ledger, err := data.Store.Ledger(ctx, "demo", was.contact)
		link, err2 := data.Store.Link(ctx, was.link)
		key, err3 := data.Store.StoredResponse(ctx, "demo", "pending")
		if err := errors.Join(err, err2, err3, data.Close()); err != nil {
			t.Fatal(err)
		}
		code := ledger.Code
		if code.Status != parley.OTPStatusExpired || code.Encrypted != nil || link.Status != parley.OTPStatusExpired || key.StatusCode != 409 {
			t.Errorf("the code is %s, the link %s, the key's response %d", code.Status, link.Status, key.StatusCode)
		}
	}
}

// TestRestoreToEmptyDirectory restores where there is no database to compare with, or one that cannot be read.
func TestRestoreToEmptyDirectory(t *testing.T) {
	data, backup, _ := backedUp(t, Dir(t.TempDir()))
	if err := data.Close(); err != nil {
		t.Fatal(err)
	}
	file := backup.Bytes()
	empty, broken := Dir(t.TempDir()), Dir(t.TempDir())
	if err := os.WriteFile(broken.Database(), bytes.Repeat([]byte("not a database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []Dir{empty, broken} {
		r, err := Restore(t.Context(), dir, bytes.NewReader(file), quiet)
		if err != nil || r.Compared || r.Ended.Sessions != 1 || (r.Before != "") != (dir == broken) {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// TestRestoreGivesNothingBack takes a role, a signing key and time away after a backup. A restore does not give them back, and the
// audit log goes on.
func TestRestoreGivesNothingBack(t *testing.T) {
	ctx, dir := t.Context(), Dir(t.TempDir())
	data, err := OpenData(ctx, dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	log := func(action string) error {
		return data.Store.Tx(ctx, func(tx *store.Tx) error {
			return tx.AddAudit(ctx, store.AuditEntry{At: time.Now(), Action: action})
		})
	}
	issue := func(name string, role parley.Role) (raw string, id parley.TokenID) {
		raw, err := data.Tokens.Issue(ctx, parley.Token{Kind: parley.AdminToken, Role: role, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		verified, err := data.Tokens.Verify(ctx, raw)
		if err != nil {
			t.Fatal(err)
		}
		return raw, verified.ID
	}
	oldRaw, _ := issue("old key", parley.Owner)
	if _, err := data.Tokens.Rotate(ctx, token.Rotation{}); err != nil {
		t.Fatal(err)
	}
	if err := AddChannel(ctx, data.Store, parley.Channel{Code: "demo", Network: parley.Sandbox}); err != nil {
		t.Fatal(err)
	}
	credentials := func(set ...string) string {
		secrets, channel := callback.NewSecrets(data.Store, data.Keyring), channelNamed(t, data, "demo")
		for _, s := range set {
			if err := secrets.SetCredentials(ctx, channel, []byte(s)); err != nil {
				t.Fatal(err)
			}
		}
		current, _, err := secrets.Credentials(ctx, channel)
		if err != nil {
			t.Fatal(err)
		}
		return string(current)
	}
	credentials("leaked")
	demoted, demotedID := issue("demoted", parley.Owner)
	promoted, promotedID := issue("promoted", parley.Viewer)
	var backup bytes.Buffer
	if err := errors.Join(log("before"), Backup(ctx, data, &backup, func(int64, int64) {})); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(setRole(ctx, data.Tokens, demotedID, parley.Viewer), setRole(ctx, data.Tokens, promotedID, parley.Owner))
	if err != nil {
		t.Fatal(err)
	}
	credentials("present")
	ended, err := data.Tokens.Rotate(ctx, token.Rotation{Retire: true, KeepCurrent: true})
	if err := errors.Join(err, log("after 1"), log("after 2"), data.Close()); err != nil || len(ended) != 1 {
		t.Fatal(ended, err)
	}

	r, err := Restore(ctx, dir, &backup, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Ended.Lowered) != 1 || r.Ended.Lowered[0].ID != demotedID || r.Ended.Lowered[0].Role != parley.Viewer ||
		len(r.Ended.Retired) != 1 || len(r.Ended.Revoked) != 1 || r.Ended.Audit != 2 {
		t.Errorf("it says %+v", r.Ended)
	}
	if data, err = OpenData(ctx, dir, quiet); err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	if got := credentials(); got != "present" {
		t.Errorf("the credentials are %q", got)
	}
	for raw, role := range map[string]parley.Role{demoted: parley.Viewer, promoted: parley.Viewer} {
		if got, err := data.Tokens.Verify(ctx, raw); err != nil || got.Role != role {
			t.Errorf("%s is %s, want %s: %v", got.Name, got.Role, role, err)
		}
	}
	if _, err := data.Tokens.Verify(ctx, oldRaw); parley.ToCode(err) != parley.Unauthenticated {
		t.Errorf("a token of the retired key: %v", err)
	}
	entries, _, err := data.Store.Audit(ctx, store.AuditQuery{}, parley.Page{Limit: 10})
	var actions []string
	for _, e := range entries {
		actions = append(actions, e.Action)
	}
	if strings.Join(actions, " ") != "server.restore after 2 after 1 before" || err != nil {
		t.Errorf("audit log: %v, %v", actions, err)
	}
	if e := entries[0]; e.Actor.Kind != store.ActorLocal || !strings.Contains(e.Actor.Name, "command line") ||
		!strings.Contains(string(e.After), string(demotedID)) {
		t.Errorf("entry: %+v", e)
	}
}

// lastKnown is what a backup knows.
type lastKnown struct {
	revoked, good string // tokens
	hook          parley.SecretOwner
	tickets       [][]byte
	contact       parley.ContactID
	link          parley.OTPID
}

// backedUp fills a data directory with what people hold, and makes a backup of it.
func backedUp(t *testing.T, dir Dir) (*Data, *bytes.Buffer, lastKnown) {
	t.Helper()
	ctx := t.Context()
	data, err := OpenData(ctx, dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	was := lastKnown{contact: "6281234567890@c.us", link: parley.NewLinkID()}
	now := time.Now()
	hook := parley.Webhook{ID: parley.NewWebhookID(), URL: "https://crm.example/hook", CreatedAt: now}
	was.hook = parley.WebhookSecret(hook.ID)
	err = errors.Join(
		AddChannel(ctx, data.Store, parley.Channel{Code: "demo", Network: parley.Sandbox}),
		AddChannel(ctx, data.Store, parley.Channel{Code: "gone", Network: parley.Sandbox}),
		data.Store.Tx(ctx, func(tx *store.Tx) error { return tx.AddWebhook(ctx, hook) }),
		data.Store.Tx(ctx, func(tx *store.Tx) error { return addOpen(ctx, tx, &was, now) }),
	)
	for token, of := range map[*string]parley.Token{
		&was.revoked: {Kind: parley.GlobalToken, Name: "lost"}, &was.good: {Kind: parley.AdminToken},
		new(string): {Kind: parley.ChannelToken, Channel: "gone"},
	} {
		issued, err2 := data.Tokens.Issue(ctx, of)
		*token, err = issued, errors.Join(err, err2)
	}
	if _, err2 := callback.NewSecrets(data.Store, data.Keyring).Keys(ctx, was.hook); err2 != nil {
		t.Fatal(err2)
	}
	var backup bytes.Buffer
	if err := errors.Join(err, Backup(ctx, data, &backup, func(int64, int64) {})); err != nil {
		t.Fatal(err)
	}
	return data, &backup, was
}

// addOpen stores tickets, a code, a link and a key that are all open.
func addOpen(ctx context.Context, tx *store.Tx, was *lastKnown, now time.Time) error {
	var errs []error
	was.tickets = nil
	for _, purpose := range []parley.TicketPurpose{parley.SessionTicket, parley.SignInTicket, parley.PairTicket} {
		_, ticket := parley.NewTicket(purpose, "", now, time.Hour)
		was.tickets = append(was.tickets, ticket.Hash)
		errs = append(errs, tx.AddTicket(ctx, ticket))
	}
	code := parley.OTPCode{ID: parley.NewCodeID(), Channel: "demo", Contact: was.contact, Hash: []byte{1}, Encrypted: []byte{1},
		CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	link := parley.OTPLink{ID: was.link, Channel: "demo", Contact: was.contact, Hash: []byte{1}, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	key := store.StoredResponse{Scope: "demo", Key: "pending", Fingerprint: []byte{1}, Channel: "demo", CreatedAt: now}
	return errors.Join(append(errs, tx.PutLedger(ctx, rule.Ledger{Code: code, Requests: []time.Time{now}}),
		tx.AddLink(ctx, link), tx.AddStoredResponse(ctx, key))...)
}
