package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/keystore"
)

// A device that could not read a message requests it again. whatsmeow acknowledges the request whatever comes of it, so that a busy
// database or a failed upload would lose the message for good. Here it is acknowledged once it was fulfilled, or if it never can be.
// Until then it is tried again, and after that it comes again with the next connection.

const (
	// retriesAtOnce bounds how many messages are encrypted again at once for devices that could not read them.
	retriesAtOnce = 4
	// retryTries is how often a retry is tried on one connection, and retryPause is after the first time. It doubles from there.
	retryTries = 5
	retryPause = time.Second
	// resendTimeout bounds making a message again for a device that could not read it; it may have a file.
	resendTimeout = 2 * time.Minute
)

// handleRetry fulfils a device's request for a message, in the background.
func (conn *connection) handleRetry(ctx context.Context, node *waBinary.Node) {
	receipt, _, err := conn.inner().ParseReceipt(node)
	if err != nil {
		conn.log.Warnf("read a request for a message: %v", err)
		conn.inner().SendAck(ctx, node, whatsmeow.NackParsingError)
		return
	}
	conn.s.evidence.received()
	conn.goBackground(func() {
		for tries := 1; ; tries++ {
			err := conn.tryRetry(ctx, receipt, node)
			if err == nil {
				conn.inner().SendAck(ctx, node, 0)
				return
			}
			conn.log.Warnf("send a message again: %v", err)
			if tries == retryTries || !conn.pause(retryPause<<(tries-1)) {
				return
			}
		}
	})
}

// tryRetry returns an error if it makes sense to try again.
func (conn *connection) tryRetry(ctx context.Context, receipt *events.Receipt, node *waBinary.Node) (err error) {
	select {
	case conn.retries <- struct{}{}:
		defer func() { <-conn.retries }()
	case <-conn.handlerCtx.Done():
		return conn.handlerCtx.Err()
	}
	defer conn.s.recoverPanic(&err)
	retry := node.GetChildByTag("retry")
	id := retry.AttrGetter().OptionalString("id")
	err = conn.inner().HandleRetryReceipt(ctx, receipt, node)
	_, unmade := conn.unmade.LoadAndDelete(id)
	_, unstored := errors.AsType[*keystore.Error](err)
	_, refused := errors.AsType[*whatsmeow.IQError](err)
	if err == nil || unmade || unstored || refused || errors.Is(err, whatsmeow.ErrIQTimedOut) || conn.isBroken(err) {
		return err
	}
	conn.log.Warnf("do not send a message again: %v", err)
	return nil
}

// messageForRetry makes a message again for a device that could not decrypt it; nil: there is none. whatsmeow calls it when the message
// is not in its own cache, for example after a restart. What failed and may succeed later is noted in unmade.
func (conn *connection) messageForRetry(requester, to types.JID, id types.MessageID) *waE2E.Message {
	ctx, cancel := context.WithTimeout(conn.ctx, resendTimeout)
	defer cancel()
	raw, err := conn.recompose(ctx, requester, to, id)
	if err != nil {
		conn.log.Warnf("make %s again: %v", id, err)
		if network.ToClass(err) != network.Permanent {
			conn.unmade.Store(id, struct{}{})
		}
		return nil
	}
	return raw
}

func (conn *connection) recompose(ctx context.Context, requester, to types.JID, id types.MessageID) (*waE2E.Message, error) {
	if to.Server == types.GroupServer {
		return conn.groupMessageForRetry(ctx, requester, to, id)
	}
	chat, known, err := conn.contactFor(ctx, to, types.EmptyJID)
	if err != nil || !known {
		return nil, err
	}
	lid, err := conn.findAddress(ctx, chat)
	if err != nil {
		return nil, err
	}
	return conn.composeAgain(ctx, lid, chat, id)
}

// groupMessageForRetry returns a message to a group for a member's device that could not read it. Only members get it.
func (conn *connection) groupMessageForRetry(ctx context.Context, requester, group types.JID, id types.MessageID) (*waE2E.Message, error) {
	g, err := conn.groupInfo(ctx, group)
	if err != nil {
		return nil, err
	}
	who := requester.ToNonAD()
	if !slices.ContainsFunc(g.Participants, func(p types.GroupParticipant) bool {
		return who == p.JID.ToNonAD() || who == p.LID.ToNonAD() || who == p.PhoneNumber.ToNonAD()
	}) {
		return nil, network.Refuse(parley.Refused, "The device is not in the group.")
	}
	if raw, known := conn.s.groupSent.get(id); known {
		return proto.CloneOf(raw), nil // whatsmeow adds the sender key to it
	}
	return conn.composeAgain(ctx, group, groupChat(group), id)
}

// composeAgain composes a message that the gateway stores; nil: it does not.
func (conn *connection) composeAgain(ctx context.Context, to types.JID, chat parley.ContactID, id types.MessageID) (*waE2E.Message, error) {
	m, err := conn.lookUpMessage(ctx, chat, parley.MessageID(id))
	if err != nil || m == nil || !m.FromMe {
		return nil, err
	}
	raw, err := conn.compose(ctx, m, to)
	if err == nil {
		conn.addSecret(raw, to, id)
	}
	return raw, err
}

// lookUpMessage returns a message that the gateway stores; nil: not found, or its text is erased.
func (conn *connection) lookUpMessage(ctx context.Context, chat parley.ContactID, id parley.MessageID) (*parley.Message, error) {
	if conn.s.d.config.MessageForRetry == nil {
		return nil, nil
	}
	m, err := conn.s.d.config.MessageForRetry(ctx, conn.s.code, chat, id)
	switch {
	case errors.Is(err, parley.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look up a message: %w", err)
	case m == nil || m.Content == nil || m.Status == parley.Deleted:
		return nil, nil
	}
	return m, nil
}

// storedMessage is lookUpMessage for those who can do without the message.
func (conn *connection) storedMessage(ctx context.Context, chat parley.ContactID, id parley.MessageID) *parley.Message {
	m, err := conn.lookUpMessage(ctx, chat, id)
	if err != nil {
		conn.log.Warnf("%v", err)
	}
	return m
}
