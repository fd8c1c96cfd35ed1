package doctor

import (
	"context"
	"fmt"
	"time"

	"parley"
	"parley/internal/otp/rule"
)

// Attacks reports recent attacks on one-time codes.
func Attacks(ctx context.Context, store interface {
	OTPAlarms(ctx context.Context) ([]parley.OTPAlarm, error)
}, channels []parley.Channel, now time.Time) ([]Finding, error) {
	alarms, err := store.OTPAlarms(ctx)
	if err != nil {
		return nil, err
	}
	var attacks []Finding
	for _, a := range alarms {
		for _, c := range channels {
			if c.Code == a.Channel && now.Add(time.Duration(c.Settings.ClockAhead)).Before(a.Until) {
				attacks = append(attacks, attackFinding(a))
			}
		}
	}
	return attacks, nil
}

func attackFinding(a parley.OTPAlarm) Finding {
	if a.Type == parley.OTPPaused {
		return Finding{Check: "codes", Level: Warning, Code: "otp_paused", Channel: a.Channel, Since: a.At, Until: a.Until,
			Found: fmt.Sprintf("Channel %s sends no codes to new contacts until %s: of the last %d fewer than 10 %% were approved.",
				a.Channel, When(a.Until), a.Count),
			Remedy: "find out who requests codes for made-up numbers, and limit requests on your login page"}
	}
	return Finding{Check: "codes", Level: Warning, Code: "otp_guessing", Channel: a.Channel, Since: a.At,
		Found: fmt.Sprintf("On channel %s more than %d wrong codes were tried within an hour, at %s.", a.Channel,
			rule.GuessLimit, When(a.At)),
		Remedy: "find out who tries codes of many contacts, and limit tries on your login page"}
}

// enoughCodes is from how many codes on the delivery rate counts.
const enoughCodes = 10

// Codes warns if fewer than half of the one-time codes of the last 24 hours reached a phone.
func Codes(requested, delivered int64) []Finding {
	if requested < enoughCodes || 2*delivered >= requested {
		return nil
	}
	return []Finding{{Check: "codes", Level: Warning, Code: "otp_undelivered",
		Found:  fmt.Sprintf("Only %d of %d one-time codes in the last 24 hours reached a phone.", delivered, requested),
		Remedy: "check the channel and the numbers that codes are requested for"}}
}
