package whatsapp

import (
	"context"
	"sync"
)

// flight is a question under way for which several wait.
type flight[T any] struct {
	ready chan struct{} // closed when it is answered
	value T
	err   error
}

func (f *flight[T]) await(ctx context.Context) (T, error) {
	select {
	case <-f.ready:
		return f.value, f.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// shared is a question that is asked once for all who need the answer at the same time.
type shared[T any] struct {
	mu      sync.Mutex
	current *flight[T]
}

// join returns the question that is under way, or asks it, as an errand of a line.
func (s *shared[T]) join(l *line, ask func() (T, error)) *flight[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		return s.current
	}
	f := &flight[T]{ready: make(chan struct{}), err: errLineEnded}
	started := l.errand(func() {
		defer close(f.ready)
		defer func() {
			s.mu.Lock()
			s.current = nil
			s.mu.Unlock()
		}()
		defer l.s.contain(&f.err)
		f.value, f.err = ask()
	})
	if !started {
		close(f.ready)
		return f
	}
	s.current = f
	return f
}
