package cloud

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"parley"
	"parley/internal/network"
)

// action is what to do about an error code of Meta's.
type action int

const (
	fail         action = iota // the message fails with the code and the sentence
	retry                      // the message waits and is sent again
	pauseChat                  // the messages of this contact wait
	pauseChannel               // all messages of the channel wait
	unknown                    // it may have been sent
	broken                     // nothing can be sent until somebody repairs the account: the channel is FAILED
)

// rule is what an error code means. A sentence ends with what to do.
type rule struct {
	action   action
	failure  parley.FailureCode
	sentence string
	holds    time.Duration // for how long the failure holds; zero: not known
}

const tokenRemedy = "Create a system user's token with both WhatsApp permissions and set it with: parley channel credentials"

// rules has every error code that is handled in its own way. Meta says that only the code decides.
var rules = map[int]rule{
	131056:  {action: pauseChat, sentence: "Too many messages to this contact in a short time."},
	130429:  {action: pauseChannel, sentence: "The number sends more messages per second than Meta allows."},
	4:       {action: pauseChannel, sentence: "The app made more calls than Meta allows."},
	80007:   {action: pauseChannel, sentence: "The WhatsApp Business Account made more calls than Meta allows."},
	613:     {action: pauseChannel, sentence: "The app made more calls than Meta allows."},
	131057:  {action: retry, sentence: "Meta is upgrading the number."},
	133004:  {action: retry, sentence: "Meta's server is temporarily unavailable."},
	2494100: {action: retry, sentence: "Meta is upgrading the number."},
	131000:  {action: retry, sentence: "Something went wrong at Meta."},
	131016:  {action: retry, sentence: "Meta's service is temporarily unavailable."},
	1:       {action: unknown, sentence: "Meta reported an unknown error."},
	2:       {action: unknown, sentence: "Meta's service is temporarily unavailable."},

	0:      {action: broken, sentence: "Meta does not accept the access token. " + tokenRemedy},
	3:      {action: broken, sentence: "The access token lacks a permission. " + tokenRemedy},
	10:     {action: broken, sentence: "The access token lacks a permission. " + tokenRemedy},
	190:    {action: broken, sentence: "The access token is invalid or has expired. " + tokenRemedy},
	131005: {action: broken, sentence: "The access token lacks a permission. " + tokenRemedy},
	133010: {action: broken, sentence: "The number is not registered. Register it with: parley channel register"},
	131045: {action: broken, sentence: "The number is not registered. Register it with: parley channel register"},
	131037: {action: broken, sentence: "Meta has not approved the number's display name. Choose another one in WhatsApp Manager."},
	131031: {action: broken, sentence: "Meta locked the account. Ask for a review in Business Support Home."},
	368:    {action: broken, sentence: "Meta blocked the account for violating a policy. Ask for a review in Business Support Home."},

	131048: {failure: parley.Restricted, sentence: "Meta limits this number: its messages were reported as spam.", holds: 15 * time.Minute},
	131064: {failure: parley.Restricted, sentence: "Meta limits this account, because of its template categories.", holds: 15 * time.Minute},
	131042: {failure: parley.PaymentProblem, sentence: "The WhatsApp Business Account cannot pay. Add a payment method in WhatsApp Manager."},
	131026: {failure: parley.NotOnNetwork, sentence: "This number is not on WhatsApp, or it cannot receive this message."},
	131047: {failure: parley.OutsideWindow, sentence: "This contact has not written in the last 24 hours. Send a template instead."},
	131049: {failure: parley.HeldBack, sentence: "Meta held this marketing message back. Try again tomorrow.", holds: 24 * time.Hour},
	130472: {failure: parley.HeldBack, sentence: "Meta held this marketing message back for an experiment.", holds: 24 * time.Hour},
	131050: {failure: parley.HeldBack, sentence: "This contact stopped marketing messages from you.", holds: 24 * time.Hour},

	131030: {failure: parley.Refused, sentence: "A test number writes only to its list of recipients. Add this one in the app's dashboard."},
	131021: {failure: parley.Refused, sentence: "A number cannot write to itself."},
	130497: {failure: parley.Refused, sentence: "This account may not write to numbers of that country."},
	131062: {failure: parley.Refused, sentence: "This contact hides the number, so it cannot get this type of message."},
	131063: {failure: parley.Refused, sentence: "Marketing messages are turned off for this number."},
	131051: {failure: parley.Refused, sentence: "WhatsApp does not support this type of message."},
	131052: {failure: parley.Refused, sentence: "Meta could not fetch the file."},
	131053: {failure: parley.Refused, sentence: "Meta does not accept the file."},

	132000: {failure: parley.TemplateProblem, sentence: "The template has another number of parameters."},
	132001: {failure: parley.TemplateProblem, sentence: "There is no such template in that language, or it is not approved."},
	132005: {failure: parley.TemplateProblem, sentence: "The text of the template is too long with these parameters."},
	132007: {failure: parley.TemplateProblem, sentence: "The content of the template violates a policy."},
	132008: {failure: parley.TemplateProblem, sentence: "A parameter of the template is missing."},
	132012: {failure: parley.TemplateProblem, sentence: "A parameter of the template has the wrong format."},
	132015: {failure: parley.TemplateProblem, sentence: "Meta paused the template because of its quality.", holds: 3 * time.Hour},
	132016: {failure: parley.TemplateProblem, sentence: "Meta disabled the template. Create another one."},
	132018: {failure: parley.TemplateProblem, sentence: "A parameter of the template has line breaks, tabs or too many spaces."},
	132068: {failure: parley.TemplateProblem, sentence: "The flow of the template is blocked."},
	132069: {failure: parley.TemplateProblem, sentence: "The flow of the template is throttled."},
}

// ruleFor returns the rule of an error.
func ruleFor(e *graphError) rule {
	r, known := rules[e.Code]
	switch {
	case known:
	case e.Code >= 200 && e.Code < 300:
		r = rules[10]
	case e.Code >= 133000 && e.Code < 134000:
		r = rule{action: broken, sentence: "The number cannot be used: " + sentence(e.text())}
	case e.Status >= 500:
		r = rule{action: unknown, sentence: "Meta reported an error."}
	default:
		r = rule{failure: parley.Refused, sentence: fmt.Sprintf("Meta refused the message (error %d): %s", e.Code, sentence(e.text()))}
	}
	return r
}

// sentence bounds what Meta writes, and ends it like a sentence.
func sentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 300 {
		text = string(runes[:300]) + "…"
	}
	return strings.TrimRight(text, ".") + "."
}

// toFailure is what an error means for a message that Meta had accepted.
func toFailure(e *graphError, at time.Time) *parley.Failure {
	r := ruleFor(e)
	f := &parley.Failure{Code: r.failure, Message: r.sentence}
	if f.Code == "" {
		f.Code, f.Message = parley.Refused, fmt.Sprintf("Meta could not deliver it (error %d): %s", e.Code, sentence(e.text()))
	}
	if r.holds > 0 {
		f.Until = at.Add(r.holds)
	}
	return f
}

// toSendError classifies why a send failed. It also changes the session: how long the next one waits, and whether the channel works.
func (s *session) toSendError(to parley.ContactID, err error, now time.Time) error {
	e, ok := asGraphError(err)
	if !ok {
		if lost, isLost := errors.AsType[*lostError](err); isLost && lost.sent {
			return &network.Error{Class: network.Unknown, Cause: err, RetryAfter: s.unknownWait(false)}
		}
		return network.NotConnected(err)
	}
	r := ruleFor(e)
	switch r.action {
	case pauseChat:
		return &network.Error{Class: network.Temporary, Cause: e, RetryAfter: s.chatPause(to)}
	case pauseChannel:
		return &network.Error{Class: network.Temporary, Cause: e, RetryAfter: s.channelPause(e.RetryAfter), PauseChannel: true}
	case retry:
		return &network.Error{Class: network.Temporary, Cause: e, RetryAfter: e.RetryAfter}
	case unknown:
		return &network.Error{Class: network.Unknown, Cause: e, RetryAfter: s.unknownWait(false)}
	case broken:
		s.mu.Lock()
		s.seen.broken = e.Code
		s.mu.Unlock()
		s.breakDown(r.sentence)
		return network.NotConnected(e)
	}
	f := toFailure(e, now)
	return network.RefuseUntil(f.Code, f.Message, f.Until)
}
