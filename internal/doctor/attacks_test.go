package doctor

import (
	"context"
	"testing"
	"time"

	"parley"
)

// oneAlarm is a store in which there is one alarm of one-time codes.
type oneAlarm struct {
	alarm parley.OTPAlarm
}

func (o oneAlarm) OTPAlarms(context.Context) ([]parley.OTPAlarm, error) {
	return []parley.OTPAlarm{o.alarm}, nil
}

// TestAttacksThatAreOver has an alarm end, by the channel's own clock.
func TestAttacksThatAreOver(t *testing.T) {
	now := time.Now()
	store := oneAlarm{alarm: parley.OTPAlarm{Channel: "shop", Type: parley.OTPPaused, At: now, Until: now.Add(time.Minute)}}
	for _, test := range []struct {
		code  parley.ChannelCode
		ahead time.Duration
		later time.Duration
		want  int
	}{
		{"shop", 0, 0, 1}, {"shop", 0, time.Minute, 0}, {"shop", time.Minute, 0, 0}, {"other", 0, 0, 0},
	} {
		channel := parley.Channel{Code: test.code, Settings: parley.ChannelSettings{ClockAhead: parley.Duration(test.ahead)}}
		got, err := Attacks(t.Context(), store, []parley.Channel{channel}, now.Add(test.later))
		if err != nil || len(got) != test.want {
			t.Errorf("%+v: %+v, %v", test, got, err)
		}
	}
}

func TestClock(t *testing.T) {
	for ahead, want := range map[time.Duration]Finding{
		5 * time.Second:  {Level: Fine, Found: "agrees with WhatsApp's"},
		7 * time.Second:  {Level: Warning, Found: "The clock of this machine is 7 s ahead of WhatsApp's."},
		-7 * time.Second: {Level: Warning, Found: "The clock of this machine is 7 s behind WhatsApp's."},
		-time.Hour:       {Level: Problem, Found: "The clock of this machine is 1 h behind WhatsApp's."},
	} {
		if f := Clock(ahead); f.Level != want.Level || f.Found != want.Found {
			t.Errorf("%s: %+v", ahead, f)
		}
	}
}
