package otp

import (
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"parley"
)

func TestCandidates(t *testing.T) {
	t.Parallel()
	const code = "K7QM3XPBT4W9H"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing":                 {"", nil},
		"words":                   {"Halo, apa kabar? Sampai jumpa besok pagi.", nil},
		"alone":                   {code, []string{code}},
		"in a sentence":           {"Log me in. My code is " + code + ". Thanks", []string{code}},
		"in lower case":           {"log me in k7qm3xpbt4w9h", []string{code}},
		"one character too short": {code[1:], nil},
		"broken":                  {"K7QM3XP BT4W9H", nil},
		"a character that is not": {"K7QM3XPBT4W9O", nil},
		"beside a letter":         {"x" + code, []string{"XK7QM3XPBT4W9", code}},
		"between letters":         {"x" + code + "y", []string{"XK7QM3XPBT4W9", "7QM3XPBT4W9HY", code}},
		"beside others":           {"ö" + code + "0", []string{code}},
		"twice":                   {code + " " + code, []string{code}},
		"the ends come first": {"ABCDEFGHJKMNPQRS " + code,
			[]string{"ABCDEFGHJKMNP", "DEFGHJKMNPQRS", code, "BCDEFGHJKMNPQ", "CDEFGHJKMNPQR"}},
	} {
		if got := candidates(test.text); strings.Join(got, " ") != strings.Join(test.want, " ") {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	if got := candidates(strings.Repeat("A", 100_000)); len(got) != 1 {
		t.Errorf("one letter 100,000 times has %d candidates, want 1: the same is looked up once", len(got))
	}
	if got := len(candidates(manyLetters(100_000))); got != maxCandidates {
		t.Errorf("%d candidates in a text that is all letters, want %d", got, maxCandidates)
	}
}

// manyLetters is a text of characters of the alphabet, always the same, in which no part comes twice.
func manyLetters(n int) string {
	random := rand.New(rand.NewPCG(1, 2))
	letters := make([]byte, n)
	for i := range letters {
		letters[i] = linkAlphabet[random.IntN(len(linkAlphabet))]
	}
	return string(letters)
}

// TestCandidatesOfTheLongestPrompts fills as many words as there may be with what looks like a code. A
// code that has nothing of its kind at one side is always found.
func TestCandidatesOfTheLongestPrompts(t *testing.T) {
	t.Parallel()
	const code = "K7QM3XPBT4W9H"
	for _, size := range []int{13, 14, 15, 60, 1000} {
		for _, glued := range []string{code, "A" + code, code + "A", strings.Repeat("A", 99) + code, code + strings.Repeat("A", 99)} {
			letters := manyLetters(maxFilled)
			var words []string
			for room := maxFilled - len(glued); room > size; room -= size + 1 {
				words, letters = append(words, letters[:size]), letters[size:]
			}
			for _, text := range []string{strings.Join(append(words, glued), " "), strings.Join(append([]string{glued}, words...), " ")} {
				if len(text) > maxFilled {
					t.Fatalf("a prompt of %d characters is too long", len(text))
				}
				if !slices.Contains(candidates(text), code) {
					t.Errorf("%q is not found beside %d words of %d letters", glued, len(words), size)
				}
			}
		}
	}
}

func TestMatchLink(t *testing.T) {
	t.Parallel()
	const code = "K7QM3XPBT4W9H"
	text := "ünd k7qm3xpbt4w9h, x" + code + "y\xff" + code // a byte that is no character moves nothing
	positions := matchLink(parley.OTPLink{}, code, text)
	if len(positions) != 3 {
		t.Fatalf("found at %v", positions)
	}
	for _, p := range positions {
		if !strings.EqualFold(text[p.at:p.at+linkCodeLength], code) {
			t.Errorf("%s is not at %d", code, p.at)
		}
	}
}

func TestMaskText(t *testing.T) {
	t.Parallel()
	known := func(text string) (hits []match) {
		for _, code := range candidates(text) {
			hits = append(hits, matchLink(parley.OTPLink{}, code, text)...)
		}
		return hits
	}
	for text, want := range map[string]string{
		"my code is K7QM3XPBT4W9H, yes":      "my code is ••••••••, yes",
		"k7qm3xpbt4w9h":                      "••••••••",
		"K7QM3XPBT4W9H and 23456789ABCDE ok": "•••••••• and •••••••• ok",
	} {
		if got := maskText(text, known(text)); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestMaskEveryKindOfMessage(t *testing.T) {
	t.Parallel()
	const said = "here: K7QM3XPBT4W9H"
	hits := matchLink(parley.OTPLink{}, "K7QM3XPBT4W9H", said)
	media := parley.Media{Key: "k"}
	for _, c := range []parley.Content{
		parley.Text{Body: said, Preview: &parley.Preview{URL: "https://a.example/" + said}},
		parley.Image{Caption: said, Media: media}, parley.Video{Caption: said, Media: media}, parley.File{Caption: said, Media: media},
		parley.Location{Title: said, Latitude: "1", Longitude: "2"}, parley.Poll{Title: said, Options: []string{"a", "b"}},
	} {
		got := maskContent(c, hits)
		if got.Kind() != c.Kind() || got.Text() != "here: ••••••••" {
			t.Errorf("a %s becomes a %s that says %q", c.Kind(), got.Kind(), got.Text())
		}
		if m := parley.MediaIn(got); parley.MediaIn(c) != nil && (m == nil || m.Key != "k") {
			t.Errorf("a %s lost its file", c.Kind())
		}
		if text, ok := got.(parley.Text); ok && text.Preview != nil {
			t.Error("a preview may repeat the code and is still there")
		}
	}
}

func TestSamePrompt(t *testing.T) {
	t.Parallel()
	const prompt = "Log me in to \"Café Ayu\". Code K7QM3XPBT4W9H.\nDon't share."
	for text, want := range map[string]bool{
		prompt: true,
		"log me in to \"café ayu\". code k7qm3xpbt4w9h.\ndon't share.":                       true,
		"LOG ME IN TO \"CAFÉ AYU\". CODE K7QM3XPBT4W9H.\nDON'T SHARE.":                       true,
		"Log me in to \"Cafe\u0301 Ayu\". Code K7QM3XPBT4W9H.\nDon't share.":                 true, // the accent on its own
		"Log me in to “Café Ayu”. Code K7QM3XPBT4W9H.\nDon’t share.":                         true,
		"Log me in to „Café Ayu“. Code K7QM3XPBT4W9H.\nDon´t share.":                         true,
		"  Log  me\tin to\u00a0\"Café Ayu\".  Code K7QM3XPBT4W9H. \r\n Don't share. \u200b ": true,
		"Log me in to \"Cafe Ayu\". Code K7QM3XPBT4W9H.\nDon't share.":                       false, // no accent
		"Log me in to \"Café Ayu\" Code K7QM3XPBT4W9H.\nDon't share.":                        false, // no full stop
		"Log me in to \"Café Ayu\". Code K7QM3XPBT4W9H.\nDont share.":                        false,
		"K7QM3XPBT4W9H":    false,
		"Please " + prompt: false,
		prompt + " ok":     false,
		"Log mein to \"Café Ayu\". Code K7QM3XPBT4W9H.\nDon't share.": false, // a blank is missing
	} {
		if got := samePrompt(text, prompt); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}

func TestIsPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{ // in a line, in lines
		"":                         {true, true},
		"Toko Ayu & Söhne 👍🏽 שלום": {true, true},
		"a\u200fb":                 {true, true}, // a mark, as mixed writing needs it
		"a\nb":                     {false, true},
		"a\tb\r\n":                 {false, true},
		"a\x07b":                   {false, false},
		"a\x1b[31mb":               {false, false},
		"a\x7f":                    {false, false},
		"a\u0085":                  {false, false},
		"a\u202eb":                 {false, false},
		"a\u2066b\u2069":           {false, false},
		"a\u2028b":                 {false, false},
	} {
		if got := [2]bool{IsPlain(text, false), IsPlain(text, true)}; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// FuzzAddresses checks that every text survives in an address.
func FuzzAddresses(f *testing.F) {
	for _, text := range []string{
		"", "Login Toko Ayu K7QM3XPBT4W9H", "a b", "a+b", "a&text=b", "a#b", "100%", "a\nb", "é👍🏽", "a=b;c?d/e\\f",
		"'\"<>`{}|^~", "\u202e", "%20", "##code##",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return // no prompt: texts are valid UTF-8
		}
		for _, address := range []string{
			chatLink("6281100000001", text), appURI("6281100000001", text),
			phoneLink("http://127.0.0.1:7275", "6281234567890@c.us", "demo", text, "otl_1.abc"),
		} {
			u, err := url.Parse(address)
			if err != nil {
				t.Fatalf("%q: %v", address, err)
			}
			if got := u.Query()["text"]; len(got) != 1 || got[0] != text {
				t.Errorf("%q gives %q, want %q", address, got, text)
			}
			encoded := u.RawQuery[strings.Index(u.RawQuery, "text=")+len("text="):]
			if got, err := url.PathUnescape(encoded); err != nil || got != text { // a plus sign is itself here
				t.Errorf("%q reads %q without plus signs as blanks, want %q", address, got, text)
			}
			for _, c := range encoded {
				if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~%", c) {
					t.Errorf("%q holds %q unescaped", address, c)
				}
			}
		}
	})
}
