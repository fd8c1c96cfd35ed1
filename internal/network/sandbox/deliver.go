package sandbox

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

const (
	collect   = 60 * time.Millisecond // how long receipts are collected, to give many in one event; a real network takes longer
	saveEvery = 5 * time.Second       // how often the phones' marks are saved; each costs as much as several sends
	tellers   = 16                    // phones served at once, so that their commits are shared

	firstRetry = 10 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// run tells the channel everything until the session is closed.
func (s *session) run() {
	defer close(s.done)
	backlog := true              // what there is to tell from before the session is still to be found
	waiting := map[*phone]bool{} // have something to tell, but not yet
	moved := map[*phone]bool{}   // whose marks are not saved
	saveAt := time.Now().Add(saveEvery)
	for s.tellStates() {
		var next time.Time
		if s.up.Load() {
			backlog = backlog && !s.findBacklog()
			next = s.round(waiting, moved)
		}
		if len(moved) > 0 && !time.Now().Before(saveAt) {
			s.saveMarks(moved)
			saveAt = time.Now().Add(saveEvery)
		}
		if len(moved) > 0 {
			next = earlier(next, saveAt)
		}
		s.rest(earlier(next, s.reconnectTime()))
	}
	for p := range waiting {
		s.world.mark(false, p) // for the next session
	}
	s.saveMarks(moved)
}

// findBacklog marks the phones that have something to tell from before the session. It reports whether
// it could.
func (s *session) findBacklog() bool {
	numbers, err := s.world.behind(s.ctx)
	for _, number := range numbers {
		var p *phone
		if p, err = s.world.phone(s.ctx, parley.ContactOf(number)); err != nil {
			break
		}
		s.world.mark(false, p)
	}
	if err != nil {
		s.log("find what there is to tell", err)
		return false
	}
	s.world.searched.Store(true)
	return true
}

// behind lists the numbers of the phones of which the channel does not know everything.
func (w *world) behind(ctx context.Context) ([]string, error) {
	if err := w.net.unpack(ctx); err != nil {
		return nil, err
	}
	rows, err := w.net.db.Read(ctx).Query(`SELECT number FROM phones p WHERE world = $1 AND (
		EXISTS (SELECT 1 FROM events e WHERE e.phone = p.id) OR
		EXISTS (SELECT 1 FROM messages m WHERE m.phone = p.id AND m.seq > p.delivered AND m.from_phone = 0))`, w.id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var numbers []string
	for rows.Next() {
		var number string
		if err := rows.Scan(&number); err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	return numbers, rows.Err()
}

// tellStates tells the sink how the connection changed, in order, until it took everything. It
// reports whether the session is still open.
func (s *session) tellStates() bool {
	for tries := 0; s.ctx.Err() == nil; {
		s.mu.Lock()
		if !s.backAt.IsZero() && !time.Now().Before(s.backAt) {
			s.mu.Unlock()
			s.become(parley.Working, "")
			continue
		}
		if len(s.untold) == 0 {
			s.mu.Unlock()
			return true
		}
		state := s.untold[0]
		s.mu.Unlock()
		if err := s.sink(s.ctx, state); err != nil {
			tries++
			s.pause(backOff(tries))
			continue
		}
		tries = 0
		s.mu.Lock()
		s.untold = s.untold[1:]
		s.mu.Unlock()
	}
	return false
}

// round serves every phone that has something to tell now and returns when the next one will have.
func (s *session) round(waiting, moved map[*phone]bool) (next time.Time) {
	for _, p := range s.world.takeMarked() {
		waiting[p] = true
		if p.tries == 0 { // it waits only for its own delay, which may be another now
			p.retryAt = time.Time{}
		}
	}
	now := time.Now()
	var due []*phone
	for p := range waiting {
		if p.retryAt.After(now) {
			next = earlier(next, p.retryAt)
			continue
		}
		due = append(due, p)
		delete(waiting, p)
	}
	var todo atomic.Int64
	var group sync.WaitGroup
	for range min(tellers, len(due)) {
		group.Go(func() {
			for i := todo.Add(1) - 1; i < int64(len(due)); i = todo.Add(1) - 1 {
				due[i].retryAt = s.serve(s.ctx, due[i])
			}
		})
	}
	group.Wait()
	for _, p := range due {
		moved[p] = true
		if !p.retryAt.IsZero() {
			waiting[p] = true
			next = earlier(next, p.retryAt)
		}
	}
	return next
}

// serve tells the channel what there is to tell of a phone and returns when to come again; zero: when
// the phone is marked.
func (s *session) serve(ctx context.Context, p *phone) time.Time {
	again, err := s.tellArrivals(ctx, p)
	if err == nil {
		err = s.tellParcels(ctx, p)
	}
	if err != nil {
		if !errors.Is(err, errRefused) {
			s.log("tell what a phone did", err)
		}
		p.tries++
		return time.Now().Add(backOff(p.tries))
	}
	p.tries = 0
	return again
}

// rest waits until there is something to do; zero: nothing is due at any time.
func (s *session) rest(until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-s.ctx.Done():
	case <-due:
	case <-s.world.work.now:
	case <-s.world.work.soon:
		s.pause(collect)
	}
}

// pause waits for a while, or until something is there that should not be kept waiting.
func (s *session) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.ctx.Done():
	case <-timer.C:
	case <-s.world.work.now:
	}
}

func (s *session) reconnectTime() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.backAt
}

// saveMarks stores how far phones were delivered and read, some at a time so that no send waits long.
func (s *session) saveMarks(moved map[*phone]bool) {
	const atOnce = 200
	for some := range slices.Chunk(slices.Collect(maps.Keys(moved)), atOnce) {
		err := s.world.net.db.Write(context.WithoutCancel(s.ctx), func(tx *sqldb.Tx) error {
			for _, p := range some {
				delivered, read := p.marks()
				_, err := tx.Exec(`UPDATE phones SET delivered = max(delivered, $1), read = max(read, $2) WHERE id = $3`, delivered, read, p.id)
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			s.log("save how far phones were told of", err) // they are told again after the next start
			return
		}
	}
	clear(moved)
}

func (s *session) log(what string, err error) {
	if errors.Is(err, context.Canceled) {
		return // the session is being closed
	}
	s.world.net.log.LogAttrs(context.Background(), slog.LevelError, "sandbox: "+what,
		slog.String("channel", string(s.world.code)), slog.Any("error", err))
}

// earlier returns the earlier of two times, of which a zero one is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// backOff is how long to wait after the sink refused a number of times.
func backOff(tries int) time.Duration {
	if tries > 8 {
		return lastRetry
	}
	return min(firstRetry<<(tries-1), lastRetry)
}
