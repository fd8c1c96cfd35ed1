package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/url"
	"strings"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/media"
	"parley/internal/safehttp"
	"parley/internal/store"
)

// maxDataURL is how long a data: address may be.
const maxDataURL = 700 << 10

// fileSource reads the address of a file: http or https, the id of a file of the channel, or a data: address.
func fileSource(f form.Form, name string) *media.Source {
	text, given := f.String(name, "an http or https address, the id of an uploaded file (med_…), or a data: address")
	src := &media.Source{URL: text}
	switch {
	case !given, isMediaID(text):
	case len(text) >= len("data:") && strings.EqualFold(text[:len("data:")], "data:"):
		readDataURL(f, name, text[len("data:"):], src)
	default:
		src.URL = f.CheckAddress(name, text)
	}
	return src
}

func isMediaID(text string) bool { return strings.HasPrefix(text, "med_") }

// isFetched reports whether a source is on another server.
func isFetched(src *media.Source) bool { return src != nil && src.Open == nil && !isMediaID(src.URL) }

// countsBytes reports whether a source counts for the media window: files of the channel are neither fetched nor stored again.
func countsBytes(src *media.Source) bool { return src != nil && !isMediaID(src.URL) }

// readDataURL reads a data: address (RFC 2397). Only its beginning is stored with the message.
func readDataURL(f form.Form, name, text string, src *media.Source) {
	if len(text) > maxDataURL-len("data:") {
		f.Fail(name, "must be at most %s long as a data: address. Upload larger files with POST /api/media.", safehttp.Size(maxDataURL))
		return
	}
	kind, data, ok := strings.Cut(text, ",")
	data, err := url.PathUnescape(data)
	plain, isBase64 := strings.CutSuffix(kind, ";base64")
	content := []byte(data)
	if isBase64 && err == nil {
		content, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(data, "="))
	}
	if plain != "" && !strings.HasPrefix(plain, ";") && err == nil {
		src.MIME = plain
		_, _, err = mime.ParseMediaType(plain)
	}
	if !ok || err != nil || len(content) == 0 {
		f.Fail(name, "must be a data: address such as data:image/png;base64,iVBORw0KGgo=.")
		return
	}
	src.URL = "data:" + truncate(kind, 100) + ","
	src.Open = func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
}

// openSource opens the file of a channel that a source names. For a file of another channel the error is that for no file.
func (s *server) openSource(ctx context.Context, channel parley.ChannelCode, src *media.Source) error {
	if !isMediaID(src.URL) {
		return nil
	}
	id := parley.MediaID(src.URL)
	key, found := id.UploadKey()
	var m parley.Media
	if found {
		u, err := s.config.Store.Upload(ctx, channel, key)
		if err != nil {
			return notFoundAs(err, media.ErrNoFile)
		}
		m = parley.Media{Key: u.File, MIME: u.MIME, Filename: u.Filename}
		if err := s.useUpload(ctx, &u); err != nil {
			return err
		}
	} else {
		sent, err := s.messageOfFile(ctx, id)
		if err == errNoMedia || err == nil && sent.Channel != channel {
			return media.ErrNoFile
		}
		if err != nil {
			return err
		}
		if m = *parley.MediaIn(sent.Content); m.Key == "" {
			return &media.Error{Sentence: "This file is not there: its media.status is " + string(m.Status()) + "."}
		}
	}
	src.Filename, src.MIME = cmp.Or(src.Filename, m.Filename), cmp.Or(src.MIME, m.MIME)
	stored, err := s.config.Store.File(ctx, m.Key)
	if err == nil && stored.Channel == channel {
		src.Stored = &stored
		return nil
	}
	src.Open = func(ctx context.Context) (io.ReadCloser, error) { // of a channel that went live
		f, err := s.config.Media.Open(ctx, m.Key)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, media.ErrNoFile
		}
		return f, err
	}
	return parley.IgnoreNotFound(err)
}

// useEvery is how often the use of an upload is stored: it may be used for thousands of messages.
const useEvery = time.Hour

func (s *server) useUpload(ctx context.Context, u *store.Upload) error {
	now := s.config.Gateway.Clock()
	if u.Used && now.Sub(u.At) < useEvery {
		return nil
	}
	return s.tx(ctx, func(tx *store.Tx) error { return tx.UseUpload(ctx, u.Key, now) })
}
