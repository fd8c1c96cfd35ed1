package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"parley"
	"parley/internal/media"
	"parley/internal/network"
	"parley/internal/store"
	"parley/internal/wait"
)

const (
	maxFetches, maxFetchesPerChannel = 8, 2
	// fetchTimeout bounds one attempt: 100 MiB at 120 kB/s. The session ends an idle connection long before.
	fetchTimeout = 15 * time.Minute
	// fetchPeriod is how long a file is retried.
	fetchPeriod = 24 * time.Hour
	// The pause between attempts grows from the first to the last.
	firstFetchPause, lastFetchPause = time.Second, time.Hour
	// fetchPollEvery is how often the fetcher looks for files without a notification, such as those that are too old.
	fetchPollEvery = time.Minute
	// fetchErrorPause is the pause after the store failed.
	fetchErrorPause = 5 * time.Second
	// maxTurns bounds turns.
	maxTurns = 10_000
)

// mediaFetcher fetches the files of stored inbound messages. Its queue is a table of the store. Its fields belong to run.
type mediaFetcher struct {
	g       *Gateway
	changed chan struct{} // holds one: a file was added, or a channel connected
	done    chan int64    // Seqs of finished attempts

	running map[int64]parley.ChannelCode
	busy    map[parley.ChannelCode]int
	// The longest without a turn comes first, so that a contact with many files does not delay the others of its channel,
	// nor a channel the others.
	turn  int64
	turns map[chatKey]int64 // the last ones of chats, and of channels under their code alone
}

type chatKey struct {
	channel parley.ChannelCode
	chat    parley.ContactID
}

func newMediaFetcher(g *Gateway) *mediaFetcher {
	return &mediaFetcher{
		g: g, changed: make(chan struct{}, 1), done: make(chan int64),
		running: map[int64]parley.ChannelCode{}, busy: map[parley.ChannelCode]int{},
		turns: map[chatKey]int64{},
	}
}

func (f *mediaFetcher) wake() { wait.Notify(f.changed) }

func (f *mediaFetcher) run(ctx context.Context) {
	defer func() {
		for len(f.running) > 0 {
			f.finished(<-f.done)
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(f.start(ctx))
		select {
		case <-ctx.Done():
			return
		case <-f.changed:
		case <-timer.C:
		case seq := <-f.done:
			f.finished(seq)
		}
	}
}

func (f *mediaFetcher) finished(seq int64) {
	code := f.running[seq]
	delete(f.running, seq)
	if f.busy[code]--; f.busy[code] == 0 {
		delete(f.busy, code)
	}
}

func (f *mediaFetcher) start(ctx context.Context) time.Duration {
	now := f.g.Clock()
	for len(f.running) < maxFetches && ctx.Err() == nil {
		due, err := f.g.config.Store.DueMediaFetches(ctx, now, now.Add(2*lastFetchPause), slices.Collect(maps.Keys(f.running)))
		if err != nil {
			f.g.config.Log.Error("look for files to fetch", "error", err)
			return fetchErrorPause
		}
		if len(due) == 0 && len(f.running) == 0 || len(f.turns) > maxTurns {
			clear(f.turns)
		}
		next, ok := f.choose(due, now)
		if !ok {
			break
		}
		f.turn++
		f.turns[chatKey{next.Channel, ""}] = f.turn
		f.turns[chatKey{next.Channel, next.Chat}] = f.turn
		f.running[next.Seq] = next.Channel
		f.busy[next.Channel]++
		go func() {
			f.attempt(ctx, next.Seq)
			f.done <- next.Seq
		}()
	}
	at, err := f.g.config.Store.NextMediaFetch(ctx, now)
	if err != nil || at.IsZero() {
		return fetchPollEvery
	}
	return max(0, min(at.Sub(now), fetchPollEvery))
}

// choose picks the next file, of a connected channel below its limit. Files that are too old need no connection.
func (f *mediaFetcher) choose(due []parley.MediaFetch, now time.Time) (parley.MediaFetch, bool) {
	due = slices.DeleteFunc(due, func(d parley.MediaFetch) bool {
		return f.busy[d.Channel] >= maxFetchesPerChannel || !f.g.serves(d.Channel) || !f.isTooOld(d, now) && f.g.liveSession(d.Channel) == nil
	})
	if len(due) == 0 {
		return parley.MediaFetch{}, false
	}
	return slices.MinFunc(due, func(a, b parley.MediaFetch) int {
		return cmp.Or(
			cmp.Compare(f.turns[chatKey{a.Channel, ""}], f.turns[chatKey{b.Channel, ""}]),
			cmp.Compare(f.turns[chatKey{a.Channel, a.Chat}], f.turns[chatKey{b.Channel, b.Chat}]),
			cmp.Compare(a.Seq, b.Seq),
		)
	}), true
}

// isTooOld reports whether a file is not retried any more. An untrusted clock makes none too old.
func (f *mediaFetcher) isTooOld(d parley.MediaFetch, now time.Time) bool {
	return !d.CreatedAt.Add(fetchPeriod).After(now) && f.g.ClockTrusted()
}

func (f *mediaFetcher) attempt(ctx context.Context, seq int64) {
	one, err := f.g.config.Store.MediaFetch(ctx, seq)
	if err != nil {
		if !errors.Is(err, parley.ErrNotFound) { // else its message was erased
			f.pauseAfterError(ctx, "read a file to fetch", err)
		}
		return
	}
	if f.isTooOld(one, f.g.Clock()) {
		f.fail(ctx, one, "It could not be fetched within 24 hours.")
		return
	}
	f.g.flush(ctx, one.Channel) // a message that was sent just now makes its contact known
	reason, err := f.g.config.Store.InboundOver(ctx, one.Channel, one.Chat, one.Media.Size, f.g.Clock(), f.g.config.Limits)
	if err != nil {
		f.pauseAfterError(ctx, "read what a contact sent", err)
		return
	}
	if reason != "" {
		f.fail(ctx, one, reason)
		return
	}
	file, err := f.fetch(ctx, one)
	switch {
	case err == nil:
		f.finish(ctx, one, file)
	case ctx.Err() != nil: // the next process tries again
	case errors.Is(err, media.ErrTooLarge):
		f.fail(ctx, one, fmt.Sprintf("It is larger than %d MiB, which is the limit.", media.MaxInbound>>20))
	case network.ToClass(err) == network.Permanent:
		f.g.config.Log.Warn("a file cannot be fetched", "channel", one.Channel, "message", seq, "error", err)
		f.fail(ctx, one, toRefusal(err))
	default:
		f.delay(ctx, one, err)
	}
}

func (f *mediaFetcher) fetch(ctx context.Context, one parley.MediaFetch) (parley.Media, error) {
	session := f.g.liveSession(one.Channel)
	if session == nil {
		return parley.Media{}, network.NotConnected(nil)
	}
	reference, err := f.g.config.Keyring.Decrypt(one.Reference, parley.MediaReferenceContext(one.Channel))
	if err != nil {
		return parley.Media{}, network.Refuse(parley.GaveUp, "Its address cannot be decrypted: this server has another key now.")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	return f.g.config.Media.Receive(ctx, one.Channel, one.Media, func(to *os.File) error { return session.Fetch(ctx, reference, to) })
}

// toRefusal is why the network refuses a file, in a sentence.
func toRefusal(err error) string {
	if e, ok := errors.AsType[*network.Error](err); ok && e.Failure.Message != "" {
		return e.Failure.Message
	}
	return "The network does not have it."
}

// fail stores and publishes why a file cannot be fetched.
func (f *mediaFetcher) fail(ctx context.Context, one parley.MediaFetch, reason string) {
	claims := one.Media
	claims.Failure = reason
	f.finish(ctx, one, claims)
}

// finish stores and publishes the file. One without a key has failed, and so does one that is over a limit after all: its
// sender may have said that it is smaller.
func (f *mediaFetcher) finish(ctx context.Context, one parley.MediaFetch, file parley.Media) {
	var m parley.Message
	var over bool
	until := context.WithoutCancel(ctx) // so that it is not fetched twice
	err := f.g.config.Store.Tx(until, func(tx *store.Tx) (err error) {
		result := file
		if file.Key != "" {
			reason, err := tx.CountInbound(until, one.Channel, one.Chat, file.Size, f.g.Clock(), f.g.config.Limits)
			if over = reason != ""; over {
				result = one.Media
				result.Failure = reason
			}
			if err != nil {
				return err
			}
		}
		if m, err = tx.FinishMediaFetch(until, one.Seq, result); err != nil {
			return err
		}
		return tx.AddEvent(until, &parley.Event{Type: parley.MessageMedia, Channel: m.Channel, At: f.g.Now(m.Channel), Message: &m})
	})
	if over && err == nil {
		f.g.RemoveFiles(ctx, []parley.Media{file})
	}
	switch {
	case err == nil:
		f.g.metrics.files.WithLabelValues(string(parley.MediaIn(m.Content).Status())).Inc()
		return
	case file.Key != "" && errors.Is(err, parley.ErrNotFound): // the message was erased meanwhile, or another node was first
		f.g.RemoveFiles(ctx, []parley.Media{file})
	case !errors.Is(err, parley.ErrNotFound):
		f.pauseAfterError(ctx, "store a fetched file", err)
	}
}

// delay schedules a retry. A lost connection does not count as an attempt.
func (f *mediaFetcher) delay(ctx context.Context, one parley.MediaFetch, why error) {
	attempts := one.Attempts
	if network.ToClass(why) != network.Disconnected {
		attempts++
		f.g.config.Log.Warn("a file could not be fetched; it is retried",
			"channel", one.Channel, "message", one.Seq, "attempts", attempts, "error", why)
	}
	err := f.g.config.Store.Tx(ctx, func(tx *store.Tx) error {
		return tx.DelayMediaFetch(ctx, one.Seq, attempts, f.g.Clock().Add(fetchPause(attempts)))
	})
	if err != nil && !errors.Is(err, parley.ErrNotFound) {
		f.pauseAfterError(ctx, "store when to fetch a file again", err)
	}
}

// fetchPause is the pause after a number of attempts: it doubles, with jitter.
func fetchPause(attempts int) time.Duration {
	pause := min(firstFetchPause<<min(max(attempts-1, 0), 20), lastFetchPause)
	return pause/2 + rand.N(pause/2)
}

func (f *mediaFetcher) pauseAfterError(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	f.g.config.Log.Error(what, "error", err)
	wait.Sleep(ctx, fetchErrorPause)
}

func (g *Gateway) liveSession(code parley.ChannelCode) network.Session {
	a, err := g.account(code)
	if err != nil {
		return nil
	}
	return a.liveSession()
}
