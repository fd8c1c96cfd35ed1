package api

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"slices"
	"time"

	"parley"
)

// shownTypes are the types of files that a console may show: a browser only draws or plays them. All
// others are bytes to be saved.
var shownTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp", "audio/ogg", "video/mp4"}

var typeBytes = []string{"application/octet-stream"}

// sandboxed keeps a browser that opens a file from treating it as a page of ours.
const sandboxed = "default-src 'none'; frame-ancestors 'none'; sandbox"

// errNoFile is the answer where a message carries no file, or it is kept no longer.
var errNoFile = parley.Errorf(parley.NotFound, "This message has no file, or its file could not be fetched or is not kept any more.")

// errFilePending is the response while the file of an inbound message is being fetched.
func errFilePending(next time.Time) error {
	return &parley.Error{Code: parley.Unavailable, RetryAfter: max(time.Second, time.Until(next)),
		Message: "The file of this message is being fetched from the network. Try again later, or wait for the event message.media."}
}

// openFile answers with a file of the library.
func (s *server) openFile(m *parley.Media) (answer, error) {
	switch {
	case m == nil:
		return answer{}, errNoFile
	case m.Status() == parley.MediaPending:
		return answer{}, errFilePending(m.FetchAt)
	case m.Key == "":
		return answer{}, errNoFile
	}
	f, err := s.Media.Open(m.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return answer{}, errNoFile
	}
	if err != nil {
		return answer{}, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return answer{}, err
	}
	return fileAnswer(f, info.Size(), m), nil
}

// fileAnswer answers with a file, to be saved.
func fileAnswer(f io.ReadCloser, size int64, m *parley.Media) answer {
	kind := typeBytes
	plain, _, _ := mime.ParseMediaType(m.MIME)
	if slices.Contains(shownTypes, plain) {
		kind = []string{plain}
	}
	disposition := "attachment"
	if m.Filename != "" {
		if named := mime.FormatMediaType(disposition, map[string]string{"filename": m.Filename}); named != "" {
			disposition = named
		}
	}
	return answer{status: http.StatusOK, contentType: kind, file: f, size: size,
		header: []field{{"Content-Disposition", disposition}, {"Content-Security-Policy", sandboxed}}}
}

func bytesAnswer(b []byte, m *parley.Media) answer {
	return fileAnswer(io.NopCloser(bytes.NewReader(b)), int64(len(b)), m)
}

// sendFile writes a file a piece at a time, and gives the caller time to take each.
func sendFile(w http.ResponseWriter, f io.ReadCloser) error {
	defer f.Close()
	const piece = 1 << 20
	control := http.NewResponseController(w)
	for {
		_ = control.SetWriteDeadline(time.Now().Add(timeToWrite)) // not every writer can, and then it has none
		_, err := io.CopyN(w, f, piece)
		if err == io.EOF {
			return nil
		}
		if err != nil { // the file cannot be read, or the caller is gone
			return err
		}
	}
}
