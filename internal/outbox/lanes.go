package outbox

import (
	"slices"
	"time"

	"parley"
)

// lanes are the queue, chat by chat. A lane whose messages are under way is busy, and nothing of it
// is taken until they come back: that keeps the order.
type lanes struct {
	byChat map[parley.ContactID]*lane
	// Lanes that may have something to send, by the priority of their first message, in the order in
	// which they got it. A lane can be listed and yet have nothing to give; take looks.
	ready   [parley.Priorities][]*lane
	resting map[*lane]bool // lanes that wait for their notBefore
}

type lane struct {
	chat      parley.ContactID
	queue     []*parley.Message // by priority, then by Seq
	busy      bool
	notBefore time.Time
	listed    bool // in ready, with the normal priority
}

func newLanes() lanes {
	return lanes{byChat: map[parley.ContactID]*lane{}, resting: map[*lane]bool{}}
}

// add puts a message at its place in its chat's lane.
func (ls *lanes) add(m *parley.Message) {
	l := ls.byChat[m.Chat]
	if l == nil {
		l = &lane{chat: m.Chat}
		ls.byChat[m.Chat] = l
	}
	at := len(l.queue) // nearly always the end
	for at > 0 && goesBefore(m, l.queue[at-1]) {
		at--
	}
	l.queue = slices.Insert(l.queue, at, m)
	if at == 0 && m.NextAttempt.After(l.notBefore) {
		l.notBefore = m.NextAttempt
	}
	ls.list(l)
}

func goesBefore(a, b *parley.Message) bool {
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
func (ls *lanes) take(size int, now time.Time) []*parley.Message {
	for l := range ls.resting {
		if l.due(now) > 0 {
			delete(ls.resting, l)
			ls.list(l)
		}
	}
	var ms []*parley.Message
	for len(ms) < size {
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
		n := min(size-len(ms), l.due(now))
		if n == 0 {
			ls.resting[l] = true
			continue
		}
		ms = append(ms, l.queue[:n]...)
		l.queue = slices.Delete(l.queue, 0, n)
		l.busy = true
	}
	return ms
}

// due is how many messages at the head of the lane may be sent now. An urgent one does not wait for
// those that it overtakes, only for its own next attempt.
func (l *lane) due(now time.Time) int {
	if !l.notBefore.After(now) {
		return len(l.queue)
	}
	n := 0
	for n < len(l.queue) && l.queue[n].Priority > parley.PriorityNormal && !l.queue[n].NextAttempt.After(now) {
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
func (ls *lanes) release(ms []*parley.Message) {
	for _, m := range ms {
		l := ls.byChat[m.Chat]
		if l == nil || !l.busy {
			continue // released for an earlier message of the same chat
		}
		l.busy = false
		if len(l.queue) == 0 {
			delete(ls.byChat, l.chat)
			delete(ls.resting, l)
			continue
		}
		ls.list(l)
	}
}

// putBack returns a message that was not sent; its chat rests until the given time.
func (ls *lanes) putBack(m *parley.Message, notBefore time.Time) {
	m.NextAttempt = notBefore
	ls.add(m)
	if l := ls.byChat[m.Chat]; notBefore.After(l.notBefore) {
		l.notBefore = notBefore
	}
}

// remove takes the messages that match out of a chat's lane.
func (ls *lanes) remove(chat parley.ContactID, match func(*parley.Message) bool) []*parley.Message {
	l := ls.byChat[chat]
	if l == nil {
		return nil
	}
	var removed []*parley.Message
	l.queue = slices.DeleteFunc(l.queue, func(m *parley.Message) bool {
		if match(m) {
			removed = append(removed, m)
			return true
		}
		return false
	})
	if len(l.queue) == 0 && !l.busy {
		delete(ls.byChat, chat)
		delete(ls.resting, l)
	}
	return removed
}

// nextDue is when the first resting lane may go on; zero: none rests. What is due already waits for
// something else: a connection, the pace, or a burst that comes back.
func (ls *lanes) nextDue(now time.Time) time.Time {
	var due time.Time
	for l := range ls.resting {
		at := l.notBefore
		if len(l.queue) > 0 && l.queue[0].Priority > parley.PriorityNormal {
			at = l.queue[0].NextAttempt
		}
		if at.After(now) && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return due
}

// all calls f with every message that is in a lane.
func (ls *lanes) all(f func(*parley.Message)) {
	for _, l := range ls.byChat {
		for _, m := range l.queue {
			f(m)
		}
	}
}
