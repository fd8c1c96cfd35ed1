package api

import (
	"encoding/json"
	"net/http"

	"parley/internal/asset"
)

// servePairPage serves the page where the owner of a number links it to a channel, in the viewer's language. Its script
// uses the ticket in the URL fragment, which browsers do not send.
func servePairPage() http.Handler {
	words := readPageWords("pair/words.json")
	page := asset.Page(mustRead("pair/page.html"))
	pages := map[string][]byte{}
	for language := range words {
		text, err := page.Fill(words.values(language))
		if err != nil {
			panic(err) // the files are embedded
		}
		pages[language] = text
	}
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		setPageHeaders(w.Header())
		w.Header().Set("Vary", "Accept-Language")
		w.Write(pages[words.language(hr)]) // the only error is a closed connection
	})
}

// pageWords are the texts of a public page, by language.
type pageWords map[string]map[string]string

func readPageWords(file string) pageWords {
	var words pageWords
	if err := json.Unmarshal(mustRead(file), &words); err != nil {
		panic(err) // the file is embedded
	}
	return words
}

// values are the texts of a language for the places of the page, and all of them as JSON for its script.
func (w pageWords) values(language string) map[string]string {
	text, _ := json.Marshal(w[language]) // they were JSON before
	values := map[string]string{"Language": language, "JSON": string(text)}
	for name, word := range w[language] {
		values["Words."+name] = word
	}
	return values
}

func (w pageWords) of(hr *http.Request) map[string]string { return w[w.language(hr)] }

// pageLanguages are the languages of public pages; the first is the default.
var pageLanguages = []string{"en", "id", "pt-BR"}

func (w pageWords) language(hr *http.Request) string { return asset.Language(hr, pageLanguages) }
