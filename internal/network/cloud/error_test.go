package cloud

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRules holds the table of Meta's error codes, one line each.
func TestRules(t *testing.T) {
	names := map[action]string{fail: "fail", retry: "retry", pauseChat: "pause the chat", pauseChannel: "pause the channel",
		unknown: "unknown", broken: "broken"}
	var got strings.Builder
	codes := append(slices.Collect(maps.Keys(rules)), 33, 100, 131008, 131009, 133000, 133016, 135000, 137000, 200, 299, 424242)
	slices.Sort(codes)
	for _, code := range codes {
		r := ruleFor(&graphError{Code: code, Status: 400, Message: "what Meta says"})
		fmt.Fprintf(&got, "%d %s %s\n", code, names[r.action], r.failure)
		if (r.failure == "") != (r.action != fail) || r.sentence == "" {
			t.Errorf("%d: %+v", code, r)
		}
	}
	if got.String() != strings.TrimLeft(golden, "\n") {
		t.Errorf("the table is\n%s", got.String())
	}
	if r := ruleFor(&graphError{Code: 424242, Status: 503}); r.action != unknown {
		t.Errorf("an unknown error of a server: %+v", r)
	}
}

const golden = `
0 broken 
1 unknown 
2 unknown 
3 broken 
4 pause the channel 
10 broken 
33 fail refused
100 fail refused
190 broken 
200 broken 
299 broken 
368 broken 
613 pause the channel 
80007 pause the channel 
130429 pause the channel 
130472 fail held_back
130497 fail refused
131000 retry 
131005 broken 
131008 fail refused
131009 fail refused
131016 retry 
131021 fail refused
131026 fail not_on_network
131030 fail refused
131031 broken 
131037 broken 
131042 fail payment
131045 broken 
131047 fail outside_window
131048 fail restricted
131049 fail held_back
131050 fail held_back
131051 fail refused
131052 fail refused
131053 fail refused
131056 pause the chat 
131057 retry 
131062 fail refused
131063 fail refused
131064 fail restricted
132000 fail template
132001 fail template
132005 fail template
132007 fail template
132008 fail template
132012 fail template
132015 fail template
132016 fail template
132018 fail template
132068 fail template
132069 fail template
133000 broken 
133004 retry 
133010 broken 
133016 broken 
135000 fail refused
137000 fail refused
424242 fail refused
2494100 retry 
`

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)
	for header, want := range map[[2]string]time.Duration{
		{"Retry-After", "30"}:                            30 * time.Second,
		{"Retry-After", "-1"}:                            0,
		{"Retry-After", "9999999"}:                       24 * time.Hour,
		{"Retry-After", "Tue, 17 Nov 2026 12:01:00 GMT"}: time.Minute,
		{"X-Business-Use-Case-Usage", `{"1":[{"estimated_time_to_regain_access":3}]}`}: 3 * time.Minute,
		{"X-Business-Use-Case-Usage", `nonsense`}:                                      0,
	} {
		if got := retryAfter(http.Header{header[0]: {header[1]}}, now); got != want {
			t.Errorf("%v: %s, want %s", header, got, want)
		}
	}
}
