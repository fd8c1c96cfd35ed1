package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/appstate"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network"
)

// seen tells the sender of a message that it was seen. The network does not confirm receipts, but it takes
// what comes on a connection in order: an answer to what was sent after it confirms it too.
func (l *line) seen(ctx context.Context, chat parley.ContactID, target parley.MessageRef) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	to, err := l.address(ctx, chat)
	if err != nil {
		return l.before(err)
	}
	if err := l.client.MarkRead(ctx, []types.MessageID{types.MessageID(target.ID)}, time.Now(), to, to); err != nil {
		return l.asked("mark as seen", err)
	}
	if ok, _ := l.inner().SendKeepAlive(ctx); !ok {
		return network.OutcomeUnknown(fmt.Errorf("mark as seen: no answer"))
	}
	return nil
}

// name is what the account calls itself.
func (s *session) name() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status.Phone.Name
}

// star marks a message for the account's owner, or takes the mark back.
func (l *line) star(ctx context.Context, chat parley.ContactID, c parley.Star) error {
	jid, err := l.ownName(ctx, chat)
	if err != nil {
		return err
	}
	sender := jid
	if c.Target.FromMe {
		sender = l.jid.ToNonAD()
	}
	patch := appstate.BuildStar(jid, sender, types.MessageID(c.Target.ID), c.Target.FromMe, c.Starred)
	patch.Mutations[0].Index[4] = "0" // there is no other sender in a chat of two
	return l.set(ctx, patch)
}

// archive puts a chat away for the account's owner, or brings it back.
func (l *line) archive(ctx context.Context, chat parley.ContactID, archived bool) error {
	jid, err := l.ownName(ctx, chat)
	if err != nil {
		return err
	}
	return l.set(ctx, appstate.BuildArchive(jid, archived, time.Time{}, nil))
}

// ownName is how the account's own devices name a chat among each other: by LID once they have moved to it.
func (l *line) ownName(ctx context.Context, chat parley.ContactID) (types.JID, error) {
	device, err := l.s.d.db.keys.Device(ctx, l.jid)
	if err != nil {
		return types.EmptyJID, fmt.Errorf("read a device: %w", err)
	}
	if device != nil && device.LIDMigrationTimestamp > 0 {
		to, err := l.address(ctx, chat)
		return to, l.beforeAny(err)
	}
	return phoneJID(chat), nil
}

func (l *line) beforeAny(err error) error {
	if err == nil {
		return nil
	}
	return l.before(err)
}

const (
	settingTries = 4
	// settingsAtOnce is how many changes of settings may be under way, of which one at a time is made: the
	// others wait. More than that would take the calls away that messages need.
	settingsAtOnce = 4
)

// errNoKeys is why a setting cannot be changed before the phone has shared the keys of the settings, which it
// does in the first seconds after pairing.
var errNoKeys = errors.New("the phone has not shared the keys of the account's settings yet")

// set changes a setting of the account. Another device may change the same at the same time, and whatsmeow
// fetches changes in the background without a lock: then the state is fetched anew and it is tried again.
func (l *line) set(ctx context.Context, patch appstate.PatchInfo) error {
	id, err := l.keys.GetLatestAppStateSyncKeyID(ctx)
	if err != nil {
		return fmt.Errorf("look up the keys of the settings: %w", err)
	}
	if id == nil {
		return network.NotPossibleYet(errNoKeys)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	done, err := l.settings.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	for tries := 1; tries <= settingTries; tries++ {
		if err = l.client.SendAppState(ctx, patch); err == nil {
			return nil
		}
		if l.isBroken(err) || ctx.Err() != nil || errors.Is(err, whatsmeow.ErrIQTimedOut) {
			break
		}
		full := tries >= settingTries-1 // what we have may be beyond repair
		if fetchErr := l.client.FetchAppState(ctx, patch.Type, full, false); fetchErr != nil {
			l.log.Warnf("fetch settings: %v", fetchErr)
		}
	}
	return l.asked("change a setting", err)
}

// settings lets one change of the settings through at a time: each is made on top of the one before it.
type settings struct {
	waiting atomic.Int32
	turn    chan struct{} // holds one while a change is made
}

// enter waits for the turn. Where too many wait already it answers that the change is not possible yet.
func (s *settings) enter(ctx context.Context) (done func(), err error) {
	if s.waiting.Add(1) > settingsAtOnce {
		s.waiting.Add(-1)
		return nil, network.NotPossibleYet(errors.New("other settings of the account are being changed"))
	}
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn; s.waiting.Add(-1) }, nil
	case <-ctx.Done():
		s.waiting.Add(-1)
		return nil, ctx.Err()
	}
}

// unlinkNode is the request to remove a device from its account.
func unlinkNode(jid types.JID) []waBinary.Node {
	return []waBinary.Node{{Tag: "remove-companion-device", Attrs: waBinary.Attrs{"jid": jid, "reason": "user_initiated"}}}
}
