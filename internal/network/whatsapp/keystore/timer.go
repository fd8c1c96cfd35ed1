package keystore

import (
	"context"
	"fmt"
)

// Timer says after how many seconds new messages of a chat disappear, and when that was set, in seconds since 1970.
type Timer struct {
	Seconds uint32
	SetAt   int64
}

// Timers are those of a device's chats with contacts, by address. The timers of groups come with the group.
type Timers interface {
	Timer(ctx context.Context, chat string) (Timer, error)
	// PutTimer stores a timer, unless a newer one is known.
	PutTimer(ctx context.Context, chat string, t Timer) error
}

var _ Timers = (*device)(nil)

func (d *device) Timer(ctx context.Context, chat string) (t Timer, err error) {
	value, err := d.get(ctx, timerKind, chat)
	if err == nil && value != nil {
		_, err = fmt.Sscan(string(value), &t.Seconds, &t.SetAt)
	}
	return t, wrapError("read a timer", err)
}

func (d *device) PutTimer(ctx context.Context, chat string, t Timer) error {
	known, err := d.Timer(ctx, chat)
	if err != nil || known == t || known.SetAt > t.SetAt {
		return err
	}
	return d.put(ctx, change{key{d.id, timerKind, chat}, fmt.Appendf(nil, "%d %d", t.Seconds, t.SetAt)})
}
