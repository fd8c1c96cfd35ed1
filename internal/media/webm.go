package media

import (
	"bytes"
	"encoding/binary"
	"errors"
)

const mimeWebM = "audio/webm"

// Elements of WebM, by the ids that the format gives them. What stands in the containers among them is
// read as if it stood beside them: recorders write while they record, and leave their sizes open.
const (
	webmSegment      = 0x18538067
	webmTracks       = 0x1654ae6b
	webmTrack        = 0xae
	webmCluster      = 0x1f43b675
	webmGroup        = 0xa0
	webmCodecPrivate = 0x63a2
	webmSimpleBlock  = 0xa3
	webmBlock        = 0xa1
)

var errWebM = errors.New("no webm file with one opus track")

// oggOf puts the sound of a webm file, which is what most browsers record, into an ogg file. The opus
// packets are the same in both, so that nothing is lost and no converter is needed. Files with several
// tracks, more than two channels or several packets in a block are left to one.
func oggOf(webm []byte) ([]byte, error) {
	var ogg oggWriter
	tracks := 0
	for rest := webm; len(rest) > 0; {
		id, body, after, err := webmElement(rest)
		if err != nil {
			return nil, err
		}
		rest = after
		switch id {
		case webmTrack:
			tracks++
		case webmCodecPrivate:
			if err := ogg.begin(body); err != nil {
				return nil, err
			}
		case webmSimpleBlock, webmBlock:
			packet, err := webmPacket(body)
			if err != nil {
				return nil, err
			}
			if err := ogg.add(packet); err != nil {
				return nil, err
			}
		}
	}
	if tracks != 1 || ogg.samples == 0 {
		return nil, errWebM
	}
	return ogg.end(), nil
}

// webmElement reads the element that data begins with, and says what is after it. Of a container that
// is its content.
func webmElement(data []byte) (id uint64, body, after []byte, err error) {
	id, n := webmNumber(data, true)
	size, m := webmNumber(data[n:], false)
	if n == 0 || m == 0 {
		return 0, nil, nil, errWebM
	}
	data = data[n+m:]
	switch id {
	case webmSegment, webmTracks, webmTrack, webmCluster, webmGroup:
		return id, nil, data, nil
	}
	if size > uint64(len(data)) { // cut short, or of an open size
		return 0, nil, nil, errWebM
	}
	return id, data[:size], data[size:], nil
}

// webmNumber reads a number and how many bytes it takes, which its leading zero bits say; 0: there is
// none. An id is written with the bit that ends them, a size without.
func webmNumber(data []byte, marked bool) (value uint64, n int) {
	if len(data) == 0 || data[0] == 0 {
		return 0, 0
	}
	n = 1
	for mark := byte(0x80); data[0]&mark == 0; mark >>= 1 {
		n++
	}
	if n > len(data) {
		return 0, 0
	}
	value = uint64(data[0])
	if !marked {
		value &= 0xff >> n
	}
	for _, b := range data[1:n] {
		value = value<<8 | uint64(b)
	}
	return value, n
}

// webmPacket returns what a block holds: behind the number of its track, a time and flags.
func webmPacket(block []byte) ([]byte, error) {
	_, n := webmNumber(block, false)
	if n == 0 || len(block) < n+3 {
		return nil, errWebM
	}
	const laced = 0x06 // several packets, in one of three manners
	if block[n+2]&laced != 0 {
		return nil, errWebM
	}
	return block[n+3:], nil
}

// oggWriter writes an ogg file with one stream of opus, about a second to a page.
type oggWriter struct {
	file    bytes.Buffer
	pages   uint32
	samples int64 // of all packets, at 48 kHz

	lengths []byte // of the page that is being filled
	packets []byte
	begun   int64 // samples before that page
}

// begin writes the two packets that come before the sound: head, which says what it is like, and tags.
func (o *oggWriter) begin(head []byte) error {
	const size, family = 19, 18
	if o.pages > 0 || len(head) != size || !bytes.HasPrefix(head, []byte("OpusHead")) || head[family] != 0 {
		return errWebM
	}
	tags := []byte("OpusTags\x06\x00\x00\x00parley\x00\x00\x00\x00")
	for i, packet := range [][]byte{head, tags} {
		o.lengths, o.packets = []byte{byte(len(packet))}, packet
		o.flush([]byte{oggFirst, 0}[i])
	}
	return nil
}

// add adds a packet of sound.
func (o *oggWriter) add(packet []byte) error {
	const most = 255 // lengths in a page; a packet has one for every 255 bytes, and one that is less
	segments := len(packet)/255 + 1
	if o.pages == 0 || segments > most {
		return errWebM
	}
	if len(o.lengths)+segments > most || o.samples-o.begun >= opusRate {
		o.flush(0)
	}
	o.lengths = append(o.lengths, bytes.Repeat([]byte{255}, segments-1)...)
	o.lengths = append(o.lengths, byte(len(packet)%255))
	o.packets = append(o.packets, packet...)
	o.samples += packetSamples(packet)
	return nil
}

// end writes what is left and returns the file.
func (o *oggWriter) end() []byte {
	o.flush(oggLast)
	return o.file.Bytes()
}

// Flags of an ogg page.
const (
	oggFirst = 2
	oggLast  = 4
)

// flush writes the page that is being filled.
func (o *oggWriter) flush(flags byte) {
	page := append([]byte("OggS\x00"), flags)
	page = binary.LittleEndian.AppendUint64(page, uint64(o.samples))
	page = binary.LittleEndian.AppendUint32(page, 1) // the stream's number
	page = binary.LittleEndian.AppendUint32(page, o.pages)
	page = append(page, 0, 0, 0, 0, byte(len(o.lengths))) // the sum is not known yet
	page = append(append(page, o.lengths...), o.packets...)
	binary.LittleEndian.PutUint32(page[22:], oggSum(page))
	o.file.Write(page)
	o.pages++
	o.lengths, o.packets, o.begun = nil, nil, o.samples
}

// oggSum is the check sum of a page: CRC-32, with its bits in the other order than those of the
// standard library.
func oggSum(page []byte) (sum uint32) {
	for _, b := range page {
		sum ^= uint32(b) << 24
		for range 8 {
			sum = sum<<1 ^ 0x04c11db7&-(sum>>31)
		}
	}
	return sum
}
