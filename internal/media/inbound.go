package media

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"

	"parley"
)

// MaxInbound is how large a file may be that comes in.
const MaxInbound = maxFile

// ErrTooLarge says that a file is larger than [MaxInbound].
var ErrTooLarge = errors.New("the file is too large")

const (
	maxThumbnail = 64 << 10
	maxClaim     = 255 // characters of a name or a type that a stranger chose
)

// Claimed returns the sender's claims about a file, within bounds, with the id that the file will have.
func Claimed(m parley.Media) parley.Media {
	claimed := parley.Media{
		ID: NewKey(), MIME: claimedType(m.MIME), Filename: safeName(m.Filename), Size: max(0, m.Size),
		Width: claimedSide(m.Width), Height: claimedSide(m.Height), Seconds: max(0, m.Seconds),
		Animated: m.Animated,
	}
	if len(m.SHA256) == sha256.Size {
		claimed.SHA256 = m.SHA256
	}
	if len(m.Waveform) <= waveformPoints {
		claimed.Waveform = m.Waveform
	}
	if len(m.Thumbnail) <= maxThumbnail && sniff(m.Thumbnail[:min(len(m.Thumbnail), sniffLen)]) == "image/jpeg" {
		claimed.Thumbnail = m.Thumbnail
	}
	return claimed
}

func claimedType(kind string) string {
	plain, params, err := mime.ParseMediaType(kind)
	if err != nil || len(kind) > maxClaim {
		return mimeAny
	}
	return cmp.Or(mime.FormatMediaType(plain, params), mimeAny)
}

func claimedSide(pixels int) int {
	if pixels < 0 || pixels > maxSide {
		return 0
	}
	return pixels
}

// Receive stores an inbound file of a channel. fill writes it; its error is returned as is. Only its first bytes are read: a
// stranger's picture is never decoded. The rest is as the sender claims.
func (l *Library) Receive(
	ctx context.Context, channel parley.ChannelCode, claimed parley.Media, fill func(*os.File) error,
) (parley.Media, error) {
	if err := l.checkSpace(); err != nil {
		return parley.Media{}, err
	}
	d, err := l.newDraft()
	if err != nil {
		return parley.Media{}, err
	}
	defer d.discard()
	if err := fill(d.File); err != nil {
		return parley.Media{}, err
	}
	m, err := d.described(claimed)
	if err != nil {
		return parley.Media{}, err
	}
	if m.Key, err = l.store(ctx, channel, d, m.SHA256, m.Size); err != nil {
		return parley.Media{}, err
	}
	return m, nil
}

// MaxUpload is how large a file may be that a caller sends for later messages.
const MaxUpload = maxFile

// Upload stores a file that a caller sends for later messages. Its claims are its type and its
// name. A larger file than [MaxUpload] is ErrTooLarge.
func (l *Library) Upload(ctx context.Context, channel parley.ChannelCode, claims parley.Media, body io.Reader) (parley.Media, error) {
	given := claims.MIME
	m, err := l.Receive(ctx, channel, Claimed(claims), func(f *os.File) error {
		n, err := io.Copy(io.MultiWriter(f, l.newSpaceWriter()), io.LimitReader(body, MaxUpload+1))
		if err == nil && n > MaxUpload {
			err = ErrTooLarge
		}
		return err
	})
	m.MIME = documentType(m.MIME, given, m.Filename)
	return m, err
}

// Store stores a file that was picked in a simulated phone.
func (l *Library) Store(ctx context.Context, channel parley.ChannelCode, data []byte, filename string) (parley.Media, error) {
	return l.Receive(ctx, channel, Claimed(parley.Media{Filename: filename}), func(f *os.File) error {
		if _, err := f.Write(data); err != nil {
			return fmt.Errorf("write media file: %w", err)
		}
		return nil
	})
}

// described prefers the file's own properties over the sender's claims.
func (d *draft) described(claimed parley.Media) (parley.Media, error) {
	m := claimed
	sum, size, err := d.hash()
	if err != nil {
		return m, err
	}
	if size > MaxInbound {
		return m, ErrTooLarge
	}
	head, err := d.head()
	if err != nil {
		return m, err
	}
	kind := sniff(head)
	m.Size, m.SHA256 = size, sum
	m.MIME = documentType(kind, "", m.Filename)
	found := parley.Media{Size: size}
	_ = unpanicked(func() error { // stored without
		switch {
		case isPicture(kind):
			found.Width, found.Height = pictureSize(d, kind)
		case films[kind]:
			describeVideo(d.File, kind, &found)
		}
		return nil
	})
	if found.Width > 0 {
		m.Width, m.Height = found.Width, found.Height
	}
	m.Seconds = cmp.Or(found.Seconds, m.Seconds)
	return m, nil
}

// pictureSize reads a picture's size from its header; zero: it does not say.
func pictureSize(r io.ReadSeeker, kind string) (width, height int) {
	if err := rewind(r); err != nil {
		return 0, 0
	}
	c, err := decoders[kind].config(io.LimitReader(r, maxImage))
	if err != nil || !fits(c.Width, c.Height, maxPixels) {
		return 0, 0
	}
	return c.Width, c.Height
}
