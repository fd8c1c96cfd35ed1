package doctor

import (
	"context"
	"fmt"
	"time"

	"parley"
)

// Attack is an active alarm about one-time codes, with its sentence.
type Attack struct {
	parley.OTPAlarm
	Finding Finding
}

// Attacks reports recent attacks on one-time codes.
func Attacks(ctx context.Context, store interface {
	OTPAlarms(ctx context.Context) ([]parley.OTPAlarm, error)
}, channels []parley.Channel, now time.Time) ([]Attack, error) {
	alarms, err := store.OTPAlarms(ctx)
	if err != nil {
		return nil, err
	}
	var attacks []Attack
	for _, a := range alarms {
		for _, c := range channels {
			if c.Code == a.Channel && now.Add(time.Duration(c.Settings.ClockAhead)).Before(a.Until) {
				attacks = append(attacks, Attack{a, attackFinding(a)})
			}
		}
	}
	return attacks, nil
}

func attackFinding(a parley.OTPAlarm) Finding {
	if a.Type == parley.OTPPaused {
		return Finding{"codes", Warning,
			fmt.Sprintf("Channel %s sends no codes to new contacts until %s: of the last %d fewer than 10 %% were approved.",
				a.Channel, When(a.Until), a.Count),
			"find out who requests codes for made-up numbers, and limit requests on your login page"}
	}
	return Finding{"codes", Warning,
		fmt.Sprintf("On channel %s more than %d wrong codes were tried within an hour, at %s.", a.Channel, parley.OTPGuessLimit, When(a.At)),
		"find out who tries codes of many contacts, and limit tries on your login page"}
}
