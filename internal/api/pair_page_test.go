package api

import (
	"encoding/json"
	"html"
	"maps"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPairWords holds the languages of the page to each other, and to what uses their sentences.
func TestPairWords(t *testing.T) {
	words := readPageWords("pair/words.json")
	if len(words) != 3 {
		t.Errorf("%d languages", len(words))
	}
	var used strings.Builder
	for _, file := range []string{"pair/page.html", "pair/pair.js", "pairing.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		used.Write(text)
	}
	keys := slices.Sorted(maps.Keys(words["en"]))
	holes := regexp.MustCompile(`\{\w+\}`)
	for language, own := range words {
		if got := slices.Sorted(maps.Keys(own)); !slices.Equal(got, keys) {
			t.Errorf("%s has other sentences than en:\n%v\n%v", language, got, keys)
		}
		for key, text := range own {
			english := words["en"][key]
			wants, gets := holes.FindAllString(english, -1), holes.FindAllString(text, -1)
			slices.Sort(wants)
			slices.Sort(gets)
			if text == "" || !slices.Equal(wants, gets) || strings.Count(text, "|") != strings.Count(english, "|") {
				t.Errorf("%s: %s is %q, in English %q", language, key, text, english)
			}
		}
	}
	for _, key := range keys {
		if !regexp.MustCompile(`(words\.|Words\.|words\["|fill\(")` + key + `\b`).MatchString(used.String()) {
			t.Errorf("nobody says %s", key)
		}
	}
	for _, found := range regexp.MustCompile(`(?:words\.|Words\.|words\["|fill\(")(\w+)`).FindAllStringSubmatch(used.String(), -1) {
		if _, there := words["en"][found[1]]; !there && found[1] != "of" {
			t.Errorf("there is no sentence %s", found[1])
		}
	}
}

// TestPairPageCarriesItsWords reads the sentences back from the page, as its script does.
func TestPairPageCarriesItsWords(t *testing.T) {
	request := httptest.NewRequest("GET", "/pair", nil)
	request.Header.Set("Accept-Language", "id")
	response := httptest.NewRecorder()
	servePairPage().ServeHTTP(response, request)
	page := response.Body.String()
	found := regexp.MustCompile(`data-words="([^"]*)"`).FindStringSubmatch(page)
	if found == nil {
		t.Fatal(page)
	}
	var words map[string]string
	if err := json.Unmarshal([]byte(html.UnescapeString(found[1])), &words); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(words, readPageWords("pair/words.json")["id"]) {
		t.Errorf("the page carries %v", words)
	}
}

func TestDrawQR(t *testing.T) {
	rows, err := drawQR(strings.Repeat("x", 232))
	if err != nil || len(rows) != 57 {
		t.Errorf("a code of 232 bytes has %d rows, %v", len(rows), err)
	}
	if _, err := drawQR(strings.Repeat("x", 5000)); err == nil {
		t.Error("a text that is too long was drawn")
	}
}
