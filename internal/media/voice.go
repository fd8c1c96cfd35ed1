package media

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"parley"
)

// demuxers maps types to ffmpeg's formats. A fixed format prevents ffmpeg from guessing one that reads other files,
// such as a playlist.
var demuxers = map[string]string{
	"audio/mpeg": "mp3", "audio/wav": "wav", "audio/aac": "aac", "audio/flac": "flac", "audio/amr": "amr",
	"audio/ogg": "ogg", mimeOpus: "ogg", mimeWebM: "matroska",
	"audio/mp4": "mov", "video/mp4": "mov", "video/3gpp": "mov", "video/quicktime": "mov", // when there is no picture in them
}

const mimeWebM = "audio/webm"

const wantedAudio = "audio. Send the address of an OGG, OPUS, MP3, WAV, AAC or M4A file"

// Voice fetches a voice note. An ogg/opus file is stored unchanged; other audio is converted. SHA256 is that of the
// fetched file; MIME and Size are those of the stored one.
func (l *Library) Voice(ctx context.Context, src Source) (parley.Media, error) {
	f, err := l.fetch(ctx, src, "voice note", maxVoice)
	if err != nil {
		return parley.Media{}, err
	}
	defer f.discard()
	m, err := l.voice(ctx, f, src)
	if errors.Is(err, errNoSound) {
		return parley.Media{}, wrongType(f.kind, wantedAudio)
	}
	return m, err
}

// Recorded stores a recorded voice note, as Voice does with a fetched one.
func (l *Library) Recorded(ctx context.Context, data []byte, filename string) (parley.Media, error) {
	d, err := l.newDraft()
	if err != nil {
		return parley.Media{}, err
	}
	defer d.discard()
	f := &fetched{draft: d}
	if err := f.receive(bytes.NewReader(data), "voice note", maxVoice); err != nil {
		return parley.Media{}, err
	}
	m, err := l.voice(ctx, f, Source{Filename: cmp.Or(safeName(filename), "voice.ogg")})
	if errors.Is(err, errNoSound) {
		return parley.Media{}, errorf("The file is %s, not audio.", bare(f.kind))
	}
	return m, err
}

// errNoSound says that a file is something else.
var errNoSound = errors.New("no sound")

func (l *Library) voice(ctx context.Context, f *fetched, src Source) (parley.Media, error) {
	demuxer, ok := demuxers[f.kind]
	if !ok {
		return parley.Media{}, errNoSound
	}
	if strings.HasPrefix(f.kind, "video/") {
		if video, err := f.hasVideo(); err != nil {
			return parley.Media{}, err
		} else if video {
			return parley.Media{}, errNoSound
		}
	}
	if f.kind == mimeOpus {
		err := l.measureInto(ctx, f.draft, &f.media)
		if err == nil {
			return l.finish(f, src, mimeOpus)
		}
		if !errors.Is(err, errChannels) {
			return parley.Media{}, soundError(err)
		}
	}
	return l.convertVoice(ctx, f, src, demuxer)
}

// convertVoice stores an ogg/opus conversion of the fetched file.
func (l *Library) convertVoice(ctx context.Context, f *fetched, src Source, demuxer string) (parley.Media, error) {
	made, err := l.newDraft()
	if err != nil {
		return parley.Media{}, err
	}
	defer made.discard()
	if err := l.work(ctx, l.working, func() error { return l.toOpus(ctx, f.Name(), demuxer, made) }); err != nil {
		return parley.Media{}, err
	}
	if err := l.measureInto(ctx, made, &f.media); err != nil {
		return parley.Media{}, soundError(err)
	}
	if f.media.Size, err = made.Seek(0, io.SeekEnd); err != nil {
		return parley.Media{}, err
	}
	name := nameOf(src.Filename, f.resp, mimeOpus)
	src.Filename = strings.TrimSuffix(name, path.Ext(name)) + ".ogg"
	return l.finish(&fetched{draft: made, resp: f.resp, media: f.media}, src, mimeOpus)
}

func (l *Library) measureInto(ctx context.Context, d *draft, m *parley.Media) error {
	return l.work(ctx, l.working, func() error {
		s, err := measure(ctx, d.File)
		m.Seconds, m.Waveform = s.seconds, s.waveform
		return err
	})
}

func soundError(err error) error {
	if isForCaller(err) {
		return err
	}
	if isInterrupted(err) {
		return &Error{"The audio took too long to read. Send a shorter file.", err}
	}
	return &Error{"The audio file is damaged or cut short. Send one that plays to its end.", err}
}
