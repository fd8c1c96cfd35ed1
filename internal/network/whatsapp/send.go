package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/socket"
	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network"
)

// The messages of a burst would go out one after the other, each when the one before it was confirmed. Several
// calls at once, which are for different chats, go out together. A message to a new contact takes four round
// trips: at 100 ms each, 64 calls are 160 messages a second.
const (
	burst = 1
	calls = 64
)

const (
	// ackTimeout is how long the network may take to confirm a message before the outcome is unknown.
	ackTimeout = 20 * time.Second
	// askTimeout is how long the network may take to answer a question.
	askTimeout = 20 * time.Second
)

// Limits are how many messages a call of Send should carry, and how many calls are useful at once.
func (s *session) Limits() (int, int) { return burst, calls }

// Send gives messages and operations to the network.
func (s *session) Send(ctx context.Context, ms []*parley.Message) []error {
	errs := make([]error, len(ms))
	failed := map[parley.ContactID]bool{}
	for i, m := range ms {
		if failed[m.Chat] {
			errs[i] = network.ErrHeldBack
			continue
		}
		if errs[i] = s.sendOne(ctx, m); errs[i] != nil {
			failed[m.Chat] = network.ClassOf(errs[i]) != network.NotReady
			continue
		}
		s.evidence.confirmed()
	}
	return errs
}

func (s *session) sendOne(ctx context.Context, m *parley.Message) (err error) {
	defer s.contain(&err)
	l, err := s.live()
	if err != nil {
		return err
	}
	done := l.awaitNetwork()
	defer done()
	switch c := m.Content.(type) {
	case parley.Seen:
		return l.seen(ctx, m.Chat, c.Target)
	case parley.Star:
		return l.star(ctx, m.Chat, c)
	case parley.Archive:
		return l.archive(ctx, m.Chat, c.Archived)
	}
	to, err := l.address(ctx, m.Chat)
	if err != nil {
		return l.before(err)
	}
	if own := l.s.aliases.of(m.Chat); own != m.Chat {
		m = new(*m)
		m.Chat = own
	}
	raw, err := l.compose(ctx, m, to)
	if err != nil {
		return l.before(err)
	}
	err = l.send(ctx, to, m.ID, raw)
	if errors.Is(err, errUnsealed) { // they may have left the network since we learned their address
		if found, lookErr := l.look(ctx, m.Chat); lookErr == nil && !found {
			return errAbsent
		}
	}
	return err
}

// send gives the network a message under our id. It answers nil only where something that the recipient can
// read was confirmed.
func (l *line) send(ctx context.Context, to types.JID, id parley.MessageID, raw *waE2E.Message) error {
	ctx, watch := withSeal(ctx, to)
	ctx, done := l.s.d.db.keys.Sending(ctx)
	defer done()
	return l.classed(l.transmit(ctx, to, types.MessageID(id), raw), watch)
}

// Errors are classed here and nowhere else.

// classed says what follows from an error of a send.
func (l *line) classed(err error, watch *seal) error {
	switch {
	case isRefusal(err):
		return err
	case watch.isSealed():
		if err == nil {
			return nil
		}
		return network.OutcomeUnknown(fmt.Errorf("send: %w", err))
	case watch.why() != nil:
		err = watch.why()
	case err == nil: // it must not happen; if it does, it must not pass for sent
		err = errUnsealed
	}
	return l.before(fmt.Errorf("send: %w", err)) // nothing left that anybody could read
}

// before classes an error that came before anything was sent.
func (l *line) before(err error) error {
	if _, ok := errors.AsType[*network.Error](err); ok {
		return err
	}
	if l.isBroken(err) {
		return network.NotConnected(err)
	}
	return err
}

// isBroken reports whether an error says that there is no connection.
func (l *line) isBroken(err error) bool {
	if l.ctx.Err() != nil || l.s.up.Load() != l {
		return true
	}
	if _, media := errors.AsType[*url.Error](err); media {
		return false // files go another way
	}
	if _, disconnected := errors.AsType[*whatsmeow.DisconnectedError](err); disconnected {
		return true
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false // an answer that is late does not say that: somebody watches the connection
	}
	if _, lost := errors.AsType[net.Error](err); lost {
		return true
	}
	for _, broken := range []error{whatsmeow.ErrNotConnected, whatsmeow.ErrNotLoggedIn, errLineEnded, socket.ErrSocketClosed, net.ErrClosed, io.EOF} {
		if errors.Is(err, broken) {
			return true
		}
	}
	return false
}

// asked classes an error of a question to the network.
func (l *line) asked(what string, err error) error { return l.before(fmt.Errorf("%s: %w", what, err)) }

// isRefusal reports whether an error is the network's answer to a message.
func isRefusal(err error) bool {
	if _, ok := errors.AsType[*refusal](err); ok {
		return true
	}
	_, ok := errors.AsType[*network.Error](err)
	return ok
}
