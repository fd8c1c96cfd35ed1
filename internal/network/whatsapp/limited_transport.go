package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// encryptionOverhead is by how much the ciphertext of a file can be larger than the file: padding and a code.
const encryptionOverhead = 16 + 10

// downloadIdleTimeout is how long a server of files may send nothing.
const downloadIdleTimeout = 30 * time.Second

// errTooLarge is permanent: the file stays too large.
var errTooLarge = errors.New("the file is too large")

var errIdle = errors.New("the server of files sends nothing")

// noRetryKey marks a download that whatsmeow must not retry itself. Its delays, which the server chooses, would hold a
// slot that other files need.
type noRetryKey struct{}

// limitedTransport bounds the size of responses and ends stalled downloads. The size in a message comes from a
// stranger, and whatsmeow reads a response to its end.
type limitedTransport struct {
	http.RoundTripper
	maxBytes    int64         // the size of the largest file, before it is encrypted
	idleTimeout time.Duration // without a byte until a download fails
}

// RoundTrip reports errors when the body is read. whatsmeow retries an error of the request itself for 15 seconds.
func (b *limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet { // a server may respond late to an upload
		resp, err := b.RoundTripper.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		return b.limit(resp), nil
	}
	resp, err := b.get(r)
	if r.Context().Value(noRetryKey{}) == nil {
		return resp, err
	}
	if err == nil && isRetryable(resp.StatusCode) {
		resp.Body.Close()
		err = fmt.Errorf("the server of files answers %d", resp.StatusCode)
	}
	if err != nil {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(failingBody{err}), ContentLength: -1,
			Request: r}, nil
	}
	return resp, nil
}

func isRetryable(status int) bool { return status == http.StatusTooManyRequests || status >= 500 }

// get sends a request that fails if no byte comes for a while.
func (b *limitedTransport) get(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(b.idleTimeout, func() { cancel(errIdle) })
	resp, err := b.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		timer.Stop()
		cancel(nil)
		return nil, toCause(ctx, err)
	}
	resp.Body = &idleTimeoutBody{resp.Body, ctx, cancel, timer, b.idleTimeout}
	return b.limit(resp), nil
}

func (b *limitedTransport) limit(resp *http.Response) *http.Response {
	body := &limitedBody{resp.Body, b.maxBytes + encryptionOverhead}
	if resp.ContentLength > body.left {
		body.left, resp.ContentLength = -1, -1 // whatsmeow would make room for it on the disk
	}
	resp.Body = body
	return resp
}

func toCause(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errIdle) {
		return errIdle
	}
	return err
}

// CloseIdleConnections must exist by name: http.Client looks for it on its transport.
func (b *limitedTransport) CloseIdleConnections() {
	(&http.Client{Transport: b.RoundTripper}).CloseIdleConnections()
}

// idleTimeoutBody ends when nothing comes for a while.
type idleTimeoutBody struct {
	io.ReadCloser
	ctx         context.Context
	cancel      context.CancelCauseFunc
	timer       *time.Timer
	idleTimeout time.Duration
}

func (w *idleTimeoutBody) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 {
		w.timer.Reset(w.idleTimeout)
	}
	if err != nil && err != io.EOF {
		err = toCause(w.ctx, err)
	}
	return n, err
}

func (w *idleTimeoutBody) Close() error {
	w.timer.Stop()
	defer w.cancel(nil)
	return w.ReadCloser.Close()
}

// limitedBody fails after its limit, unless the response ends exactly there.
type limitedBody struct {
	io.ReadCloser
	left int64 // negative: there is more than may be
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)]) // one more than may be, to see whether there is
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

type failingBody struct{ err error }

func (f failingBody) Read([]byte) (int, error) { return 0, f.err }
