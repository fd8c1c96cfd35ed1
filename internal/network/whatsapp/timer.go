package whatsapp

import (
	"context"
	"errors"
	"time"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/reflect/protoreflect"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/keystore"
)

// Messages that disappear: every message carries the timer of its chat. A phone shows a warning on those that do not.

// timer returns the timer of a chat.
func (conn *connection) timer(ctx context.Context, chat types.JID) (keystore.Timer, error) {
	if chat.Server == types.GroupServer {
		g, err := conn.groupInfo(ctx, chat)
		if err != nil {
			return keystore.Timer{}, err
		}
		return keystore.Timer{Seconds: g.DisappearingTimer}, nil
	}
	return conn.timers.Timer(ctx, conn.timerKey(ctx, chat))
}

// timerKey names a chat by LID, if it is known.
func (conn *connection) timerKey(ctx context.Context, chat types.JID) string {
	if chat.Server == types.DefaultUserServer {
		if lid, err := conn.client.Store.LIDs.GetLIDForPN(ctx, chat.ToNonAD()); err == nil && !lid.IsEmpty() {
			chat = lid
		}
	}
	return chat.ToNonAD().String()
}

// withTimer adds the timer of a chat to what a message says besides its content.
func (conn *connection) withTimer(ctx context.Context, chat types.JID, c *waE2E.ContextInfo) (*waE2E.ContextInfo, error) {
	t, err := conn.timer(ctx, chat)
	if err != nil || t.Seconds == 0 {
		return c, err
	}
	if c == nil {
		c = &waE2E.ContextInfo{}
	}
	c.Expiration = &t.Seconds
	if t.SetAt != 0 {
		c.EphemeralSettingTimestamp = &t.SetAt
	}
	return c, nil
}

// learnTimer stores the timer that a message in a chat with a contact sets or carries.
func (conn *connection) learnTimer(chat types.JID, m *waE2E.Message, at time.Time) error {
	if !isDirect(chat) || m == nil {
		return nil
	}
	var t keystore.Timer
	if p := m.GetProtocolMessage(); p != nil && p.GetType() == waE2E.ProtocolMessage_EPHEMERAL_SETTING {
		t = keystore.Timer{Seconds: p.GetEphemeralExpiration(), SetAt: p.GetEphemeralSettingTimestamp()}
		if t.SetAt == 0 {
			t.SetAt = at.Unix()
		}
	} else {
		c := findContextInfo(m)
		t = keystore.Timer{Seconds: c.GetExpiration(), SetAt: c.GetEphemeralSettingTimestamp()}
		if t.Seconds == 0 || t.SetAt == 0 { // an old app leaves it out, although the chat has one
			return nil
		}
	}
	t.SetAt = min(t.SetAt, at.Unix()) // by the network's clock: no contact can set a timer that nobody can change
	return conn.timers.PutTimer(conn.ctx, conn.timerKey(conn.ctx, chat), t)
}

// findContextInfo returns what a message of any kind says besides its content; nil: nothing.
func findContextInfo(m *waE2E.Message) (found *waE2E.ContextInfo) {
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Kind() == protoreflect.MessageKind && !f.IsList() && !f.IsMap() {
			if x, ok := v.Message().Interface().(interface{ GetContextInfo() *waE2E.ContextInfo }); ok {
				found = x.GetContextInfo()
			}
		}
		return found == nil
	})
	return found
}

func composeTimer(m *parley.Message, c parley.Timer) *waE2E.Message {
	return &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{Type: waE2E.ProtocolMessage_EPHEMERAL_SETTING.Enum(),
		EphemeralExpiration: new(uint32(c.Seconds)), EphemeralSettingTimestamp: new(m.CreatedAt.Unix())}}
}

// setGroupTimer sets the timer of a group.
func (conn *connection) setGroupTimer(ctx context.Context, group types.JID, c parley.Timer) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	defer conn.s.groups.invalidate(group)
	err := conn.client.SetDisappearingTimer(ctx, group, time.Duration(c.Seconds)*time.Second, time.Time{})
	if err == nil {
		return nil
	}
	if err = conn.adminError(ctx, group, "set the timer of a group", err); errors.Is(err, parley.ErrNotFound) {
		return network.ErrNotInGroup
	}
	return err
}

// sentTimer stores a timer that the contact has now, whatever the clocks say.
func (conn *connection) sentTimer(ctx context.Context, m *parley.Message, to types.JID, seconds int) {
	before, err := conn.timer(ctx, to)
	if err == nil {
		err = conn.timers.PutTimer(ctx, conn.timerKey(ctx, to),
			keystore.Timer{Seconds: uint32(seconds), SetAt: max(m.CreatedAt.Unix(), before.SetAt)})
	}
	if err != nil {
		conn.log.Warnf("store a timer: %v", err)
	}
}
