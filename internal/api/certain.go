package api

import (
	"bytes"
	"crypto/rand"
	"io"
	"net/http"
	"time"

	"parley/internal/cluster"
	"parley/internal/wait"
)

// A validation uses the code up. A caller who then gets 503, because a node died or a connection broke between the commit and the
// response, would find the right code used. So on a cluster such a request has an idempotency key, if need be one of ours, and the
// node that received it repeats it for a while: the node that serves the channel by then does the work, or finds the stored response.

// certainly makes a work repeatable. It must store the response of a key in the transaction that does it.
func certainly(w work) work {
	w.certain = true
	return w
}

// certainFor is how long a request is repeated. A channel moves to another node within a few seconds.
const certainFor = 15 * time.Second

// mustBeCertain reports whether a request is repeated while its result is unknown. Such a request has a key.
func (rt *route) mustBeCertain(hr *http.Request) bool {
	if _, single := rt.config.Cluster.(cluster.Single); single || !rt.certain || IsForwarded(hr.Context()) {
		return false
	}
	if len(hr.Header[keyHeader]) == 0 {
		hr.Header.Set(keyHeader, "parley-"+rand.Text())
	}
	return true
}

// repeats waits a moment if the result of a request is unknown, and reports whether to try again.
func (r *request) repeats(began time.Time, err error) bool {
	return r.certain && err != nil && refusal(err).status == http.StatusServiceUnavailable &&
		time.Since(began) < certainFor && wait.Sleep(r.http.Context(), 100*time.Millisecond)
}

// again releases the request and returns it as it came.
func (r *request) again() *request {
	hr, body := r.http, bytes.Clone(r.body.Bytes())
	r.release()
	hr.Body = io.NopCloser(bytes.NewReader(body))
	next := newRequest(hr)
	next.certain = true
	return next
}
