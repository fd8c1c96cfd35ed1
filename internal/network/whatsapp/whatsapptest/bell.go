package whatsapptest

import (
	"context"
	"sync"
)

// bell lets any number of goroutines wait until something may have changed.
type bell struct {
	mu sync.Mutex
	ch chan struct{}
}

// next returns a channel that is closed at the next ring.
func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// await looks again after every ring until look finds what it wants or ctx ends.
func await[V any](ctx context.Context, b *bell, look func() (V, bool)) (V, error) {
	for {
		rung := b.next()
		if v, ok := look(); ok {
			return v, nil
		}
		select {
		case <-rung:
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		}
	}
}
