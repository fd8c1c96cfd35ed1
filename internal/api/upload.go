package api

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"parley"
	"parley/internal/api/limit"
	"parley/internal/media"
	"parley/internal/safehttp"
	"parley/internal/store"
)

// Limits of uploads of one channel.
const (
	maxUploads     = 1000 // files that no message was made of
	maxUploadBytes = 1 << 30
	// maxReceiving is how many files are received concurrently. A further request waits up to receiveWait.
	maxReceiving = 32
	receiveWait  = 10 * time.Second
	// maxPreamble is how much of a multipart body may come before its file.
	maxPreamble = 64 << 10
	// uploadPiece must arrive within uploadTime, else the caller is too slow.
	uploadPiece = 256 << 10
	uploadTime  = 30 * time.Second
)

var (
	errUploadTooLarge = parley.Errorf(parley.TooLarge, "The file is larger than %s, which is the limit.", safehttp.Size(media.MaxUpload))
	errReceiving      = limit.Exceeded(limit.Quota{Name: limitUploads, Unit: limit.UnitAtOnce, Most: maxReceiving, Wait: receiveWait},
		fmt.Sprintf("%d files of this channel are being uploaded, which is the limit. Try again later.", maxReceiving))
)

// receiveUpload stores the file in the body of a request. The rest of the request is not stored yet: see addUpload.
func (rt *route) receiveUpload(ctx context.Context, r *request, w http.ResponseWriter) error {
	length := r.http.ContentLength
	if length > media.MaxUpload+maxPreamble {
		return errUploadTooLarge
	}
	if err := rt.mayUpload(ctx, rt.config.Store.Reader, r, max(0, length-maxPreamble)); err != nil {
		return err
	}
	if err := rt.config.Media.MayStore(ctx, r.channel.Code, max(0, length-maxPreamble)); err != nil {
		return err
	}
	if !rt.receiving.Acquire(r.channel.Code, ctx.Done(), receiveWait) {
		return errReceiving
	}
	defer rt.receiving.Release(r.channel.Code)
	body := &uploadBody{from: http.MaxBytesReader(w, r.http.Body, media.MaxUpload+2*maxPreamble), control: http.NewResponseController(w)}
	claims, file, err := openUpload(r.http.Header, body)
	if err != nil {
		return body.explain(err)
	}
	stored, err := rt.config.Media.Upload(ctx, r.channel.Code, claims, file)
	if err != nil {
		return body.explain(err)
	}
	r.upload = &stored
	if stored.Size == 0 {
		return parley.InvalidField("file", "file is empty. Send a file with content.")
	}
	// What an idempotency key covers, in place of the body.
	fmt.Fprintf(&r.body, "%x\n%s\n%s", stored.SHA256, stored.MIME, stored.Filename)
	return nil
}

// discardUpload removes a received file that did not become an upload.
func (rt *route) discardUpload(ctx context.Context, r *request) {
	if r.upload != nil {
		rt.removeFile(ctx, *r.upload)
	}
}

// mayUpload returns an error if a channel has no room for a file.
func (s *server) mayUpload(ctx context.Context, from store.Reader, r *request, size int64) error {
	files, bytes, oldest, err := from.UnusedUploads(ctx, r.channel.Code)
	q := limit.Quota{Name: limitUploads, Wait: max(time.Second, time.Until(oldest.Add(store.UploadLife)))}
	switch {
	case err != nil:
		return err
	case files >= maxUploads:
		q.Most = maxUploads
	case bytes+size > maxUploadBytes:
		q.Most, q.Left, q.Unit = maxUploadBytes, maxUploadBytes-bytes, limit.UnitBytes
	default:
		return nil
	}
	return limit.Exceeded(q, fmt.Sprintf("This channel has %d unused uploads with %s; the limits are %d and %s. "+
		"Send messages with them, or wait: unused ones are removed after 24 hours.",
		files, safehttp.Size(bytes), maxUploads, safehttp.Size(maxUploadBytes)))
}

type uploadData struct {
	ID        parley.MediaID `json:"id"`
	MIMEType  string         `json:"mimetype"`
	Size      int64          `json:"size"`
	Filename  string         `json:"filename"`
	SHA256    string         `json:"sha256"`
	ExpiresAt string         `json:"expires_at"`
}

// addUpload makes an upload of the received file.
func (s *server) addUpload(ctx context.Context, r *request) (any, error) {
	m := r.upload
	u := store.Upload{Key: m.ID, Channel: r.channel.Code, File: m.Key, MIME: m.MIME, Filename: m.Filename, Size: m.Size,
		At: s.config.Gateway.Clock()}
	done := ok("File uploaded", uploadData{ID: u.ID(), MIMEType: u.MIME, Size: u.Size, Filename: u.Filename,
		SHA256: hex.EncodeToString(m.SHA256), ExpiresAt: parley.Stamp(u.At.Add(store.UploadLife))})
	err := s.tx(ctx, func(tx *store.Tx) error {
		if err := s.mayUpload(ctx, tx.Reader, r, u.Size); err != nil {
			return err
		}
		return errors.Join(tx.UseFile(ctx, u.File), tx.AddUpload(ctx, u), r.storeKey(ctx, tx, http.StatusOK, done))
	})
	if err == nil {
		r.upload = nil // it stays
	}
	return done, wasDeleted(r.channel.Code, err)
}

// openUpload returns the file in a body, and what the request says of it.
func openUpload(h http.Header, body *uploadBody) (claims parley.Media, file io.Reader, err error) {
	if coding := readHeader(h, "Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return claims, nil, parley.Errorf(parley.BadRequest, "The body must not be compressed. Send it without the header Content-Encoding.")
	}
	kind, params, err := mime.ParseMediaType(readHeader(h, "Content-Type"))
	switch {
	case err != nil, kind == "application/x-www-form-urlencoded", strings.HasPrefix(kind, "multipart/") && kind != "multipart/form-data":
		return claims, nil, parley.Errorf(parley.BadRequest,
			"Send the file as the field file of multipart/form-data, or as the body with its own type in the header Content-Type, "+
				"for example image/jpeg.")
	case kind == "multipart/form-data":
		return openPart(multipart.NewReader(body, params["boundary"]), body)
	}
	body.left = math.MaxInt64
	_, named, _ := mime.ParseMediaType(readHeader(h, "Content-Disposition"))
	return parley.Media{MIME: mime.FormatMediaType(kind, params), Filename: named["filename"]}, body, nil
}

// openPart finds the field file of a form. It reads no further than that.
func openPart(parts *multipart.Reader, body *uploadBody) (claims parley.Media, file io.Reader, err error) {
	body.left = maxPreamble
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			return claims, nil, parley.InvalidField("file", "file is required: the file to upload.")
		}
		if body.err != nil {
			return claims, nil, body.err
		}
		if err != nil {
			return claims, nil, parley.Errorf(parley.BadRequest, "The body is not valid multipart/form-data.")
		}
		if part.FormName() == "file" {
			body.left = math.MaxInt64
			return parley.Media{MIME: part.Header.Get("Content-Type"), Filename: part.FileName()}, part, nil
		}
	}
}

// uploadBody is the body of an upload. A caller may take long, but must not stop.
type uploadBody struct {
	from    io.Reader
	control *http.ResponseController
	left    int64 // how much may be read
	read    int64
	until   int64 // the position up to which the deadline holds
	err     error // why reading failed
}

var errPreamble = parley.Errorf(parley.BadRequest, "The field file must come first: more than %s come before it.",
	safehttp.Size(maxPreamble))

func (b *uploadBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.err = errPreamble
		return 0, b.err
	}
	if b.read >= b.until {
		b.until = b.read + uploadPiece
		_ = b.control.SetReadDeadline(time.Now().Add(uploadTime)) // a writer without deadlines returns an error
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.read += int64(n)
	b.left -= int64(n)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// explain turns the error of receiving a file into one for the caller, unless it is the server's.
func (b *uploadBody) explain(err error) error {
	_, over := errors.AsType[*http.MaxBytesError](b.err)
	switch {
	case over, errors.Is(err, media.ErrTooLarge):
		return errUploadTooLarge
	case b.err == errPreamble:
		return errPreamble
	case b.err != nil, errors.Is(err, io.ErrUnexpectedEOF):
		return &parley.Error{Code: parley.BadRequest, Message: "The request body is incomplete.", Cause: err}
	}
	return err
}
