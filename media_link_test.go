package parley

import (
	"strings"
	"testing"
	"time"
)

func TestMediaID(t *testing.T) {
	const key = "5f2c1d8a90b34e6f7788990011223344"
	m := Message{Seq: 71, Content: Image{Media: Media{Key: key}}}
	id := NewMediaID(&m)
	if got, seq, ok := id.Parse(); !ok || got != key || seq != 71 {
		t.Errorf("%s is %s of %d", id, got, seq)
	}
	m.Content = Image{Media: Media{ID: "id" + key[2:], Key: key}}
	if id := NewMediaID(&m); !strings.Contains(string(id), "id"+key[2:]) {
		t.Errorf("the id of an inbound file changes when it arrives: %s", id)
	}
	for _, wrong := range []MediaID{"", "med_", "med_" + key, "med_" + key + "-1", "med_" + key + "0", "med_" + key + "01", "med_" + key + "Z",
		"med_" + key + "zzzzzzzzzzzzzzzzzzzz", key + "1z", "med_" + key + " 1"} {
		if _, _, ok := wrong.Parse(); ok {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

func TestMediaLinks(t *testing.T) {
	l := MediaLinks{Base: "https://chat.example.com", Keys: [][]byte{[]byte("new"), []byte("old")}}
	now := time.Now()
	link := l.Signed(now)("med_a")
	path, query, _ := strings.Cut(link, "?")
	if path != l.Plain("med_a") || path != "https://chat.example.com/api/media/med_a" {
		t.Errorf("the link is %s", path)
	}
	expires, signature, _ := strings.Cut(strings.TrimPrefix(query, "expires="), "&signature=")
	old := signMediaLink([]byte("old"), "med_a", expires)
	for what, c := range map[string]struct {
		id                 MediaID
		expires, signature string
		at                 time.Time
		want               error
	}{
		"at once":             {"med_a", expires, signature, now, nil},
		"in its last second":  {"med_a", expires, signature, now.Add(SignedMediaLife - 2*time.Second), nil},
		"after it expired":    {"med_a", expires, signature, now.Add(SignedMediaLife + time.Second), ErrLinkExpired},
		"by the old key":      {"med_a", expires, old, now, nil},
		"for another file":    {"med_b", expires, signature, now, ErrLinkInvalid},
		"with another end":    {"med_a", "9" + expires, signature, now, ErrLinkInvalid},
		"without a signature": {"med_a", expires, "", now, ErrLinkInvalid},
		"with no time at all": {"med_a", "", signMediaLink([]byte("new"), "med_a", ""), now, ErrLinkExpired},
	} {
		if err := l.Verify(c.id, c.expires, c.signature, c.at); err != c.want {
			t.Errorf("%s: %v", what, err)
		}
	}
}
