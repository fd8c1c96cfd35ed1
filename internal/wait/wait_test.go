package wait

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !Sleep(t.Context(), time.Hour) || time.Since(began) != time.Hour {
			t.Errorf("slept %s", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if Sleep(ctx, time.Hour) || time.Since(began) != time.Hour+time.Minute {
			t.Errorf("the context ended, and it slept %s", time.Since(began)-time.Hour)
		}
	})
}

func TestNotify(t *testing.T) {
	c := make(chan struct{}, 1)
	Notify(c)
	Notify(c)
	if len(c) != 1 {
		t.Errorf("%d notifications", len(c))
	}
}
