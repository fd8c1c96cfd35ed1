package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// eventNumbers maps event types to stored numbers. A type's number is its index plus one; it must not change.
var eventNumbers = []parley.EventType{
	parley.MessageReceived, parley.MessageStatus, parley.MessageReaction, parley.MessageDeleted, parley.PollVoted,
	parley.ChannelStatusChanged, parley.ChannelPairing, parley.OTPApproved, parley.OTPFailed, parley.OTPExpired, parley.OTPPaused,
	parley.OTPGuessing, parley.MessageMedia, parley.WebhookGap, parley.GroupChanged, parley.MessageEdited,
	parley.ChannelRestricted, parley.MessageSentOnPhone, parley.ContactOptedOut, parley.ContactOptedIn,
	parley.CallReceived, parley.CallEnded, parley.MessageUnreadable, parley.ChannelNotice,
}

func eventNumber(t parley.EventType) (int64, error) {
	i := slices.Index(eventNumbers, t)
	if i < 0 {
		return 0, fmt.Errorf("the event type %q has no number", t)
	}
	return int64(i) + 1, nil
}

func eventType(number int64) (parley.EventType, error) {
	if number < 1 || number > int64(len(eventNumbers)) {
		return "", fmt.Errorf("there is no event type %d", number)
	}
	return eventNumbers[number-1], nil
}

// eventWaiters are notified when events are committed.
type eventWaiters struct {
	mu    sync.Mutex
	added chan struct{} // closed when events are committed; nil: there are no waiters
}

// EventAdded returns a channel that is closed when an event is next added to the log.
func (db *DB) EventAdded() <-chan struct{} {
	w := &db.waiters
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.added == nil {
		w.added = make(chan struct{})
	}
	return w.added
}

func (w *eventWaiters) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.added != nil {
		close(w.added)
		w.added = nil
	}
}

// AddEvent adds an event to the log. It gets its seq and its id at the end of the transaction.
func (t *Tx) AddEvent(_ context.Context, e *parley.Event) error {
	number, err := eventNumber(e.Type)
	if err != nil {
		return err
	}
	channel, err := t.channelNumber(e.Channel)
	if err != nil {
		return err
	}
	n := newEvent{channel: channel, number: number, at: millis(e.At), contact: e.Chat, data: e.Data, encrypted: e.Encrypted, event: e}
	if e.Message != nil {
		n.about, n.status, n.contact = e.Message, e.Message.Status, ""
	}
	if e.Type == parley.OTPApproved {
		t.ending.add(channel, CountApproved, "", 1)
	}
	t.ending.events = append(t.ending.events, n)
	if e.Type == parley.ChannelStatusChanged && len(e.Data) > 0 {
		return t.addChannelState(channel, e)
	}
	return nil
}

// publishStatus adds the event of a message that got a status.
func (t *Tx) publishStatus(s statusRow, status parley.Status, at time.Time) error {
	kind := parley.MessageStatus
	if status == parley.Deleted {
		kind = parley.MessageDeleted
	}
	number, err := eventNumber(kind)
	t.ending.events = append(t.ending.events, newEvent{channel: s.channel, number: number, at: millis(at), message: s.seq, status: status})
	return err
}

// Events of deleted channels are hidden. Those of a number that a channel had before are its own, also before a purge has moved them.
// Channel 0 means that an event belongs to no channel.
const readEvents = `SELECT event.seq, coalesce(channel.code, ''), type, at, message, event.status, contact, data, encrypted
	FROM event LEFT JOIN deletion ON deletion.id = event.channel
	LEFT JOIN channel ON channel.id = coalesce(deletion.successor, event.channel) WHERE (channel.id IS NOT NULL OR event.channel = 0) AND `

// storedEvent is an event whose message is not read yet.
type storedEvent struct {
	parley.Event
	message int64 // 0: the event is not about a message
	status  parley.Status
}

func scanEvent(row scanner) (e storedEvent, err error) {
	var number, at int64
	var message any
	var data []byte
	if err := row.Scan(&e.Seq, &e.Channel, &number, &at, &message, &e.status, &e.Chat, &data, &e.Encrypted); err != nil {
		return e, err
	}
	e.message, _ = message.(int64)
	e.At, e.Data = moment(at), data
	e.Type, err = eventType(number)
	return e, err
}

// maxScanned is how many rows of the log one call of Events scans, with any filter.
const maxScanned = 5000

// Events reads the log after a seq, in order. It also returns the last seq that it scanned, which is the given one at the
// end of the log.
func (r Reader) Events(ctx context.Context, after int64, filter parley.EventFilter, limit int) ([]parley.Event, int64, error) {
	r = r.with(ctx)
	where, args := `event.seq > $1`, []any{after}
	if filter.Channel != "" {
		if events, upTo, err := r.movingEvents(after, filter, limit); err != nil || upTo > after {
			return events, upTo, err
		}
		where += ` AND event.channel = ` + channelIDFrom(`$2`)
		args = append(args, string(filter.Channel))
	}
	upTo, err := r.scanTo(after, where, args)
	if err != nil || upTo == after {
		return nil, upTo, err
	}
	args = append(args, upTo)
	where += ` AND event.seq <= ` + param(len(args)) + ofCode(filter.Channel)
	where, args, ok := ofTypes(where, args, filter.Types)
	if !ok {
		return nil, upTo, nil
	}
	found, err := list(r, readEvents+where+` ORDER BY event.seq LIMIT `+param(len(args)+1), append(args, int64(limit)), scanEvent)
	if err != nil {
		return nil, 0, err
	}
	if len(found) == limit {
		upTo = found[limit-1].Seq
	}
	events, err := r.withMessages(found)
	return events, upTo, err
}

// ofCode is the condition that an event is of the channel whose code is the second parameter, if there is one: an archive has the number of
// events that a purge is about to move.
func ofCode(channel parley.ChannelCode) string {
	if channel == "" {
		return ""
	}
	return ` AND channel.code = $2`
}

// movingEvents is Events for what a purge has not moved yet from numbers that a channel had before. A later number has later events,
// and the last events of the last number move first, so that the order stays.
func (r Reader) movingEvents(after int64, filter parley.EventFilter, limit int) ([]parley.Event, int64, error) {
	numbers, err := list(r, `SELECT deletion.id FROM deletion JOIN channel ON channel.id = deletion.successor WHERE channel.code = $1
		ORDER BY deletion.id`, []any{string(filter.Channel)}, sqldb.ScanOne[int64])
	for _, number := range numbers {
		where, args, ok := ofTypes(`event.seq > $1 AND event.channel = $2`, []any{after, number}, filter.Types)
		if !ok {
			break
		}
		found, err := list(r, readEvents+where+` ORDER BY event.seq LIMIT `+param(len(args)+1), append(args, int64(limit)), scanEvent)
		if err != nil {
			return nil, after, err
		}
		if len(found) > 0 {
			events, err := r.withMessages(found)
			return events, found[len(found)-1].Seq, err
		}
	}
	return nil, after, err
}

// ofTypes adds a condition on the types of events. It reports false if no stored event has one of them.
func ofTypes(where string, args []any, wanted []parley.EventType) (string, []any, bool) {
	if len(wanted) == 0 {
		return where, args, true
	}
	var numbers []int64
	for _, t := range wanted {
		if n, err := eventNumber(t); err == nil {
			numbers = append(numbers, n)
		}
	}
	in, types := inList(len(args)+1, numbers)
	return where + ` AND type IN ` + in, append(args, types...), len(numbers) > 0
}

// RecentEvents reads the log before a seq, newest first, and scans at most maxScanned rows. It also returns the seq before
// which the next call continues; zero: there are no older events.
func (r Reader) RecentEvents(ctx context.Context, before int64, filter parley.EventFilter, limit int) ([]parley.Event, int64, error) {
	r = r.with(ctx)
	where, args := `event.seq < $1`, []any{before}
	if filter.Channel != "" {
		where += ` AND event.channel = ` + channelIDFrom(`$2`)
		args = append(args, string(filter.Channel))
	}
	var oldest, scanned int64
	err := r.row(`SELECT coalesce(min(seq), 0), count(*) FROM
		(SELECT event.seq FROM event WHERE `+where+` ORDER BY event.seq DESC LIMIT `+param(len(args)+1)+`) AS last`,
		append(args, int64(maxScanned)), &oldest, &scanned)
	if err != nil || scanned == 0 {
		return nil, 0, err
	}
	next := oldest
	if scanned < maxScanned {
		next = 0
	}
	args = append(args, oldest)
	where, args, ok := ofTypes(where+` AND event.seq >= `+param(len(args))+ofCode(filter.Channel), args, filter.Types)
	if !ok {
		return nil, 0, nil
	}
	found, err := list(r, readEvents+where+` ORDER BY event.seq DESC LIMIT `+param(len(args)+1), append(args, int64(limit)), scanEvent)
	if err != nil {
		return nil, 0, err
	}
	if len(found) == limit {
		next = found[limit-1].Seq
	}
	events, err := r.withMessages(found)
	return events, next, err
}

// scanTo returns the last seq that one call scans, at most maxScanned rows further. If fewer rows match, that is the end of
// the log.
func (r Reader) scanTo(after int64, where string, args []any) (upTo int64, err error) {
	var count int64
	err = r.row(`SELECT coalesce(max(seq), 0), count(*) FROM
		(SELECT event.seq FROM event WHERE `+where+` ORDER BY event.seq LIMIT `+param(len(args)+1)+`) AS next`,
		append(args, int64(maxScanned)), &upTo, &count)
	if err != nil || count == maxScanned {
		return upTo, err
	}
	last, err := r.lastEvent()
	return max(after, upTo, last), err
}

// withMessages fills in the ids of events and their messages. Events of messages that were deleted, or are not part of a
// history, are left out.
func (r Reader) withMessages(found []storedEvent) ([]parley.Event, error) {
	if len(found) == 0 {
		return nil, nil
	}
	var number uint32
	if err := r.row(`SELECT number FROM log`, nil, &number); err != nil {
		return nil, err
	}
	var seqs []int64
	for _, e := range found {
		if e.message != 0 {
			seqs = append(seqs, e.message)
		}
	}
	slices.Sort(seqs)
	messages, err := r.messagesBySeq(slices.Compact(seqs))
	if err != nil {
		return nil, err
	}
	events := make([]parley.Event, 0, len(found))
	for _, e := range found {
		e.ID = parley.NewEventID(e.At, number, e.Seq)
		if e.message != 0 {
			m := messages[e.message]
			if m == nil || !m.Content.Kind().InHistory() {
				continue
			}
			then := *m
			then.Status = e.status
			if then.Status != parley.Failed {
				then.Failure = nil
			}
			e.Message, e.Chat = &then, m.Chat
		}
		events = append(events, e.Event)
	}
	return events, nil
}

// messagesBySeq reads messages with what other rows say about them.
func (r Reader) messagesBySeq(seqs []int64) (map[int64]*parley.Message, error) {
	messages, err := listIn(r, readMessages+`WHERE message.seq IN `, ``, nil, seqs, scanMessage)
	if err == nil {
		err = r.addRelated(messages)
	}
	all := make(map[int64]*parley.Message, len(messages))
	for i := range messages {
		all[messages[i].Seq] = &messages[i]
	}
	return all, err
}

// EventsAt reads events by their seqs, in order. Purged ones are left out.
func (r Reader) EventsAt(ctx context.Context, seqs []int64) ([]parley.Event, error) {
	r = r.with(ctx)
	sorted := slices.Compact(slices.Sorted(slices.Values(seqs)))
	all, err := listIn(r, readEvents+`event.seq IN `, ` ORDER BY event.seq`, nil, sorted, scanEvent)
	if err != nil {
		return nil, err
	}
	return r.withMessages(all)
}

// EventsAbout lists the events of a message, in order.
func (r Reader) EventsAbout(ctx context.Context, m *parley.Message) ([]parley.Event, error) {
	r = r.with(ctx)
	found, err := list(r, readEvents+`message = $1 ORDER BY event.seq`, []any{m.Seq}, scanEvent)
	if err != nil {
		return nil, err
	}
	return r.withMessages(found)
}

// LastEvent is the seq of the newest event, even if it was purged.
func (r Reader) LastEvent(ctx context.Context) (int64, error) {
	return r.with(ctx).lastEvent()
}

func (r Reader) lastEvent() (last int64, err error) {
	query := `SELECT seq FROM sqlite_sequence WHERE name = 'event'`
	if r.conn.IsPostgres() {
		query = `SELECT greatest(removed_to, (SELECT max(seq) FROM event)) FROM log` // greatest ignores NULL
	}
	err = r.optional(query, nil, &last)
	return last, err
}

// EraseEncrypted removes up to limit encrypted texts from before a time.
func (t *Tx) EraseEncrypted(_ context.Context, before time.Time, limit int) (int, error) {
	n, err := t.sql.Exec(`UPDATE event SET encrypted = NULL WHERE seq IN
		(SELECT seq FROM event WHERE encrypted IS NOT NULL AND received_at < $1 LIMIT $2)`, millis(before), int64(limit))
	return int(n), err
}

// addChannelState stores a channel's new status beside the log, where it is found without reading the log.
func (t *Tx) addChannelState(channel int64, e *parley.Event) error {
	var state struct {
		Status string `json:"status"`
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal(e.Data, &state); err != nil {
		return fmt.Errorf("event of a channel's status: %w", err)
	}
	t.ending.after = append(t.ending.after, func() error {
		return t.exec(`INSERT INTO channel_state (channel, seq, at, status, reason) VALUES ($1, $2, $3, $4, $5)`,
			channel, e.Seq, millis(e.At), state.Status, state.Reason)
	})
	return nil
}

// ChannelStates lists the statuses of a channel since a time, newest first.
func (r Reader) ChannelStates(ctx context.Context, code parley.ChannelCode, since time.Time, limit int) ([]parley.ChannelState, error) {
	states, err := list(r.with(ctx), `SELECT status, reason, at FROM channel_state WHERE `+ofChannel+` ORDER BY seq DESC LIMIT $2`,
		[]any{string(code), int64(limit)}, func(row scanner) (s parley.ChannelState, err error) {
			var at int64
			err = row.Scan(&s.Status, &s.Reason, &at)
			s.Since = moment(at)
			return s, err
		})
	for i, s := range states {
		if s.Since.Before(since) { // the status at that time; older ones had ended
			return states[:i+1], err
		}
	}
	return states, err
}
