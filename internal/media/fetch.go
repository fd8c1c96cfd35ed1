package media

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"

	"parley"
	"parley/internal/safehttp"
)

// Source is an address to fetch, with the caller's claims about the file.
type Source struct {
	URL      string
	Filename string // empty: as the server or the address names it
	MIME     string // empty: by content; used only if the content does not tell

	// OnRead gets the number of bytes as they are read; may be nil.
	OnRead func(n int)
}

// fetched is a fetched file that is not stored yet.
type fetched struct {
	*draft
	resp  *http.Response // without its body
	kind  string         // by content
	media parley.Media   // source, size, hash and media key
}

// fetch fetches a file into a draft, which the caller discards. what names the file in error messages.
func (l *Library) fetch(ctx context.Context, src Source, what string, limit int64) (*fetched, error) {
	resp, err := l.fetcher.Get(ctx, src.URL)
	if err != nil {
		return nil, fetchError(what, limit, err)
	}
	defer resp.Body.Close()
	if resp.ContentLength > limit {
		return nil, tooLarge(what, limit)
	}
	d, err := l.newDraft()
	if err != nil {
		return nil, err
	}
	f := &fetched{draft: d, resp: resp}
	if err := f.receive(countReads(resp.Body, src.OnRead), what, limit); err != nil {
		d.discard()
		return nil, err
	}
	f.media.Source = src.URL
	return f, nil
}

func (f *fetched) receive(body io.Reader, what string, limit int64) error {
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(f.draft, hash), io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return fetchError(what, limit, err)
	case n > limit:
		return tooLarge(what, limit)
	case n == 0:
		return errorf("The %s is empty. Send the address of a file with content.", what)
	}
	head, err := f.head()
	if err != nil {
		return err
	}
	f.kind = sniff(head)
	f.media.Size = n
	f.media.SHA256 = hash.Sum(nil)
	f.media.MediaKey = newMediaKey()
	return nil
}

// countReads counts the bytes that are read.
func countReads(r io.Reader, onRead func(n int)) io.Reader {
	if onRead == nil {
		return r
	}
	return &countingReader{r, onRead}
}

type countingReader struct {
	from   io.Reader
	onRead func(n int)
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if n > 0 {
		c.onRead(n)
	}
	return n, err
}

func newMediaKey() []byte {
	key := make([]byte, 32)
	rand.Read(key) // never fails
	return key
}

// fetchError explains why a file could not be fetched. Local errors, such as a full disk, stay server errors.
func fetchError(what string, limit int64, err error) error {
	if _, ok := errors.AsType[*safehttp.BadURL](err); ok {
		return &Error{err.Error(), nil}
	}
	problem, ok := errors.AsType[*safehttp.Problem](err)
	switch {
	case !ok:
		return fmt.Errorf("keep fetched %s: %w", what, err)
	case problem.Code == safehttp.TooLarge:
		return tooLarge(what, limit)
	}
	return &Error{fmt.Sprintf("The %s could not be fetched. %s", what, problem.Sentence), problem}
}

func tooLarge(what string, limit int64) *Error {
	return &Error{
		Sentence: fmt.Sprintf("The %s is too large. Send at most %s.", what, safehttp.Size(limit)),
		Cause:    &safehttp.Problem{Code: safehttp.TooLarge, Sentence: "The answer is too large."},
	}
}

func wrongType(kind, wanted string) *Error {
	return &Error{
		Sentence: fmt.Sprintf("The address gives %s, not %s.", bare(kind), wanted),
		Cause:    &safehttp.Problem{Code: safehttp.BadType, Sentence: "The answer has the wrong type."},
	}
}
