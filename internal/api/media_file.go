package api

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"slices"
	"time"

	"parley"
)

// inlineTypes are safe to show in a browser. All others are served as bytes.
var inlineTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp", "audio/ogg", "video/mp4"}

var typeBytes = []string{"application/octet-stream"}

// sandboxed stops a browser from treating an opened file as a page of this server.
const sandboxed = "default-src 'none'; frame-ancestors 'none'; sandbox"

var errNoFile = parley.Errorf(parley.NotFound, "This message has no file, or its file was not downloaded or has been deleted.")

func (s *server) openFile(ctx context.Context, m *parley.Media) (response, error) {
	switch {
	case m != nil && m.Status() == parley.MediaPending:
		return response{}, &parley.Error{Code: parley.Unavailable, RetryAfter: max(time.Second, time.Until(m.FetchAt)),
			Message: "The file of this message is still downloading. Try again later, or wait for the event message.media."}
	case m == nil || m.Key == "":
		return response{}, errNoFile
	}
	f, err := s.Media.Open(ctx, m.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return response{}, errNoFile
	}
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
	disposition := "attachment"
	if m.Filename != "" {
		if named := mime.FormatMediaType(disposition, map[string]string{"filename": m.Filename}); named != "" {
			disposition = named
		}
	}
	return response{status: http.StatusOK, contentType: kind, file: f, size: size,
		header: []field{{"Content-Disposition", disposition}, {"Content-Security-Policy", sandboxed}}}
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
