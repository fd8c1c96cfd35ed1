package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/media"
)

// inlineTypes are safe to show in a browser. All others are served as bytes.
var inlineTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp", "audio/ogg", "video/mp4"}

var typeBytes = []string{"application/octet-stream"}

// sandboxed stops a browser from treating an opened file as a page of this server.
const sandboxed = "default-src 'none'; frame-ancestors 'none'; sandbox"

var errNoFile = parley.Errorf(parley.NotFound, "This message has no file, or its file was not downloaded or has been deleted.")

var errNoMedia = parley.Errorf(parley.NotFound, "This channel has no such file.")

// readFile serves the file of a message of the channel, or an upload. The error for a file of another channel is that for no file.
func (s *server) readFile(ctx context.Context, r *request) (response, error) {
	if key, isUpload := mediaID(r).UploadKey(); isUpload {
		u, err := s.config.Store.Upload(ctx, r.channel.Code, key)
		if err != nil {
			return response{}, notFoundAs(err, errNoMedia)
		}
		return s.serveFile(ctx, r, &parley.Media{Key: u.File, MIME: u.MIME, Filename: u.Filename, Size: u.Size})
	}
	m, err := s.messageOfFile(ctx, mediaID(r))
	if err == nil && m.Channel != r.channel.Code {
		err = errNoMedia
	}
	if err != nil {
		return response{}, err
	}
	return s.serveFile(ctx, r, parley.MediaIn(m.Content))
}

// isSigned reports whether a request has a signature in place of a token.
func isSigned(hr *http.Request) bool {
	return hr.Header["Authorization"] == nil && strings.Contains(hr.URL.RawQuery, "signature=")
}

// readSignedFile is readFile for a link that a webhook got.
func (s *server) readSignedFile(ctx context.Context, r *request) (response, error) {
	query := r.http.URL.Query()
	err := s.links.Verify(mediaID(r), query.Get("expires"), query.Get("signature"), time.Now())
	switch {
	case errors.Is(err, parley.ErrLinkExpired):
		return response{}, challenged(parley.Errorf(parley.Unauthenticated, "This link has expired. Fetch the file with a token."), true)
	case err != nil:
		if err := s.CountFailure(r.http); err != nil {
			return response{}, err
		}
		return response{}, challenged(parley.Errorf(parley.Unauthenticated,
			"This link is not valid. Use it unchanged, or fetch the file with a token."), true)
	}
	m, err := s.messageOfFile(ctx, mediaID(r))
	if err != nil {
		return response{}, err
	}
	return s.serveFile(ctx, r, parley.MediaIn(m.Content))
}

func mediaID(r *request) parley.MediaID { return parley.MediaID(r.http.PathValue("id")) }

// messageOfFile returns the message that has a file; else errNoMedia.
func (s *server) messageOfFile(ctx context.Context, id parley.MediaID) (parley.Message, error) {
	_, seq, ok := id.Parse()
	if !ok {
		return parley.Message{}, errNoMedia
	}
	m, err := s.config.Store.MessageAt(ctx, seq)
	if err != nil {
		return parley.Message{}, notFoundAs(err, errNoMedia)
	}
	_, shown := s.showsContent(&m)
	if f := parley.MediaIn(m.Content); !shown || f == nil || parley.NewMediaID(&m) != id {
		return parley.Message{}, errNoMedia
	}
	return m, nil
}

// serveFile serves a file, or a range of it, with its own type.
func (s *server) serveFile(ctx context.Context, r *request, m *parley.Media) (response, error) {
	f, err := s.openFile(ctx, m)
	if err != nil {
		return response{}, err
	}
	a := fileResponse(f, f.Size, m)
	if plain, params, err := mime.ParseMediaType(m.MIME); err == nil {
		a.contentType = []string{mime.FormatMediaType(plain, params)}
		if media.IsChecked(plain) {
			a.header[0].value = disposition("inline", m.Filename)
		}
	}
	tag := `"` + string(mediaID(r)) + `"`
	a.header = append(a.header, field{"Accept-Ranges", "bytes"}, field{"ETag", tag})
	if only := r.http.Header["If-Range"]; len(only) > 0 && only[0] != tag {
		return a, nil
	}
	if err := a.limitTo(r.http.Header["Range"], f); err != nil {
		f.Close()
		return response{}, err
	}
	return a, nil
}

// limitTo limits a response to a requested range of its file. Malformed and multiple ranges are ignored, as HTTP allows:
// each range would be a read of its own.
func (a *response) limitTo(header []string, f *media.File) error {
	if len(header) != 1 {
		return nil
	}
	first, last, ok := parseRange(header[0], f.Size)
	if !ok {
		return nil
	}
	if first > last {
		return &noRange{f.Size}
	}
	if _, err := f.Seek(first, io.SeekStart); err != nil {
		return err
	}
	a.status, a.size = http.StatusPartialContent, last-first+1
	a.file = &limitedFile{io.LimitReader(f, a.size), f}
	a.header = append(a.header, field{"Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, f.Size)})
	return nil
}

type limitedFile struct {
	io.Reader
	io.Closer
}

// parseRange reads a range of one part. If no byte of the file is in it, first is after last.
func parseRange(text string, size int64) (first, last int64, ok bool) {
	from, to, ok := strings.Cut(strings.TrimPrefix(text, "bytes="), "-")
	if !ok || !strings.HasPrefix(text, "bytes=") || from == "" && to == "" {
		return 0, 0, false
	}
	first, last = 0, size-1
	for _, bound := range []struct {
		text string
		to   *int64
	}{{from, &first}, {to, &last}} {
		if bound.text == "" {
			continue
		}
		n, err := strconv.ParseUint(bound.text, 10, 63)
		if err != nil {
			return 0, 0, false
		}
		*bound.to = int64(n)
	}
	if from == "" { // the last bytes
		return max(0, size-last), size - 1, true
	}
	if to != "" && last < first {
		return 0, 0, false
	}
	return first, min(last, size-1), true
}

// noRange is the error of a range outside of the file.
type noRange struct{ size int64 }

func (e *noRange) Error() string {
	return fmt.Sprintf("The range is not in the file, which has %d bytes.", e.size)
}

func (s *server) openFile(ctx context.Context, m *parley.Media) (*media.File, error) {
	switch {
	case m != nil && m.Status() == parley.MediaPending:
		return nil, &parley.Error{Code: parley.Unavailable, RetryAfter: max(time.Second, time.Until(m.FetchAt)),
			Message: "The file of this message is still downloading. Try again later, or wait for the event message.media."}
	case m == nil || m.Key == "":
		return nil, errNoFile
	}
	f, err := s.config.Media.Open(ctx, m.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoFile
	}
	return f, err
}

// downloadFile serves a file to be saved.
func (s *server) downloadFile(ctx context.Context, m *parley.Media) (response, error) {
	f, err := s.openFile(ctx, m)
	if err != nil {
		return response{}, err
	}
	return fileResponse(f, f.Size, m), nil
}

func fileResponse(f io.ReadCloser, size int64, m *parley.Media) response {
	kind := typeBytes
	plain, _, _ := mime.ParseMediaType(m.MIME)
	if slices.Contains(inlineTypes, plain) {
		kind = []string{plain}
	}
	return response{status: http.StatusOK, contentType: kind, file: f, size: size,
		header: []field{{"Content-Disposition", disposition("attachment", m.Filename)}, {"Content-Security-Policy", sandboxed}}}
}

func disposition(how, filename string) string {
	if filename == "" {
		return how
	}
	return cmp.Or(mime.FormatMediaType(how, map[string]string{"filename": filename}), how)
}

// sendFile writes a file in chunks, with a new write deadline for each.
func sendFile(w http.ResponseWriter, f io.ReadCloser) error {
	defer f.Close()
	const piece = 1 << 20
	control := http.NewResponseController(w)
	for {
		_ = control.SetWriteDeadline(time.Now().Add(timeToWrite)) // a writer without deadlines returns an error
		_, err := io.CopyN(w, f, piece)
		if err == io.EOF {
			return nil
		}
		if err != nil { // the file is unreadable, or the caller left
			return err
		}
	}
}
