package gateway

import (
	"context"
	"time"
	"unicode/utf8"

	"parley"
	"parley/internal/network"
	"parley/internal/outbox"
	"parley/internal/store"
	"parley/internal/wait"
)

// A careful channel counts what leaves in a day, in its row: a message is counted before it is tried, so that neither a restart nor
// another node exceeds a cap. What exceeds one waits for the next day.

const (
	typingPerCharacter      = 40 * time.Millisecond
	leastTyping, mostTyping = time.Second, 8 * time.Second
)

// beCareful holds a message back if a cap of the channel is reached or it is night. Else it counts the message, and shows typing first.
func (a *account) beCareful(ctx context.Context, m *parley.Message) error {
	careful := a.snapshot().Settings.Careful
	if careful == nil || m.Priority != parley.PriorityNormal {
		return nil
	}
	if err := a.count(ctx, m); err != nil {
		return err
	}
	text, isText := m.Content.(parley.Text)
	if typist, can := a.liveSession().(network.Typist); can && isText && careful.Typing {
		if err := typist.Typing(ctx, m.Chat, true); err == nil { // else the text goes without it
			took := time.Duration(utf8.RuneCountInString(text.Body)) * typingPerCharacter
			wait.Sleep(ctx, min(max(took, leastTyping), mostTyping))
		}
	}
	return nil
}

// count counts a message of a careful channel once, or holds it back.
func (a *account) count(ctx context.Context, m *parley.Message) error {
	if _, was := a.counted.Load(m.ID); was { // an attempt failed
		return nil
	}
	if err := a.worker.Flush(ctx); err != nil { // the store must know what the contact got
		return err
	}
	a.counting.Lock()
	defer a.counting.Unlock()
	c, now := a.snapshot(), a.now()
	first, until, err := a.g.quota(ctx, c, m, now)
	if err != nil {
		return err
	}
	if !until.IsZero() {
		return &outbox.Held{Until: until, Code: parley.QuotaReached}
	}
	if first == exempt {
		return nil
	}
	use, _ := c.UseAt(now)
	use.Messages++
	if first == firstMessage {
		use.Firsts++
	}
	if err := a.tx(ctx, func(tx *store.Tx) error { return tx.SetDailyUse(ctx, a.code, use) }); err != nil {
		return err
	}
	a.counted.Store(m.ID, true)
	a.mu.Lock()
	a.channel.Use = use
	a.mu.Unlock()
	return nil
}

// quotaClass is how a message counts for the caps of its channel.
type quotaClass int

const (
	exempt quotaClass = iota
	laterMessage
	firstMessage
)

// quota returns how a message counts, and until when it must wait; zero: it may leave.
func (g *Gateway) quota(ctx context.Context, c parley.Channel, m *parley.Message, now time.Time) (
	class quotaClass, until time.Time, err error) {
	careful := c.Settings.Careful
	if careful == nil || m.Priority != parley.PriorityNormal || m.Chat.IsGroup() || !m.Content.Kind().InHistory() {
		return exempt, time.Time{}, nil
	}
	isReply, err := g.wrote(ctx, c, m.Chat, parley.ReplyWindow, now)
	if err != nil || isReply {
		return exempt, time.Time{}, err
	}
	class = laterMessage
	if exists, err := g.config.Store.HasChat(ctx, c.Code, m.Chat); err != nil {
		return exempt, time.Time{}, err
	} else if !exists {
		class = firstMessage
	}
	use, next := c.UseAt(now)
	firsts, messages := careful.Caps(now.Sub(c.PairedAt))
	if messages > 0 && use.Messages >= messages || class == firstMessage && firsts > 0 && use.Firsts >= firsts {
		until = next
	}
	if end := careful.NightEnd(now); end.After(until) {
		until = end
	}
	return class, until, nil
}
