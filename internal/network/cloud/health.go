package cloud

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley"
	"parley/internal/network"
)

// phoneNumber is what Meta says of the number of a channel.
type phoneNumber struct {
	ID         string `json:"id"`
	Display    string `json:"display_phone_number"`
	Name       string `json:"verified_name"`
	Status     string `json:"status"`
	Quality    string `json:"quality_rating"`
	Limit      string `json:"whatsapp_business_manager_messaging_limit"`
	OnApp      bool   `json:"is_on_biz_app"`
	Throughput struct {
		Level string `json:"level"`
	} `json:"throughput"`
	Webhook struct {
		Phone string `json:"phone_number"`
	} `json:"webhook_configuration"`
}

const phoneFields = "display_phone_number,verified_name,status,quality_rating,throughput,platform_type,name_status," +
	"whatsapp_business_manager_messaging_limit,is_on_biz_app,webhook_configuration"

// readNumber asks Meta for the number of an account.
func (d *Driver) readNumber(ctx context.Context, a account) (n phoneNumber, err error) {
	err = d.do(ctx, a, http.MethodGet, a.PhoneID, url.Values{"fields": {phoneFields}}, nil, &n)
	return n, err
}

func (n phoneNumber) digits() string { return strings.Map(onlyDigits, n.Display) }

const (
	checkPause   = time.Hour
	firstRecheck = 5 * time.Second // after a check that failed; it doubles up to maxRecheck
	maxRecheck   = 5 * time.Minute
	newChannel   = 15 * time.Second // how long a new channel may have no credentials
)

// check asks Meta for the number, and sets the state of the channel and its rate. Then it schedules the next check.
func (s *session) check() {
	if !s.enter() {
		return
	}
	defer s.running.Done()
	s.mu.Lock()
	busy := s.checking
	s.checking, s.recheck = true, busy // the other one's response may be older than what this one is about
	s.mu.Unlock()
	if busy {
		return
	}
	select {
	case s.d.checks <- struct{}{}:
		defer func() { <-s.d.checks }()
	case <-s.ctx.Done():
		return
	}
	err := s.checkNow()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endCheck(err)
}

// endCheck schedules the next check. The caller holds the lock.
func (s *session) endCheck(err error) {
	pause := time.Duration(float64(checkPause) * (0.9 + 0.2*rand.Float64()))
	if s.failed++; err == nil {
		s.failed = 0
	} else {
		pause = min(firstRecheck<<min(s.failed-1, 10), maxRecheck)
	}
	if s.checking = false; s.recheck {
		pause = 0
	}
	if !s.closed {
		s.timer.Reset(pause)
	}
}

// checkSoon checks at once, or when the current check has ended: Meta reported that something changed.
func (s *session) checkSoon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recheck = s.checking; !s.checking && !s.closed { // a check that ends sets the timer, too
		s.timer.Reset(0)
	}
}

func (s *session) checkNow() error {
	a, err := s.account(s.ctx)
	if errors.Is(err, errNoAccount) {
		if time.Since(s.opened) < newChannel { // it is stored in a moment
			return err
		}
		s.breakDown("It has no credentials. Set them with: parley channel credentials")
		return err
	}
	var n phoneNumber
	if err == nil {
		n, err = s.d.readNumber(s.ctx, a)
	}
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	if err != nil {
		return errors.Join(err, s.unreachable(err))
	}
	codes, err := s.codesStatus(a)
	if err != nil && s.ctx.Err() == nil {
		s.d.config.Log.Warn("the template of one-time codes cannot be read", "channel", s.channel.Code, "error", err)
	}
	started := s.countStarted()
	digits := n.digits()
	n.ID, n.Display = "", ""
	s.mu.Lock()
	old, oldCodes, first := s.number, s.codes, s.checked.IsZero()
	s.mu.Unlock()
	if !first {
		if err := s.noticeChanges(old, n, oldCodes, codes); err != nil {
			return err // the next check finds them again
		}
	}
	s.mu.Lock()
	s.number, s.checked, s.codes, s.seen.started = n, time.Now(), codes, started
	s.seen.account = account{BusinessID: a.BusinessID, GraphURL: a.GraphURL, HeardSince: a.HeardSince, TokenExpires: a.TokenExpires}
	s.seen.broken = 0
	s.rate = usualRate
	switch {
	case n.OnApp:
		s.rate = coexists
	case n.Throughput.Level == "HIGH":
		s.rate = highRate
	}
	s.mu.Unlock()
	if n.Status != "" && n.Status != "CONNECTED" && n.Status != "FLAGGED" {
		s.breakDown("Meta says that the number is " + n.Status + ". Register it with: parley channel register")
		return errors.New("the number is not connected")
	}
	return s.setState(s.ctx, network.State{Status: parley.ChannelWorking, Phone: network.Phone{Name: n.Name, Number: digits}})
}

func (s *session) codesTemplate() parley.TemplateName {
	if own := s.settings().Codes; own != nil {
		return *own
	}
	return CodesTemplate
}

// codesStatus reads the status of the template of one-time codes; empty: there is none.
func (s *session) codesStatus(a account) (string, error) {
	want := s.codesTemplate()
	found, err := s.d.readTemplates(s.ctx, a, want.Name)
	for _, t := range found {
		if t.Name == want.Name && t.Language == want.Language {
			return t.Status, nil
		}
	}
	return "", err
}

// unreachable reports why a check failed. One whose account is refused needs attention; one that Meta's servers do not
// answer does not.
func (s *session) unreachable(err error) error {
	if e, ok := asGraphError(err); ok {
		s.mu.Lock()
		s.seen.broken = e.Code
		s.mu.Unlock()
		if r := ruleFor(e); r.action == broken {
			s.breakDown(r.sentence)
			return nil
		} else if r.action == fail {
			s.breakDown("Meta refuses the account: " + sentence(e.text()))
			return nil
		}
	}
	return s.setState(s.ctx, network.State{Status: parley.ChannelReconnecting, Reason: "Meta's servers cannot be reached."})
}
