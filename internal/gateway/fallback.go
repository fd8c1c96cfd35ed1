package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley"
	"parley/internal/cluster"
	"parley/internal/otp"
	"parley/internal/store"
	"parley/internal/wait"
)

// A request can name several channels for a code. The current one has some seconds to send it; then, or when it fails for a reason that
// another channel may not have, the next one that can be used carries the same code. Where a code is and when it goes on is a row
// (parley.Fallback), so that a restart or another node continues it. The node that serves the current channel decides.

const (
	fallbackCheck  = time.Second // while a code may go on: the clock of a sandbox channel may be moved, another node may end a turn
	fallbackRest   = time.Minute // else; what adds one says so
	fallbackBatch  = 5_000
	fallbackAtOnce = 16
)

// ContinueCodes looks soon for codes that must go on to their next channel.
func (g *Gateway) ContinueCodes() { wait.Notify(g.codesNow) }

func (g *Gateway) runFallbacks(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-g.codesNow:
		}
		some, err := g.continueCodes(ctx)
		if err != nil && ctx.Err() == nil {
			g.config.Log.Error("continue one-time codes on other channels", "error", err)
		}
		next := fallbackCheck
		if _, alone := g.config.Cluster.(cluster.Single); alone && !some && err == nil {
			next = fallbackRest
		}
		timer.Reset(next)
	}
}

// continueCodes continues the codes that are due on channels of this process. It reports whether some may still go on.
func (g *Gateway) continueCodes(ctx context.Context) (some bool, err error) {
	due, err := g.config.Store.DueFallbacks(ctx, g.Clock().Add(g.MaxAhead()), fallbackBatch)
	if err != nil {
		return true, err
	}
	var group sync.WaitGroup
	free := make(chan struct{}, fallbackAtOnce)
	errs := make([]error, len(due))
	for i, f := range due {
		if g.Now(f.Current().Code).Before(f.DueAt) {
			continue
		}
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			errs[i] = g.continueCode(ctx, f)
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return true, err
	}
	return g.config.Store.HasFallbacks(ctx)
}

// hopAccount returns the account of a channel that may carry a code; nil: the channel was deleted. serves is false if another node
// serves it.
func (g *Gateway) hopAccount(hop parley.FallbackHop) (a *account, serves bool) {
	c, there := g.Channel(hop.Code)
	if !there || c.ID != hop.ID {
		return nil, g.config.Cluster.Owns(string(hop.Code))
	}
	a, err := g.account(hop.Code)
	return a, err == nil
}

// nextHop returns the number of turns once the next channel that can be used has its own; 0: there is none.
func (g *Gateway) nextHop(f parley.Fallback) int {
	for i, hop := range f.Channels[f.Turns:] {
		if c, there := g.Channel(hop.Code); there && c.ID == hop.ID && c.Accepts(f.To) == nil {
			return f.Turns + i + 1
		}
	}
	return 0
}

var (
	errContinued = errors.New("somebody else continued the code")
	errCodeEnded = errors.New("the code was used, expired or was replaced")
)

// continueCode makes a code go on: from its current channel, and then on the next one if this process serves that.
func (g *Gateway) continueCode(ctx context.Context, f parley.Fallback) error {
	for {
		a, serves := g.hopAccount(f.Current())
		if !serves {
			return nil
		}
		var err error
		if f.Message == "" {
			err = g.carryCode(ctx, a, &f)
		} else {
			err = g.leaveChannel(ctx, a, &f)
		}
		switch {
		case errors.Is(err, errContinued):
			return nil
		case errors.Is(err, errCodeEnded):
			return g.config.Store.Tx(ctx, func(tx *store.Tx) error { return tx.StopFallback(ctx, f.ID) })
		}
		if err != nil || f.Message != "" || f.DueAt.IsZero() {
			return err
		}
	}
}

// checkFallback makes sure in a transaction that a code is open and where it was.
func (g *Gateway) checkFallback(ctx context.Context, tx *store.Tx, a *account, f parley.Fallback) error {
	stored, err := tx.Fallback(ctx, f.ID)
	if errors.Is(err, parley.ErrNotFound) || err == nil && (stored.Turns != f.Turns || stored.Message != f.Message || stored.DueAt.IsZero()) {
		return errContinued
	}
	if err != nil {
		return err
	}
	if a == nil { // only starting, perhaps
		if err := tx.CheckChannel(ctx, f.Current().Code, f.Current().ID); err == nil {
			return errContinued
		} else if !errors.Is(err, parley.ErrNotFound) {
			return err
		}
	}
	code, err := tx.Code(ctx, f.ID)
	open := err == nil && code.Status == parley.OTPStatusPending && g.Now(f.Channel).Before(code.ExpiresAt)
	if !open && parley.IgnoreNotFound(err) == nil {
		return errCodeEnded
	}
	return err
}

// carryCode has the current channel accept the code. If it cannot be used any more, the next one has its turn.
func (g *Gateway) carryCode(ctx context.Context, a *account, f *parley.Fallback) error {
	next := *f
	if a != nil {
		content, err := g.codeContent(ctx, f.ID)
		if err != nil {
			return err
		}
		draft := Draft{To: f.To, Content: content, Request: f.Request, Token: f.Token, ExpiresAt: f.ExpiresAt, Priority: f.Priority}
		_, err = g.Send(ctx, a.code, []Draft{draft}, SendOptions{Accepted: func(tx *store.Tx, ms []parley.Message) error {
			if err := g.checkFallback(ctx, tx, a, *f); err != nil {
				return err
			}
			next.Message, next.DueAt = ms[0].ID, time.Time{}
			if next.Turns < len(next.Channels) {
				next.DueAt = a.now().Add(otp.FallbackAfter)
			}
			return tx.PutFallback(ctx, next)
		}})
		if err == nil {
			*f = next
			return nil
		}
		switch parley.ToCode(err) {
		case parley.QueueFull, parley.NotSupported, parley.ChannelNotReady, parley.Forbidden, parley.BadRequest, parley.NotFound: // not usable
		default:
			return err
		}
	}
	err := g.config.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := g.checkFallback(ctx, tx, a, *f); err != nil {
			return err
		}
		now := g.Now(f.Current().Code)
		if next = *f; g.nextHop(next) == 0 {
			next.DueAt = time.Time{}
			return tx.EndFallback(ctx, next, string(parley.GaveUp), now)
		}
		next.Turns, next.DueAt = g.nextHop(next), now
		return tx.PutFallback(ctx, next)
	})
	if err == nil {
		*f = next
	}
	return err
}

// codeContent is what a message carries that has a code.
func (g *Gateway) codeContent(ctx context.Context, id parley.OTPID) (parley.Content, error) {
	code, err := g.config.Store.Code(ctx, id)
	if err != nil || code.Encrypted == nil {
		return parley.Secret{OTP: id}, parley.IgnoreNotFound(err) // it has ended, which checkFallback notices
	}
	text, err := g.config.Keyring.Decrypt(code.Encrypted, string(id))
	if err != nil {
		return nil, fmt.Errorf("decrypt a code: %w", err)
	}
	return parley.Secret{Shown: otp.MaskCode(string(text)), OTP: id}, nil
}

// leaveChannel decides about a code that its current channel accepted some time ago. If it was not sent, the copy is withdrawn and
// the next channel has its turn. A copy that the network may have is marked.
func (g *Gateway) leaveChannel(ctx context.Context, a *account, f *parley.Fallback) error {
	turns := g.nextHop(*f)
	ref := parley.MessageRef{FromMe: true, Chat: f.To, ID: f.Message}
	mayHaveLeft, err := g.stopCopy(ctx, a, ref, turns > 0)
	if err != nil {
		return err
	}
	var next parley.Fallback
	var failed *parley.Message
	err = g.config.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := g.checkFallback(ctx, tx, a, *f); err != nil {
			return err
		}
		next, failed = *f, nil
		m, err := tx.Message(ctx, f.Current().Code, ref)
		if errors.Is(err, parley.ErrNotFound) { // deleted with its channel
			m, err = parley.Message{Status: parley.Failed, Failure: &parley.Failure{Code: parley.GaveUp}}, nil
		}
		if err != nil {
			return err
		}
		now := g.Now(f.Current().Code)
		waits, fell := m.Status == parley.Pending, m.Status == parley.Failed && m.Failure != nil && m.Failure.Code.FallsBack()
		switch {
		case !waits && !fell: // it was sent, or no channel can
			return tx.StopFallback(ctx, f.ID)
		case turns == 0 && fell:
			return tx.EndFallback(ctx, next, string(m.Failure.Code), now)
		case turns == 0: // one of the others may be usable later
			next.DueAt = now.Add(otp.FallbackAfter)
			return tx.PutFallback(ctx, next)
		case waits:
			failed = &m
			if err := withdraw(ctx, tx, &m, f.Channels[turns-1].Code, mayHaveLeft, now); err != nil {
				return err
			}
		}
		next.Turns, next.Message, next.DueAt = turns, "", now
		return tx.PutFallback(ctx, next)
	})
	if err != nil {
		return err
	}
	if failed != nil {
		a.worker.Cancel(failed.Seq)
		a.messageDone(failed)
	}
	*f = next
	return nil
}

// stopCopy stores what the network confirmed of a copy and, if it must go, keeps it in the queue. It reports whether the network may
// have it nevertheless.
func (g *Gateway) stopCopy(ctx context.Context, a *account, ref parley.MessageRef, mustGo bool) (mayHaveLeft bool, err error) {
	if a == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := a.worker.Flush(ctx); err != nil {
		return false, err
	}
	m, err := g.config.Store.Message(ctx, a.code, ref)
	if err != nil || m.Status != parley.Pending || !mustGo {
		return false, parley.IgnoreNotFound(err)
	}
	if mayHaveLeft, err = a.worker.Withdraw(ctx, m.Seq); err == nil {
		err = a.worker.Flush(ctx) // it may have been sent meanwhile
	}
	return mayHaveLeft, err
}

// withdraw stores that a copy of a code is not sent any more, because another channel carries the code.
func withdraw(ctx context.Context, tx *store.Tx, m *parley.Message, to parley.ChannelCode, mayHaveLeft bool, now time.Time) error {
	why := &parley.Failure{Code: parley.NotSent, Message: fmt.Sprintf("It was not sent in time, so channel %s carries the code.", to)}
	if mayHaveLeft {
		why = &parley.Failure{Code: parley.UnknownOutcome,
			Message: fmt.Sprintf("The network did not confirm it in time, so channel %s carries the code. It may have arrived nevertheless.", to)}
		if err := tx.SetCopies(ctx, m.Channel, m.Ref(), 1, now); err != nil {
			return err
		}
		m.Copies = 1
	}
	if _, err := tx.AdvanceMessage(ctx, m.Channel, m.Ref(), parley.Failed, why, now); err != nil {
		return err
	}
	m.Status, m.Failure, m.UpdatedAt = parley.Failed, why, now
	return nil
}
