package cloudtest

import (
	"fmt"
	"slices"
	"time"
)

// Phone is somebody's phone in the chat with a number.
type Phone struct {
	Number string // in Meta's spelling
	UserID string // empty: none is reported
	Name   string

	n         *Number
	hidden    bool // the number is not reported
	absent    bool
	offline   bool
	blocks    bool
	wroteAt   time.Time
	waiting   []Received
	shown     []Received
	sent      []string // the ids of what it sent
	seen      map[string]bool
	typing    bool
	reactions map[string]string // of the channel, by message
	borrowed  []time.Time
}

// Received is a message that a phone shows.
type Received struct {
	ID string
	*sent
	failure int
}

// Phone returns the phone with a number, in the spelling of Meta.
func (n *Number) Phone(number string) *Phone {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.phone(number)
}

func (n *Number) phone(number string) *Phone {
	p := n.phones[number]
	if p == nil {
		p = &Phone{Number: number, Name: "Phone " + number, n: n, seen: map[string]bool{}, reactions: map[string]string{}}
		n.phones[number] = p
	}
	return p
}

// recipient returns the phone that a message is for; nil: there is none.
func (n *Number) recipient(m *sent) *Phone {
	if m.Recipient == "" {
		return n.phone(m.To)
	}
	for _, p := range n.phones {
		if p.UserID == m.Recipient {
			return p
		}
	}
	return nil
}

func (p *Phone) lock() func() {
	p.n.mu.Lock()
	return p.n.mu.Unlock
}

// SetAbsent has the number not be on WhatsApp.
func (p *Phone) SetAbsent() { defer p.lock()(); p.absent = true }

// Hide has reports name the user instead of the number, or both again.
func (p *Phone) Hide(userID string, hidden bool) {
	defer p.lock()()
	p.UserID, p.hidden = userID, hidden
}

func (p *Phone) Block() { defer p.lock()(); p.blocks = true }

// SetOnline has messages wait until the phone is online again.
func (p *Phone) SetOnline(online bool) {
	defer p.lock()()
	p.offline = !online
	if online {
		waiting := p.waiting
		p.waiting = nil
		for _, m := range waiting {
			p.show(m)
		}
	}
}

// Shows returns the messages that the phone shows, oldest first.
func (p *Phone) Shows() []Received { defer p.lock()(); return slices.Clone(p.shown) }

// ReactionTo returns the channel's reaction to a message; WasSeen whether it was marked as read.
func (p *Phone) ReactionTo(id string) string { defer p.lock()(); return p.reactions[id] }
func (p *Phone) WasSeen(id string) bool      { defer p.lock()(); return p.seen[id] }
func (p *Phone) SeesTyping() bool            { defer p.lock()(); return p.typing }

// borrow reports whether the number sent too much to the phone: one message per 6 s, after 45.
func (p *Phone) borrow(now time.Time) bool {
	p.borrowed = slices.DeleteFunc(p.borrowed, func(at time.Time) bool { return now.Sub(at) > 45*6*time.Second })
	if len(p.borrowed) >= 45 {
		return true
	}
	p.borrowed = append(p.borrowed, now)
	return false
}

// receive handles an accepted message: sent, then failed, or shown once the phone is online.
func (p *Phone) receive(m Received, failure int) {
	p.typing = false
	m.failure = failure
	if failure != 0 {
		p.status(m, "failed")
		return
	}
	p.status(m, "sent")
	switch {
	case p.blocks:
	case p.offline:
		p.waiting = append(p.waiting, m)
	default:
		p.show(m)
	}
}

func (p *Phone) show(m Received) {
	p.shown = append(p.shown, m)
	p.status(m, "delivered")
}

// Read reads all messages, and plays voice notes.
func (p *Phone) Read() {
	defer p.lock()()
	for _, m := range p.shown {
		p.status(m, "read")
		if m.Audio != nil {
			p.status(m, "played")
		}
	}
}

// status reports a status.
func (p *Phone) status(m Received, status string) {
	report := map[string]any{"id": m.ID, "status": status, "timestamp": fmt.Sprint(time.Now().Unix())}
	if m.Opaque != "" && !(p.n.statuses == StatusesAnonymous && status == "failed") {
		report["biz_opaque_callback_data"] = m.Opaque
	}
	if p.hidden {
		report["recipient_user_id"] = p.UserID
	} else {
		report["recipient_id"] = p.Number
	}
	if status == "failed" {
		report["errors"] = []any{map[string]any{"code": m.failure, "title": "A failure", "message": "A failure",
			"error_data": map[string]string{"details": "It failed."}, "href": "https://developers.facebook.com/"}}
	}
	e := event{"messages", map[string]any{"statuses": []any{report}}}
	switch p.n.statuses {
	case StatusesWithheld:
		p.n.held = append(p.n.held, e)
	case StatusesShuffled:
		p.n.held = append(p.n.held, e, e)
	default:
		p.n.events <- e
	}
}

// Send sends a message with an object of its type, as a reply if quoted is not empty, and returns its id.
func (p *Phone) Send(kind string, object any, quoted string) string {
	defer p.lock()()
	p.n.s.mu.Lock()
	id := p.n.s.newID()
	p.n.s.mu.Unlock()
	p.wroteAt = time.Now()
	p.sent = append(p.sent, id)
	m := map[string]any{"id": id, "timestamp": fmt.Sprint(time.Now().Unix()), "type": kind, kind: object}
	if quoted != "" {
		m["context"] = map[string]string{"from": p.n.Digits, "id": quoted}
	}
	contact := map[string]any{"profile": map[string]string{"name": p.Name}}
	if p.UserID != "" {
		m["from_user_id"], contact["user_id"] = p.UserID, p.UserID
	}
	if !p.hidden {
		m["from"], contact["wa_id"] = p.Number, p.Number
	}
	p.n.events <- event{"messages", map[string]any{"contacts": []any{contact}, "messages": []any{m}}}
	return id
}

// Text sends a text.
func (p *Phone) Text(body string) string { return p.Send("text", map[string]string{"body": body}, "") }
