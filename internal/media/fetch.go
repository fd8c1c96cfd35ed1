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

// Source is where a file is to be fetched from and what the caller says of it.
type Source struct {
	URL      string
	Filename string // empty: as the server or the address names it
	MIME     string // empty: by content; it counts only where the content does not say

	// OnRead is told how many bytes were read, as they come in; nil: nobody counts.
	OnRead func(n int)
}

// fetched is a file that was fetched but not yet kept.
type fetched struct {
	*draft
	resp  *http.Response // without its body
	kind  string         // by content
	media parley.Media   // source, size, hash and media key
}

// fetch fetches a file into a draft, which the caller discards. What it calls the file is for
// sentences.
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
	if err := f.receive(counted(resp.Body, src.OnRead), what, limit); err != nil {
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

// counted is a reader that tells how much is read from it.
func counted(r io.Reader, onRead func(n int)) io.Reader {
	if onRead == nil {
		return r
	}
	return &counter{r, onRead}
}

type counter struct {
	from   io.Reader
	onRead func(n int)
}

func (c *counter) Read(p []byte) (int, error) {
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

// fetchError says in a sentence why a file could not be fetched. What is not the other side's doing,
// such as a full disk, stays an error of ours.
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

// badType says that a file is not of the kind that is wanted.
func badType(kind, wanted string) *Error {
	return &Error{
		Sentence: fmt.Sprintf("The address gives %s, not %s.", bare(kind), wanted),
		Cause:    &safehttp.Problem{Code: safehttp.BadType, Sentence: "The answer has the wrong type."},
	}
}
