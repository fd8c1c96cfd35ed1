package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/appstate"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network"
)

// seenGrace is how long the network may take to confirm a read receipt before it is asked with a ping.
const seenGrace = 5 * time.Second

// markSeen sends a read receipt for messages of one author, which is empty in a chat of two. If the network does not confirm it, the
// response to a later ping does: stanzas are handled in order.
func (conn *connection) markSeen(ctx context.Context, chat, author parley.ContactID, ids ...parley.MessageID) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	to, err := conn.findAddress(ctx, chat)
	sender := to
	if err == nil && author != "" {
		sender, err = conn.findAddress(ctx, author)
	}
	if err != nil {
		return conn.classifyUnsent(err)
	}
	all := make([]types.MessageID, len(ids))
	for i, id := range ids {
		all[i] = types.MessageID(id)
	}
	ack := conn.acks.expect(seenAck(all[0]))
	defer conn.acks.remove(seenAck(all[0]))
	if err := conn.client.MarkRead(ctx, all, time.Now(), to, sender); err != nil {
		return conn.queryError("mark as seen", err)
	}
	select {
	case _, confirmed := <-ack:
		if confirmed {
			return nil
		}
	case <-time.After(seenGrace):
	case <-ctx.Done():
	}
	if ok, _ := conn.inner().SendKeepAlive(ctx); !ok {
		return network.OutcomeUnknown(fmt.Errorf("mark as seen: no answer"))
	}
	return nil
}

// seenAck is the name under which the confirmation of a read receipt is expected. A message has other receipts too.
func seenAck(id types.MessageID) string { return "seen " + id }

func (s *session) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status.Phone.Name
}

func (conn *connection) star(ctx context.Context, chat parley.ContactID, c parley.Star) error {
	jid, err := conn.ownChatJID(ctx, chat)
	if err != nil {
		return err
	}
	sender := jid
	switch {
	case c.Target.FromMe:
		sender = conn.jid.ToNonAD()
	case c.Author != "":
		if sender, err = conn.findAddress(ctx, c.Author); err != nil {
			return conn.classifyUnsent(err)
		}
	}
	patch := appstate.BuildStar(jid, sender, types.MessageID(c.Target.ID), c.Target.FromMe, c.Starred)
	if c.Author == "" {
		patch.Mutations[0].Index[4] = "0" // there is no other sender in a chat of two, and none of an own message
	}
	return conn.changeSetting(ctx, patch)
}

// archive puts a chat away for the account's owner, or brings it back.
func (conn *connection) archive(ctx context.Context, chat parley.ContactID, archived bool) error {
	jid, err := conn.ownChatJID(ctx, chat)
	if err != nil {
		return err
	}
	return conn.changeSetting(ctx, appstate.BuildArchive(jid, archived, time.Time{}, nil))
}

// readChat sends read receipts to the authors, and marks the chat for the account's owner.
func (conn *connection) readChat(ctx context.Context, chat parley.ContactID, c parley.ReadChat) error {
	byAuthor := map[parley.ContactID][]parley.MessageID{}
	for _, seen := range c.Seen {
		byAuthor[seen.Author] = append(byAuthor[seen.Author], seen.Target.ID)
	}
	for author, ids := range byAuthor {
		if err := conn.markSeen(ctx, chat, author, ids...); err != nil {
			return err
		}
	}
	jid, err := conn.ownChatJID(ctx, chat)
	if err != nil {
		return err
	}
	return conn.changeSetting(ctx, appstate.BuildMarkChatAsRead(jid, c.Read, time.Time{}, nil))
}

// ownChatJID is how the account's own devices name a chat among each other: by LID once they have moved to it.
func (conn *connection) ownChatJID(ctx context.Context, chat parley.ContactID) (types.JID, error) {
	if group, ok := groupJID(chat.Group()); ok {
		return group, nil
	}
	device, err := conn.s.d.keys.Device(ctx, conn.jid)
	if err != nil {
		return types.EmptyJID, fmt.Errorf("read a device: %w", err)
	}
	if device != nil && device.LIDMigrationTimestamp > 0 {
		to, err := conn.findAddress(ctx, chat)
		return to, conn.classifyUnsent(err)
	}
	return phoneJID(chat), nil
}

const (
	maxSettingTries = 4
	// maxPendingSettings bounds changes of settings that wait. More would block calls that messages need.
	maxPendingSettings = 4
)

// errNoKeys is why a setting cannot be changed before the phone has shared the keys of the settings, which it
// does in the first seconds after pairing.
var errNoKeys = errors.New("the phone has not shared the keys of the account's settings yet")

// changeSetting changes a setting of the account. Another device may change it at the same time, and whatsmeow fetches
// changes in the background without a lock. On a conflict the state is fetched again and the change repeated.
func (conn *connection) changeSetting(ctx context.Context, patch appstate.PatchInfo) error {
	id, err := conn.keys.GetLatestAppStateSyncKeyID(ctx)
	if err != nil {
		return fmt.Errorf("look up the keys of the settings: %w", err)
	}
	if id == nil {
		return network.NotPossibleYet(errNoKeys)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	done, err := conn.settings.acquire(ctx)
	if err != nil {
		return err
	}
	defer done()
	for tries := 1; tries <= maxSettingTries; tries++ {
		if err = conn.client.SendAppState(ctx, patch); err == nil {
			return nil
		}
		if conn.isBroken(err) || ctx.Err() != nil || errors.Is(err, whatsmeow.ErrIQTimedOut) {
			break
		}
		full := tries >= maxSettingTries-1 // the local state may be broken
		if fetchErr := conn.client.FetchAppState(ctx, patch.Type, full, false); fetchErr != nil {
			conn.log.Warnf("fetch settings: %v", fetchErr)
		}
	}
	return conn.queryError("change a setting", err)
}

// settingsQueue serializes changes of settings: each one builds on the previous.
type settingsQueue struct {
	waiting atomic.Int32
	slot    chan struct{} // holds one while a change is made
}

// acquire waits for the slot. If too many wait, the change is not possible yet.
func (s *settingsQueue) acquire(ctx context.Context) (done func(), err error) {
	if s.waiting.Add(1) > maxPendingSettings {
		s.waiting.Add(-1)
		return nil, network.NotPossibleYet(errors.New("other settings of the account are being changed"))
	}
	select {
	case s.slot <- struct{}{}:
		return func() { <-s.slot; s.waiting.Add(-1) }, nil
	case <-ctx.Done():
		s.waiting.Add(-1)
		return nil, ctx.Err()
	}
}

func unlinkNode(jid types.JID) []waBinary.Node {
	return []waBinary.Node{{Tag: "remove-companion-device", Attrs: waBinary.Attrs{"jid": jid, "reason": "user_initiated"}}}
}

// typingTimeout is how long "typing…" is shown if it is not stopped.
const typingTimeout = 10 * time.Second

// typing tracks who sees "typing…". The account is online only while somebody sees it: phones show it only for online
// accounts, but the owner's phone does not ring meanwhile.
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

// stop reports whether no contact sees "typing…" any more.
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

func (t *typing) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	for _, timer := range t.until {
		timer.Stop()
	}
	clear(t.until)
}

func (s *session) Typing(ctx context.Context, to parley.ContactID, on bool) error {
	_, err := query(ctx, s, func(ctx context.Context, conn *connection) (struct{}, error) {
		jid, err := conn.findAddress(ctx, to)
		if err != nil {
			return struct{}{}, conn.classifyUnsent(err)
		}
		if on {
			return struct{}{}, conn.startTyping(ctx, to, jid)
		}
		return struct{}{}, conn.stopTyping(ctx, to, jid)
	})
	return err
}

func (conn *connection) startTyping(ctx context.Context, to parley.ContactID, jid types.JID) error {
	over := func() {
		ctx, cancel := context.WithTimeout(conn.ctx, requestTimeout)
		defer cancel()
		if err := conn.stopTyping(ctx, to, jid); err != nil {
			conn.log.Warnf("stop typing: %v", err)
		}
	}
	conn.typing.start(to, conn.s.d.typingTimeout, over)
	if name := conn.s.name(); name != "" { // an account without a name cannot be online
		if err := conn.presence(ctx, types.PresenceAvailable, name); err != nil {
			return conn.queryError("come online", err)
		}
	}
	if err := conn.client.SendChatPresence(ctx, jid, types.ChatPresenceComposing, types.ChatPresenceMediaText); err != nil {
		return conn.queryError("show typing", err)
	}
	conn.typing.start(to, conn.s.d.typingTimeout, over) // again: the timeout counts from the stanza that was just sent
	return nil
}

func (conn *connection) stopTyping(ctx context.Context, to parley.ContactID, jid types.JID) (err error) {
	defer conn.s.recoverPanic(&err)
	last := conn.typing.stop(to)
	if err := conn.client.SendChatPresence(ctx, jid, types.ChatPresencePaused, types.ChatPresenceMediaText); err != nil {
		return conn.queryError("stop typing", err)
	}
	if name := conn.s.name(); name != "" && last {
		if err := conn.presence(ctx, types.PresenceUnavailable, name); err != nil {
			return conn.queryError("go offline", err)
		}
	}
	return nil
}

// presence sets the account's presence. whatsmeow's own method reads the name while another goroutine may write it.
func (conn *connection) presence(ctx context.Context, p types.Presence, name string) error {
	if p == types.PresenceAvailable {
		conn.goBackground(conn.inner().SendUnifiedSession)
	}
	return conn.inner().SendNode(ctx, waBinary.Node{Tag: "presence", Attrs: waBinary.Attrs{"type": string(p), "name": name}})
}
