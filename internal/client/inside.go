package client

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
)

// Direct returns a transport that calls a handler in this process.
func Direct(h http.Handler) http.RoundTripper {
	return Inside(h, &http.Request{RemoteAddr: "127.0.0.1:0", Host: "parley"})
}

// Inside is Direct on behalf of a request: the handler sees the address and the proxies of that request.
func Inside(h http.Handler, of *http.Request) http.RoundTripper { return &inside{h, of} }

type inside struct {
	handler http.Handler
	of      *http.Request
}

// passedOn are the header fields that say where a request comes from.
var passedOn = []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "User-Agent"}

func (i *inside) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	within := req.Clone(ctx)
	within.RemoteAddr, within.RequestURI, within.Host = i.of.RemoteAddr, req.URL.RequestURI(), i.of.Host
	for _, name := range passedOn {
		if values, ok := i.of.Header[name]; ok {
			within.Header[name] = values
		}
	}
	if within.Body == nil {
		within.Body = http.NoBody
	}
	body, out := io.Pipe()
	w := &pipeWriter{header: http.Header{}, out: out, begun: make(chan struct{})}
	done := make(chan struct{})
	go func() { // ends with the handler, which ends when ctx does or nobody reads any more
		defer close(done)
		defer within.Body.Close()
		defer func() {
			if p := recover(); p != nil { // of a proxy that lost its connection
				out.CloseWithError(fmt.Errorf("the response is incomplete: %v", p))
			}
			w.WriteHeader(http.StatusOK)
			out.Close()
		}()
		i.handler.ServeHTTP(w, within)
	}()
	select {
	case <-w.begun:
	case <-ctx.Done():
		cancel()
		body.Close()
		<-done
		return nil, ctx.Err()
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: &pipeBody{body, cancel, done}, ContentLength: -1, Request: req,
	}, nil
}

// pipeWriter passes a response on while it is written.
type pipeWriter struct {
	header http.Header
	out    *io.PipeWriter
	begin  sync.Once
	begun  chan struct{} // closed when the status is known

	status int
	sent   http.Header
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	w.begin.Do(func() {
		w.status, w.sent = status, maps.Clone(w.header)
		close(w.begun)
	})
}

func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.out.Write(p)
}

func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }

// pipeBody ends the handler when it is closed, and waits for that.
type pipeBody struct {
	*io.PipeReader
	cancel context.CancelFunc
	done   <-chan struct{}
}

func (b *pipeBody) Close() error {
	b.cancel()
	err := b.PipeReader.Close()
	<-b.done
	return err
}
