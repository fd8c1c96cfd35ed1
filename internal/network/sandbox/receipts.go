package sandbox

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
)

const (
	maxReceipt = 500 // ids in one receipt
	workers    = 64  // phones reported at once, so that their commits are shared

	// A receipt may overtake the message in the gateway, so an unknown message is reported again. After a few failures each
	// id is reported alone, so one does not delay the rest. After about half a minute an unknown message is skipped.
	aloneAfter  = 3
	maxFailures = 20
)

// job is what the session reports about one phone. Only one goroutine works on it at a time.
type job struct {
	// arrivals are messages to the phone whose receipts are not reported, oldest first. They are all there are, unless
	// receiptWork says that there are more in the database.
	arrivals []arrival
	phone    *phone // as it was when they were written; nil: it has to be read
	work     work   // what has to be read from the database

	dueAt    time.Time // zero: now
	failures int       // in a row
}

type delivery struct {
	phone *phone
	arrival
}

// arrival is a message to a phone whose receipt is not reported yet.
type arrival struct {
	seq   int64
	id    parley.MessageID
	group int64 // 0: the chat of the phone with the channel
	voice bool
	at    time.Time
}

// work says what has to be read from the database, besides the phone itself.
type work uint8

const (
	receiptWork work = 1 << iota // messages that reached it
	eventWork                    // what it did
)

// maxArrivals is how many a job holds in memory. There may be a job for every phone.
const maxArrivals = 64

// add appends a message. If there are many, they are read from the database instead.
func (j *job) add(d delivery) {
	if len(j.arrivals) == maxArrivals {
		j.arrivals = nil
		j.work |= receiptWork
	}
	if j.work&receiptWork == 0 {
		j.arrivals = append(j.arrivals, d.arrival)
	}
	j.phone = d.phone
}

// require makes the job read from the database. Messages in memory are newer, so they are read from there too: a receipt must
// not overtake an older one.
func (j *job) require(what work) {
	j.work |= what
	if j.work&receiptWork != 0 {
		j.arrivals = nil
	}
}

// merge adds what was scheduled since the job began.
func (j *job) merge(later *job) {
	j.work |= later.work
	for _, a := range later.arrivals {
		if count := len(j.arrivals); count == 0 || a.seq > j.arrivals[count-1].seq { // else it was read from the database
			j.arrivals = append(j.arrivals, a)
		}
	}
	if len(j.arrivals) > maxArrivals {
		j.work |= receiptWork
	}
	if j.work&receiptWork != 0 {
		j.arrivals = nil
	}
	if later.phone != nil {
		j.phone = later.phone
	}
	if j.failures == 0 { // it waits only for its own delay, which may have changed
		j.dueAt = time.Time{}
	}
}

// oldest is the seq of the first message to report; zero: it has to be read.
func (j *job) oldest() int64 {
	if len(j.arrivals) == 0 {
		return 0
	}
	return j.arrivals[0].seq
}

func (j *job) isDone() bool { return j.work == 0 && len(j.arrivals) == 0 }

// scheduleBacklog schedules the phones that have something to report from before the session. It returns whether it could.
func (s *session) scheduleBacklog() bool {
	w := s.world
	ids, err := sqldb.Collect(w.net.db.Read(s.ctx), sqldb.ScanOne[int64], `SELECT id FROM phones p WHERE world = $1 AND online = 1 AND (
		(SELECT min(e.seq) FROM events e WHERE e.phone = p.id) IS NOT NULL OR
		EXISTS (SELECT 1 FROM messages m WHERE m.phone = p.id AND m.seq > p.delivered AND m.from_phone = 0) OR known = 1)
		UNION ALL SELECT -id FROM groups g WHERE world = $1 AND EXISTS (SELECT 1 FROM events e WHERE e.phone = -g.id)`, w.id.Load())
	if err != nil {
		s.logError("find what there is to report", err)
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		w.job(id).require(receiptWork | eventWork)
	}
	return true
}

func (s *session) runJobs(jobs map[int64]*job) (next time.Time) {
	for id, scheduled := range s.world.drainPending() {
		if j := jobs[id]; j != nil {
			j.merge(scheduled)
		} else {
			jobs[id] = scheduled
		}
	}
	now := time.Now() // of all receipts of this round: the store writes those of one time with one statement
	var due []int64
	for id, j := range jobs {
		if !j.dueAt.After(now) {
			due = append(due, id)
		}
	}
	// Oldest first: their rows are near each other, so a commit writes fewer pages.
	slices.SortFunc(due, func(a, b int64) int { return cmp.Compare(jobs[a].oldest(), jobs[b].oldest()) })
	var started atomic.Int64
	var group sync.WaitGroup
	for range min(workers, len(due)) {
		group.Go(func() {
			for i := started.Add(1) - 1; i < int64(len(due)); i = started.Add(1) - 1 {
				s.runJob(s.ctx, due[i], jobs[due[i]], now)
			}
		})
	}
	group.Wait()
	for _, id := range due {
		if jobs[id].isDone() {
			delete(jobs, id)
		}
	}
	for _, j := range jobs {
		next = earlier(next, j.dueAt)
	}
	return next
}

// runJob reports what there is to report about a phone and sets when to come again, if there is more.
func (s *session) runJob(ctx context.Context, phone int64, j *job, now time.Time) {
	var again time.Time
	var err error
	if phone < 0 { // a group
		j.work &= eventWork
	} else {
		if j.work&eventWork != 0 {
			err = s.reportOwn(ctx, phone, j)
		}
		if err == nil {
			err = s.readPhone(ctx, phone, j)
		}
		if err == nil && !j.isDone() {
			again, err = s.reportReceipts(ctx, j, now)
		}
	}
	if err == nil && j.work&eventWork != 0 {
		err = s.reportEvents(ctx, phone, j)
	}
	if err == nil {
		j.failures, j.dueAt = 0, again
		return
	}
	if !errors.Is(err, errRefused) {
		s.logError("report about a phone", err)
	}
	j.failures++
	j.dueAt = time.Now().Add(backoff(j.failures))
}

// readPhone reads the phone of a job if it may have changed. A phone that is offline, or whose world was reset, has
// nothing to report.
func (s *session) readPhone(ctx context.Context, id int64, j *job) error {
	if j.phone == nil || j.work != 0 {
		p, err := queryPhone(s.world.net.db.Read(ctx), `id = $1 AND online = 1`, id)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		j.phone = p
	}
	if j.phone == nil || j.phone.world != s.world.id.Load() {
		*j = job{}
		return nil
	}
	s.world.current(j.phone)
	if j.phone.known == revealed {
		return s.reportNumber(ctx, j.phone)
	}
	return nil
}

// reportReceipts reports which messages reached the phone, and that they were read if the phone reads at once. It returns
// when there will be more to report; zero: not known.
func (s *session) reportReceipts(ctx context.Context, j *job, now time.Time) (again time.Time, err error) {
	p := j.phone
	for {
		if err := s.readArrivals(ctx, j); err != nil {
			return time.Time{}, err
		}
		due, again := dueNow(j.arrivals[:min(len(j.arrivals), maxReceipt)], p.Delay)
		if j.failures >= aloneAfter {
			due = due[:min(1, len(due))]
		}
		if len(due) == 0 {
			return again, nil
		}
		if err := s.reportArrivals(ctx, p, due, now); err != nil && !s.givesUp(j, err) {
			return time.Time{}, err
		}
		reached := cursors{delivered: due[len(due)-1].seq}
		if p.Reads == AtOnce {
			reached.read = reached.delivered
		}
		p.cursors = s.world.advance(p.id, p.cursors.max(reached))
		j.arrivals = j.arrivals[len(due):]
		j.failures = min(j.failures, aloneAfter)
	}
}

// readArrivals drops what was reported already and reads the next messages to a phone if memory does not have them.
func (s *session) readArrivals(ctx context.Context, j *job) error {
	p := j.phone
	j.arrivals = slices.DeleteFunc(j.arrivals, func(a arrival) bool { return a.seq <= p.delivered })
	if j.work&receiptWork == 0 || len(j.arrivals) > 0 {
		return nil
	}
	list, err := sqldb.Collect(s.world.net.db.Read(ctx), scanArrival, `SELECT seq, id, grp, kind, at FROM messages
		WHERE phone = $1 AND seq > $2 AND from_phone = 0 ORDER BY seq LIMIT `+strconv.Itoa(maxReceipt), p.id, p.delivered)
	if err != nil {
		return fmt.Errorf("read what reached a phone: %w", err)
	}
	j.arrivals = list
	if len(list) < maxReceipt {
		j.work &^= receiptWork
	}
	return nil
}

// dueNow returns the messages whose delay is over, and when the next one's is.
func dueNow(list []arrival, delay time.Duration) (due []arrival, again time.Time) {
	if delay > 0 {
		now := time.Now()
		for i, a := range list {
			if at := a.at.Add(delay); at.After(now) {
				return list[:i], at
			}
		}
	}
	return list, time.Time{}
}

func scanArrival(row scanner) (a arrival, err error) {
	var kind parley.Kind
	var at int64
	err = row.Scan(&a.seq, &a.id, &a.group, &kind, &at)
	a.voice, a.at = kind == parley.KindVoice, time.UnixMilli(at)
	return a, err
}

// reportArrivals reports messages that reached a phone, those of each chat together.
func (s *session) reportArrivals(ctx context.Context, p *phone, list []arrival, now time.Time) error {
	return sqldb.Each(p.byChat(list), func(chat []arrival) error { return s.reportChat(ctx, p, chat, now) })
}

// isEarly reports whether a message came in a chat of two before the phone hid its number.
func (p *phone) isEarly(a arrival) bool { return a.group == 0 && a.seq <= p.hidden }

// byChat splits messages by the chat that the channel knows: a phone that hid its number has a new one.
func (p *phone) byChat(list []arrival) [][]arrival {
	late := slices.IndexFunc(list, func(a arrival) bool { return a.seq > p.hidden })
	if late <= 0 {
		return byChat(list)
	}
	return append(byChat(list[:late]), byChat(list[late:])...)
}

// byChat splits messages by their chat, the order in each stays.
func byChat(list []arrival) (chats [][]arrival) {
	index := map[int64]int{}
	for _, a := range list {
		i, known := index[a.group]
		if !known {
			i = len(chats)
			index[a.group], chats = i, append(chats, nil)
		}
		chats[i] = append(chats[i], a)
	}
	return chats
}

func (s *session) reportChat(ctx context.Context, p *phone, list []arrival, now time.Time) error {
	if due := list[len(list)-1].at.Add(p.Delay); due.After(now) { // it came after the round began
		now = due
	}
	group := list[0].group
	from := p.ContactID
	if p.isEarly(list[0]) {
		from = p.contactID()
	}
	r := network.Receipt{From: from, Group: toGroupID(group), IDs: toIDs(list), Status: parley.Delivered, At: now.UTC()}
	err := s.report(ctx, group, r)
	if err != nil || p.Reads != AtOnce {
		return err
	}
	r.Status = parley.Read
	err = s.report(ctx, group, r)
	if played := toVoiceIDs(list); err == nil && len(played) > 0 {
		r.IDs, r.Status = played, parley.Played
		err = s.report(ctx, group, r)
	}
	return err
}

var errRefused = errors.New("refused by the sink")

// report reports an event to the sink, one at a time in groups: several phones are reported at once.
func (s *session) report(ctx context.Context, group int64, e network.Event) error {
	if group != 0 {
		select {
		case s.groupSlot <- struct{}{}:
			defer func() { <-s.groupSlot }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := s.sink(ctx, e); err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return nil
}

// givesUp reports whether to skip a message that the gateway did not know in many attempts.
func (s *session) givesUp(j *job, err error) bool {
	if j.failures < maxFailures || !errors.Is(err, parley.ErrNotFound) {
		return false
	}
	s.world.net.log.Warn("sandbox: gave up reporting a message that the gateway does not know", "channel", s.world.code)
	j.failures = aloneAfter // the next one gets its own time
	return true
}

func toIDs(list []arrival) []parley.MessageID {
	all := make([]parley.MessageID, len(list))
	for i, a := range list {
		all[i] = a.id
	}
	return all
}

func toVoiceIDs(list []arrival) []parley.MessageID {
	return toIDs(slices.DeleteFunc(slices.Clone(list), func(a arrival) bool { return !a.voice }))
}

// advance moves the cursors of a phone in memory and returns them; saveCursors stores them.
func (w *world) advance(phone int64, to cursors) cursors {
	w.mu.Lock()
	defer w.mu.Unlock()
	to = w.cursors[phone].max(to)
	w.cursors[phone] = to
	return to
}

func (w *world) hasUnsavedCursors() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.cursors) > 0
}

// saveCursors stores how far phones were delivered and read, some at a time so that no send waits long.
func (s *session) saveCursors() {
	const atOnce = 200
	w := s.world
	w.mu.Lock()
	unsaved := maps.Clone(w.cursors)
	w.mu.Unlock()
	for ids := range slices.Chunk(slices.Collect(maps.Keys(unsaved)), atOnce) {
		err := w.net.db.Write(context.WithoutCancel(s.ctx), func(tx *sqldb.Tx) error {
			tx.OnCommit(func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				for _, id := range ids {
					if w.cursors[id] == unsaved[id] { // else it moved since
						delete(w.cursors, id)
					}
				}
			})
			return sqldb.Each(ids, func(id int64) error {
				return tx.Do(`UPDATE phones SET delivered = greatest(delivered, $1), read = greatest(read, $2) WHERE id = $3`,
					unsaved[id].delivered, unsaved[id].read, id)
			})
		})
		if err != nil {
			s.logError("save how far phones were delivered", err) // the receipts are reported again after the next start
			return
		}
	}
}
