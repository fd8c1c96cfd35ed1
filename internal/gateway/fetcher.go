package gateway

import (
	"cmp"
	"context"
	"errors"
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
	// fetchesAtOnce is how many files are fetched at the same time, and fetchesPerChannel how many of one channel.
	fetchesAtOnce, fetchesPerChannel = 8, 2
	// fetchTimeout bounds one attempt. 100 MiB take so long at 120 kB a second; a connection on which nothing
	// comes is given up by the network's session long before.
	fetchTimeout = 15 * time.Minute
	// fetchLife is how long a file is tried for.
	fetchLife = 24 * time.Hour
	// Attempts become rarer, from the first pause to the last.
	firstFetchPause, lastFetchPause = time.Second, time.Hour
	// fetchLook is how often the fetcher looks for files that nothing told it of, such as those of a channel
	// that is not connected and that are too old.
	fetchLook = time.Minute
	// fetchRest is how long a worker rests when what it fetched cannot be stored.
	fetchRest = 5 * time.Second
	// maxTurns is of how many chats it is known when they had a turn.
	maxTurns = 10_000
)

// fetcher fetches the files of inbound messages after the messages were stored. The table of files to fetch is
// its queue; here is only what runs now and who had a turn when. All of it belongs to run.
type fetcher struct {
	g       *Gateway
	changed chan struct{} // holds one: a file was added, or a channel connected
	done    chan int64    // the seq of a file that a worker is done with

	running map[int64]parley.ChannelCode
	busy    map[parley.ChannelCode]int
	// Those who had no turn for the longest time come first: one contact with many files does not keep the
	// others of its channel waiting, nor one channel the other channels.
	turn         int64
	channelTurns map[parley.ChannelCode]int64
	chatTurns    map[chatKey]int64
}

type chatKey struct {
	channel parley.ChannelCode
	chat    parley.ContactID
}

func newFetcher(g *Gateway) *fetcher {
	return &fetcher{
		g: g, changed: make(chan struct{}, 1), done: make(chan int64),
		running: map[int64]parley.ChannelCode{}, busy: map[parley.ChannelCode]int{},
		channelTurns: map[parley.ChannelCode]int64{}, chatTurns: map[chatKey]int64{},
	}
}

// wake has the fetcher look for files.
func (f *fetcher) wake() { wait.Notify(f.changed) }

// run fetches files until ctx ends, and waits for its workers.
func (f *fetcher) run(ctx context.Context) {
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

func (f *fetcher) finished(seq int64) {
	code := f.running[seq]
	delete(f.running, seq)
	if f.busy[code]--; f.busy[code] == 0 {
		delete(f.busy, code)
	}
}

// start starts as many workers as may run, and returns when to look again.
func (f *fetcher) start(ctx context.Context) time.Duration {
	now := f.g.Clock()
	for len(f.running) < fetchesAtOnce && ctx.Err() == nil {
		due, err := f.g.Store.DueMediaFetches(ctx, now, now.Add(2*lastFetchPause), slices.Collect(maps.Keys(f.running)))
		if err != nil {
			f.g.Log.Error("look for files to fetch", "error", err)
			return fetchRest
		}
		if len(due) == 0 && len(f.running) == 0 || len(f.chatTurns) > maxTurns { // nobody waits for a turn, or they take too much room
			clear(f.channelTurns)
			clear(f.chatTurns)
		}
		next, ok := f.choose(due, now)
		if !ok {
			break
		}
		f.turn++
		f.channelTurns[next.Channel] = f.turn
		f.chatTurns[chatKey{next.Channel, next.Chat}] = f.turn
		f.running[next.Seq] = next.Channel
		f.busy[next.Channel]++
		go func() {
			f.try(ctx, next.Seq)
			f.done <- next.Seq
		}()
	}
	at, err := f.g.Store.NextMediaFetch(ctx, now)
	if err != nil || at.IsZero() {
		return fetchLook
	}
	return max(0, min(at.Sub(now), fetchLook))
}

// choose picks the file to fetch next: of a channel that is connected and has a worker to spare. Those that
// are too old need no connection.
func (f *fetcher) choose(due []parley.MediaFetch, now time.Time) (parley.MediaFetch, bool) {
	due = slices.DeleteFunc(due, func(d parley.MediaFetch) bool {
		return f.busy[d.Channel] >= fetchesPerChannel || !f.isTooOld(d, now) && f.g.liveSession(d.Channel) == nil
	})
	if len(due) == 0 {
		return parley.MediaFetch{}, false
	}
	return slices.MinFunc(due, func(a, b parley.MediaFetch) int {
		return cmp.Or(
			cmp.Compare(f.channelTurns[a.Channel], f.channelTurns[b.Channel]),
			cmp.Compare(f.chatTurns[chatKey{a.Channel, a.Chat}], f.chatTurns[chatKey{b.Channel, b.Chat}]),
			cmp.Compare(a.Seq, b.Seq),
		)
	}), true
}

// isTooOld reports whether a file is not tried any more. A clock that is not trusted makes none too old.
func (f *fetcher) isTooOld(d parley.MediaFetch, now time.Time) bool {
	return !d.CreatedAt.Add(fetchLife).After(now) && f.g.ClockTrusted()
}

// try makes one attempt to fetch a file.
func (f *fetcher) try(ctx context.Context, seq int64) {
	one, err := f.g.Store.MediaFetch(ctx, seq)
	if err != nil {
		if !errors.Is(err, parley.ErrNotFound) { // else its message was erased
			f.rest(ctx, "read a file to fetch", err)
		}
		return
	}
	if f.isTooOld(one, f.g.Clock()) {
		f.finish(ctx, one, nil)
		return
	}
	file, err := f.fetch(ctx, one)
	switch {
	case err == nil:
		f.finish(ctx, one, &file)
	case ctx.Err() != nil: // the next process tries again
	case network.ClassOf(err) == network.Permanent, errors.Is(err, media.ErrTooLarge):
		f.g.Log.Warn("a file cannot be fetched", "channel", one.Channel, "message", seq, "error", err)
		f.finish(ctx, one, nil)
	default:
		f.delay(ctx, one, err)
	}
}

// fetch gets a file from the network into the library.
func (f *fetcher) fetch(ctx context.Context, one parley.MediaFetch) (parley.Media, error) {
	session := f.g.liveSession(one.Channel)
	if session == nil {
		return parley.Media{}, network.NotConnected(nil)
	}
	reference, err := f.g.Keyring.Decrypt(one.Reference, parley.MediaReferenceContext(one.Channel))
	if err != nil {
		return parley.Media{}, network.Refuse(parley.GaveUp, "Its address cannot be decrypted: this server has another key now.")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	return f.g.Media.Receive(one.Media, func(to *os.File) error { return session.Fetch(ctx, reference, to) })
}

// finish stores what was fetched, or with nil that nothing will be, and publishes it.
func (f *fetcher) finish(ctx context.Context, one parley.MediaFetch, file *parley.Media) {
	var m parley.Message
	until := context.WithoutCancel(ctx) // what was fetched is not fetched twice
	err := f.g.Store.Tx(until, func(tx *store.Tx) (err error) {
		if m, err = tx.FinishMediaFetch(until, one.Seq, file); err != nil {
			return err
		}
		return tx.AddEvent(until, &parley.Event{Type: parley.MessageMedia, Channel: m.Channel, At: f.g.Now(m.Channel), Message: &m})
	})
	switch {
	case err == nil:
		f.g.measures.fetched(parley.MediaOf(m.Content).Status())
		return
	case file != nil && errors.Is(err, parley.ErrNotFound): // the message was erased meanwhile
		f.g.removeMedia(*file)
	case !errors.Is(err, parley.ErrNotFound):
		f.rest(ctx, "store a fetched file", err)
	}
}

// delay has a file tried again later. That a channel lost its connection does not count as an attempt.
func (f *fetcher) delay(ctx context.Context, one parley.MediaFetch, why error) {
	attempts := one.Attempts
	if network.ClassOf(why) != network.Disconnected {
		attempts++
		f.g.Log.Warn("a file could not be fetched; it is tried again",
			"channel", one.Channel, "message", one.Seq, "attempts", attempts, "error", why)
	}
	err := f.g.Store.Tx(ctx, func(tx *store.Tx) error {
		return tx.DelayMediaFetch(ctx, one.Seq, attempts, f.g.Clock().Add(fetchPause(attempts)))
	})
	if err != nil && !errors.Is(err, parley.ErrNotFound) {
		f.rest(ctx, "store when to fetch a file again", err)
	}
}

// fetchPause is how long to wait after so many attempts: twice as long each time, and not the same for all.
func fetchPause(attempts int) time.Duration {
	pause := min(firstFetchPause<<min(max(attempts-1, 0), 20), lastFetchPause)
	return pause/2 + rand.N(pause/2)
}

// rest reports trouble with the store, and keeps the worker from trying again at once.
func (f *fetcher) rest(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	f.g.Log.Error(what, "error", err)
	wait.Sleep(ctx, fetchRest)
}

// liveSession is the session of a channel while it is connected; nil: it is not.
func (g *Gateway) liveSession(code parley.ChannelCode) network.Session {
	a, err := g.account(code)
	if err != nil {
		return nil
	}
	return a.live()
}
