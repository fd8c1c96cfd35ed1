// Package client calls the HTTP API of a server, or of a handler in the same process. It knows the envelope of responses
// and errors, not what endpoints do.
//
// Invariants: it never retries. A response other than 2xx is an *Error, a missing or incomplete one an *UnreachableError.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"parley"
)

// Client calls one server with one token.
type Client struct {
	Base    string // without /api
	Token   string
	Origin  string // where the token was set, for error messages; may be empty
	Channel string // for X-Channel; empty: the token's channel
	HTTP    *http.Client
}

// Response is the envelope of the API.
type Response struct {
	Success bool            `json:"success"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
	Meta    struct {
		Total      int64  `json:"total"`
		NextCursor string `json:"next_cursor"` // empty: there is no further page
	} `json:"meta"`

	Rows int `json:"-"` // of a list
}

// OfThisMachine returns an HTTP client for the server of a lock file on this machine. The certificate has the public
// name, so it is not checked; only the owner of the directory can write the address.
func OfThisMachine() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	return &http.Client{Transport: t}
}

// Path joins the parts of a path, each escaped, below /api/manage.
func Path(parts ...string) string {
	path := "/api/manage"
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

func (c *Client) Get(ctx context.Context, path string, query url.Values, data any) (*Response, error) {
	return c.Call(ctx, http.MethodGet, path, query, nil, data)
}

// pageSize is how many rows List requests at a time. No list of the API has smaller pages.
const pageSize = 100

// List requests pages of a list until there are limit rows or no more, and returns them as one response. Limit 0: all.
func (c *Client) List(ctx context.Context, path string, query url.Values, limit int) (*Response, error) {
	query = maps.Clone(query)
	rows := []json.RawMessage{}
	for {
		if limit > 0 {
			query.Set("limit", strconv.Itoa(min(pageSize, limit-len(rows))))
		}
		var page []json.RawMessage
		r, err := c.Get(ctx, path, query, &page)
		if err != nil {
			return nil, err
		}
		rows = append(rows, page...)
		switch {
		case limit > 0 && len(rows) >= limit:
		case r.Meta.NextCursor != "":
			query.Set("cursor", r.Meta.NextCursor)
			continue
		}
		r.Rows = len(rows)
		r.Data, err = json.Marshal(rows)
		return r, err
	}
}

// Post sends a body, which may be nil, and reads data.
func (c *Client) Post(ctx context.Context, path string, body, data any) (*Response, error) {
	return c.Call(ctx, http.MethodPost, path, nil, body, data)
}

// Call makes one request and decodes the data of the response into data, unless that is nil. A response other than 2xx
// is an [Error], no response an [UnreachableError].
func (c *Client) Call(ctx context.Context, method, path string, query url.Values, body, data any) (*Response, error) {
	return c.CallWith(ctx, method, path, query, nil, body, data)
}

// Upload sends a file for later messages, and returns its id. The name may be empty.
func (c *Client) Upload(ctx context.Context, name string, file io.Reader) (parley.MediaID, error) {
	header := http.Header{"Content-Type": {"application/octet-stream"}} // the server finds out the type
	if name != "" {
		header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	}
	var data struct {
		ID parley.MediaID `json:"id"`
	}
	_, err := c.CallWith(ctx, http.MethodPost, "/api/media", nil, header, file, &data)
	return data.ID, err
}

// CallWith is Call with more header fields.
func (c *Client) CallWith(ctx context.Context, method, path string, query url.Values, header http.Header, body, data any) (*Response,
	error) {
	resp, err := c.Open(ctx, method, path, query, header, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	r := &Response{}
	if err := json.NewDecoder(resp.Body).Decode(r); err != nil {
		if _, syntax := errors.AsType[*json.SyntaxError](err); syntax {
			return nil, c.foreign(resp)
		}
		return nil, &UnreachableError{Base: c.Base, Err: fmt.Errorf("read the response: %w", err)}
	}
	if data != nil {
		if err := json.Unmarshal(r.Data, data); err != nil {
			return r, fmt.Errorf("read the response to %s: %w", path, err)
		}
	}
	return r, nil
}

// Open makes a request and returns the response. The caller closes its body. A body that is a reader is sent as it is.
func (c *Client) Open(ctx context.Context, method, path string, query url.Values, header http.Header, body any) (*http.Response, error) {
	req, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		return nil, &UnreachableError{Base: c.Base, Err: err}
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, c.rejection(resp)
	}
	return resp, nil
}

func (c *Client) request(ctx context.Context, method, path string, query url.Values, body any) (*http.Request, error) {
	var content io.Reader
	if raw, ok := body.(io.Reader); ok {
		content = io.NopCloser(raw) // the caller closes it
	} else if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	address := c.Base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, fmt.Errorf("the server's address: %w", err)
	}
	if file, ok := body.(*os.File); ok {
		info, err := file.Stat()
		if err != nil {
			return nil, err
		}
		req.ContentLength = info.Size()
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Channel != "" {
		req.Header.Set("X-Channel", c.Channel)
	}
	return req, nil
}
