package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/internal/gateway"
	"parley/internal/store"
)

const keyLife = gateway.IdempotencyRetention

const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotent-Replayed"
)

// idempotent does the work, or returns the stored response of an earlier request with the same key.
func (rt *route) idempotent(ctx context.Context, r *request) (response, error) {
	values := r.http.Header[keyHeader]
	if len(values) == 0 || rt.method == http.MethodGet || rt.stream != nil {
		return rt.act(ctx, r)
	}
	if len(values) > 1 || !validKey(values[0]) {
		return response{}, parley.InvalidField(keyHeader, "Idempotency-Key must be 1 to 255 printable ASCII characters, given once.")
	}
	key := store.StoredResponse{
		Scope: rt.scope(r), Key: values[0], Fingerprint: fingerprint(r, rt.fingerprints[0]), Channel: r.channel.Code,
		CreatedAt: time.Now().UTC(),
	}
	for tries := 1; ; tries++ {
		f, first := rt.flights.join(key.Scope, key.Key)
		if !first {
			select {
			case <-f.done:
			case <-ctx.Done():
				return response{}, ctx.Err()
			}
			if f.stored == nil {
				continue // the first request was refused, so this one runs
			}
			return rt.replay(*f.stored, r)
		}
		a, err := rt.runFirst(ctx, r, key, f)
		if errors.Is(err, parley.ErrExists) && tries < 3 {
			continue // its response was stored meanwhile
		}
		return a, err
	}
}

// runFirst does the work for all concurrent requests with the same key.
func (rt *route) runFirst(ctx context.Context, r *request, key store.StoredResponse, f *flight) (a response, err error) {
	defer rt.flights.leave(f)
	stored, err := rt.findStored(ctx, key)
	if err != nil {
		return response{}, err
	}
	if stored != nil {
		if !stored.IsComplete() && rt.matches(*stored, r) {
			if err := rt.complete(ctx, r, stored); err != nil {
				return response{}, err
			}
		}
		f.stored = stored
		return rt.replay(*stored, r)
	}
	r.key = &key
	if a, err = rt.act(ctx, r); err != nil {
		return response{}, err
	}
	if key.IsComplete() && !r.replaces { // stored with the work
		f.stored = &key
		return a, nil
	}
	if rt.fromMessages != nil && !r.accepted {
		return a, nil // nothing was accepted, so the key may be used again
	}
	key.StatusCode, key.ContentType, key.Body = a.status, a.contentType[0], a.body
	f.stored = &key
	rt.storeResponse(ctx, r, key)
	return a, nil
}

// findStored returns the stored response of a key; nil: none, or it has expired.
func (rt *route) findStored(ctx context.Context, key store.StoredResponse) (*store.StoredResponse, error) {
	stored, err := rt.config.Store.StoredResponse(ctx, key.Scope, key.Key)
	if errors.Is(err, parley.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up idempotency key: %w", err)
	}
	if !rt.config.Gateway.KeyExpired(stored.CreatedAt, key.CreatedAt) {
		return &stored, nil
	}
	// The regular purge has not run yet.
	err = rt.tx(ctx, func(tx *store.Tx) error { return tx.DeleteStoredResponse(ctx, key.Scope, key.Key) })
	if err != nil {
		return nil, fmt.Errorf("purge an idempotency key: %w", err)
	}
	return nil, nil
}

// complete rebuilds a response that was lost because the process died after accepting the work. It uses the
// current state of the messages.
func (rt *route) complete(ctx context.Context, r *request, stored *store.StoredResponse) error {
	if rt.fromMessages == nil {
		return parley.Errorf(parley.Conflict, "A request with this Idempotency-Key was interrupted, and its result is unknown. "+
			"Check whether it was done. If not, send it with a new key.")
	}
	ms, err := rt.config.Gateway.CurrentMessages(ctx, stored.Channel, stored.Messages)
	if err != nil {
		return fmt.Errorf("rebuild a response from messages: %w", err)
	}
	a, err := rt.fromMessages(ctx, r, ms)
	if err != nil {
		return err
	}
	stored.StatusCode, stored.ContentType, stored.Body = a.status, a.contentType[0], a.body
	r.accepted = true
	rt.storeResponse(ctx, r, *stored)
	return nil
}

// storeResponse stores a response. If that fails, the caller still gets it, because the work is done; a retry
// rebuilds it from the messages. A response repeats message text, so it is not stored if the channel's
// retention is shorter than the life of the key.
func (rt *route) storeResponse(ctx context.Context, r *request, key store.StoredResponse) {
	c, ok := rt.config.Gateway.Channel(key.Channel)
	if life := c.Settings.Retention; ok && rt.fromMessages != nil && r.accepted && life != nil && time.Duration(*life) < keyLife {
		return
	}
	ctx = context.WithoutCancel(ctx) // a caller that left will retry
	err := rt.tx(ctx, func(tx *store.Tx) error {
		if r.accepted {
			return tx.SetStoredResponse(ctx, key)
		}
		return r.addKey(ctx, tx, key)
	})
	if err != nil {
		rt.config.Log.LogAttrs(ctx, slog.LevelWarn, "cannot store a response", slog.String("request_id", r.id), slog.String("error", err.Error()))
	}
}

// addKey stores the key. A key of a channel is deleted with the channel.
func (r *request) addKey(ctx context.Context, tx *store.Tx, key store.StoredResponse) error {
	if key.Channel != "" {
		c := parley.Channel{Code: key.Channel}
		if r.channel.Code == c.Code {
			c = r.channel
		}
		if err := checkChannel(ctx, tx, c); err != nil {
			return err
		}
	}
	return tx.AddStoredResponse(ctx, key)
}

// storeKey stores the request's key, if any, and the response in the transaction that does the work. So a retry
// after a crash finds that it was done. The response must not contain a secret.
func (r *request) storeKey(ctx context.Context, tx *store.Tx, status int, response any) error {
	key := r.key
	if key == nil {
		return nil
	}
	var err error
	if key.Body, err = encode(response); err != nil {
		return err
	}
	key.StatusCode, key.ContentType = status, typeJSON[0]
	if r.accepted {
		return tx.SetStoredResponse(ctx, *key)
	}
	return r.addKey(ctx, tx, *key)
}

// beginKey stores the request's key, if any, before work outside of a transaction. After a crash, a retry gets
// the error that the result is unknown.
func (s *server) beginKey(ctx context.Context, r *request) error {
	if r.key == nil {
		return nil
	}
	err := s.tx(ctx, func(tx *store.Tx) error { return r.addKey(ctx, tx, *r.key) })
	r.accepted = err == nil
	return err
}

// removeKey undoes beginKey: the work was certainly not done, so the key may be used again.
func (s *server) removeKey(ctx context.Context, r *request) error {
	if r.key == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // also if the caller left
	return s.tx(ctx, func(tx *store.Tx) error { return tx.DeleteStoredResponse(ctx, r.key.Scope, r.key.Key) })
}

// underKey does work outside of a transaction. If the process ends in the middle, a retry does not do it again. Work that failed was
// not done.
func (s *server) underKey(ctx context.Context, r *request, do func() error) error {
	if err := s.beginKey(ctx, r); err != nil {
		return err
	}
	err := do()
	if err != nil {
		r.accepted = false
		err = errors.Join(err, s.removeKey(ctx, r))
	}
	return err
}

// storeEncrypted is storeKey for a response that cannot be rebuilt and contains a secret: it is encrypted.
func (s *server) storeEncrypted(ctx context.Context, tx *store.Tx, r *request, a response) error {
	key := r.key
	if key == nil {
		return nil
	}
	key.Channel = r.channel.Code
	key.StatusCode, key.ContentType = a.status, encryptedType+a.contentType[0]
	key.Body = s.config.Keyring.Encrypt(a.body, responseContext(key))
	return r.addKey(ctx, tx, *key)
}

// encryptedType is the prefix of the stored content type of an encrypted response.
const encryptedType = "sealed "

// responseContext binds an encrypted response to its key. Changing it makes stored responses unreadable.
func responseContext(key *store.StoredResponse) string {
	return "answer to " + key.Scope + " " + key.Key
}

// replay returns the stored response, if the request is the same.
func (s *server) replay(stored store.StoredResponse, r *request) (response, error) {
	if len(stored.Fingerprint) == 0 {
		return response{}, parley.Errorf(parley.Conflict, "A request with this Idempotency-Key was accepted before the server's secret key was "+
			"rotated, and cannot be compared with this one. See whether it was done; if not, send it with a new Idempotency-Key.")
	}
	if !s.matches(stored, r) {
		return response{}, parley.InvalidField(keyHeader,
			"Idempotency-Key was used for another request in the last 24 hours. Use a new key, or send the same request.")
	}
	body, contentType := stored.Body, stored.ContentType
	if inside, encrypted := strings.CutPrefix(contentType, encryptedType); encrypted {
		var err error
		if body, err = s.config.Keyring.Decrypt(stored.Body, responseContext(&stored)); err != nil {
			return response{}, fmt.Errorf("decrypt a stored response: %w", err)
		}
		contentType = inside
	}
	return response{
		status: stored.StatusCode, contentType: []string{contentType}, body: body,
		header: []field{{replayedHeader, "true"}},
	}, nil
}

func validKey(key string) bool {
	const longest = 255
	return key != "" && len(key) <= longest && !strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' })
}

// scope is where a key is unique: in a channel, in all Global endpoints, or in the management API. The star
// cannot be part of a channel code. A sandbox clock that moved forward by a day expires the keys of the day before.
func (rt *route) scope(r *request) string {
	switch rt.access {
	case ofGlobal:
		return "*global"
	case ofAdmin:
		return "*admin"
	}
	return channelScope(r.channel)
}

func channelScope(c parley.Channel) string {
	days := time.Duration(c.Settings.ClockAhead) / keyLife
	if days == 0 {
		return string(c.Code)
	}
	return string(c.Code) + "+" + strconv.Itoa(int(days))
}

// matches reports whether a stored response belongs to the same request. Its fingerprint may use an older key of
// the keyring.
func (s *server) matches(stored store.StoredResponse, r *request) bool {
	return slices.ContainsFunc(s.fingerprints, func(key []byte) bool { return hmac.Equal(stored.Fingerprint, fingerprint(r, key)) })
}

// fingerprint identifies a request. It uses a secret key: without one, a short body such as a code could be
// guessed from the database.
func fingerprint(r *request, key []byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range []string{r.http.Method, r.http.URL.EscapedPath(), r.http.URL.RawQuery} {
		h.Write([]byte(part))
		h.Write([]byte{0}) // occurs in none of them
	}
	h.Write(r.body.Bytes())
	return h.Sum(nil)
}

// flights are the running requests with a key, in this process.
type flights struct{ by sync.Map }

type flightKey struct{ scope, key string }

type flight struct {
	flightKey
	done   chan struct{}
	stored *store.StoredResponse // the stored response; nil: none. Read it after done is closed.
}

// join returns the flight of a key, and whether the caller is the first and must leave it.
func (fs *flights) join(scope, key string) (*flight, bool) {
	k := flightKey{scope, key}
	f, running := fs.by.LoadOrStore(k, &flight{flightKey: k, done: make(chan struct{})})
	return f.(*flight), !running
}

func (fs *flights) leave(f *flight) {
	fs.by.Delete(f.flightKey) // first, so that nobody who waited finds it again
	close(f.done)
}
