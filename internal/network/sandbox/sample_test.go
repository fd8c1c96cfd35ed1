package sandbox

import (
	"bytes"
	"image/png"
	"net/http"
	"testing"

	"github.com/pion/opus"
	"github.com/pion/opus/pkg/oggreader"

	"parley"
)

func TestSampleIsWhatItSays(t *testing.T) {
	for kind, want := range map[parley.Kind]string{
		parley.KindImage: "image/png", parley.KindVoice: "application/ogg", parley.KindVideo: "video/avi", parley.KindFile: "text/plain; charset=utf-8",
	} {
		sample, err := Sample(kind)
		if err != nil {
			t.Fatal(err)
		}
		if got := http.DetectContentType(sample.Media); got != want {
			t.Errorf("the %s sample is %s, want %s", kind, got, want)
		}
		if sample.Content.Kind() != kind {
			t.Errorf("the %s sample is a %s", kind, sample.Content.Kind())
		}
	}
	if _, err := Sample(parley.KindPoll); parley.CodeOf(err) != parley.Invalid {
		t.Errorf("a sample poll: %v", err)
	}
}

func TestSamplePictureCanBeSeen(t *testing.T) {
	sample, err := Sample(parley.KindImage)
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(sample.Media))
	if err != nil {
		t.Fatal(err)
	}
	if size := picture.Bounds().Size(); size.X != sampleWidth || size.Y != sampleHeight {
		t.Errorf("the picture is %v", size)
	}
}

func TestSampleVoiceCanBeHeard(t *testing.T) {
	reader, header, err := oggreader.NewWith(bytes.NewReader(sampleVoice()))
	if err != nil {
		t.Fatal(err)
	}
	if header.Channels != 1 {
		t.Errorf("%d channels", header.Channels)
	}
	decoder := opus.NewDecoder()
	frames := 0
	for {
		packets, page, err := reader.ParseNextPage()
		if err != nil {
			break
		}
		if bytes.HasPrefix(packets[0], []byte("OpusTags")) {
			continue
		}
		for _, packet := range packets {
			if _, _, err := decoder.Decode(packet, make([]byte, 4*48000/50*2)); err != nil {
				t.Fatal(err)
			}
			frames++
		}
		if page.GranulePosition != 48000 {
			t.Errorf("it ends at sample %d, want a second", page.GranulePosition)
		}
	}
	if frames != 50 {
		t.Errorf("%d frames, want 50 of 20 ms", frames)
	}
}
