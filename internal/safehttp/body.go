package safehttp

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// minRate is how many bytes a second a body must bring on average once its grace period is over: a
// server that drips would otherwise hold a connection for the whole time-out.
const minRate = 1 << 10

// body is a response body within the client's limits. Its errors are problems.
type body struct {
	ctx     context.Context
	from    io.ReadCloser
	limit   int64
	read    atomic.Int64
	err     error // the error of every further Read
	started time.Time
	watch   *time.Timer
	stop    func()
}

// newBody cancels the request when the body is too slow, and calls stop when the body is closed.
func newBody(ctx context.Context, resp *http.Response, o Options, cancel context.CancelCauseFunc, stop func()) *body {
	b := &body{ctx: ctx, from: resp.Body, limit: o.MaxBody, started: time.Now(), stop: stop}
	if resp.ContentLength > b.limit {
		b.err = tooLarge(b.limit)
	}
	ready := make(chan struct{})
	b.watch = time.AfterFunc(o.Grace, func() {
		<-ready // b.watch is set
		if b.read.Load() < int64(time.Since(b.started).Seconds()*minRate) {
			cancel(errSlow)
		}
		if ctx.Err() == nil {
			b.watch.Reset(time.Second)
		}
	})
	close(ready)
	return b
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.from.Read(p)
	total := b.read.Add(int64(n))
	switch {
	case total > b.limit:
		n -= int(total - b.limit)
		b.err = tooLarge(b.limit)
	case err == io.EOF:
		b.err = io.EOF
	case err != nil:
		b.err = problemOf(b.ctx, err)
	}
	return n, b.err
}

// Close may be called twice.
func (b *body) Close() error {
	b.watch.Stop()
	err := b.from.Close()
	b.stop()
	return err
}
