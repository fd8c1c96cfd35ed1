package whatsapp

import (
	"errors"
	"io"
	"net/http"
)

// sealOverhead is by how much the ciphertext of a file can be larger than the file: padding and a code.
const sealOverhead = 16 + 10

// errTooLarge says that a file is larger than one may be. It stays so: nobody needs to ask again.
var errTooLarge = errors.New("the file is too large to be kept")

// bounded keeps answers from being larger than a file may be. What a message says of its file's size is a
// stranger's word, and whatsmeow reads an answer to its end, into memory.
type bounded struct {
	http.RoundTripper
	most int64 // the size of the largest file, before it is encrypted
}

// RoundTrip refuses an answer where its body is read: whatsmeow takes an error of the request itself for
// trouble of the network, and tries for a quarter of a minute.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body := &boundedBody{resp.Body, b.most + sealOverhead}
	if resp.ContentLength > body.left {
		body.left = -1
	}
	resp.Body = body
	return resp, nil
}

// CloseIdleConnections has to be passed on by name: an http.Client looks for it on what it was given.
func (b *bounded) CloseIdleConnections() {
	(&http.Client{Transport: b.RoundTripper}).CloseIdleConnections()
}

// boundedBody gives so much of an answer and then fails, unless the answer has ended.
type boundedBody struct {
	io.ReadCloser
	left int64 // negative: there is more than may be
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)]) // one more than may be, to see whether there is
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
