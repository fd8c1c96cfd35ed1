package cloud

import (
	"fmt"
	"time"

	"parley"
)

const (
	tokenWarning   = 14 * 24 * time.Hour
	tokenProblem   = 3 * 24 * time.Hour
	versionWarning = 90 * 24 * time.Hour
	// silentAfter messages without a status, over at least silentFor, show that Meta's reports do not reach us.
	silentAfter = 20
	silentFor   = 10 * time.Minute
	// limitWarning and limitProblem are percents of the daily limit.
	limitWarning, limitProblem = 80, 95
	// recent is for how long something that happened once is reported.
	recent = time.Hour
)

// seen is what a session noticed of its account. The lock of the session protects it.
type seen struct {
	account  account   // without secrets
	reported bool      // Meta called
	broken   int       // the code of Meta's error that made the channel fail; 0: none did
	silent   int       // accepted messages since the last status
	silentAt time.Time // when the first of them was
	unknown  int       // messages that were sent again or failed, because their outcome stayed unknown
	unsureAt time.Time // when the last of them was
	started  int64     // contacts that were written to first in the day before the last check
}

// noteAccepted counts a message of which Meta must report a status.
func (s *session) noteAccepted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen.silent++; s.seen.silent == 1 {
		s.seen.silentAt = time.Now()
	}
}

func (s *session) noteReport() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.reported = true
}

func (s *session) noteStatus() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.silent = 0
}

func (s *session) noteUnknown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.unknown++
	s.seen.unsureAt = time.Now()
}

// noteBadSignature notes a call of a channel that Meta did not sign with its secret.
func (d *Driver) noteBadSignature(code parley.ChannelCode) {
	d.metrics.badSignatures.Inc()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.forged == nil {
		d.forged = map[parley.ChannelCode]time.Time{}
	}
	d.forged[code] = time.Now()
}

// Examine lists the problems of a channel's account, as far as the last check and what happened since say.
func (d *Driver) Examine(c parley.Channel) (found []parley.AccountProblem) {
	d.mu.Lock()
	s, forged := d.sessions[c.Code], d.forged[c.Code]
	d.mu.Unlock()
	now, code := time.Now(), string(c.Code)
	add := func(word string, serious bool, remedy, format string, args ...any) {
		found = append(found, parley.AccountProblem{Code: "cloud_" + word, Serious: serious, Remedy: remedy,
			Text: fmt.Sprintf("Channel %s: ", code) + fmt.Sprintf(format, args...)})
	}
	if now.Sub(forged) < recent {
		add("signature", false, "check the app secret: parley channel credentials "+code,
			"a call came whose signature does not fit its app secret, at %s.", parley.Stamp(forged))
	}
	if left := GraphVersionEnds.Sub(now); left < versionWarning {
		add("version", left < 0, "upgrade Parley", "Meta ends version %s of its API on %s.", graphVersion, GraphVersionEnds.Format(time.DateOnly))
	}
	if s == nil {
		return found
	}
	s.mu.Lock()
	business := s.seen.account.BusinessID
	s.mu.Unlock()
	started := d.started(business)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.examineToken(now, code, add)
	if s.checked.IsZero() {
		return found
	}
	s.examineNumber(code, add)
	if limit := s.number.dailyLimit(); limit > 0 && started*100 >= limit*limitWarning {
		add("limit", started*100 >= limit*limitProblem, "write to fewer new contacts, or wait a day", "%d contacts were written to in 24 hours "+
			"without having written themselves. Meta allows its account %d.", started, limit)
	}
	ours := ""
	if d.config.Address != nil {
		ours = d.config.Address(c)
	}
	switch at := s.number.Webhook.Phone; {
	case s.seen.account.HeardSince.IsZero() && !s.seen.reported:
		add("no_webhook", false, "set --public-url, then: parley channel credentials "+code,
			"Meta does not report messages and statuses to it, so it receives nothing and a lost response stays unknown.")
	case ours != "" && at != "" && at != ours:
		add("webhook_elsewhere", true, "parley channel credentials "+code, "Meta reports to %s instead of %s.", at, ours)
	case s.seen.silent >= silentAfter && now.Sub(s.seen.silentAt) >= silentFor:
		add("webhook_silent", true, "check that Meta reaches "+ours, "Meta accepted %d messages since %s and reported no status.",
			s.seen.silent, parley.Stamp(s.seen.silentAt))
	}
	if s.seen.unknown > 0 && now.Sub(s.seen.unsureAt) < 24*time.Hour {
		add("unknown", false, "check the connection to Meta, and that its reports arrive",
			"%d messages had an unknown outcome, the last one at %s. They may have arrived twice.", s.seen.unknown, parley.Stamp(s.seen.unsureAt))
	}
	return found
}

func (s *session) examineToken(now time.Time, code string, add func(word string, serious bool, remedy, format string, args ...any)) {
	remedy := "parley channel credentials " + code
	switch b := s.seen.broken; {
	case b == 190:
		add("token_invalid", true, remedy, "Meta does not accept its access token.")
	case b == 3 || b == 10 || b == 131005 || b >= 200 && b < 300:
		add("token_scope", true, remedy, "its access token lacks a permission.")
	case s.failed > 0 && s.state.Status == parley.ChannelReconnecting:
		add("unreachable", true, "check the connection of this machine to "+s.seen.account.base(), "Meta's servers cannot be reached.")
	}
	if ends := s.seen.account.TokenExpires; !ends.IsZero() && ends.Sub(now) < tokenWarning {
		add("token_expires", ends.Sub(now) < tokenProblem, remedy, "its access token expires at %s. Use one that never does.", parley.Stamp(ends))
	}
}

func (s *session) examineNumber(code string, add func(word string, serious bool, remedy, format string, args ...any)) {
	n := s.number
	if n.Status != "" && n.Status != "CONNECTED" {
		add("number_not_connected", n.Status != "FLAGGED", "look at the number in WhatsApp Manager", "Meta says that its number is %s.", n.Status)
	}
	if n.Quality == "YELLOW" || n.Quality == "RED" {
		add("quality", n.Quality == "RED", "send fewer messages that people report or block",
			"Meta rates the quality of its number %s, and may limit it.", n.Quality)
	}
	if n.OnApp {
		add("business_app", false, "write through Parley instead",
			"its number is also used with the WhatsApp Business app; what is written there is not in the chats here.")
	}
	if s.codes != "APPROVED" {
		state := "is " + s.codes
		if s.codes == "" {
			state = "does not exist"
		}
		add("codes_template", false, "parley channel credentials "+code+" creates it again; Meta reviews it",
			"the template of one-time codes %s, so no code can be sent.", state)
	}
}
