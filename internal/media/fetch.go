package media

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley"
	"parley/internal/safehttp"
	"parley/internal/store"
)

// Source is an address to fetch, with the caller's claims about the file.
type Source struct {
	Channel  parley.ChannelCode // that the file is for
	URL      string
	Filename string // empty: as the server or the address names it
	MIME     string // empty: by content; used only if the content does not tell

	// Open opens the file itself, which is then not fetched. URL says where it comes from.
	Open func(ctx context.Context) (io.ReadCloser, error)

	// Stored is a file of the channel that is in the library already; it is not copied. URL is its id.
	Stored *store.StoredFile

	// Takes reports whether the network takes a picture as it is; nil: it takes all. One that it does not take is converted.
	Takes func(parley.Media) bool

	// OnRead gets the number of bytes as they are read; may be nil.
	OnRead func(n int)
}

type fetched struct {
	*draft
	resp  *http.Response // without its body; nil: it was not fetched
	kind  string         // by content
	media parley.Media   // source, size, hash and media key

	converted bool // the hash is that of the file before
}

// isTaken reports whether the network takes the file as it is.
func (f *fetched) isTaken(src Source) bool {
	m := f.media
	m.MIME = f.kind
	return src.Takes == nil || src.Takes(m)
}

// fetch fetches a file into a draft, which the caller discards. what names the file in error messages.
func (l *Library) fetch(ctx context.Context, src Source, what string, limit int64) (*fetched, error) {
	if src.Stored != nil {
		return l.fetchStored(ctx, src, what, limit)
	}
	body, resp, err := l.open(ctx, src)
	if err != nil {
		return nil, fetchError(what, limit, err)
	}
	defer body.Close()
	if resp != nil && resp.ContentLength > limit {
		return nil, tooLarge(what, limit)
	}
	d, err := l.newDraft()
	if err != nil {
		return nil, err
	}
	f := &fetched{draft: d, resp: resp}
	if err := f.receive(l, countReads(body, src.OnRead), what, limit); err != nil {
		d.discard()
		return nil, err
	}
	f.media.Source = src.URL
	return f, nil
}

// withFetched fetches a file for do, and discards its draft.
func (l *Library) withFetched(ctx context.Context, src Source, what string, limit int64, do func(*fetched) (parley.Media, error)) (
	parley.Media, error) {
	f, err := l.fetch(ctx, src, what, limit)
	if err != nil {
		return parley.Media{}, err
	}
	defer f.discard()
	return do(f)
}

// ErrNoFile is the error of a source that is not in the library any more.
var ErrNoFile = errorf("There is no file with this id on this channel. Unused uploads are removed after 24 hours.")

// fetchStored is fetch for a file of the library.
func (l *Library) fetchStored(ctx context.Context, src Source, what string, limit int64) (*fetched, error) {
	if src.Stored.Size > limit {
		return nil, tooLarge(what, limit)
	}
	d, err := l.borrow(ctx, src.Stored)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoFile
	}
	if err != nil {
		return nil, err
	}
	f := &fetched{draft: d}
	f.media.Source, f.media.Size, f.media.SHA256 = src.URL, src.Stored.Size, src.Stored.SHA256
	if err := f.identify(); err != nil {
		d.discard()
		return nil, err
	}
	return f, nil
}

// open returns the content of a source and, if it is fetched, the response.
func (l *Library) open(ctx context.Context, src Source) (io.ReadCloser, *http.Response, error) {
	if src.Open != nil {
		body, err := src.Open(ctx)
		return body, nil, err
	}
	resp, err := l.fetcher.Get(ctx, src.URL)
	if err != nil {
		return nil, nil, err
	}
	return resp.Body, resp, nil
}

func (f *fetched) receive(l *Library, body io.Reader, what string, limit int64) error {
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(f.draft, hash, l.newSpaceWriter()), io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return fetchError(what, limit, err)
	case n > limit:
		return tooLarge(what, limit)
	case n == 0:
		return errorf("The %s is empty. Send the address of a file with content.", what)
	}
	f.media.Size = n
	f.media.SHA256 = hash.Sum(nil)
	return f.identify()
}

// identify finds out the type of a file, and gives it a media key.
func (f *fetched) identify() error {
	head, err := f.head()
	if err != nil {
		return err
	}
	f.kind = sniff(head)
	f.media.MediaKey = make([]byte, 32)
	rand.Read(f.media.MediaKey) // never fails
	return nil
}

func countReads(r io.Reader, onRead func(n int)) io.Reader {
	if onRead == nil {
		return r
	}
	return io.TeeReader(r, writerFunc(func(p []byte) (int, error) {
		onRead(len(p))
		return len(p), nil
	}))
}

// writerFunc is a function as a writer.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// fetchError explains why a file could not be fetched. Local errors, such as a full disk, stay server errors.
func fetchError(what string, limit int64, err error) error {
	if _, ok := errors.AsType[*safehttp.BadURL](err); ok {
		return &Error{err.Error(), nil}
	}
	problem, ok := errors.AsType[*safehttp.Problem](err)
	switch {
	case parley.ToCode(err) == parley.StorageFull:
		return err
	case !ok:
		return fmt.Errorf("store fetched %s: %w", what, err)
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

func wrongType(src Source, kind, wanted string) *Error {
	it := "The address gives"
	if src.Open != nil || src.Stored != nil {
		it, wanted = "The file is", strings.Replace(wanted, "the address of ", "", 1)
	}
	return &Error{
		Sentence: fmt.Sprintf("%s %s, not %s.", it, bare(kind), wanted),
		Cause:    &safehttp.Problem{Code: safehttp.BadType, Sentence: "The answer has the wrong type."},
	}
}

// maxName bounds a file's name in bytes, extension included: most file systems accept 255.
const maxName = 200

// chooseName prefers the caller's name, then the server's, then the one in the URL, with an extension that fits.
func chooseName(given string, resp *http.Response, kind string) string {
	if name := safeName(given); name != "" {
		return name
	}
	name := "file"
	if resp != nil {
		_, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Disposition"))
		name = cmp.Or(safeName(params["filename"]), safeName(path.Base(resp.Request.URL.Path)), name)
	}
	if path.Ext(name) == "" {
		name += extensions[bare(kind)]
	}
	return name
}

var extensions = map[string]string{
	"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp", "image/gif": ".gif",
	"video/mp4": ".mp4", "video/3gpp": ".3gp", "video/webm": ".webm", "video/quicktime": ".mov",
	"audio/ogg": ".ogg", "audio/mpeg": ".mp3", "audio/wav": ".wav", "audio/aac": ".aac", "audio/mp4": ".m4a", "audio/flac": ".flac",
	"application/pdf": ".pdf", "application/zip": ".zip", "text/plain": ".txt", "text/html": ".html", "text/csv": ".csv",
	"application/json": ".json",
}

// safeName removes folders, control characters and direction marks, which hide the true extension. The name is not
// hidden and not too long.
func safeName(name string) string {
	name = strings.ToValidUTF8(name, "")
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || strings.ContainsRune(`<>:"|?*`, r) {
			return -1
		}
		return r
	}, name)
	name = strings.Trim(name, " .")
	if len(name) <= maxName {
		return name
	}
	ext := path.Ext(name)
	if len(ext) > 20 {
		ext = "" // no extension, only a dot somewhere
	}
	stem := name[:maxName-len(ext)]
	for !utf8.ValidString(stem) {
		stem = stem[:len(stem)-1]
	}
	return stem + ext
}
