package main

import (
	"context"
	"time"

	"parley"
	"parley/internal/client"
)

const (
	pairPoll    = 300 * time.Millisecond // how often the server is asked how a pairing goes
	workingWait = time.Minute            // how long a paired channel may take to work
)

// workingStep is the last step that a view is shown: the channel works.
const workingStep parley.PairingStep = "working"

// pairStep is a step of a pairing.
type pairStep struct {
	client.Pairing
	channel client.Channel // with the last step
}

func newStep(step parley.PairingStep, ch client.Channel) *pairStep {
	return &pairStep{client.Pairing{Step: step}, ch}
}

// left is for how long its code can be used.
func (s *pairStep) left() time.Duration { return max(0, time.Until(s.ExpiresAt)) }

func (s *pairStep) is(other *pairStep) bool {
	return s.Step == other.Step && s.Code == other.Code && s.At.Equal(other.At)
}

// pairView shows the steps of a pairing to a person, or to a program.
type pairView interface {
	show(ctx context.Context, s *pairStep) error // a step has begun
	tick(s *pairStep)                            // it goes on
	close()
}

// pairer pairs one channel on a running server.
type pairer struct {
	cl     *client.Client
	code   string
	number string
	view   pairView
}

// attempt begins to pair and shows how it goes, until the channel works or cannot.
func (p *pairer) attempt(ctx context.Context) error {
	last, err := p.read(ctx) // what an attempt of before left is no news
	if err != nil {
		return err
	}
	var body any
	if p.number != "" {
		body = map[string]string{"number": p.number}
	}
	if _, err := p.cl.Post(ctx, client.Path("channels", p.code, "pair"), body, nil); err != nil {
		return err
	}
	if err := p.view.show(ctx, newStep(parley.StartingStep, client.Channel{})); err != nil { // which may be over before we ask
		return err
	}
	for {
		s, err := p.read(ctx)
		if err != nil {
			return err
		}
		if s.is(last) || s.Step == parley.StartingStep && s.Reason == "" {
			p.view.tick(s)
		} else if err := p.news(ctx, s); err != nil || s.Step == parley.PairedStep {
			return err
		}
		last = s
		if err := pause(ctx, pairPoll); err != nil {
			return err
		}
	}
}

// news shows a step that has begun. An error is the end of the attempt.
func (p *pairer) news(ctx context.Context, s *pairStep) error {
	if s.Step == "" {
		ch, err := readChannel(ctx, p.cl, p.code)
		if err != nil {
			return err
		}
		return fail(exitNotSo, "channel %s is not being paired any more: it is %s. %s", p.code, ch.Status, ch.Reason)
	}
	if s.Code == "" && (s.Step == parley.QRStep || s.Step == parley.CodeStep || s.Step == parley.WrongCodeStep) {
		return nil // it has just expired
	}
	if err := p.view.show(ctx, s); err != nil {
		return err
	}
	switch s.Step {
	case parley.PairedStep:
		return p.awaitWorking(ctx)
	case parley.TimeoutStep:
		return errNobody
	case parley.PasskeyStep:
		return fail(exitNeedsPerson, "%s Why: parley help passkey", s.Reason)
	case parley.FailedStep:
		return fail(exitRefused, "%s", s.Reason)
	}
	return nil
}

// awaitWorking waits until a channel that was just paired works.
func (p *pairer) awaitWorking(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, workingWait, fail(exitNotSo, "channel %s was paired and does not work yet. See: parley channel show %s", p.code, p.code))
	defer cancel()
	for {
		ch, err := readChannel(ctx, p.cl, p.code)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		switch ch.Status {
		case parley.Working:
			return p.view.show(ctx, newStep(workingStep, ch))
		case parley.LoggedOut, parley.Failed, parley.Stopped:
			return fail(exitNotSo, "channel %s is %s. %s", p.code, ch.Status, ch.Reason)
		}
		if err := pause(ctx, pairPoll); err != nil {
			return context.Cause(ctx)
		}
	}
}

// read asks for the latest step; one without a name: there is none.
func (p *pairer) read(ctx context.Context) (*pairStep, error) {
	s := &pairStep{}
	_, err := p.cl.Get(ctx, client.Path("channels", p.code, "pairing"), nil, &s.Pairing)
	return s, err
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
