package api

import (
	"slices"
	"testing"
	"time"

	"parley"
	"parley/internal/doctor"
	"parley/internal/network"
)

// TestLeavesIn estimates a queue by the pace of its channel.
func TestLeavesIn(t *testing.T) {
	slow, none := parley.Duration(30*time.Second), parley.Duration(0)
	working := parley.ChannelState{Status: parley.ChannelWorking}
	careful := network.Info{LeastPace: time.Second, MostPace: 2 * time.Second}
	for name, test := range map[string]struct {
		channel parley.Channel
		n       int
		want    int // -1: unknown
	}{
		"that of its network": {parley.Channel{State: working}, 40, 60},
		"a pace of its own":   {parley.Channel{State: working, Settings: parley.ChannelSettings{Pace: &slow}}, 12, 360},
		"without a pace":      {parley.Channel{State: working, Settings: parley.ChannelSettings{Pace: &none}}, 12, 0},
		"reconnecting":        {parley.Channel{State: parley.ChannelState{Status: parley.ChannelReconnecting}}, 1, -1},
	} {
		got := -1
		if seconds := leavesIn(test.channel, careful, test.n); seconds != nil {
			got = *seconds
		}
		if got != test.want {
			t.Errorf("%s: %d s, want %d", name, got, test.want)
		}
	}
}

// TestNeedsOfMany holds that many findings of one code are counted and do not push out others.
func TestNeedsOfMany(t *testing.T) {
	found := slices.Repeat([]doctor.Finding{{Check: "channel a", Channel: "a", Code: "channel_logged_out"}}, 200)
	data := doctor.Finding{Check: "data"}
	found = append(found, doctor.Finding{Check: "webhook", Code: "webhook_failing"}, data, data)
	found = slices.Insert(found, 200, doctor.Finding{Check: "channel b", Channel: "b", Code: "channel_logged_out"})
	needs := toNeeds(found, "")
	if len(needs) != maxAlike+3 {
		t.Fatalf("%d needs", len(needs))
	}
	for i, want := range map[int]int{0: 201, maxAlike - 1: 201, maxAlike: 1, maxAlike + 1: 1, maxAlike + 2: 1} {
		if got := needs[i].Alike; got != want {
			t.Errorf("need %d: %d alike, want %d", i, got, want)
		}
	}
	if of := toNeeds(found, "b"); len(of) != 4 || *of[0].Channel != "b" || of[0].Alike != 1 {
		t.Errorf("of one channel: %+v", of)
	}
}

// TestEveryNeedHasAnAction holds that something can be done about every finding in the console.
func TestEveryNeedHasAnAction(t *testing.T) {
	for _, test := range []struct {
		finding    doctor.Finding
		name, href string
	}{
		{doctor.Finding{Check: "channel a/b", Code: "channel_logged_out", Channel: "a/b"}, "pair", "/console/channels/a%2Fb/pair"},
		{doctor.Finding{Check: "channel a", Code: "account_restricted", Channel: "a"}, "channel", "/console/channels/a"},
		{doctor.Finding{Check: "webhook", Webhook: "whk_1", Code: "webhook_failing"}, "webhook", "/console/webhooks?webhook=whk_1"},
		{doctor.Finding{Check: "codes"}, "codes", "/console/otp"},
		{doctor.Finding{Check: "nodes"}, "nodes", "/console/nodes"},
		{doctor.Finding{Check: "data"}, "checks", "/console/?checks=1"},
	} {
		if got := toNeed(test.finding).Action; got.Name != test.name || got.HREF != test.href || got.Label == "" {
			t.Errorf("%+v: %+v", test.finding, got)
		}
	}
}
