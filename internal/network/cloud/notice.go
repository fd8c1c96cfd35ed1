package cloud

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
)

// reportedAccount is what Meta reports about the account, its number or a template. Which fields are there depends on the kind of report.
type reportedAccount struct {
	Event        string `json:"event"`
	CurrentLimit string `json:"current_limit"`
	// The daily limit of new contacts is a word here and a number there.
	DailyLimit   looseText `json:"max_daily_conversations_per_business"`
	PhoneLimit   looseText `json:"max_daily_conversation_per_phone"`
	Template     string    `json:"message_template_name"`
	Language     string    `json:"message_template_language"`
	Reason       string    `json:"reason"`
	Restrictions []struct {
		Type string `json:"restriction_type"`
	} `json:"restriction_info"`
}

// noticeStatus is the form of words that Meta uses for states.
var noticeStatus = regexp.MustCompile(`^[A-Z0-9_]{1,64}$`)

// receiveNotice publishes what Meta reports about the account.
func (s *session) receiveNotice(field string, value json.RawMessage) error {
	var r reportedAccount
	if json.Unmarshal(value, &r) != nil {
		s.ignore("unreadable")
		return nil
	}
	switch field {
	case "message_template_status_update":
		if reason := r.Reason; reason == "NONE" {
			r.Reason = ""
		} else if reason != "" {
			r.Reason = sentence(reason)
		}
		if !templateForm.MatchString(r.Template) {
			return nil
		}
		return s.notify(network.NewTemplateNotice(r.Template, cmp.Or(r.Language, "en_US"), r.Event, r.Reason))
	case "phone_number_quality_update":
		if limit := cmp.Or(string(r.DailyLimit), r.CurrentLimit); limit != "" && r.Event != "FLAGGED" && r.Event != "UNFLAGGED" {
			return s.notify(newLimitNotice(limit))
		}
		return s.notify(newQualityNotice(r.Event))
	case "business_capability_update":
		return s.notify(newLimitNotice(string(cmp.Or(r.DailyLimit, r.PhoneLimit))))
	case "account_update":
		text := fmt.Sprintf("Meta reports about the account: %s.", r.Event)
		for i, restriction := range r.Restrictions {
			text = strings.TrimSuffix(text, ".") + []string{": ", ", "}[min(i, 1)] + restriction.Type + "."
		}
		return s.notify(network.Notice{Kind: parley.RestrictionNotice, Status: r.Event, Text: text})
	}
	return nil
}

// templateForm is the form of the names of templates.
var templateForm = regexp.MustCompile(`^[a-z0-9_]{1,512}$`)

func newQualityNotice(rating string) network.Notice {
	return network.Notice{Kind: parley.QualityNotice, Status: rating, Text: fmt.Sprintf("Meta rates the quality of the number %s.", rating)}
}

func newLimitNotice(limit string) network.Notice {
	return network.Notice{Kind: parley.LimitNotice, Status: limit,
		Text: fmt.Sprintf("The limit of contacts to write to first in a day is %s.", limit)}
}

// notify publishes a notice, unless it says the same as the last one about that. Meta reports most things again.
func (s *session) notify(n network.Notice) error {
	if !noticeStatus.MatchString(n.Status) {
		s.ignore("notice")
		return nil
	}
	about, says := string(n.Kind)+" "+n.Template+" "+n.Language+" "+string(n.Contact), n.Text
	if n.Template != "" {
		says = n.Status // not every report has the reason
	}
	s.mu.Lock()
	same := s.noticed[about] == says
	s.mu.Unlock()
	if same {
		return nil
	}
	if err := s.sink(s.ctx, n); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noticed == nil || len(s.noticed) >= maxNoticed {
		s.noticed = map[string]string{}
	}
	s.noticed[about] = says
	return nil
}

const maxNoticed = 1000

// noticeChanges publishes what a check found to be other than the check before.
func (s *session) noticeChanges(old, now phoneNumber, oldCodes, codes string) error {
	if now.Quality != "" && old.Quality != now.Quality {
		if err := s.notify(newQualityNotice(now.Quality)); err != nil {
			return err
		}
	}
	if now.Limit != "" && old.Limit != now.Limit {
		if err := s.notify(newLimitNotice(now.Limit)); err != nil {
			return err
		}
	}
	if codes != "" && oldCodes != codes {
		t := s.codesTemplate()
		return s.notify(network.NewTemplateNotice(t.Name, t.Language, codes, ""))
	}
	return nil
}

// receiveUsers stores that Meta has other ids for users. Such a user has another number, so the new id never counts as the old number.
func (s *session) receiveUsers(v usersValue) error {
	for _, u := range v.Updates {
		if u.UserID.Previous == "" || u.UserID.Current == "" {
			continue
		}
		known, err := s.d.config.Store.RemoteUser(s.ctx, s.channel.Code, u.UserID.Previous)
		if err != nil && !errors.Is(err, parley.ErrNotFound) {
			return err
		}
		to := parley.NewContactID(u.Number)
		if u.Number == "" || !to.CanExist() {
			if to = known.Contact; !to.IsHidden() {
				to = ""
			}
		}
		err = s.d.config.Store.Tx(s.ctx, func(tx *store.Tx) error {
			return tx.ReplaceRemoteUser(s.ctx, s.channel.Code, u.UserID.Previous, u.UserID.Current, to)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// numberChanged publishes that a contact has another number now. Nothing else follows from it: somebody else may get the old one.
func (s *session) numberChanged(m *reportedMessage) error {
	from := parley.NewContactID(m.From)
	if m.System.Type != "user_changed_number" || !from.CanExist() {
		s.ignore("message_system")
		return nil
	}
	return s.notify(network.Notice{Kind: parley.NumberChangedNotice, Status: strings.ToUpper(m.System.Type), Contact: from,
		Text: sentence(cmp.Or(m.System.Body, "The contact has another number now"))})
}

var tier = regexp.MustCompile(`^(?:TIER_)?(\d{1,7})(K?)$`)

// dailyLimit is how many contacts an account may write to first in a day; 0: as many as it wants, or not known.
func (n phoneNumber) dailyLimit() int64 {
	found := tier.FindStringSubmatch(n.Limit)
	if found == nil {
		return 0
	}
	limit, _ := strconv.ParseInt(found[1], 10, 64)
	if found[2] != "" {
		limit *= 1000
	}
	return limit
}

// countStarted counts the contacts that the channel wrote to in the last day, and that did not write.
func (s *session) countStarted() int64 {
	n, err := s.d.config.Store.CountStarted(s.ctx, s.channel.Code, time.Now().Add(-24*time.Hour))
	if err != nil && s.ctx.Err() == nil {
		s.d.config.Log.Warn("count the contacts that were written to", "channel", s.channel.Code, "error", err)
	}
	return n
}

// started adds up what the channels of an account counted here: the limit is that of the account.
func (d *Driver) started(business string) (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.sessions {
		s.mu.Lock()
		if s.seen.account.BusinessID == business {
			n += s.seen.started
		}
		s.mu.Unlock()
	}
	return n
}
