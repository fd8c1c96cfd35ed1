package safehttp

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

// drip is a body that brings a piece at each interval, until its request is cancelled.
type drip struct {
	ctx    context.Context
	piece  int
	every  time.Duration
	pieces int
}

func (d *drip) Read(p []byte) (int, error) {
	if d.pieces == 0 {
		return 0, io.EOF
	}
	d.pieces--
	select {
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	case <-time.After(d.every):
		return min(d.piece, len(p)), nil
	}
}

func (d *drip) Close() error { return nil }

func TestMinimumRate(t *testing.T) {
	tests := []struct {
		name    string
		piece   int
		every   time.Duration
		pieces  int
		want    ProblemCode
		noLater time.Duration
	}{
		{"a byte a second", 1, time.Second, 1000, Timeout, 5 * time.Second},
		{"nothing at all", 1, time.Hour, 1, Timeout, 5 * time.Second},
		{"slow, but done within the grace", 1, time.Second, 4, "", 4 * time.Second},
		{"just fast enough", 110, 100 * time.Millisecond, 200, "", 20 * time.Second},
		{"fast, then nothing", 1 << 10, time.Hour, 1, Timeout, 5 * time.Second},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			began := time.Now()
			resp := &http.Response{ContentLength: -1, Body: &drip{ctx, test.piece, test.every, test.pieces}}
			b := newBody(ctx, resp, Options{MaxBody: 1 << 20, Grace: 5 * time.Second}, cancel, func() { cancel(nil) })
			_, err := io.Copy(io.Discard, b)
			b.Close()
			b.Close()
			var got ProblemCode
			if problem, ok := errors.AsType[*Problem](err); ok {
				got = problem.Code
			} else if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			if got != test.want || time.Since(began) > test.noLater {
				t.Errorf("%s: %q after %s, want %q by %s", test.name, got, time.Since(began), test.want, test.noLater)
			}
		})
	}
}
