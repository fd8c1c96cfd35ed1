package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley"
	"parley/internal/network"
)

var (
	errSocket    = errors.New("the connection broke during the send")
	errLate      = errors.New("no confirmation yet")
	errLoggedOut = errors.New("logged out")
)

// addFaulty sends a message to which a fault was ordered, and answers for it.
func (d *dispatch) addFaulty(ctx context.Context, i int, f Fault) {
	s := d.session
	if err := s.world.net.saveFault(ctx, f); err != nil {
		d.fail(i, fmt.Errorf("use fault: %w", err))
		return
	}
	switch f.Fault {
	case FaultRefuse:
		d.fail(i, network.Refuse(parley.Refused, f.Reason))
		return
	case FaultReachout:
		until := time.Now().Add(reachoutFor).UTC().Truncate(time.Second)
		d.fail(i, network.RefuseUntil(parley.Restricted,
			fmt.Sprintf("The network does not let this account write to new contacts until %s (error 463).", until.Format(time.RFC3339)), until))
		return
	case FaultLogOut:
		err := s.Logout(ctx)
		if err == nil {
			err = network.NotConnected(errLoggedOut)
		}
		d.fail(i, err)
		return
	}
	d.addPlain(ctx, i, f.Fault == FaultTwice)
	d.flush(ctx, i+1)
	if d.errs[i] != nil {
		return
	}
	switch f.Fault {
	case FaultDrop:
		s.become(parley.Reconnecting, "The connection broke; it is being made again.")
		d.fail(i, network.OutcomeUnknown(errSocket))
	case FaultLate:
		if err := s.waitLate(ctx); err != nil {
			d.fail(i, err)
		}
	}
}

// waitLate waits as long as a late confirmation takes.
func (s *session) waitLate(ctx context.Context) error {
	timer := time.NewTimer(lateBy)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return network.OutcomeUnknown(errors.Join(errLate, ctx.Err()))
	case <-s.ctx.Done():
		return network.OutcomeUnknown(errLate)
	}
}
