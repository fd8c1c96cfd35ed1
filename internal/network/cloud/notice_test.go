package cloud

import (
	"errors"
	"slices"
	"testing"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/network/cloud/cloudtest"
	"parley/internal/store"
)

// TestNotices has Meta report about the account, each thing twice. What the hourly check finds is published too.
func TestNotices(t *testing.T) {
	w := newWorld(t)
	_, in := w.open()
	template := func(event, reason string) map[string]any {
		return map[string]any{"event": event, "message_template_id": 594425479261596, "message_template_name": "order_ready",
			"message_template_language": "id", "reason": reason}
	}
	reports := []struct {
		field string
		value map[string]any
		want  network.Notice
	}{
		{"message_template_status_update", template("PAUSED", "NONE"), network.NewTemplateNotice("order_ready", "id", "PAUSED", "")},
		{"message_template_status_update", template("REJECTED", "ABUSIVE_CONTENT"),
			network.NewTemplateNotice("order_ready", "id", "REJECTED", "ABUSIVE_CONTENT.")},
		{"phone_number_quality_update", map[string]any{"event": "FLAGGED", "current_limit": "TIER_2K"}, newQualityNotice("FLAGGED")},
		{"phone_number_quality_update", map[string]any{"event": "UPGRADE", "max_daily_conversations_per_business": "TIER_10K"},
			newLimitNotice("TIER_10K")},
		{"business_capability_update", map[string]any{"max_daily_conversations_per_business": 100000}, newLimitNotice("100000")},
		{"account_update", map[string]any{"event": "ACCOUNT_RESTRICTION", "restriction_info": []any{
			map[string]any{"restriction_type": "RESTRICTED_BIZ_INITIATED_MESSAGING", "expiration": 1}}},
			network.Notice{Kind: parley.RestrictionNotice, Status: "ACCOUNT_RESTRICTION",
				Text: "Meta reports about the account: ACCOUNT_RESTRICTION: RESTRICTED_BIZ_INITIATED_MESSAGING."}},
		{"messages", map[string]any{"messages": []any{map[string]any{"from": friendNumber, "id": "wamid.9", "timestamp": "1", "type": "system",
			"system": map[string]any{"type": "user_changed_number", "wa_id": "6281234567899", "body": "Ann changed from 1 to 2"}}}},
			network.Notice{Kind: parley.NumberChangedNotice, Status: "USER_CHANGED_NUMBER", Contact: friend, Text: "Ann changed from 1 to 2."}},
	}
	for _, r := range reports {
		w.number.Report(r.field, r.value)
		w.number.Report(r.field, r.value)
		await(w, in, func(n network.Notice) bool { return n == r.want })
	}
	w.number.Report("account_update", map[string]any{"event": "no word of Meta's"})
	w.number.Set(func(n *cloudtest.Number) { n.Quality = "YELLOW" })
	w.number.Report("template_category_update", nil) // it has the number be checked
	await(w, in, func(n network.Notice) bool { return n == newQualityNotice("YELLOW") })
	in.mu.Lock()
	defer in.mu.Unlock()
	notices := slices.DeleteFunc(slices.Clone(in.events), func(e network.Event) bool { _, is := e.(network.Notice); return !is })
	if len(notices) != len(reports)+1 {
		t.Errorf("%d notices: %+v", len(notices), notices)
	}
}

// TestNoticeThatIsNotStored has a notice fail once. The next check publishes it.
func TestNoticeThatIsNotStored(t *testing.T) {
	w := newWorld(t)
	s, in := w.open()
	w.await(func() bool { s.mu.Lock(); defer s.mu.Unlock(); return !s.checked.IsZero() })
	in.mu.Lock()
	in.fail = errors.New("the disk is full")
	in.mu.Unlock()
	w.number.Set(func(n *cloudtest.Number) { n.Quality = "YELLOW" })
	s.checkSoon()
	w.await(func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.failed > 0 })
	in.mu.Lock()
	in.fail = nil
	in.mu.Unlock()
	s.checkSoon()
	await(w, in, func(n network.Notice) bool { return n == newQualityNotice("YELLOW") })
}

// TestCheckDuringAnother has a check be wanted while another one is about to end, which must not replace it by the next in an hour.
func TestCheckDuringAnother(t *testing.T) {
	w := newWorld(t)
	s, in := w.open()
	w.await(func() bool { s.mu.Lock(); defer s.mu.Unlock(); return !s.checked.IsZero() && !s.checking })
	s.mu.Lock()
	s.checking = true // its response has come, before the change
	s.mu.Unlock()
	w.number.Set(func(n *cloudtest.Number) { n.Quality = "YELLOW" })
	s.checkSoon()
	s.mu.Lock()
	s.endCheck(nil)
	s.mu.Unlock()
	await(w, in, func(n network.Notice) bool { return n == newQualityNotice("YELLOW") })
}

// TestDailyLimit has the doctor warn when the account wrote to most of the contacts that it may write to first.
func TestDailyLimit(t *testing.T) {
	w := newWorld(t)
	w.number.Limit = "TIER_5"
	for i, number := range []string{"6281234567801", "6281234567802", "6281234567803", "6281234567804", "6281234567805"} {
		m := w.text("hello")
		m.Chat, m.CreatedAt, m.UpdatedAt = parley.NewContactID(number), time.Now(), time.Now()
		w.must(w.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.AddMessage(t.Context(), m) }))
		s, _ := w.open()
		w.await(func() bool { s.mu.Lock(); defer s.mu.Unlock(); return !s.checked.IsZero() })
		var found []bool
		for _, p := range w.driver.Examine(w.channel) {
			if p.Code == "cloud_limit" {
				found = append(found, p.Serious)
			}
		}
		if want := [][]bool{nil, nil, nil, {false}, {true}}[i]; !slices.Equal(found, want) {
			t.Errorf("after %d contacts the doctor finds %v, want %v", i+1, found, want)
		}
		w.must(s.Close())
	}
	for limit, want := range map[string]int64{"TIER_250": 250, "TIER_2K": 2000, "TIER_100K": 100_000, "TIER_UNLIMITED": 0, "": 0} {
		if got := (phoneNumber{Limit: limit}).dailyLimit(); got != want {
			t.Errorf("%q is %d, want %d", limit, got, want)
		}
	}
}
