package parley

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestParseContactID(t *testing.T) {
	long := strings.Repeat("1", 45)
	tests := []struct {
		in   string
		want ContactID
		err  error
	}{
		{"6281234567890@c.us", "6281234567890@c.us", nil},
		{"6281234567890@s.us", "6281234567890@c.us", nil}, // the other spelling of the same person
		{"12345@c.us", "12345@c.us", nil},                 // ten characters, the least
		{"1234@c.us", "", ErrContactID},
		{long + "@c.us", ContactID(long + "@c.us"), nil}, // fifty, the most
		{long + "1@c.us", "", ErrContactID},
		{"6281234567890@g.us", "", ErrGroupID},
		{"628123-456@g.us", "", ErrGroupID},
		{"6281234567890@x.us", "", ErrContactID},
		{"6281234567890@c.usa", "", ErrContactID},
		{"6281234567890", "", ErrContactID},
		{"+6281234567890@c.us", "", ErrContactID},
		{"62 81234567890@c.us", "", ErrContactID},
		{"٦٢٨١٢٣٤٥٦٧@c.us", "", ErrContactID}, // digits, but not ours
		{"@c.us", "", ErrContactID},
		{"6281234567890@c.us\n", "", ErrContactID},
		{"", "", ErrContactID},
	}
	for _, tt := range tests {
		got, err := ParseContactID(tt.in)
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("ParseContactID(%q) = %q, %v; want %q, %v", tt.in, got, err, tt.want, tt.err)
		}
	}
}

func FuzzParseContactID(f *testing.F) {
	f.Add("6281234567890@c.us")
	f.Add("6281234567890@s.us")
	pattern := regexp.MustCompile(`^[0-9]+@[cs]\.us\z`)
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseContactID(s)
		want := len(s) >= MinContactID && len(s) <= MaxContactID && pattern.MatchString(s)
		if (err == nil) != want {
			t.Fatalf("ParseContactID(%q) = %q, %v", s, id, err)
		}
		if again, err2 := ParseContactID(string(id)); err == nil && (err2 != nil || again != id) {
			t.Fatalf("%q is not stable: %q, %v", id, again, err2)
		}
	})
}

func TestMessageRef(t *testing.T) {
	full := MessageRef{FromMe: true, Chat: "6281234567890@c.us", ID: "3EB0A1"}
	tests := []struct {
		in   string
		want MessageRef
		ok   bool
	}{
		{"true_6281234567890@c.us_3EB0A1", full, true},
		{"true_6281234567890@s.us_3EB0A1", full, true},
		{"false_6281234567890@c.us_3EB0A1", MessageRef{Chat: full.Chat, ID: "3EB0A1"}, true},
		{"3EB0A1", MessageRef{ID: "3EB0A1"}, true},
		{"yes_6281234567890@c.us_3EB0A1", MessageRef{}, false},
		{"true_6281234567890@c.us", MessageRef{}, false},
		{"true_120363020000000001@g.us_3EB0A1", MessageRef{FromMe: true, Chat: "120363020000000001@g.us", ID: "3EB0A1"}, true},
		{"false_6281234567890-1600000000@g.us_3A01", MessageRef{Chat: "6281234567890-1600000000@g.us", ID: "3A01"}, true},
		{"true_@g.us_3EB0A1", MessageRef{}, false},
		{"true_12036302x@g.us_3EB0A1", MessageRef{}, false},
		{"true_6281234567890@c.us_", MessageRef{}, false},
		{"true_6281234567890@c.us_3EB0_A1", MessageRef{}, false},
		{"", MessageRef{}, false},
		{"3EB0 A1", MessageRef{}, false},
	}
	for _, tt := range tests {
		got, err := ParseMessageRef(tt.in)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("ParseMessageRef(%q) = %+v, %v", tt.in, got, err)
		}
	}
	if got := full.String(); got != "true_6281234567890@c.us_3EB0A1" {
		t.Errorf("String() = %q", got)
	}
}

func FuzzParseMessageRef(f *testing.F) {
	f.Add("true_6281234567890@c.us_3EB0A1")
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := ParseMessageRef(s)
		if err != nil {
			return
		}
		again, err := ParseMessageRef(ref.String())
		if err != nil || again != ref {
			t.Fatalf("%q reads as %+v, which reads again as %+v, %v", s, ref, again, err)
		}
	})
}

func TestParseChannelCode(t *testing.T) {
	for code, good := range map[string]bool{
		"demo": true, "toko-1_a": true, "0": true, strings.Repeat("a", 32): true,
		"": false, "Demo": false, "-a": false, "a b": false, "a/b": false, strings.Repeat("a", 33): false, "é": false,
	} {
		if _, err := ParseChannelCode(code); (err == nil) != good {
			t.Errorf("ParseChannelCode(%q) = %v", code, err)
		}
	}
}
