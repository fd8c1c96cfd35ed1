package media

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"parley"
	"parley/internal/store"
)

// store stores a draft for a channel and returns its key. If the channel has a file with this content, that is its key: a
// file that is sent a thousand times is stored once. The file must be named in a transaction that calls [store.Tx.UseFile],
// because it may be removed until then.
func (l *Library) store(ctx context.Context, channel parley.ChannelCode, d *draft, sum []byte, size int64) (string, error) {
	key := NewKey()
	if l.config.Store == nil {
		return key, l.persist(ctx, d, key)
	}
	known, err := l.config.Store.FileWith(ctx, channel, sum)
	if err == nil {
		return known, l.persistMissing(ctx, d, known)
	}
	if !errors.Is(err, parley.ErrNotFound) {
		return "", err
	}
	if d.borrowed {
		return "", errRemoved
	}
	if err := l.MayStore(ctx, channel, size); err != nil {
		return "", err
	}
	if err := l.persist(ctx, d, key); err != nil {
		return "", err
	}
	var stored string
	err = l.config.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		now := time.Now()
		stored, err = tx.AddFile(ctx, store.StoredFile{Key: key, Channel: channel, SHA256: sum, Size: size, At: now})
		if err != nil || stored != key {
			return err
		}
		return tx.CountFile(ctx, channel, size, now, l.config.Limits.PerDay)
	})
	if err != nil || stored != key { // another request or node stored it meanwhile
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RemoveTimeout)
		defer cancel()
		_ = l.Remove(ctx, key) // a leftover is removed as an orphan
	}
	return stored, err
}

var errRemoved = &parley.Error{Code: parley.Unavailable, RetryAfter: time.Second, Message: "The file was removed meanwhile. Try again."}

// persistMissing stores a draft under the key of a known file, if the storage has lost that.
func (l *Library) persistMissing(ctx context.Context, d *draft, key string) error {
	name, err := storedName(key)
	if err != nil {
		return err
	}
	if there, err := l.files.has(ctx, name); there || err != nil || d.borrowed {
		return err
	}
	return l.files.put(ctx, name, d)
}

// borrow opens a stored file as a draft, without a copy where it is in a directory.
func (l *Library) borrow(ctx context.Context, f *store.StoredFile) (*draft, error) {
	stored, err := l.Open(ctx, f.Key)
	if err != nil {
		return nil, err
	}
	if file, ok := stored.ReadSeekCloser.(*os.File); ok {
		return &draft{File: file, kept: true, borrowed: true}, nil
	}
	defer stored.Close()
	d, err := l.newDraft()
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(d, stored); err != nil {
		d.discard()
		return nil, err
	}
	return d, nil
}

// hash returns the SHA-256 and the size of a draft.
func (d *draft) hash() (sum []byte, size int64, err error) {
	hash := sha256.New()
	if err := rewind(d); err != nil {
		return nil, 0, fmt.Errorf("read media file: %w", err)
	}
	if size, err = io.Copy(hash, d.File); err != nil {
		return nil, 0, fmt.Errorf("read media file: %w", err)
	}
	return hash.Sum(nil), size, nil
}
