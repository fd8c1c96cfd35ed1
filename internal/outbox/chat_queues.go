package outbox

import (
	"cmp"
	"slices"
	"time"

	"parley"
)

type entry struct {
	parley.Queued
	message   *parley.Message // with its content; nil: it is read from the store when it is sent
	heldBytes int             // size of that content
	// awaitsConnection says that it becomes due as soon as there is a connection.
	awaitsConnection bool
	// aside says that the network was not ready for it: later messages of its chat do not wait for it.
	aside          bool
	notReady       int  // how often that happened
	unknownOutcome bool // an attempt had an unknown outcome
	found          bool // in the store: an earlier process may have sent it
	// held is the code with which it fails if it expires while it must wait before it is tried; empty: it need not wait.
	held parley.FailureCode

	// While it is in flight.
	burst     *burst
	confirmed bool // by a receipt
	cancelled bool
}

type chatQueues struct {
	byKey map[queueKey]*chatQueue
	// ready lists queues that may have a message to send, by the priority of their first message. dequeueDue checks them.
	ready [parley.Priorities][]*chatQueue
	later map[*chatQueue]bool // queues whose first message is not due yet
	// sameChat maps other spellings of a contact to the one of its queue.
	sameChat map[parley.ContactID]parley.ContactID
}

// queueKey names a queue. Each chat has one, and a second one for operations that the network was not ready for.
type queueKey struct {
	chat  parley.ContactID
	aside bool
}

type chatQueue struct {
	key      queueKey
	entries  []*entry // by priority, then by Seq
	inFlight bool     // nothing leaves until its burst has returned: that keeps the order
	isReady  bool     // in the ready list of normal priority
}

func (qs *chatQueues) key(chat parley.ContactID, aside bool) queueKey {
	if to, ok := qs.sameChat[chat]; ok {
		chat = to
	}
	return queueKey{chat, aside}
}

func (qs *chatQueues) queue(key queueKey) *chatQueue {
	q := qs.byKey[key]
	if q == nil {
		q = &chatQueue{key: key}
		qs.byKey[key] = q
	}
	return q
}

// merge merges the queues of two spellings of a contact's number, in the order of their messages.
func (qs *chatQueues) merge(from, to parley.ContactID) {
	for _, aside := range []bool{false, true} {
		old := qs.byKey[queueKey{from, aside}]
		if old == nil {
			continue
		}
		qs.sameChat[from] = to
		delete(qs.byKey, old.key)
		delete(qs.later, old)
		q := qs.queue(queueKey{to, aside})
		q.inFlight = q.inFlight || old.inFlight
		q.entries = append(q.entries, old.entries...)
		slices.SortStableFunc(q.entries, compare)
		old.entries = nil // it may be in a ready list
		qs.markReady(q)
	}
}

// add inserts a message into its chat's queue. A change of a setting stays behind earlier ones that wait aside,
// because the last one must win.
func (qs *chatQueues) add(e *entry) {
	isSetting := e.Kind == parley.KindStar || e.Kind == parley.KindArchive || e.Kind == parley.KindReadChat
	if isSetting && qs.byKey[qs.key(e.Chat, true)] != nil {
		e.aside = true
	}
	q := qs.queue(qs.key(e.Chat, e.aside))
	at := len(q.entries) // nearly always the end
	for at > 0 && compare(e, q.entries[at-1]) < 0 {
		at--
	}
	q.entries = slices.Insert(q.entries, at, e)
	qs.markReady(q)
}

func compare(a, b *entry) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Seq, b.Seq))
}

func (qs *chatQueues) markReady(q *chatQueue) {
	if q.inFlight || len(q.entries) == 0 {
		return
	}
	priority := q.entries[0].Priority
	if priority == parley.PriorityNormal {
		if q.isReady {
			return
		}
		q.isReady = true
	}
	qs.ready[priority] = append(qs.ready[priority], q)
}

func (qs *chatQueues) dequeueDue(size int, now time.Time) []*entry {
	var waited []*chatQueue
	for q := range qs.later {
		if q.due(1, now) > 0 {
			delete(qs.later, q)
			waited = append(waited, q)
		}
	}
	slices.SortFunc(waited, func(a, b *chatQueue) int { return compare(a.entries[0], b.entries[0]) }) // a quota is for the oldest
	for _, q := range waited {
		qs.markReady(q)
	}
	var due []*entry
	for len(due) < size {
		q, priority := qs.nextReady()
		if q == nil {
			break
		}
		if q.inFlight || len(q.entries) == 0 {
			continue
		}
		if q.entries[0].Priority < priority { // the message that it was listed for has left
			qs.markReady(q)
			continue
		}
		n := q.due(size-len(due), now)
		if n == 0 {
			qs.later[q] = true
			continue
		}
		due = append(due, q.entries[:n]...)
		q.entries = slices.Delete(q.entries, 0, n)
		q.inFlight = true
	}
	return due
}

func (q *chatQueue) due(most int, now time.Time) int {
	n := 0
	for n < min(most, len(q.entries)) && !q.entries[n].NextAttempt.After(now) {
		n++
	}
	return n
}

func (qs *chatQueues) nextReady() (*chatQueue, parley.Priority) {
	for p := len(qs.ready) - 1; p >= 0; p-- {
		if len(qs.ready[p]) == 0 {
			continue
		}
		q := qs.ready[p][0]
		qs.ready[p] = qs.ready[p][1:]
		if p == int(parley.PriorityNormal) {
			q.isReady = false
		}
		return q, parley.Priority(p)
	}
	return nil, 0
}

func (qs *chatQueues) release(es []*entry) {
	for _, e := range es {
		q := qs.byKey[qs.key(e.Chat, e.aside)]
		if q == nil || !q.inFlight {
			continue // released for an earlier message of the same chat
		}
		q.inFlight = false
		if len(q.entries) == 0 {
			qs.removeQueue(q)
			continue
		}
		qs.markReady(q)
	}
}

func (qs *chatQueues) reconnected() {
	qs.each(func(e *entry) {
		if e.awaitsConnection {
			e.awaitsConnection, e.NextAttempt = false, time.Time{}
		}
	})
}

func (qs *chatQueues) remove(chat parley.ContactID, match func(*entry) bool) []*entry {
	var removed []*entry
	for _, aside := range []bool{false, true} {
		q := qs.byKey[qs.key(chat, aside)]
		if q == nil {
			continue
		}
		q.entries = slices.DeleteFunc(q.entries, func(e *entry) bool {
			if match(e) {
				removed = append(removed, e)
				return true
			}
			return false
		})
		if len(q.entries) == 0 && !q.inFlight {
			qs.removeQueue(q)
		}
	}
	return removed
}

func (qs *chatQueues) removeQueue(q *chatQueue) {
	delete(qs.byKey, q.key)
	delete(qs.later, q)
	if len(qs.sameChat) == 0 || qs.byKey[queueKey{q.key.chat, !q.key.aside}] != nil {
		return
	}
	for from, to := range qs.sameChat {
		if to == q.key.chat {
			delete(qs.sameChat, from)
		}
	}
}

// nextDue is when the first queue in later becomes due; zero: none does. Queues that are due already wait for a
// connection, the pace or a burst in flight.
func (qs *chatQueues) nextDue(now time.Time) time.Time {
	var due time.Time
	for q := range qs.later {
		if len(q.entries) == 0 {
			continue
		}
		if at := q.entries[0].NextAttempt; at.After(now) && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}

func (qs *chatQueues) each(f func(*entry)) {
	for _, q := range qs.byKey {
		for _, e := range q.entries {
			f(e)
		}
	}
}
