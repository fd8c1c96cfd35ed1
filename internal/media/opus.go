package media

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/pion/opus"
	"github.com/pion/opus/pkg/oggreader"
)

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

// sound is what a chat shows before a voice note is played.
type sound struct {
	seconds  int
	waveform []byte // 64 values, 0 to 100
}

// errChannels says that a file is good but has more channels than a voice note may have.
var errChannels = errors.New("more than two channels")

// measure reads an ogg/opus file to its end. A truncated or damaged file is an error.
func measure(ctx context.Context, r io.ReadSeeker) (sound, error) {
	var packets int
	var samples int64
	skip, err := eachPacket(ctx, r, func(packet []byte) {
		packets++
		samples += packetSamples(packet)
	})
	if err != nil {
		return sound{}, err
	}
	length := samples - int64(skip)
	if length <= 0 {
		return sound{}, errors.New("no audio in ogg file")
	}
	wave, err := waveform(ctx, r, packets, samples)
	if err != nil {
		return sound{}, err
	}
	return sound{seconds: max(1, int((length+opusRate/2)/opusRate)), waveform: wave}, nil
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
