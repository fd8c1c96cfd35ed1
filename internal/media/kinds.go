package media

import (
	"context"

	"parley"
)

// Image fetches a picture: JPEG, PNG, WebP or GIF.
func (l *Library) Image(ctx context.Context, src Source) (parley.Media, error) {
	f, err := l.fetch(ctx, src, "image", maxImage)
	if err != nil {
		return parley.Media{}, err
	}
	defer f.discard()
	if !isPicture(f.kind) {
		return parley.Media{}, wrongType(f.kind, "an image. Send the address of a JPEG, PNG, WebP or GIF file")
	}
	if err := l.work(ctx, l.decoding, func() error { return describePicture(ctx, f.File, f.kind, &f.media) }); err != nil {
		return parley.Media{}, pictureError(err)
	}
	return l.finish(f, src, f.kind)
}

// Video fetches a film: MP4, 3GP, WebM or QuickTime.
func (l *Library) Video(ctx context.Context, src Source) (parley.Media, error) {
	f, err := l.fetch(ctx, src, "video", maxVideo)
	if err != nil {
		return parley.Media{}, err
	}
	defer f.discard()
	if !isFilm(f.kind) {
		return parley.Media{}, wrongType(f.kind, "a video. Send the address of an MP4, 3GP, WebM or MOV file")
	}
	describeVideo(f.File, f.kind, &f.media)
	return l.finish(f, src, f.kind)
}

// isFilm reports whether a type is one that can be sent as a video.
func isFilm(kind string) bool {
	switch kind {
	case "video/mp4", "video/3gpp", "video/webm", "video/quicktime":
		return true
	}
	return false
}

// File fetches a document of any type. A picture among them gets its size and thumbnail too.
func (l *Library) File(ctx context.Context, src Source) (parley.Media, error) {
	f, err := l.fetch(ctx, src, "file", maxFile)
	if err != nil {
		return parley.Media{}, err
	}
	defer f.discard()
	l.describe(ctx, f.draft, f.kind, &f.media)
	name := nameOf(src.Filename, f.resp, f.kind)
	return l.finish(f, src, documentType(f.kind, src.MIME, name))
}

// finish stores a fetched file.
func (l *Library) finish(f *fetched, src Source, kind string) (parley.Media, error) {
	m := f.media
	m.MIME = kind
	m.Filename = nameOf(src.Filename, f.resp, kind)
	key, err := l.store(f.draft)
	if err != nil {
		return parley.Media{}, err
	}
	m.Key = key
	return m, nil
}

// describe adds properties of a file that is sent as a document. Errors are ignored. Pictures that are too large to
// send as such are not read.
func (l *Library) describe(ctx context.Context, d *draft, kind string, m *parley.Media) {
	described := *m
	var err error
	switch {
	case isPicture(kind) && m.Size <= maxImage:
		err = l.work(ctx, l.decoding, func() error { return describePicture(ctx, d.File, kind, &described) })
	case kind == mimeOpus:
		err = l.measureInto(ctx, d, &described)
	case isFilm(kind):
		describeVideo(d.File, kind, &described)
	}
	if err == nil {
		*m = described
	}
}

// hasVideo reports whether an MP4 or QuickTime file has a track to look at: many sound recorders name
// their files like films. A track's kind follows eight bytes after the name of its handler box.
func (f *fetched) hasVideo() (bool, error) {
	for _, handler := range []string{"hdlr\x00\x00\x00\x00\x00\x00\x00\x00vide", "hdlr\x00\x00\x00\x00mhlrvide"} {
		if found, err := f.contains([]byte(handler)); found || err != nil {
			return found, err
		}
	}
	return false, nil
}
