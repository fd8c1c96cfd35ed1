package callback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"parley"
	"parley/internal/safehttp"
)

const (
	// MaxResponse is how much of an answer is read: enough to use the connection again after any honest one.
	MaxResponse = 64 << 10
	// maxKept is how much of the answer to a failed attempt is kept, to see what went wrong.
	maxKept = 1 << 10
	// drainTime is how long a body may take after an answer that is good already.
	drainTime = time.Second
)

// Attempt is how one request ended.
type Attempt struct {
	RequestID string // what the request carried as X-Request-Id
	At        time.Time
	Took      time.Duration
	Code      int    // the HTTP status; zero: there was no answer
	Problem   string // why it failed: a word of safehttp, a colon and a sentence; empty: it did not
	Response  string // the beginning of the answer to a failed attempt

	retryAfter time.Duration // that the endpoint asked for
}

// Succeeded reports whether the endpoint took the event.
func (a *Attempt) Succeeded() bool { return a.Problem == "" }

// webhookRequest makes the request that tells a webhook of an event.
func (e *Engine) webhookRequest(ctx context.Context, address string, event *parley.Event, keys Keys, at time.Time) (*http.Request, error) {
	body, err := e.Render(event)
	if err != nil {
		return nil, fmt.Errorf("write event %s: %w", event.ID, err)
	}
	u, err := safehttp.CheckURL(address)
	if err != nil {
		return nil, err
	}
	req := (&http.Request{Method: http.MethodPost, URL: u, Header: http.Header{}, ContentLength: int64(len(body)),
		Body: io.NopCloser(bytes.NewReader(body))}).WithContext(ctx)
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Header.Set("Content-Type", "application/json")
	return req, keys.SignRequest(req.Header, event.ID, at, body)
}

// callbackRequest makes the request that tells the outcome of a login link. The address keeps its own
// query as it is; ours is put after it.
func callbackRequest(ctx context.Context, d *parley.Delivery, event *parley.Event, keys Keys, at time.Time) (*http.Request, error) {
	params, err := callbackParams(d.Chat, event, at)
	if err != nil {
		return nil, err
	}
	signature, err := keys.signParams(params)
	if err != nil {
		return nil, err
	}
	u, err := safehttp.CheckURL(d.URL)
	if err != nil {
		return nil, err
	}
	var query strings.Builder
	query.WriteString(strings.ReplaceAll(u.RawQuery, " ", "%20")) // a blank would end the request's line
	for _, p := range append(params, param{"signature", signature}) {
		if query.Len() > 0 {
			query.WriteByte('&')
		}
		query.WriteString(p.key + "=" + url.QueryEscape(p.value))
	}
	u.RawQuery = query.String()
	req := (&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}).WithContext(ctx)
	req.Header.Set(headerSignature, signature)
	return req, nil
}

// callbackParams are what a callback says, sorted.
func callbackParams(contact parley.ContactID, event *parley.Event, at time.Time) ([]param, error) {
	var data struct {
		ID     string `json:"id"`
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal(event.Data, &data); err != nil {
		return nil, fmt.Errorf("read event %s: %w", event.ID, err)
	}
	status := "failed"
	if event.Type == parley.OTPApproved {
		status = "success"
	}
	params := []param{{"contact_id", string(contact)}, {"event_id", string(event.ID)}, {"id", data.ID}}
	if data.Reason != "" {
		params = append(params, param{"reason", data.Reason})
	}
	return append(params, param{"status", status}, param{"timestamp", parley.Stamp(at)}), nil
}

// exchange sends a request and judges the answer. A request that could not be made is given as err.
// What is left to read of the answer is given up by cancel.
func (e *Engine) exchange(req *http.Request, err error, cancel func(), begun Attempt) (a Attempt) {
	a = begun
	defer func() { a.Took = time.Since(a.At) }()
	if err != nil {
		a.Problem = problem(err)
		return a
	}
	req.Header.Set("User-Agent", "parley/"+e.Version)
	req.Header.Set("X-Request-Id", a.RequestID)
	resp, err := e.Client.Do(req)
	if err != nil {
		a.Problem = problem(err)
		return a
	}
	defer resp.Body.Close()
	a.Code = resp.StatusCode
	if a.Code >= 200 && a.Code <= 299 {
		drain(resp.Body, cancel)
		return a
	}
	a.Problem = fmt.Sprintf("%s: The server answered %s.", safehttp.HTTPStatus, statusText(a.Code))
	a.Response = beginning(resp.Body, cancel)
	a.retryAfter = retryAfter(resp, time.Now())
	return a
}

// statusText is a status as it is told.
func statusText(code int) string {
	text := fmt.Sprint(code)
	if name := http.StatusText(code); name != "" {
		text += " " + name
	}
	if code >= 300 && code <= 399 {
		text += ", and redirects are not followed"
	}
	return text
}

// drain reads a body to its end, so that the connection can be used again. The answer is good already,
// whatever comes now: one that is long or slow costs its connection and nothing else.
func drain(body io.Reader, cancel func()) {
	defer time.AfterFunc(drainTime, cancel).Stop()
	io.Copy(io.Discard, io.LimitReader(body, MaxResponse)) // see above
}

// beginning reads what is kept of an answer, as far as it comes, and without what is no text.
func beginning(body io.Reader, cancel func()) string {
	defer time.AfterFunc(drainTime, cancel).Stop()
	kept, _ := io.ReadAll(io.LimitReader(body, maxKept)) // what came before a failure is all there is
	io.Copy(io.Discard, io.LimitReader(body, MaxResponse-maxKept))
	text := strings.ToValidUTF8(string(kept), "")
	return strings.Map(func(r rune) rune {
		if r == 0 || r == utf8.RuneError {
			return -1
		}
		return r
	}, text)
}

// problem says why there was no answer.
func problem(err error) string {
	if p, ok := errors.AsType[*safehttp.Problem](err); ok {
		return string(p.Code) + ": " + p.Sentence
	}
	if bad, ok := errors.AsType[*safehttp.BadURL](err); ok {
		return "bad_url: " + bad.Sentence
	}
	return "internal: The request could not be made."
}
