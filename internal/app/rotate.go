package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"parley"
	"parley/internal/callback"
	"parley/internal/cluster"
	"parley/internal/encrypt"
	"parley/internal/gateway"
	"parley/internal/store"
)

// Rotated is what a rotation of the secret key did.
type Rotated struct {
	// Finished means that the file had several lines, so an earlier rotation was finished and no new key was made.
	Finished bool
	// Reencrypted is how many secrets are encrypted with the new key now. Unreadable ones no line of the file could decrypt.
	Reencrypted, Unreadable int
	// Ended is what could not be encrypted again.
	Ended store.Ended
}

// RotateSecret replaces the secret key of a data directory, which no server may use. It can be interrupted at any moment: both keys are
// in the file until nothing needs the old one, and the next call continues.
func RotateSecret(ctx context.Context, c Config, log *slog.Logger) (r Rotated, err error) {
	dir := c.DataDir
	lock, err := dir.acquire("parley secret rotate", log)
	if err != nil {
		return r, dir.explain(err)
	}
	defer lock.Close()
	if err := dir.checkVersion(ctx); err != nil {
		return r, err
	}
	data, err := OpenData(ctx, dir, log)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	if r.Finished = data.Keyring.Len() > 1; !r.Finished {
		data.Keyring = data.Keyring.WithNext().LastFirst()
		if err := data.Keyring.Save(dir.Key()); err != nil {
			return r, err
		}
	}
	if err := c.moveMedia(ctx, data); err != nil {
		return r, err
	}
	if err := data.retireKeys(ctx, &r, time.Time{}); err != nil {
		return r, err
	}
	return r, data.Keyring.OnlyFirst().Save(dir.Key())
}

// moveMedia makes the first key the owner of files that are stored elsewhere.
func (c Config) moveMedia(ctx context.Context, data *Data) error {
	if c.MediaElsewhere() == "" {
		return nil
	}
	if _, err := c.mediaConfig(); err != nil {
		return err
	}
	s := &server{cfg: c, data: data}
	s.limitAddresses()
	if err := s.openMedia(ctx); err != nil { // checks the storage
		return err
	}
	s.media.Close()
	return nil
}

// retireKeys encrypts with the first key what the others encrypted, and ends the rest that was created up to a time; zero: all of it.
func (d *Data) retireKeys(ctx context.Context, r *Rotated, until time.Time) (err error) {
	again := func(what store.Sealed, owner string, old []byte) ([]byte, error) {
		fresh, err := d.Keyring.Reencrypt(old, sealedContext(what, owner))
		if err == nil {
			return fresh, nil
		}
		if what == store.SealedSigningKey || what == store.SealedSecret { // a server needs them
			return nil, fmt.Errorf("%s: %w", sealedContext(what, owner), err)
		}
		r.Unreadable++
		return nil, nil
	}
	if r.Reencrypted, err = d.Store.Reencrypt(ctx, again); err != nil {
		return err
	}
	now := time.Now()
	r.Ended, err = d.Store.EndKeyed(ctx, until, now, func(tx *store.Tx, e store.Ended) error {
		after, err := json.Marshal(map[string]int64{"reencrypted": int64(r.Reencrypted), "unreadable": int64(r.Unreadable),
			"codes_ended": e.Codes, "login_links_ended": e.LoginLinks, "idempotency_keys_ended": e.Keys})
		return errors.Join(err, tx.AddAudit(ctx, store.AuditEntry{At: now, Actor: localActor(), Action: "secret.rotate", After: after}))
	})
	return err
}

// sealedContext is what a ciphertext is bound to, as those who encrypt and decrypt it have it.
func sealedContext(what store.Sealed, owner string) string {
	switch what {
	case store.SealedSecret:
		return callback.SecretContext(parley.SecretOwner(owner))
	case store.SealedEvent:
		return parley.EventTextContext(parley.ChannelCode(owner))
	case store.SealedFetch:
		return parley.MediaReferenceContext(parley.ChannelCode(owner))
	case store.SealedResend:
		return gateway.ResendContext(parley.ChannelCode(owner))
	}
	return owner // a signing key, or the text of a login link
}

// The steps of a rotation on PostgreSQL, while nodes run. After each the file is copied to every node, and they are restarted one by one.

// PrepareSecret adds a new key to the file. Nodes with the file can read what it encrypts, and do not use it yet.
func PrepareSecret(ctx context.Context, c Config) error {
	keyring, stored, _, err := c.openCluster(ctx)
	if err := cmp.Or(err, c.checkKeyFile(stored)); err != nil {
		return err
	}
	if keyring.Len() > 1 {
		next := "--activate"
		if !bytes.Equal(keyPrints(keyring)[0], stored) {
			next = "--retire"
		}
		return &DataError{fmt.Sprintf("%s has %d lines: a rotation is under way. Nothing was changed. When all nodes run with this file, "+
			"continue with: parley secret rotate %s", c.KeyFile(), keyring.Len(), next)}
	}
	return keyring.WithNext().Save(c.KeyFile())
}

// ActivateSecret makes the new key the one that encrypts.
func ActivateSecret(ctx context.Context, c Config) error {
	keyring, stored, nodes, err := c.openCluster(ctx)
	if err := cmp.Or(err, c.checkKeyFile(stored)); err != nil {
		return err
	}
	if keyring.Len() == 1 {
		return &DataError{fmt.Sprintf("%s has no new key. Nothing was changed. Begin with: parley secret rotate --prepare", c.KeyFile())}
	}
	if !bytes.Equal(keyPrints(keyring)[0], stored) {
		return &DataError{fmt.Sprintf("The new key in %s is active already. Nothing was changed. When all nodes run with this file, "+
			"continue with: parley secret rotate --retire", c.KeyFile())}
	}
	active := keyring.LastFirst()
	for _, n := range nodes {
		if !cluster.HasKey(n.Keys, keyPrints(active)[0]) {
			return &DataError{fmt.Sprintf("Node %d at %s does not know the new key. Nothing was changed. Copy %s to it and restart it first.",
				n.ID, n.URL, c.KeyFile())}
		}
	}
	return active.Save(c.KeyFile())
}

// RetireSecret encrypts everything with the new key and removes the old one. If it was interrupted, the next call continues: a file
// with another key decrypts no signing key, and changes nothing.
func RetireSecret(ctx context.Context, c Config) (r Rotated, err error) {
	keyring, stored, nodes, err := c.openCluster(ctx)
	if err != nil {
		return r, err
	}
	prints := keyPrints(keyring)
	switch isFirst := bytes.Equal(prints[0], stored); {
	case isFirst && keyring.Len() == 1:
		return r, &DataError{fmt.Sprintf("%s has one line: there is nothing to retire. Nothing was changed. To begin a rotation: "+
			"parley secret rotate --prepare", c.KeyFile())}
	case isFirst:
		return r, &DataError{fmt.Sprintf("The new key in %s is not active yet. Nothing was changed. Run: parley secret rotate --activate",
			c.KeyFile())}
	}
	until, err := c.allEncryptWith(nodes, prints[0])
	if err != nil {
		return r, err
	}
	db, err := store.Open(ctx, c.Database)
	if err != nil {
		return r, err
	}
	data := &Data{Dir: c.DataDir, Store: db, Keyring: keyring}
	if err := errors.Join(data.retireKeys(ctx, &r, until), data.Close()); err != nil {
		return r, err
	}
	if nodes, err = cluster.RunningNodes(ctx, c.Database); err != nil { // one may have joined with the file of the step before
		return r, err
	}
	if _, err := c.allEncryptWith(nodes, prints[0]); err != nil {
		return r, err
	}
	if err := keyring.OnlyFirst().Save(c.KeyFile()); err != nil {
		return r, err
	}
	return r, cluster.SetKeyPrint(ctx, c.Database, prints[0])
}

// nodeClocks is more than the clocks of working nodes differ by.
const nodeClocks = time.Minute

// allEncryptWith checks that all nodes encrypt with a key. It returns since when, by any of their clocks; zero: no node runs.
func (c Config) allEncryptWith(nodes []cluster.Node, key []byte) (since time.Time, err error) {
	for _, n := range nodes {
		if !bytes.Equal(n.Keys[0], key) {
			return since, &DataError{fmt.Sprintf("Node %d at %s still encrypts with another key. The old one stays. Copy %s to it and restart it, "+
				"then run this again.", n.ID, n.URL, c.KeyFile())}
		}
		if at := n.StartedAt.Add(nodeClocks); at.After(since) {
			since = at
		}
	}
	return since, nil
}

// openCluster reads the key file, the fingerprint of the key in the database, and the nodes that run on it.
func (c Config) openCluster(ctx context.Context) (keyring *encrypt.Keyring, stored []byte, nodes []cluster.Node, err error) {
	if stored, err = cluster.StoredKeyPrint(ctx, c.Database); err != nil {
		return nil, nil, nil, c.explainDatabase(err)
	}
	if stored == nil {
		return nil, nil, nil, &DataError{fmt.Sprintf("No node was ever started on %s.", ShownDatabase(c.Database))}
	}
	if _, err := os.Stat(c.KeyFile()); err != nil { // opening would create it
		return nil, nil, nil, cmp.Or(c.checkKeyFile(stored), err)
	}
	if keyring, err = encrypt.OpenKeyFile(c.KeyFile()); err != nil {
		return nil, nil, nil, err
	}
	nodes, err = cluster.RunningNodes(ctx, c.Database)
	return keyring, stored, nodes, err
}
