package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"parley"
	"parley/internal/callback"
	"parley/internal/cluster"
	"parley/internal/encrypt"
	"parley/internal/gateway"
	"parley/internal/otp/rule"
	"parley/internal/postgrestest"
	"parley/internal/store"
)

// encryptedStore is a database with one of everything that depends on the secret key.
type encryptedStore struct {
	token   string
	secrets callback.Keys
	message parley.Message // with a file to fetch and a text to send again
	waiting parley.Message // the reply of a login link
	code    parley.OTPID
	link    parley.OTPID
}

const owner = parley.SecretOwner("channel:demo")

func fillEncrypted(t *testing.T, data *Data) (e encryptedStore) {
	t.Helper()
	ctx, now, k := t.Context(), time.Now(), data.Keyring
	secrets := callback.NewSecrets(data.Store, k)
	if err := AddChannel(ctx, data.Store, parley.Channel{Code: "demo", Network: parley.Sandbox}); err != nil {
		t.Fatal(err)
	}
	_, err := secrets.Keys(ctx, owner)
	if err := secrets.SetCredentials(ctx, channelNamed(t, data, "demo"), []byte("credentials")); err != nil {
		t.Fatal(err)
	}
	var err2, err3 error
	e.secrets, err2 = secrets.Rotate(ctx, owner) // the one before is still valid
	e.token, err3 = data.Tokens.Issue(ctx, parley.Token{Kind: parley.AdminToken, Role: parley.Owner})
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	const contact = parley.ContactID("6281234567890@c.us")
	e.code, e.link = parley.NewCodeID(), parley.NewLinkID()
	err = data.Store.Tx(ctx, func(tx *store.Tx) error {
		message := func(content parley.Content, status parley.Status) parley.Message {
			return parley.Message{Channel: "demo", Chat: contact, ID: parley.MessageID(rand.Text()), FromMe: true, Content: content, Status: status,
				CreatedAt: now, ReceivedAt: now, ExpiresAt: now.Add(time.Hour)}
		}
		e.message = message(parley.Image{}, parley.Sent)
		e.waiting = message(parley.Secret{Shown: "***", OTP: e.link, Encrypted: k.Encrypt([]byte("reply"), string(e.link))}, parley.Pending)
		if err := errors.Join(tx.AddMessage(ctx, &e.message), tx.AddMessage(ctx, &e.waiting)); err != nil {
			return err
		}
		code := parley.OTPCode{ID: e.code, Channel: "demo", Contact: contact, Hash: []byte{1}, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
			Encrypted: k.Encrypt([]byte("1234"), string(e.code))}
		link := parley.OTPLink{ID: e.link, Channel: "demo", Contact: contact, Hash: []byte{1}, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
			Encrypted: k.Encrypt([]byte("prompt"), parley.PromptContext(e.link))}
		return errors.Join(
			tx.AddEvent(ctx, &parley.Event{Type: parley.MessageReceived, Channel: "demo", At: now, Message: &e.message,
				Encrypted: k.Encrypt([]byte("event"), parley.EventTextContext("demo"))}),
			tx.AddMediaFetch(ctx, parley.MediaFetch{Seq: e.message.Seq, Channel: "demo", Chat: contact, NextAt: now.Add(time.Hour), CreatedAt: now,
				Reference: k.Encrypt([]byte("file"), parley.MediaReferenceContext("demo"))}),
			tx.SetResend(ctx, "demo", e.message.Ref(), k.Encrypt([]byte("resend"), gateway.ResendContext("demo")), now),
			tx.PutLedger(ctx, rule.Ledger{Code: code, Requests: []time.Time{now}}), tx.AddLink(ctx, link),
			tx.AddStoredResponse(ctx, store.StoredResponse{Scope: "demo", Key: "key", Fingerprint: []byte{1}, Channel: "demo", CreatedAt: now,
				StatusCode: 200, ContentType: "sealed application/json", Body: k.Encrypt([]byte("{}"), "answer to demo key")}),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func channelNamed(t *testing.T, data *Data, code parley.ChannelCode) parley.Channel {
	t.Helper()
	c, err := data.Store.Channel(t.Context(), code)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// check reads everything with a keyring.
func (e encryptedStore) check(t *testing.T, data *Data) {
	t.Helper()
	ctx := t.Context()
	decrypt := func(what string, encrypted []byte, context string) {
		t.Helper()
		if plain, err := data.Keyring.Decrypt(encrypted, context); err != nil || string(plain) != what {
			t.Errorf("%s is %q: %v", what, plain, err)
		}
	}
	if _, err := data.Tokens.Verify(ctx, e.token); err != nil {
		t.Errorf("the token: %v", err)
	}
	if got, err := callback.NewSecrets(data.Store, data.Keyring).Keys(ctx, owner); err != nil || got.Secret != e.secrets.Secret ||
		got.Old != e.secrets.Old || got.Old == "" {
		t.Errorf("the signing secrets changed: %v", err)
	}
	credentials, _, err := callback.NewSecrets(data.Store, data.Keyring).Credentials(ctx, channelNamed(t, data, "demo"))
	if err != nil || string(credentials) != "credentials" {
		t.Errorf("the credentials are %q: %v", credentials, err)
	}
	events, err := data.Store.EventsAbout(ctx, &e.message)
	if err != nil || len(events) != 1 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	decrypt("event", events[0].Encrypted, parley.EventTextContext("demo"))
	fetch, err := data.Store.MediaFetch(ctx, e.message.Seq)
	if err != nil {
		t.Fatal(err)
	}
	decrypt("file", fetch.Reference, parley.MediaReferenceContext("demo"))
	resend, err := data.Store.Resend(ctx, e.message.Seq)
	if err != nil {
		t.Fatal(err)
	}
	decrypt("resend", resend, gateway.ResendContext("demo"))
	waiting, err := data.Store.Message(ctx, "demo", e.waiting.Ref())
	if err != nil {
		t.Fatal(err)
	}
	decrypt("reply", waiting.Content.(parley.Secret).Encrypted, string(e.link))
}

// checkEnded looks at what no key can make valid again.
func (e encryptedStore) checkEnded(t *testing.T, data *Data) {
	t.Helper()
	code, err := data.Store.Code(t.Context(), e.code)
	link, err2 := data.Store.Link(t.Context(), e.link)
	key, err3 := data.Store.StoredResponse(t.Context(), "demo", "key")
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	if code.Status != parley.OTPStatusExpired || link.Status != parley.OTPStatusExpired || len(key.Fingerprint)+len(key.Body) != 0 {
		t.Errorf("still open: %+v, %+v, %+v", code, link, key)
	}
	entries, _, err := data.Store.Audit(t.Context(), store.AuditQuery{}, parley.Page{Limit: 1})
	if err != nil || len(entries) != 1 || entries[0].Action != "secret.rotate" ||
		!bytes.Contains(entries[0].After, []byte(`"codes_ended":1`)) {
		t.Errorf("audit log: %+v, %v", entries, err)
	}
}

// blobs are the columns of bytes, and whether they hold ciphertexts. A rotation must encrypt or end those.
var blobs = map[string]bool{
	"signing_key.sealed": true, "secret.sealed": true, "secret.old_sealed": true, "event.encrypted": true, "media_fetch.reference": true,
	"resend.sealed": true, "otp_code.encrypted": true, "otp_link.encrypted": true, "idempotency.body": true,
	"signing_key.public": false, "ticket.hash": false, "ticket.parent": false, "file.sha256": false,
	"otp_code.hash": false, "otp_link.hash": false, "idempotency.fingerprint": false, // keyed
}

// holding returns the columns of a database in which a key encrypted something, also as base64.
func holding(t *testing.T, path string, keyring *encrypt.Keyring) (columns []string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(`SELECT m.name, c.name, c.type FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'
		AND m.name NOT LIKE '%$_%' ESCAPE '$' OR m.type = 'table' AND m.name IN ('signing_key', 'media_fetch', 'otp_code', 'otp_link')`)
	if err != nil {
		t.Fatal(err)
	}
	type column struct{ table, name string }
	var all []column
	for rows.Next() {
		var c column
		var kind string
		if err := rows.Scan(&c.table, &c.name, &kind); err != nil {
			t.Fatal(err)
		}
		if _, known := blobs[c.table+"."+c.name]; kind == "BLOB" && !known {
			t.Errorf("%s.%s is new: say whether a rotation of the key must encrypt it again", c.table, c.name)
		}
		all = append(all, c)
	}
	head := keyring.Encrypt(nil, "")[:5]
	encoded := base64.StdEncoding.EncodeToString(head)[:6] // the rest depends on what follows
	for _, c := range all {
		var n int
		if err := db.QueryRow(fmt.Sprintf(`SELECT count(*) FROM %q WHERE instr(CAST(%q AS BLOB), $1) = 1 OR instr(CAST(%q AS BLOB), $2) > 0`,
			c.table, c.name, c.name), head, []byte(encoded)).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			columns = append(columns, c.table+"."+c.name)
		}
	}
	slices.Sort(columns)
	return columns
}

// TestRotateSecret replaces the key of a database that has one of everything. Afterwards the old key is good for nothing.
func TestRotateSecret(t *testing.T) {
	ctx, c := t.Context(), Config{DataDir: Dir(t.TempDir()), Media: Media{Location: t.TempDir()}}
	dir := c.DataDir
	data := openTest(t, dir)
	old := data.Keyring
	e := fillEncrypted(t, data)
	e.check(t, data)
	if err := errors.Join(c.moveMedia(ctx, data), data.Close()); err != nil { // the files are of the old key
		t.Fatal(err)
	}
	var want []string
	for column, encrypted := range blobs {
		if encrypted {
			want = append(want, column)
		}
	}
	want = append(want, "message.data")
	slices.Sort(want)
	if got := holding(t, dir.Database(), old); !slices.Equal(got, want) {
		t.Fatalf("before: %v, want %v", got, want)
	}

	r, err := RotateSecret(ctx, c, quiet)
	if err != nil || r.Finished || r.Unreadable != 0 || r.Ended.Codes != 1 || r.Ended.LoginLinks != 1 || r.Ended.Keys != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if left := holding(t, dir.Database(), old); len(left) != 0 {
		t.Errorf("the old key still decrypts %v", left)
	}
	data = openTest(t, dir)
	if data.Keyring.Len() != 1 || cluster.HasKey(keyPrints(data.Keyring), keyPrints(old)[0]) {
		t.Error("the old key is still in the file")
	}
	e.check(t, data)
	e.checkEnded(t, data)
	fresh := data.Keyring
	if err := data.Close(); err != nil {
		t.Fatal(err)
	}

	running := start(t, c) // the files in the other folder are its own
	if status, body := running.get(t, "/api/manage/tokens", e.token); status != http.StatusOK {
		t.Errorf("the token: %d %s", status, body)
	}
	signed := func(k *encrypt.Keyring) int {
		links := parley.MediaLinks{Base: running.url, Keys: k.Derive(parley.MediaLinkKeys)}
		resp, err := http.Get(links.Signed(time.Now())(parley.MediaID("med_" + strings.Repeat("0", 32) + "1")))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if of, ours := signed(old), signed(fresh); of != http.StatusUnauthorized || ours != http.StatusNotFound {
		t.Errorf("a link that the old key signed: %d; the new key: %d", of, ours)
	}
	if _, err := RotateSecret(ctx, c, quiet); err == nil || !strings.Contains(err.Error(), "in use by") {
		t.Errorf("while the server runs: %v", err)
	}
	running.end(t)
}

// TestInterruptedRotation ends a rotation after each number of ciphertexts, and runs it again.
func TestInterruptedRotation(t *testing.T) {
	ctx := t.Context()
	for at := range 10 {
		c := Config{DataDir: Dir(t.TempDir())}
		data := openTest(t, c.DataDir)
		old := data.Keyring
		e := fillEncrypted(t, data)
		data.Keyring = old.WithNext().LastFirst()
		if err := data.Keyring.Save(c.DataDir.Key()); err != nil {
			t.Fatal(err)
		}
		killed, n := errors.New("killed"), 0
		_, err := data.Store.Reencrypt(ctx, func(what store.Sealed, owner string, encrypted []byte) ([]byte, error) {
			if n++; n > at {
				return nil, killed
			}
			return data.Keyring.Reencrypt(encrypted, sealedContext(what, owner))
		})
		if errors.Is(err, killed) != (at < 8) {
			t.Fatalf("%d: %v", at, err)
		}
		e.check(t, data) // a server could start now
		if err := data.Close(); err != nil {
			t.Fatal(err)
		}
		if r, err := RotateSecret(ctx, c, quiet); err != nil || !r.Finished {
			t.Fatalf("%+v, %v", r, err)
		}
		if left := holding(t, c.DataDir.Database(), old); len(left) != 0 {
			t.Errorf("the old key still decrypts %v", left)
		}
		data = openTest(t, c.DataDir)
		if data.Keyring.Len() != 1 {
			t.Error("the old key is still in the file")
		}
		e.check(t, data)
		e.checkEnded(t, data)
		if err := data.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPostgresRotation takes the steps of a rotation in the wrong order and in the right one.
func TestPostgresRotation(t *testing.T) {
	server := postgrestest.Start(t)
	ctx, c := t.Context(), Config{DataDir: Dir(t.TempDir()), Database: server.Schema(t)}
	refused := func(err error, why string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want %q", err, why)
		}
	}
	refused(PrepareSecret(ctx, c), "No node was ever started")
	keyring, err := encrypt.OpenKeyFile(c.KeyFile())
	if err != nil {
		t.Fatal(err)
	}
	db, authority := openBoth(t, c.Database, keyring)
	data := &Data{Store: db, Keyring: keyring, Tokens: authority}
	e := fillEncrypted(t, data)
	// A node of each moment: what it knows of the file.
	node := func(k *encrypt.Keyring) *cluster.Cluster {
		n := cluster.New(cluster.Config{Database: c.Database, Version: "test", Keys: keyPrints(k), Log: quiet,
			Changed: func(cluster.Changes) {}, Fail: func(error) {},
			Acquired: func(context.Context) error { return nil }, Stop: func(context.Context) error { return nil }})
		db, err := store.OpenAs(ctx, c.Database, n.Member(), 0)
		if err == nil {
			err = n.Join(ctx, db)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return n
	}
	leave := func(n *cluster.Cluster) {
		t.Helper()
		if err := n.Leave(context.WithoutCancel(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	file := func() *encrypt.Keyring {
		t.Helper()
		k, err := encrypt.OpenKeyFile(c.KeyFile())
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	a := node(keyring)
	refused(ActivateSecret(ctx, c), "has no new key")
	_, err = RetireSecret(ctx, c)
	refused(err, "nothing to retire")
	if err := PrepareSecret(ctx, c); err != nil {
		t.Fatal(err)
	}
	refused(PrepareSecret(ctx, c), "continue with: parley secret rotate --activate")
	refused(ActivateSecret(ctx, c), "does not know the new key")
	b := node(file()) // beside one with the old file
	leave(a)
	_, err = RetireSecret(ctx, c)
	refused(err, "not active yet")
	if err := ActivateSecret(ctx, c); err != nil {
		t.Fatal(err)
	}
	refused(ActivateSecret(ctx, c), "active already")
	_, err = RetireSecret(ctx, c)
	refused(err, "still encrypts with another key")
	d := node(file())
	leave(b)
	late := cluster.New(cluster.Config{Database: c.Database, Version: "test", Keys: keyPrints(keyring), Log: quiet})
	if err := late.Join(ctx, db); !errors.Is(err, cluster.ErrSkippedKey) {
		t.Errorf("a node that cannot read what others encrypt: %v", err)
	}

	r, err := RetireSecret(ctx, c)
	if err != nil || r.Reencrypted != 8 || r.Unreadable != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if file().Len() != 1 {
		t.Error("the old key is still in the file")
	}
	data.Keyring = file()
	_, data.Tokens = openBoth(t, c.Database, data.Keyring)
	e.check(t, data)
	e.checkEnded(t, data)

	// Killed before the database knew of it.
	if err := cluster.SetKeyPrint(ctx, c.Database, keyPrints(keyring)[0]); err != nil {
		t.Fatal(err)
	}
	if r, err := RetireSecret(ctx, c); err != nil || r.Reencrypted != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	leave(d)
	leave(node(file()))
	other := Config{DataDir: Dir(t.TempDir()), Database: c.Database}
	if err := keyring.Save(other.KeyFile()); err != nil {
		t.Fatal(err)
	}
	_, err = RetireSecret(ctx, other)
	refused(err, "cannot be opened with this key")
	refused(PrepareSecret(ctx, other), "is not the key that this database was made with")
}

func openTest(t *testing.T, dir Dir) *Data {
	t.Helper()
	data, err := OpenData(t.Context(), dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { data.Close() })
	return data
}
