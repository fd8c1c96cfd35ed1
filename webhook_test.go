package parley_test

import (
	"testing"
	"time"

	"parley"
)

func TestDeliveryID(t *testing.T) {
	for _, n := range []int64{0, 1, 1 << 40} {
		if got := parley.NewDeliveryID(n).Number(); got != n {
			t.Errorf("%d reads as %d", n, got)
		}
	}
	for _, wrong := range []parley.DeliveryID{"", "dlv_", "dlv_1", "dlv_00000000000000zz",
		"evt_0000000000000001", "dlv_ffffffffffffffff", "dlv_-000000000000001", "dlv_00000000000000001"} {
		if n := wrong.Number(); n != -1 {
			t.Errorf("%q is %d", wrong, n)
		}
	}
}

func TestDeliveryEndpoint(t *testing.T) {
	for want, d := range map[parley.Endpoint]parley.Delivery{
		"whk_1":                    {Webhook: "whk_1"},
		"https://app.example":      {URL: "https://App.example/ok?x=1"},
		"http://app.example:8080":  {URL: "http://app.example:8080"},
		"https://[2001:db8::1]:99": {URL: "https://[2001:DB8::1]:99/"},
	} {
		if got := d.Endpoint(); got != want {
			t.Errorf("%+v goes to %q, want %q", d, got, want)
		}
	}
}

func TestEnableStartsOver(t *testing.T) {
	w := parley.Webhook{Failures: 12, FailingSince: time.Now(), FailingFor: time.Hour}
	w.Disable(time.Now(), "it only failed")
	if w.IsEnabled() || w.Reason != "it only failed" {
		t.Errorf("disabled: %+v", w)
	}
	w.Enable()
	if !w.IsEnabled() || w.Failures != 0 || !w.FailingSince.IsZero() || w.FailingFor != 0 || w.Reason != "" {
		t.Errorf("enabled: %+v", w)
	}
}
