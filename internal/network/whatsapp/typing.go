package whatsapp

import (
	"context"
	"sync"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"

	"parley"
)

// typingFor is how long "typing…" is shown unless somebody says that it is over.
const typingFor = 10 * time.Second

// typing remembers to whom "typing…" is shown. While it is shown to anybody the account is online, since
// phones show it of nobody else; and not longer, since its own phone does not ring meanwhile.
type typing struct {
	mu    sync.Mutex
	until map[parley.ContactID]*time.Timer
	ended bool
}

// start notes that it is shown, for a while.
func (t *typing) start(to parley.ContactID, while time.Duration, over func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	if t.until == nil {
		t.until = map[parley.ContactID]*time.Timer{}
	}
	if timer := t.until[to]; timer != nil {
		timer.Stop()
	}
	t.until[to] = time.AfterFunc(while, over)
}

// stop notes that it is not shown any more. It reports whether it is shown to nobody now.
func (t *typing) stop(to parley.ContactID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if timer := t.until[to]; timer != nil {
		timer.Stop()
		delete(t.until, to)
	}
	return len(t.until) == 0
}

func (t *typing) isOn() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.until) > 0
}

// end forgets everything: there is no connection any more.
func (t *typing) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	for _, timer := range t.until {
		timer.Stop()
	}
	clear(t.until)
}

// Typing shows or hides "typing…" to a contact.
func (s *session) Typing(ctx context.Context, to parley.ContactID, on bool) (err error) {
	defer s.contain(&err)
	l, err := s.live()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	jid, err := l.address(ctx, to)
	if err != nil {
		return l.before(err)
	}
	if !on {
		return l.stopTyping(ctx, to, jid)
	}
	over := func() {
		ctx, cancel := context.WithTimeout(l.ctx, askTimeout)
		defer cancel()
		if err := l.stopTyping(ctx, to, jid); err != nil {
			l.log.Warnf("stop typing: %v", err)
		}
	}
	l.typing.start(to, s.d.typingFor, over)
	if name := s.name(); name != "" { // without one nobody can be online
		if err := l.presence(ctx, types.PresenceAvailable, name); err != nil {
			return l.asked("come online", err)
		}
	}
	if err := l.client.SendChatPresence(ctx, jid, types.ChatPresenceComposing, types.ChatPresenceMediaText); err != nil {
		return l.asked("show typing", err)
	}
	l.typing.start(to, s.d.typingFor, over) // again: the end must follow what was just sent, however long that took
	return nil
}

func (l *line) stopTyping(ctx context.Context, to parley.ContactID, jid types.JID) (err error) {
	defer l.s.contain(&err)
	last := l.typing.stop(to)
	if err := l.client.SendChatPresence(ctx, jid, types.ChatPresencePaused, types.ChatPresenceMediaText); err != nil {
		return l.asked("stop typing", err)
	}
	if name := l.s.name(); name != "" && last {
		if err := l.presence(ctx, types.PresenceUnavailable, name); err != nil {
			return l.asked("go offline", err)
		}
	}
	return nil
}

// presence says whether somebody sits here, under the account's name. whatsmeow's own way reads the name
// while another goroutine may write it.
func (l *line) presence(ctx context.Context, p types.Presence, name string) error {
	return l.inner().SendNode(ctx, waBinary.Node{Tag: "presence", Attrs: waBinary.Attrs{"type": string(p), "name": name}})
}
