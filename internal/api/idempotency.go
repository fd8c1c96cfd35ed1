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

// keptFor is how long an idempotency key is remembered.
const keptFor = gateway.IdempotencyRetention

const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotent-Replayed"
)

// once has the work done, or, where the request carries the key of an earlier one, answers what that
// one was answered.
func (rt *route) once(ctx context.Context, r *request) (answer, error) {
	values := r.http.Header[keyHeader]
	if len(values) == 0 || rt.method == http.MethodGet {
		return rt.do(ctx, r)
	}
	if len(values) > 1 || !validKey(values[0]) {
		return answer{}, parley.InvalidField(keyHeader, "Idempotency-Key must be 1 to 255 printable ASCII characters, given once.")
	}
	key := parley.Answer{
		Scope: rt.scope(r), Key: values[0], Fingerprint: fingerprint(r, rt.fingerprints[0]), Channel: r.channel.Code,
		CreatedAt: time.Now().UTC(),
	}
	for tries := 1; ; tries++ {
		f, first := rt.flights.join(key.Scope, key.Key)
		if !first {
			select {
			case <-f.done:
			case <-ctx.Done():
				return answer{}, ctx.Err()
			}
			if f.stored == nil {
				continue // the first one was refused; now this one may try
			}
			return rt.replay(*f.stored, r)
		}
		a, err := rt.lead(ctx, r, key, f)
		if errors.Is(err, parley.ErrExists) && tries < 3 {
			continue // its response was stored meanwhile: answer with that
		}
		return a, err
	}
}

// lead does the work for all requests that carry the key now.
func (rt *route) lead(ctx context.Context, r *request, key parley.Answer, f *flight) (a answer, err error) {
	defer rt.flights.leave(f)
	earlier, err := rt.earlier(ctx, key)
	if err != nil {
		return answer{}, err
	}
	if earlier != nil {
		if !earlier.IsComplete() && rt.isOf(*earlier, r) {
			if err := rt.complete(ctx, r, earlier); err != nil {
				return answer{}, err
			}
		}
		f.stored = earlier
		return rt.replay(*earlier, r)
	}
	r.key = &key
	if a, err = rt.do(ctx, r); err != nil {
		return answer{}, err
	}
	if key.IsComplete() && !r.replaces { // it was stored with the work
		f.stored = &key
		return a, nil
	}
	if rt.again != nil && !r.accepted {
		return a, nil // nothing was accepted, so nothing is kept: the key may be tried again
	}
	key.StatusCode, key.ContentType, key.Body = a.status, a.contentType[0], a.body
	f.stored = &key
	rt.keep(ctx, r, key)
	return a, nil
}

// earlier finds what was kept under a key; nil: nothing, or nothing that still counts.
func (rt *route) earlier(ctx context.Context, key parley.Answer) (*parley.Answer, error) {
	kept, err := rt.Store.StoredResponse(ctx, key.Scope, key.Key)
	if errors.Is(err, parley.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up idempotency key: %w", err)
	}
	oldest := key.CreatedAt.Add(-keptFor)
	if kept.CreatedAt.After(oldest) || !rt.Gateway.ClockTrusted() {
		return &kept, nil
	}
	// The sweep has not come by yet. The oldest go first, so this one goes too.
	for {
		const batch = 1000
		var gone int
		err := rt.tx(ctx, func(tx *store.Tx) (err error) {
			gone, err = tx.PurgeStoredResponses(ctx, oldest.Add(time.Millisecond), batch)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("forget idempotency keys: %w", err)
		}
		if gone < batch {
			return nil, nil
		}
	}
}

// complete makes the answer that was lost, because the process died between accepting the work and
// answering, from the messages as they stand by now.
func (rt *route) complete(ctx context.Context, r *request, kept *parley.Answer) error {
	if rt.again == nil {
		return parley.Errorf(parley.Conflict, "A request with this Idempotency-Key was begun and its outcome is not known. "+
			"See whether it was done; if not, send it with a new key.")
	}
	ms, err := rt.Gateway.CurrentMessages(ctx, kept.Channel, kept.Messages)
	if err != nil {
		return fmt.Errorf("answer from messages: %w", err)
	}
	a, err := rt.again(ctx, r, ms)
	if err != nil {
		return err
	}
	kept.StatusCode, kept.ContentType, kept.Body = a.status, a.contentType[0], a.body
	r.accepted = true
	rt.keep(ctx, r, *kept)
	return nil
}

// keep stores an answer. Where that fails the work is done all the same, so the caller gets the
// answer; a later request with the key is answered from the messages. So it is where the channel
// keeps no text for as long as the answer would be kept, because that repeats it.
func (rt *route) keep(ctx context.Context, r *request, key parley.Answer) {
	c, ok := rt.Gateway.Channel(key.Channel)
	if life := c.Settings.Retention; ok && rt.again != nil && r.accepted && life != nil && time.Duration(*life) < keptFor {
		return
	}
	ctx = context.WithoutCancel(ctx) // also for a caller that is gone: it will ask again
	err := rt.tx(ctx, func(tx *store.Tx) error {
		if r.accepted {
			return tx.SetStoredResponse(ctx, key)
		}
		return r.addKey(ctx, tx, key)
	})
	if err != nil {
		rt.Log.LogAttrs(ctx, slog.LevelWarn, "keep answer", slog.String("request_id", r.id), slog.String("error", err.Error()))
	}
}

// addKey stores a key of the request. That of a channel goes with the channel.
func (r *request) addKey(ctx context.Context, tx *store.Tx, key parley.Answer) error {
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

// storeKey stores the request's key, if it has one, with its response in the transaction that does the work:
// if the process dies afterwards, a retry finds that it was done. Nothing in the response may be secret. Of
// several transactions, each stores what was done so far.
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

// beginKey stores the request's key, if it has one, before work that no transaction covers. If the process dies
// before the response is stored, a retry is answered that the outcome is not known.
func (s *server) beginKey(ctx context.Context, r *request) error {
	if r.key == nil {
		return nil
	}
	err := s.tx(ctx, func(tx *store.Tx) error { return r.addKey(ctx, tx, *r.key) })
	r.accepted = err == nil
	return err
}

// removeKey takes back what beginKey stored: the work was certainly not done, so the key may be tried again.
func (s *server) removeKey(ctx context.Context, r *request) error {
	if r.key == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // also for a caller that is gone
	return s.tx(ctx, func(tx *store.Tx) error { return tx.DeleteStoredResponse(ctx, r.key.Scope, r.key.Key) })
}

// storeEncrypted stores the request's key, if it has one, with its answer in the transaction that does the
// work: for work whose answer could not be made again. The answer is encrypted, because it holds what
// must not lie in the database.
func (s *server) storeEncrypted(ctx context.Context, tx *store.Tx, r *request, a answer) error {
	key := r.key
	if key == nil {
		return nil
	}
	key.Channel = r.channel.Code
	key.StatusCode, key.ContentType = a.status, encryptedType+a.contentType[0]
	key.Body = s.Keyring.Encrypt(a.body, responseContext(key))
	return r.addKey(ctx, tx, *key)
}

// encryptedType begins the stored content type of an answer that is encrypted.
const encryptedType = "sealed "

// responseContext is what an encrypted answer is bound to: no other key opens it.
func responseContext(key *parley.Answer) string { return "answer to " + key.Scope + " " + key.Key }

// replay answers what was answered before, if the request is the same.
func (s *server) replay(kept parley.Answer, r *request) (answer, error) {
	if !s.isOf(kept, r) {
		return answer{}, parley.InvalidField(keyHeader,
			"Idempotency-Key was used for another request in the last 24 hours. Use a new key, or send the same request.")
	}
	body, contentType := kept.Body, kept.ContentType
	if inside, encrypted := strings.CutPrefix(contentType, encryptedType); encrypted {
		var err error
		if body, err = s.Keyring.Decrypt(kept.Body, responseContext(&kept)); err != nil {
			return answer{}, fmt.Errorf("open a kept answer: %w", err)
		}
		contentType = inside
	}
	return answer{
		status: kept.StatusCode, contentType: []string{contentType}, body: body,
		header: []field{{replayedHeader, "true"}},
	}, nil
}

func validKey(key string) bool {
	const longest = 255
	if key == "" || len(key) > longest {
		return false
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return false
		}
	}
	return true
}

// scope is among which requests a key is one key: those of a channel, all of Global endpoints, or
// all of the management API. A star keeps the latter two apart from channels of that name. The clock
// of a sandbox channel that was moved on by a day has left the keys of the day before behind.
func (rt *route) scope(r *request) string {
	switch rt.access {
	case ofGlobal:
		return "*global"
	case ofAdmin:
		return "*admin"
	}
	days := time.Duration(r.channel.Settings.ClockAhead) / keptFor
	if days == 0 {
		return string(r.channel.Code)
	}
	return string(r.channel.Code) + "+" + strconv.Itoa(int(days))
}

// isOf reports whether what is stored under a key is of a request that asked for the same. It may have been
// stored before the file of keys got another first line.
func (s *server) isOf(kept parley.Answer, r *request) bool {
	return slices.ContainsFunc(s.fingerprints, func(key []byte) bool { return hmac.Equal(kept.Fingerprint, fingerprint(r, key)) })
}

// fingerprint tells requests apart: two with the same one ask for the same. It is made with a key that is not
// in the database, from which a short body, like a code, could be guessed otherwise.
func fingerprint(r *request, key []byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range []string{r.http.Method, r.http.URL.EscapedPath(), r.http.URL.RawQuery} {
		h.Write([]byte(part))
		h.Write([]byte{0}) // stands in none of them
	}
	h.Write(r.body.Bytes())
	return h.Sum(nil)
}

// flights are the requests with a key that are being worked on in this process.
type flights struct {
	mu sync.Mutex
	by map[flightKey]*flight
}

type flightKey struct{ scope, key string }

type flight struct {
	flightKey
	done   chan struct{}
	stored *parley.Answer // what was kept; nil: nothing. To be read after done is closed.
}

// join returns the flight of a key and whether the caller is the first, who must leave it.
func (fs *flights) join(scope, key string) (*flight, bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	k := flightKey{scope, key}
	if f := fs.by[k]; f != nil {
		return f, false
	}
	if fs.by == nil {
		fs.by = map[flightKey]*flight{}
	}
	f := &flight{flightKey: k, done: make(chan struct{})}
	fs.by[k] = f
	return f, true
}

func (fs *flights) leave(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.by, f.flightKey)
	close(f.done)
}
