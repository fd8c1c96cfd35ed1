package client

import (
	"bytes"
	"io"
	"net/http"
)

// Direct returns a transport that calls a handler in this process. It buffers the whole response.
func Direct(h http.Handler) http.RoundTripper { return direct{h} }

type direct struct{ handler http.Handler }

func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	inside := req.Clone(req.Context())
	inside.RemoteAddr, inside.RequestURI = "127.0.0.1:0", req.URL.RequestURI()
	if inside.Body == nil {
		inside.Body = http.NoBody
	}
	defer inside.Body.Close()
	w := &recorder{status: http.StatusOK, header: http.Header{}}
	d.handler.ServeHTTP(w, inside)
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: req,
	}, nil
}

type recorder struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(status int)      { w.status = status }
func (w *recorder) Write(p []byte) (int, error) { return w.body.Write(p) }
