package parleytest

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Files serves a picture, a film, a voice note and a text on loopback until the test ends: dot.png,
// film.mp4, hello.ogg and notes.txt.
func Files(t testing.TB) (url string) {
	t.Helper()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewRGBA(image.Rect(0, 0, 4, 3))); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		"/dot.png":   picture.Bytes(),
		"/film.mp4":  append([]byte("\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41"), make([]byte, 64)...),
		"/notes.txt": []byte("Milk, bread.\n"),
		"/hello.ogg": silence(),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Write(file)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// silence is a voice note of ogg with opus in which nobody speaks for a second.
func silence() []byte {
	head := append([]byte("OpusHead\x01\x01"), 0, 0, 0x80, 0x3e, 0, 0, 0, 0, 0) // one voice, 16 kHz
	tags := append([]byte("OpusTags"), 4, 0, 0, 0, 't', 'e', 's', 't', 0, 0, 0, 0)
	file := append(oggPage(0, 2, 0, head), oggPage(1, 0, 0, tags)...)
	packets := make([][]byte, 50) // of 20 ms
	for i := range packets {
		packets[i] = []byte{0xf8, 0xff, 0xfe}
	}
	return append(file, oggPage(2, 4, 48_000, packets...)...)
}

// oggPage writes one page as RFC 3533 has it.
func oggPage(sequence uint32, flags byte, granule uint64, packets ...[]byte) []byte {
	page := append([]byte("OggS\x00"), flags)
	page = binary.LittleEndian.AppendUint64(page, granule)
	page = binary.LittleEndian.AppendUint32(page, 1) // the stream's number
	page = binary.LittleEndian.AppendUint32(page, sequence)
	page = append(page, 0, 0, 0, 0, byte(len(packets)))
	for _, p := range packets {
		page = append(page, byte(len(p)))
	}
	page = append(page, bytes.Join(packets, nil)...)
	binary.LittleEndian.PutUint32(page[22:], oggChecksum(page))
	return page
}

func oggChecksum(page []byte) uint32 {
	var sum uint32
	for _, b := range page {
		sum ^= uint32(b) << 24
		for range 8 {
			if sum&(1<<31) != 0 {
				sum = sum<<1 ^ 0x04c11db7
			} else {
				sum <<= 1
			}
		}
	}
	return sum
}
