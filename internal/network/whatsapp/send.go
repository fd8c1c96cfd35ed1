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

// Messages of one call go out one after the other, each after the previous confirmation. Parallel calls, which are for
// different chats, overlap. A message to a new contact takes four round trips: at 100 ms each, 64 calls are 160
// messages a second.
const (
	messagesPerCall = 1
	parallelCalls   = 64
)

const (
	// ackTimeout is how long a confirmation may take before the outcome is unknown.
	ackTimeout = 20 * time.Second
	// requestTimeout bounds other requests to the network.
	requestTimeout = 20 * time.Second
)

func (s *session) Limits() (int, int) { return messagesPerCall, parallelCalls }

func (s *session) Send(ctx context.Context, ms []*parley.Message) []error {
	errs := make([]error, len(ms))
	failed := map[parley.ContactID]bool{}
	for i, m := range ms {
		if failed[m.Chat] {
			errs[i] = network.ErrHeldBack
			continue
		}
		if errs[i] = s.sendOne(ctx, m); errs[i] != nil {
			failed[m.Chat] = network.ToClass(errs[i]) != network.NotReady
			continue
		}
		s.evidence.confirmed()
		s.sped()
	}
	return errs
}

func (s *session) sendOne(ctx context.Context, m *parley.Message) (err error) {
	defer s.recoverPanic(&err)
	conn, err := s.connected()
	if err != nil {
		return err
	}
	done := conn.watchWhileSending()
	defer done()
	switch c := m.Content.(type) {
	case parley.Seen:
		return conn.markSeen(ctx, m.Chat, c.Author, c.Target.ID)
	case parley.Star:
		return conn.star(ctx, m.Chat, c)
	case parley.Archive:
		return conn.archive(ctx, m.Chat, c.Archived)
	case parley.ReadChat:
		return conn.readChat(ctx, m.Chat, c)
	case parley.Timer:
		if group, ok := groupJID(m.Chat.Group()); ok {
			return conn.setGroupTimer(ctx, group, c)
		}
	}
	to, err := conn.findAddress(ctx, m.Chat)
	if err != nil {
		return conn.classifyUnsent(err)
	}
	if own := conn.s.networkSpelling(m.Chat); own != m.Chat {
		m = new(*m)
		m.Chat = own
	}
	raw, err := conn.compose(ctx, m, to)
	if err != nil {
		return conn.classifyUnsent(err)
	}
	err = conn.send(ctx, to, m.ID, raw)
	if errors.Is(err, errNothingEncrypted) && !m.Chat.IsGroup() { // they may have left the network since we learned their address
		if found, lookErr := conn.lookUpNumber(ctx, m.Chat); lookErr == nil && !found {
			return errAbsent
		}
	}
	if c, ok := m.Content.(parley.Timer); ok && err == nil {
		conn.sentTimer(ctx, m, to, c.Seconds)
	}
	return err
}

// send sends a message under our id. nil means that a ciphertext for the recipient was confirmed.
func (conn *connection) send(ctx context.Context, to types.JID, id parley.MessageID, raw *waE2E.Message) error {
	ctx, done := conn.s.d.keys.SendContext(ctx)
	defer done()
	transmit := conn.transmit
	if to.Server == types.GroupServer {
		transmit = conn.transmitToGroup
	}
	err := transmit(ctx, to, types.MessageID(id), raw)
	if err == nil || isRefusal(err) {
		return err
	}
	return conn.queryError("send", err) // nothing readable left
}

// Errors are classed here and nowhere else.

// classifyUnsent classes an error that came before anything was sent.
func (conn *connection) classifyUnsent(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*network.Error](err); ok {
		return err
	}
	if isOverLimit(err) {
		return &network.Error{Class: network.Temporary, Cause: err, RetryAfter: conn.s.slowDown(), PauseChannel: true}
	}
	if conn.isBroken(err) {
		return network.NotConnected(err)
	}
	return err
}

// isOverLimit reports whether the network answered a query with an error that means that the account does too much.
func isOverLimit(err error) bool {
	e, ok := errors.AsType[*whatsmeow.IQError](err)
	return ok && (e.Code == codeCalmDown || e.Code == codeTooMany)
}

func (conn *connection) isBroken(err error) bool {
	if conn.ctx.Err() != nil || conn.s.current.Load() != conn {
		return true
	}
	if _, media := errors.AsType[*url.Error](err); media {
		return false // files go another way
	}
	if _, disconnected := errors.AsType[*whatsmeow.DisconnectedError](err); disconnected {
		return true
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false // a late response does not mean that: the watchdog decides
	}
	if _, lost := errors.AsType[net.Error](err); lost {
		return true
	}
	for _, broken := range []error{whatsmeow.ErrNotConnected, whatsmeow.ErrNotLoggedIn, errConnectionEnded, socket.ErrSocketClosed,
		net.ErrClosed, io.EOF} {
		if errors.Is(err, broken) {
			return true
		}
	}
	return false
}

// queryError classes an error of a question to the network.
func (conn *connection) queryError(what string, err error) error {
	return conn.classifyUnsent(fmt.Errorf("%s: %w", what, err))
}

// isRefusal reports whether an error is classed, or a temporary rejection by the network.
func isRefusal(err error) bool {
	if _, ok := errors.AsType[*refusal](err); ok {
		return true
	}
	_, ok := errors.AsType[*network.Error](err)
	return ok
}

// The pauses of a whole channel after the network said that it sends too much: they double.
const (
	firstCalmDown = 30 * time.Second
	lastCalmDown  = 15 * time.Minute
)

// slowDown returns how long the channel pauses.
func (s *session) slowDown() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	pause := min(s.d.calmDown<<min(s.calmDowns, 10), lastCalmDown)
	s.calmDowns++
	return pause
}

// sped ends a series of pauses.
func (s *session) sped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calmDowns = 0
}

// refusal is a temporary rejection by the network.
type refusal struct{ code int }

func (r *refusal) Error() string { return fmt.Sprintf("WhatsApp answered with error %d", r.code) }

// The codes that are known to mean more than "no". docs/whatsapp.md lists them all.
const (
	codeBadRequest     = 400
	codeForbidden      = 403
	codeNotFound       = 404
	codeRequestTimeout = 408
	codeCalmDown       = 420
	codeStale          = 421 // it knows other addresses of the recipient than we do
	codeTooMany        = 429
	codeReachoutLimit  = 463 // the account may not write to strangers for a time
	codeStrangersLimit = 475 // the same, for another reason
	codeInvalidStanza  = 479
	codeUnavailable    = 480
	firstServerError   = 500
)

var errNoToken = network.Refuse(parley.Refused, "WhatsApp wants proof that this contact accepts messages, which this account does "+
	"not have (error 463). It has it once the contact writes again.")

// refusalError classifies the code of a rejection. Unknown codes are permanent: otherwise the queue behind the message
// would wait for nothing. A contact that has written is no stranger: the same code then means that its token is missing.
func (conn *connection) refusalError(code int, hasWritten bool) error {
	conn.s.mu.Lock()
	restricted := conn.s.restricted
	conn.s.mu.Unlock()
	switch {
	case code == codeReachoutLimit && hasWritten:
		return errNoToken
	case code == codeReachoutLimit, code == codeStrangersLimit:
		until := restricted.Until
		return network.RefuseUntil(parley.Restricted,
			fmt.Sprintf("WhatsApp does not let this account write to people who never wrote to it now (error %d).", code), until)
	case code == codeNotFound:
		return errAbsent
	case code == codeCalmDown, code == codeTooMany:
		return &network.Error{Class: network.Temporary, Cause: &refusal{code}, RetryAfter: conn.s.slowDown(), PauseChannel: true}
	case code == codeRequestTimeout, code == codeStale, code == codeUnavailable, code >= firstServerError:
		return &refusal{code}
	case code == codeBadRequest, code == codeInvalidStanza:
		return network.Refuse(parley.Refused, fmt.Sprintf("WhatsApp did not understand this message (error %d).", code))
	case code == codeForbidden:
		return network.Refuse(parley.Refused, fmt.Sprintf("WhatsApp does not let this account write to this contact (error %d).", code))
	}
	return network.Refuse(parley.Refused, fmt.Sprintf("WhatsApp does not accept this message (error %d).", code))
}
