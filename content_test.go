package parley

import (
	"reflect"
	"testing"
)

func TestContentSurvivesEncoding(t *testing.T) {
	target := MessageRef{FromMe: true, Chat: "6281234567890@c.us", ID: "3EB0A1"}
	media := Media{Key: "ab/cd", Source: "https://example.com/a.png", MIME: "image/png", Filename: "a.png", Size: 7,
		SHA256: []byte{1}, MediaKey: []byte{2}, Width: 3, Height: 4, Seconds: 5, Waveform: []byte{6}, Thumbnail: []byte{7}, Animated: true}
	for _, c := range []Content{
		Text{Body: "halo"},
		Text{Body: "https://example.com", Preview: &Preview{URL: "https://example.com", Title: "Example", Thumbnail: []byte{1}}},
		Image{Caption: "a", Media: media}, Video{Caption: "b", Media: media}, File{Media: media}, Voice{Media: media}, Sticker{Media: media},
		Location{Title: "here", Latitude: "-6.2", Longitude: "106.8"},
		Poll{Title: "what?", Options: []string{"a", "b"}, Multiple: true},
		Reaction{Emoji: "👍", Target: target}, Seen{Target: target}, Delete{Target: target},
		Star{Target: target, Starred: true}, Archive{Archived: true},
	} {
		data, err := EncodeContent(c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeContent(c.Kind(), c.Text(), data)
		if _, secret := c.(Secret); secret {
			got, err = DecodeSecret(c.Text(), data)
		}
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%s came back as %+v, %v", c.Kind(), got, err)
		}
		if _, err := DecodeContent(c.Kind(), "", nil); err != nil { // after retention took it
			t.Errorf("an erased %s does not decode: %v", c.Kind(), err)
		}
		if _, err := DecodeContent(c.Kind(), "", []byte("{")); err == nil {
			t.Errorf("broken data of a %s decodes", c.Kind())
		}
	}
	if data, _ := EncodeContent(Text{Body: "halo"}); data != nil {
		t.Errorf("a plain text keeps data: %s", data)
	}
	if _, err := DecodeContent("dance", "", nil); err == nil {
		t.Error("an unknown kind decodes")
	}
}

func TestKinds(t *testing.T) {
	records := map[Kind]bool{KindText: true, KindImage: true, KindVideo: true, KindFile: true, KindVoice: true, KindSticker: true,
		KindLocation: true, KindPoll: true, KindContact: true}
	media := map[Kind]bool{KindImage: true, KindVideo: true, KindFile: true, KindVoice: true, KindSticker: true}
	for _, k := range []Kind{KindText, KindImage, KindVideo, KindFile, KindVoice, KindSticker, KindLocation, KindPoll,
		KindContact, KindReaction, KindEdit, KindSeen, KindDelete, KindStar, KindArchive, KindReadChat, KindTimer} {
		if k.InHistory() != records[k] || k.IsMedia() != media[k] {
			t.Errorf("%s: record %t, media %t", k, k.InHistory(), k.IsMedia())
		}
	}
}
