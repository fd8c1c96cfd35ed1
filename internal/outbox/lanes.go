package outbox

import (
	"slices"
	"time"

	"parley"
)

// entry is a message in the queue.
type entry struct {
	parley.Queued
	message *parley.Message // what it says, where there was room to keep that; nil: it is read when it is sent
	held    int             // how much room that takes, in bytes
	// waits says that it rests for want of a connection, and is due as soon as there is one.
	waits bool
	// beside says that it was not ready: later messages of its chat do not wait for it.
	beside bool
	// notReady is how often that was so, and unknown whether an attempt had an unknown outcome.
	notReady int
	unknown  bool

	burst     *burst // while it is under way
	confirmed bool   // by a receipt, while it is under way
	dropped   bool   // while it is under way
}

// lanes are the queue, chat by chat. A lane whose messages are under way is busy, and nothing of it
// is taken until they come back: that keeps the order.
type lanes struct {
	byKey map[laneKey]*lane
	// Lanes that may have something to send, by the priority of their first message, in the order in
	// which they got it. A lane can be listed and yet have nothing to give; take looks.
	ready   [parley.Priorities][]*lane
	resting map[*lane]bool // lanes whose first message is not due yet
	// same maps other spellings of a chat's contact to that of its lane, while there is one.
	same map[parley.ContactID]parley.ContactID
}

// laneKey names a lane: each chat has one, and a second one for operations that are not ready.
type laneKey struct {
	chat   parley.ContactID
	beside bool
}

type lane struct {
	key    laneKey
	queue  []*entry // by priority, then by Seq
	busy   bool
	listed bool // in ready, with the normal priority
}

func newLanes() lanes {
	return lanes{byKey: map[laneKey]*lane{}, resting: map[*lane]bool{}, same: map[parley.ContactID]parley.ContactID{}}
}

// key names the lane of a chat.
func (ls *lanes) key(chat parley.ContactID, beside bool) laneKey {
	if to, ok := ls.same[chat]; ok {
		chat = to
	}
	return laneKey{chat, beside}
}

func (ls *lanes) keyOf(e *entry) laneKey { return ls.key(e.Chat, e.beside) }

// rename makes one lane of those of two spellings of a contact's number, in the order of their messages.
func (ls *lanes) rename(from, to parley.ContactID) {
	for _, beside := range []bool{false, true} {
		old := ls.byKey[laneKey{from, beside}]
		if old == nil {
			continue
		}
		ls.same[from] = to
		delete(ls.byKey, old.key)
		delete(ls.resting, old)
		l := ls.byKey[laneKey{to, beside}]
		if l == nil {
			l = &lane{key: laneKey{to, beside}}
			ls.byKey[l.key] = l
		}
		l.busy = l.busy || old.busy
		l.queue = append(l.queue, old.queue...)
		slices.SortStableFunc(l.queue, func(a, b *entry) int {
			if goesBefore(a, b) {
				return -1
			}
			return 1
		})
		old.queue = nil // it may be listed
		ls.list(l)
	}
}

// add puts a message at its place in its chat's lane. A change of the account's settings stays behind those
// of its chat that are not ready, so that the last one counts.
func (ls *lanes) add(e *entry) {
	if isSetting(e.Kind) && ls.byKey[ls.key(e.Chat, true)] != nil {
		e.beside = true
	}
	l := ls.byKey[ls.keyOf(e)]
	if l == nil {
		l = &lane{key: ls.keyOf(e)}
		ls.byKey[l.key] = l
	}
	at := len(l.queue) // nearly always the end
	for at > 0 && goesBefore(e, l.queue[at-1]) {
		at--
	}
	l.queue = slices.Insert(l.queue, at, e)
	ls.list(l)
}

func isSetting(kind parley.Kind) bool { return kind == parley.KindStar || kind == parley.KindArchive }

func goesBefore(a, b *entry) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	return a.Seq < b.Seq
}

// list notes that a lane has something to send.
func (ls *lanes) list(l *lane) {
	if l.busy || len(l.queue) == 0 {
		return
	}
	priority := l.queue[0].Priority
	if priority == parley.PriorityNormal {
		if l.listed {
			return
		}
		l.listed = true
	}
	ls.ready[priority] = append(ls.ready[priority], l)
}

// take returns up to size messages that may be sent now and makes their lanes busy. Messages of one
// chat come in order.
func (ls *lanes) take(size int, now time.Time) []*entry {
	for l := range ls.resting {
		if l.due(1, now) > 0 {
			delete(ls.resting, l)
			ls.list(l)
		}
	}
	var taken []*entry
	for len(taken) < size {
		l, priority := ls.next()
		if l == nil {
			break
		}
		if l.busy || len(l.queue) == 0 {
			continue
		}
		if l.queue[0].Priority < priority { // what it was listed for has left
			ls.list(l)
			continue
		}
		n := l.due(size-len(taken), now)
		if n == 0 {
			ls.resting[l] = true
			continue
		}
		taken = append(taken, l.queue[:n]...)
		l.queue = slices.Delete(l.queue, 0, n)
		l.busy = true
	}
	return taken
}

// due is how many messages at the head of the lane may be sent now, up to a number: those before the first
// that is to be tried later.
func (l *lane) due(most int, now time.Time) int {
	n := 0
	for n < min(most, len(l.queue)) && !l.queue[n].NextAttempt.After(now) {
		n++
	}
	return n
}

// next removes the first lane of the highest priority from the lists.
func (ls *lanes) next() (*lane, parley.Priority) {
	for p := len(ls.ready) - 1; p >= 0; p-- {
		if len(ls.ready[p]) == 0 {
			continue
		}
		l := ls.ready[p][0]
		ls.ready[p] = ls.ready[p][1:]
		if p == int(parley.PriorityNormal) {
			l.listed = false
		}
		return l, parley.Priority(p)
	}
	return nil, 0
}

// release makes the lanes of messages that came back free again.
func (ls *lanes) release(es []*entry) {
	for _, e := range es {
		l := ls.byKey[ls.keyOf(e)]
		if l == nil || !l.busy {
			continue // released for an earlier message of the same chat
		}
		l.busy = false
		if len(l.queue) == 0 {
			ls.removeLane(l)
			continue
		}
		ls.list(l)
	}
}

// wake makes everything due that rests for want of a connection.
func (ls *lanes) wake() {
	ls.all(func(e *entry) {
		if e.waits {
			e.waits, e.NextAttempt = false, time.Time{}
		}
	})
}

// remove takes the messages of a chat that match out of its lanes.
func (ls *lanes) remove(chat parley.ContactID, match func(*entry) bool) []*entry {
	var removed []*entry
	for _, beside := range []bool{false, true} {
		l := ls.byKey[ls.key(chat, beside)]
		if l == nil {
			continue
		}
		l.queue = slices.DeleteFunc(l.queue, func(e *entry) bool {
			if match(e) {
				removed = append(removed, e)
				return true
			}
			return false
		})
		if len(l.queue) == 0 && !l.busy {
			ls.removeLane(l)
		}
	}
	return removed
}

func (ls *lanes) removeLane(l *lane) {
	delete(ls.byKey, l.key)
	delete(ls.resting, l)
	if len(ls.same) == 0 || ls.byKey[laneKey{l.key.chat, !l.key.beside}] != nil {
		return
	}
	for from, to := range ls.same {
		if to == l.key.chat {
			delete(ls.same, from)
		}
	}
}

// nextDue is when the first resting lane may go on; zero: none rests. What is due already waits for
// something else: a connection, the pace, or a burst that comes back.
func (ls *lanes) nextDue(now time.Time) time.Time {
	var due time.Time
	for l := range ls.resting {
		if len(l.queue) == 0 {
			continue
		}
		if at := l.queue[0].NextAttempt; at.After(now) && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}

// all calls f with every message that is in a lane.
func (ls *lanes) all(f func(*entry)) {
	for _, l := range ls.byKey {
		for _, e := range l.queue {
			f(e)
		}
	}
}
