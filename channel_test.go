package parley

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestChannelAccepts(t *testing.T) {
	c := Channel{Code: "demo"}
	for status, want := range map[ChannelStatus]string{
		ChannelWorking: "", ChannelStarting: "", ChannelReconnecting: "",
		ChannelStopped:    "parley channel start demo",
		ChannelScanQRCode: "parley channel pair demo",
		ChannelLoggedOut:  "parley channel pair demo",
		ChannelFailed:     "parley channel show demo",
	} {
		c.State.Status = status
		err := c.Accepts("6281234567890@c.us")
		if want == "" {
			if err != nil {
				t.Errorf("%s refuses: %v", status, err)
			}
			continue
		}
		if ToCode(err) != ChannelNotReady || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), string(status)) {
			t.Errorf("%s: %v; want the status and %q", status, err, want)
		}
	}
}

func TestChannelAllowList(t *testing.T) {
	c := Channel{Code: "demo", State: ChannelState{Status: ChannelWorking},
		Settings: ChannelSettings{AllowOnly: []ContactID{"6281234567890@c.us"}}}
	if err := c.Accepts("6281234567890@c.us"); err != nil {
		t.Error(err)
	}
	err := c.Accepts("6281234567891@c.us")
	if ToCode(err) != Forbidden || !strings.Contains(err.Error(), "parley channel allow demo 6281234567891") {
		t.Errorf("got %v", err)
	}
}

func TestChannelSettings(t *testing.T) {
	var s ChannelSettings
	if s.MessageTTL() != 24*time.Hour || !s.StoresText() {
		t.Errorf("defaults: %s, %t", s.MessageTTL(), s.StoresText())
	}
	none := Duration(0)
	s = ChannelSettings{TTL: Duration(time.Hour), Retention: &none}
	if s.MessageTTL() != time.Hour || s.StoresText() {
		t.Errorf("set: %s, %t", s.MessageTTL(), s.StoresText())
	}
	text, err := json.Marshal(s)
	if err != nil || string(text) != `{"ttl":"1h","retention":"0s"}` {
		t.Errorf("got %s, %v", text, err)
	}
	var back ChannelSettings
	if err := json.Unmarshal(text, &back); err != nil || back.TTL != s.TTL || back.Retention == nil || *back.Retention != 0 {
		t.Errorf("came back as %+v, %v", back, err)
	}
}

func TestInvalidFields(t *testing.T) {
	if InvalidFields(nil) != nil {
		t.Error("no field is wrong, and yet there is an error")
	}
	one := InvalidField("a", "a is wrong.")
	if one.Message != "a is wrong." || ToCode(one) != Invalid {
		t.Errorf("got %+v", one)
	}
	fields := []FieldError{{"a", "a is wrong."}, {"b", "b is wrong."}}
	if got := InvalidFields(fields).Message; got != "a is wrong. (and 1 more errors)" {
		t.Errorf("got %q", got)
	}
	if got := InvalidFields(append(fields, FieldError{"c", "c is wrong."})).Message; got != "a is wrong. (and 2 more errors)" {
		t.Errorf("got %q", got)
	}
}
