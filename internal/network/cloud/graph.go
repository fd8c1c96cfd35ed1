package cloud

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/internal/safehttp"
)

const (
	graphHost = "https://graph.facebook.com"
	// graphVersion is the version of the API that requests name. Meta ends it at graphVersionEnds.
	graphVersion = "v25.0"
	maxResponse  = 1 << 20
)

// GraphVersionEnds is when Meta stops serving the version that we use.
var GraphVersionEnds = time.Date(2028, 7, 29, 0, 0, 0, 0, time.UTC)

// base is the address that paths follow. A test server may be below a path of its own.
func (a account) base() string {
	base := strings.TrimRight(cmp.Or(a.GraphURL, graphHost), "/")
	if u, err := url.Parse(base); err == nil && u.Path == "" {
		base += "/" + graphVersion
	}
	return base
}

// graphError is an error that Meta responded.
type graphError struct {
	Code       int                      `json:"code"`
	Subcode    int                      `json:"error_subcode"`
	Message    string                   `json:"message"`
	Title      string                   `json:"title"` // of a status
	Data       struct{ Details string } `json:"error_data"`
	Status     int                      `json:"-"` // of the response; 0: it came by a status
	RetryAfter time.Duration            `json:"-"`
}

func (e *graphError) Error() string { return fmt.Sprintf("error %d: %s", e.Code, e.text()) }

func (e *graphError) text() string { return cmp.Or(e.Data.Details, e.Message, e.Title, "no details") }

// lostError is why a request has no readable response. Unless it was sent, it did not reach Meta.
type lostError struct {
	sent  bool
	cause error
}

func (e *lostError) Error() string { return e.cause.Error() }
func (e *lostError) Unwrap() error { return e.cause }

// do sends a request of an account and decodes the response. The error is a *graphError or a *lostError.
func (d *Driver) do(ctx context.Context, a account, method, path string, query url.Values, body, into any) error {
	var data io.Reader
	header := http.Header{}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return &lostError{cause: err}
		}
		data = bytes.NewReader(text)
		header.Set("Content-Type", "application/json")
	}
	resp, err := d.request(ctx, d.config.Calls, a, method, a.base()+"/"+path, query, header, data)
	if err != nil {
		return err
	}
	return decode(resp, into)
}

// request sends a request with the account's token. Its header is changed.
func (d *Driver) request(ctx context.Context, client *safehttp.Client, a account, method, address string, query url.Values,
	header http.Header, body io.Reader) (*http.Response, error) {
	sent := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }})
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, &lostError{cause: err}
	}
	req.Header = header
	req.Header.Set("Authorization", "Bearer "+a.AccessToken)
	req.Header.Set("User-Agent", "parley/"+d.config.Version)
	if query != nil {
		query.Set("appsecret_proof", sign(a.AppSecret, []byte(a.AccessToken)))
		req.URL.RawQuery = query.Encode()
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, &lostError{sent: sent, cause: err}
	}
	return resp, nil
}

// decode reads a response. A success that cannot be read has an unknown outcome.
func decode(resp *http.Response, into any) error {
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return &lostError{sent: true, cause: err}
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		if err := json.Unmarshal(text, into); err != nil {
			return &lostError{sent: true, cause: fmt.Errorf("read the response: %w", err)}
		}
		return nil
	}
	var failed struct{ Error *graphError }
	if err := json.Unmarshal(text, &failed); err != nil || failed.Error == nil {
		if resp.StatusCode >= 500 || resp.StatusCode < 400 {
			return &lostError{sent: true, cause: fmt.Errorf("status %d without a reason", resp.StatusCode)}
		}
		failed.Error = &graphError{Code: -1, Message: fmt.Sprintf("status %d without a reason", resp.StatusCode)}
	}
	failed.Error.Status, failed.Error.RetryAfter = resp.StatusCode, retryAfter(resp.Header, time.Now())
	return failed.Error
}

// retryAfter reads for how long Meta wants no other request; zero: it did not say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if text := h.Get("Retry-After"); text != "" {
		if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
			return time.Duration(min(seconds, 24*60*60)) * time.Second
		}
		if at, err := http.ParseTime(text); err == nil && at.After(now) {
			return at.Sub(now)
		}
	}
	var usage map[string][]struct {
		Minutes int `json:"estimated_time_to_regain_access"`
	}
	longest := 0
	if json.Unmarshal([]byte(h.Get("X-Business-Use-Case-Usage")), &usage) == nil {
		for _, limits := range usage {
			for _, limit := range limits {
				longest = max(longest, limit.Minutes)
			}
		}
	}
	return time.Duration(min(longest, 24*60)) * time.Minute
}

// sign is the hexadecimal HMAC-SHA256 of data.
func sign(secret string, data []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(data)
	return hex.EncodeToString(mac.Sum(nil))
}

// proof is the query of a request without parameters of its own.
func proof() url.Values { return url.Values{} }

func asGraphError(err error) (*graphError, bool) { return errors.AsType[*graphError](err) }
