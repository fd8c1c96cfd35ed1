package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"

	"parley"
)

// Sample returns a small file of a kind for a phone to send when its user has none at hand: a picture,
// a second of silence as a voice note, a second of film, or a text file. It is made on the spot.
func Sample(kind parley.Kind) (Outgoing, error) {
	switch kind {
	case parley.KindImage:
		data, err := samplePicture(png.Encode)
		return Outgoing{Content: parley.Image{Media: parley.Media{MIME: "image/png", Filename: "sample.png"}}, Media: data}, err
	case parley.KindVoice:
		media := parley.Media{MIME: "audio/ogg; codecs=opus", Filename: "sample.ogg", Seconds: 1, Waveform: make([]byte, 64)}
		return Outgoing{Content: parley.Voice{Media: media}, Media: sampleVoice()}, nil
	case parley.KindVideo:
		data, err := sampleVideo()
		media := parley.Media{MIME: "video/avi", Filename: "sample.avi", Seconds: 1, Width: sampleWidth, Height: sampleHeight}
		return Outgoing{Content: parley.Video{Media: media}, Media: data}, err
	case parley.KindFile:
		return Outgoing{Content: parley.File{Media: parley.Media{MIME: "text/plain; charset=utf-8", Filename: "sample.txt"}},
			Media: []byte("A sample file from a simulated phone.\n")}, nil
	}
	return Outgoing{}, parley.InvalidField("type", "type must be image, voice, video or file to have a sample.")
}

const (
	sampleWidth  = 64
	sampleHeight = 48
)

// samplePicture draws a picture with an encoder.
func samplePicture(encode func(w io.Writer, m image.Image) error) ([]byte, error) {
	picture := image.NewRGBA(image.Rect(0, 0, sampleWidth, sampleHeight))
	for y := range sampleHeight {
		for x := range sampleWidth {
			picture.Set(x, y, color.RGBA{R: uint8(4 * x), G: uint8(5 * y), B: 160, A: 255})
		}
	}
	var b bytes.Buffer
	if err := encode(&b, picture); err != nil {
		return nil, fmt.Errorf("draw sample: %w", err)
	}
	return b.Bytes(), nil
}

// sampleVoice is an Ogg file with one second of Opus, which is silent.
func sampleVoice() []byte {
	const (
		rate     = 48000
		perFrame = 20 * rate / 1000 // samples in a frame of 20 ms
		frames   = 50
	)
	head := []byte("OpusHead\x01\x01\x00\x00") // version 1, one channel, nothing to skip
	head = binary.LittleEndian.AppendUint32(head, rate)
	head = append(head, 0, 0, 0) // no gain, mono or stereo in this order
	tags := binary.LittleEndian.AppendUint32([]byte("OpusTags"), 6)
	tags = append(tags, "parley"...)
	tags = binary.LittleEndian.AppendUint32(tags, 0)

	var sound [][]byte
	for range frames {
		sound = append(sound, []byte{0xf8, 0xff, 0xfe}) // a frame of 20 ms that says "silence"
	}
	file := oggPage(nil, 0, oggBegin, 0, head)
	file = oggPage(file, 1, 0, 0, tags)
	return oggPage(file, 2, oggEnd, frames*perFrame, sound...)
}

const (
	oggBegin byte = 2
	oggEnd   byte = 4
)

// oggPage appends a page with whole packets, each under 255 bytes.
func oggPage(file []byte, number uint32, flags byte, position uint64, packets ...[]byte) []byte {
	page := append([]byte("OggS\x00"), flags)
	page = binary.LittleEndian.AppendUint64(page, position)
	page = append(page, "PARL"...) // the stream's serial number
	page = binary.LittleEndian.AppendUint32(page, number)
	const checksumAt = 22
	page = append(page, 0, 0, 0, 0, byte(len(packets)))
	for _, packet := range packets {
		page = append(page, byte(len(packet)))
	}
	for _, packet := range packets {
		page = append(page, packet...)
	}
	binary.LittleEndian.PutUint32(page[checksumAt:], oggChecksum(page))
	return append(file, page...)
}

// oggChecksum is a CRC-32 whose bits are not reflected, which is why the standard library's will not do.
func oggChecksum(page []byte) (sum uint32) {
	for _, b := range page {
		sum ^= uint32(b) << 24
		for range 8 {
			carry := sum >> 31
			sum = sum<<1 ^ carry*0x04c11db7
		}
	}
	return sum
}

// sampleVideo is an AVI file of five frames, each a JPEG picture, shown for a second.
func sampleVideo() ([]byte, error) {
	const frames = 5
	frame, err := samplePicture(func(w io.Writer, m image.Image) error {
		return jpeg.Encode(w, m, nil)
	})
	if err != nil {
		return nil, err
	}
	size := uint32(len(frame))
	main := words(1_000_000/frames, size*frames, 0, 0x10, frames, 0, 1, size, sampleWidth, sampleHeight, 0, 0, 0, 0)
	stream := append([]byte("vidsMJPG"), words(0, 0, 0, 1, frames, 0, frames, size, 0xffffffff, 0, 0, sampleHeight<<16|sampleWidth)...)
	format := append(words(40, sampleWidth, sampleHeight, 24<<16|1), "MJPG"...)
	format = append(format, words(sampleWidth*sampleHeight*3, 0, 0, 0, 0)...)
	header := riff("LIST", []byte("hdrl"), riff("avih", main),
		riff("LIST", []byte("strl"), riff("strh", stream), riff("strf", format)))

	movie, index := []byte("movi"), []byte{}
	for range frames {
		index = append(append(index, "00dc"...), words(0x10, uint32(len(movie)), size)...)
		movie = append(movie, riff("00dc", frame)...)
	}
	return riff("RIFF", []byte("AVI "), header, riff("LIST", movie), riff("idx1", index)), nil
}

func words(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// riff makes a chunk: its name, its size, its content, and a byte more where the size is odd.
func riff(name string, parts ...[]byte) []byte {
	content := bytes.Join(parts, nil)
	chunk := binary.LittleEndian.AppendUint32([]byte(name), uint32(len(content)))
	chunk = append(chunk, content...)
	if len(content)%2 == 1 {
		chunk = append(chunk, 0)
	}
	return chunk
}
