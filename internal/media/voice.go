package media

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"
	"time"

	"github.com/pion/opus"
	"github.com/pion/opus/pkg/oggreader"

	"parley"
	"parley/internal/confine"
	"parley/internal/safehttp"
)

// demuxers maps types to ffmpeg's formats. A fixed format prevents ffmpeg from guessing one that reads other files,
// such as a playlist.
var demuxers = map[string]string{
	"audio/mpeg": "mp3", "audio/wav": "wav", "audio/aac": "aac", "audio/flac": "flac", "audio/amr": "amr",
	"audio/ogg": "ogg", mimeOpus: "ogg", mimeWebM: "matroska",
	"audio/mp4": "mov", "video/mp4": "mov", "video/3gpp": "mov", "video/quicktime": "mov", // when there is no picture in them
}

const mimeWebM = "audio/webm"

// Voice fetches a voice note. An ogg/opus file is stored unchanged; other audio is converted. SHA256 is that of the
// fetched file; MIME and Size are those of the stored one.
func (l *Library) Voice(ctx context.Context, src Source) (parley.Media, error) {
	return l.withFetched(ctx, src, "voice note", maxVoice, func(f *fetched) (parley.Media, error) {
		m, err := l.voice(ctx, f, src)
		if errors.Is(err, errNoSound) {
			return parley.Media{}, wrongType(src, f.kind, "audio. Send the address of an OGG, OPUS, MP3, WAV, AAC or M4A file")
		}
		return m, err
	})
}

// Recorded stores a recorded voice note, as Voice does with a fetched one.
func (l *Library) Recorded(ctx context.Context, channel parley.ChannelCode, data []byte, filename string) (parley.Media, error) {
	d, err := l.newDraft()
	if err != nil {
		return parley.Media{}, err
	}
	defer d.discard()
	f := &fetched{draft: d}
	if err := f.receive(l, bytes.NewReader(data), "voice note", maxVoice); err != nil {
		return parley.Media{}, err
	}
	m, err := l.voice(ctx, f, Source{Channel: channel, Filename: cmp.Or(safeName(filename), "voice.ogg")})
	if errors.Is(err, errNoSound) {
		return parley.Media{}, errorf("The file is %s, not audio.", bare(f.kind))
	}
	return m, err
}

var errNoSound = errors.New("no sound")

func (l *Library) voice(ctx context.Context, f *fetched, src Source) (parley.Media, error) {
	demuxer, ok := demuxers[f.kind]
	if !ok || strings.HasPrefix(f.kind, "video/") && f.hasVideo() {
		return parley.Media{}, errNoSound
	}
	if f.kind == mimeOpus {
		err := l.measureInto(ctx, f.draft, &f.media)
		if err == nil {
			return l.finish(ctx, f, src, mimeOpus)
		}
		if !errors.Is(err, errChannels) {
			return parley.Media{}, soundError(err)
		}
	}
	return l.convertVoice(ctx, f, src, demuxer)
}

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
	name := chooseName(src.Filename, f.resp, mimeOpus)
	src.Filename = strings.TrimSuffix(name, path.Ext(name)) + ".ogg"
	return l.finish(ctx, &fetched{draft: made, resp: f.resp, media: f.media, converted: true}, src, mimeOpus)
}

func (l *Library) measureInto(ctx context.Context, d *draft, m *parley.Media) error {
	return l.work(ctx, l.working, func() (err error) {
		m.Seconds, m.Waveform, err = measure(ctx, d.File)
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

// ffmpegMemory is the largest piece of memory that ffmpeg may ask for at once, in bytes.
const ffmpegMemory = "268435456"

// ffmpegLimits bound the process. Most of the address space is for its libraries.
var ffmpegLimits = confine.Limits{Memory: 1 << 30, CPU: convertTimeout}

// toOpus converts a file to ogg/opus, 16 kHz mono. ffmpeg reads a stranger's file, so it is confined: the format is
// fixed, time, memory and output are bounded, and it can read this file and no other, write none, and use no network.
func (l *Library) toOpus(ctx context.Context, path, demuxer string, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, convertTimeout)
	defer cancel()
	limits := ffmpegLimits
	limits.Input = path
	cmd := confine.Command(ctx, limits, cmp.Or(l.ffmpeg, "ffmpeg"),
		"-nostdin", "-hide_banner", "-loglevel", "error", "-max_alloc", ffmpegMemory, "-threads", "1",
		"-protocol_whitelist", "file,pipe", "-f", demuxer, "-i", "file:"+path,
		"-map", "0:a:0", "-map_metadata", "-1", "-threads", "1",
		"-c:a", "libopus", "-application", "voip", "-b:a", "24k", "-ac", "1", "-ar", "16000",
		"-fflags", "+bitexact", "-f", "ogg", "pipe:1") // the same sound makes the same file
	cmd.Env = []string{"LC_ALL=C", "MALLOC_ARENA_MAX=2"} // no environment, and little address space per thread
	cmd.WaitDelay = time.Second
	out := &limitedWriter{to: to, left: maxVoice}
	var said []byte // the end of its messages
	cmd.Stdout, cmd.Stderr = out, writerFunc(func(p []byte) (int, error) {
		const most = 1 << 10
		said = append(said, p...)
		said = said[max(0, len(said)-most):]
		return len(p), nil
	})
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &Error{"The audio took too long to convert. Send a shorter file, or one in ogg/opus.", errors.Join(err, ctx.Err())}
	case cmd.Process == nil: // it could not be started
		return &Error{"This server can send only ogg/opus voice notes, because ffmpeg is not installed. " +
			"Send an .ogg/.opus file, or install ffmpeg.", err}
	case out.err != nil:
		return fmt.Errorf("write converted voice note: %w", out.err)
	case out.left < 0:
		return errorf("The voice note is too long. Converted to ogg/opus it must have at most %s.", safehttp.Size(maxVoice))
	case cmd.ProcessState.ExitCode() == confine.Failed:
		return &Error{"This server can send only ogg/opus voice notes, because it cannot run ffmpeg with limits. " +
			"Send an .ogg/.opus file, or run: parley doctor",
			fmt.Errorf("ffmpeg: %s", strings.TrimSpace(string(said)))}
	}
	cause := fmt.Errorf("ffmpeg: %w: %s", err, strings.TrimSpace(string(said)))
	if bytes.Contains(said, []byte("Unknown encoder")) {
		return &Error{"This server can send only ogg/opus voice notes, because its ffmpeg cannot make opus. " +
			"Send an .ogg/.opus file, or install an ffmpeg with libopus.", cause}
	}
	return &Error{"The audio could not be converted: it is damaged or in a format that is not known. " +
		"Send an ogg/opus or mp3 file that plays.", cause}
}

// limitedWriter writes up to a limit and then fails, which ends the program that writes to it.
type limitedWriter struct {
	to   io.Writer
	left int64 // negative: more was written than allowed
	err  error // of the writer underneath
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 {
		return 0, errors.New("more output than allowed")
	}
	n, err := w.to.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}

const (
	waveformPoints = 64 // as many as WhatsApp draws
	opusRate       = 48_000
	decodeRate     = 16_000 // enough to see how loud it is

	// maxDecoded bounds the packets that are decoded for a waveform. A file of hours may have a
	// million, at a fifth of a millisecond each; fifty for every point show as much.
	maxDecoded = 50 * waveformPoints

	// hush is the mean level below which a sound counts as silence: about -66 dB.
	hush = 0.0005
)

// errChannels says that a file is good but has more channels than a voice note may have.
var errChannels = errors.New("more than two channels")

// measure reads an ogg/opus file to its end. A truncated or damaged file is an error. The waveform has 64 values from 0 to
// 100.
func measure(ctx context.Context, r io.ReadSeeker) (seconds int, wave []byte, err error) {
	var packets int
	var samples int64
	skip, err := eachPacket(ctx, r, func(packet []byte) {
		packets++
		samples += packetSamples(packet)
	})
	length := samples - int64(skip)
	if err == nil && length <= 0 {
		err = errors.New("no audio in ogg file")
	}
	if err != nil {
		return 0, nil, err
	}
	wave, err = waveform(ctx, r, packets, samples)
	return max(1, int((length+opusRate/2)/opusRate)), wave, err
}

// eachPacket passes the audio packets of an ogg/opus file, and returns the number of samples to skip at the start.
func eachPacket(ctx context.Context, r io.ReadSeeker, do func(packet []byte)) (skip uint16, err error) {
	if err := rewind(r); err != nil {
		return 0, err
	}
	ogg, header, err := oggreader.NewWith(bufio.NewReader(r))
	if err != nil {
		return 0, fmt.Errorf("read ogg: %w", err)
	}
	if header.Channels < 1 || header.Channels > 2 || header.ChannelMap != 0 {
		return 0, errChannels
	}
	tags, _, err := ogg.ParseNextPacket()
	if err != nil || !bytes.HasPrefix(tags, []byte("OpusTags")) {
		return 0, fmt.Errorf("read ogg: no OpusTags (%w)", errors.Join(err, io.ErrUnexpectedEOF))
	}
	for ctx.Err() == nil {
		packet, _, err := ogg.ParseNextPacket()
		if err == io.EOF {
			return header.PreSkip, nil
		}
		if err != nil {
			return 0, fmt.Errorf("read ogg: %w", err)
		}
		do(packet)
	}
	return 0, ctx.Err()
}

// packetSamples is how long an opus packet plays, in samples at 48 kHz, by its first two bytes.
func packetSamples(packet []byte) int64 {
	if len(packet) == 0 {
		return 0
	}
	const ms = opusRate / 1000
	var frame int64
	switch config := packet[0] >> 3; {
	case config < 12: // SILK
		frame = []int64{10 * ms, 20 * ms, 40 * ms, 60 * ms}[config&3]
	case config < 16: // hybrid
		frame = []int64{10 * ms, 20 * ms}[config&1]
	default: // CELT
		frame = []int64{5 * ms / 2, 5 * ms, 10 * ms, 20 * ms}[config&3]
	}
	switch packet[0] & 3 {
	case 0:
		return frame
	case 1, 2:
		return 2 * frame
	}
	if len(packet) < 2 {
		return 0
	}
	const longest = 120 * ms // no packet may be longer
	return min(frame*int64(packet[1]&0x3f), longest)
}

// waveform says how loud each 64th part of a file is, from 0 to 100 of its loudest.
func waveform(ctx context.Context, r io.ReadSeeker, packets int, samples int64) ([]byte, error) {
	decoder, err := opus.NewDecoderWithOutput(decodeRate, 1)
	if err != nil {
		return nil, fmt.Errorf("make opus decoder: %w", err)
	}
	var level [waveformPoints]float64
	var count [waveformPoints]int
	pcm := make([]float32, decodeRate*120/1000) // the longest packet
	stride, nth, at := 1+packets/maxDecoded, 0, int64(0)
	_, err = eachPacket(ctx, r, func(packet []byte) {
		if nth%stride == 0 {
			n, err := decoder.DecodeToFloat32(packet, pcm)
			if err != nil {
				n = 0 // one bad packet is a moment of silence
			}
			for i, sample := range pcm[:n] {
				point := min((at+int64(i)*opusRate/decodeRate)*waveformPoints/samples, waveformPoints-1)
				level[point] += math.Abs(float64(sample))
				count[point]++
			}
		}
		nth++
		at += packetSamples(packet)
	})
	if err != nil {
		return nil, err
	}
	return normalise(level, count), nil
}

func normalise(level [waveformPoints]float64, count [waveformPoints]int) []byte {
	loudest := 0.0
	for i := range level {
		level[i] /= float64(max(1, count[i]))
		loudest = max(loudest, level[i])
	}
	wave := make([]byte, waveformPoints)
	if loudest < hush {
		return wave
	}
	for i := range level {
		wave[i] = byte(math.Round(100 * level[i] / loudest))
	}
	return wave
}
