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

// errTooLarge says that a file is larger than one may be. It stays so: nobody needs to ask again.
var errTooLarge = errors.New("the file is too large to be kept")

var errIdle = errors.New("the server of files sends nothing")

// noRetryKey marks the context of a download that whatsmeow must not try again by itself: its pauses, which the
// server may choose, would hold a place that other files need.
type noRetryKey struct{}

// limitedTransport keeps responses from being larger than a file may be, and downloads from hanging. What a message
// says of its file's size is a stranger's word, and whatsmeow reads a response to its end.
type limitedTransport struct {
	http.RoundTripper
	maxBytes    int64         // the size of the largest file, before it is encrypted
	idleTimeout time.Duration // without a byte, after which a download is given up
}

// RoundTrip refuses a response where its body is read: whatsmeow takes an error of the request itself for
// trouble of the network, and tries for a quarter of a minute.
func (b *limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet { // an upload may take its time to be answered
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
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(failingBody{err}), ContentLength: -1, Request: r}, nil
	}
	return resp, nil
}

// isRetryable reports whether another attempt may succeed after a status.
func isRetryable(status int) bool { return status == http.StatusTooManyRequests || status >= 500 }

// get makes a request that is given up when nothing comes for a while.
func (b *limitedTransport) get(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(b.idleTimeout, func() { cancel(errIdle) })
	resp, err := b.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		timer.Stop()
		cancel(nil)
		return nil, causeOf(ctx, err)
	}
	resp.Body = &idleTimeoutBody{resp.Body, ctx, cancel, timer, b.idleTimeout}
	return b.limit(resp), nil
}

// limit bounds the body of a response.
func (b *limitedTransport) limit(resp *http.Response) *http.Response {
	body := &limitedBody{resp.Body, b.maxBytes + encryptionOverhead}
	if resp.ContentLength > body.left {
		body.left, resp.ContentLength = -1, -1 // whatsmeow would make room for it on the disk
	}
	resp.Body = body
	return resp
}

// causeOf says that a request was given up, where it was.
func causeOf(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errIdle) {
		return errIdle
	}
	return err
}

// CloseIdleConnections has to be passed on by name: an http.Client looks for it on what it was given.
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
		err = causeOf(w.ctx, err)
	}
	return n, err
}

func (w *idleTimeoutBody) Close() error {
	w.timer.Stop()
	defer w.cancel(nil)
	return w.ReadCloser.Close()
}

// limitedBody gives so much of a response and then fails, unless the response has ended.
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

// failingBody is a body that cannot be read.
type failingBody struct{ err error }

func (f failingBody) Read([]byte) (int, error) { return 0, f.err }
