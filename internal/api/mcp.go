package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/api/limit"
	"parley/internal/client"
	"parley/internal/mcp"
)

const (
	// mcpPerToken is how many requests of a token are served at once: each may wait for a reply.
	mcpPerToken = 16
	// mcpTimeout is longer than any call of a tool.
	mcpTimeout = 60 * time.Second
	limitMCP   = "mcp"
)

// openMCP serves clients of the Model Context Protocol. It calls the other routes with the caller's own token, so their checks, their
// limits and their forwarding to other nodes hold for it too.
func (rt *route) openMCP(ctx context.Context, r *request) (response, error) {
	if !rt.isOwnOrigin(r.http) {
		return response{}, parley.Errorf(parley.Forbidden, "Pages of other origins may not use this endpoint.")
	}
	if !rt.mcpCalls.Acquire(r.token.ID, ctx.Done(), 0) {
		q := limit.Quota{Name: limitMCP, Unit: limit.UnitAtOnce, Most: int64(rt.mcpCalls.Most), Wait: time.Second}
		return response{}, limit.Exceeded(q, fmt.Sprintf("This token has %d requests open here, which is the limit.", q.Most))
	}
	return response{status: http.StatusOK, stream: func(w http.ResponseWriter) error {
		defer rt.mcpCalls.Release(r.token.ID)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(mcpTimeout + timeToWrite))
		rt.serveMCP(w, r)
		return nil
	}}, nil
}

func (rt *route) serveMCP(w http.ResponseWriter, r *request) {
	setHeaders(w.Header(), r.id)
	raw, _ := bearer(r.http.Header)
	api := &client.Client{Base: "http://parley", Token: raw, Channel: readHeader(r.http.Header, "X-Channel"),
		HTTP: &http.Client{Transport: client.Inside(rt.router, r.http)}}
	config := mcp.Config{API: api, Admin: r.token.Kind == parley.AdminToken, Sending: rt.config.MCPSending, Version: rt.config.Program.Version}
	asked := r.http.Clone(r.http.Context())
	asked.Body = io.NopCloser(bytes.NewReader(bytes.Clone(r.body.Bytes()))) // the buffer is pooled
	errors := &textErrors{ResponseWriter: w}
	mcp.Serve(errors, asked, config)
	if answer := methodError(r.body.Bytes(), errors.text.String()); errors.status == http.StatusBadRequest && answer != nil {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer) // the caller may have left
		return
	}
	if errors.status != 0 {
		write(w, r.id, refusal(parley.Errorf(codeOfStatus(errors.status), "%s", strings.TrimSpace(errors.text.String()))))
	}
}

// methodError is the answer to a call of a method that does not exist, which the library refuses by its status: clients of JSON-RPC
// would take that for an error of the transport. It is nil for all other errors.
func methodError(sent []byte, problem string) []byte {
	var call struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(sent, &call) != nil || len(call.ID) == 0 || call.Method == "" || !strings.Contains(problem, "not handled") {
		return nil
	}
	answer, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": call.ID, // of texts only
		"error": map[string]any{"code": -32601, "message": "There is no method " + strconv.Quote(truncate(call.Method, 100)) + "."}})
	return answer
}

// textErrors holds back errors that are plain text, to write them in the form of all errors.
type textErrors struct {
	http.ResponseWriter
	status int // zero: no such error
	text   bytes.Buffer
}

func (w *textErrors) WriteHeader(status int) {
	if status >= http.StatusBadRequest && strings.HasPrefix(readHeader(w.Header(), "Content-Type"), "text/plain") {
		w.status = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *textErrors) Write(p []byte) (int, error) {
	if w.status != 0 {
		return w.text.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

func (w *textErrors) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// codeOfStatus is the code of an error that the library reports by its status.
func codeOfStatus(status int) parley.Code {
	if status >= http.StatusInternalServerError {
		return parley.Internal
	}
	return parley.BadRequest
}

// isOwnOrigin reports whether a request is not from a page of another origin. Programs send no Origin. The Host counts only where links
// trust it too: a page whose name was rebound to this machine sends its own name as both.
func (s *server) isOwnOrigin(hr *http.Request) bool {
	origin := readHeader(hr.Header, "Origin")
	if origin == "" || origin == s.baseURL(hr) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == hr.Host && NamesThisMachine(hr.Host)
}
