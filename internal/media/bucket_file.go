package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// object is a file of a bucket that is being read. After a broken connection it requests the rest.
type object struct {
	s    *objects
	ctx  context.Context
	name string
	etag string // of the first response; a file that was replaced meanwhile is an error
	size int64
	at   int64 // the next byte

	body    io.ReadCloser
	reading context.Context // of body
	watch   *watch
	resumes int
}

// request requests the file from the next byte on.
func (f *object) request() (*http.Response, error) {
	ctx, watch := newWatch(f.ctx, f.s.stall)
	header := http.Header{}
	if f.at > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", f.at))
	}
	if f.etag != "" {
		header.Set("If-Match", f.etag)
	}
	resp, err := f.s.do(ctx, call{method: http.MethodGet, name: f.name, header: header})
	if err == nil && f.at > 0 && !strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", f.at)) {
		resp.Body.Close()
		err = errors.New("the storage ignores ranges")
	}
	if err != nil {
		watch.end()
		return nil, f.s.classify(ctx, fmt.Errorf("read a file: %w", err))
	}
	watch.pause()
	f.body, f.reading, f.watch = resp.Body, ctx, watch
	return resp, nil
}

// Read reads on. Only a file that is whole ends with io.EOF.
func (f *object) Read(p []byte) (int, error) {
	for {
		if f.at >= f.size {
			return 0, io.EOF
		}
		if f.body == nil {
			if _, err := f.request(); err != nil {
				return 0, err
			}
		}
		f.watch.progress()
		n, err := f.body.Read(p)
		f.watch.pause()
		f.at += int64(n)
		if err == nil || f.at >= f.size {
			return n, nil
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		err = f.s.classify(f.reading, fmt.Errorf("read a file: %w", err))
		f.drop()
		if f.resumes++; f.resumes > maxResumes || f.ctx.Err() != nil {
			return n, err
		}
		if n > 0 {
			return n, nil // the next call requests the rest
		}
	}
}

// Seek sets where to read on. Nothing is requested before that.
func (f *object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, errors.New("a negative position in a file")
	}
	if offset != f.at {
		f.drop()
		f.at = offset
	}
	return offset, nil
}

func (f *object) drop() {
	if f.body != nil {
		f.body.Close()
		f.watch.end()
		f.body = nil
	}
}

// Close ends the download.
func (f *object) Close() error {
	f.drop()
	f.at = f.size
	return nil
}

// watch cancels a context when nothing happens for a while.
type watch struct {
	timer  *time.Timer
	after  time.Duration
	cancel context.CancelCauseFunc
}

func newWatch(parent context.Context, after time.Duration) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(parent)
	return ctx, &watch{time.AfterFunc(after, func() { cancel(errStalled) }), after, cancel}
}

func (w *watch) progress() { w.timer.Reset(w.after) }

// pause stops the time while the caller does something else.
func (w *watch) pause() { w.timer.Stop() }

// end releases the context.
func (w *watch) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// watchedBody is the body of an upload. Reading it is progress.
type watchedBody struct {
	from  io.Reader
	watch *watch
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.progress()
	return b.from.Read(p)
}
