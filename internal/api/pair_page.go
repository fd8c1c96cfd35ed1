package api

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"

	"parley/internal/asset"
)

// The page at /pair, where the owner of a number links it to a channel. Its script uses the ticket in the URL
// fragment, which browsers do not send.
//
//go:embed pair/page.html pair/pair.js pair/pair.css pair/words.json
var pairFiles embed.FS

// servePairPage serves the page in the viewer's language.
func servePairPage() http.Handler {
	words := readPairWords()
	page := template.Must(template.ParseFS(pairFiles, "pair/page.html"))
	pages := map[string][]byte{}
	for language, of := range words {
		text, err := json.Marshal(of)
		var b bytes.Buffer
		if err == nil {
			err = page.Execute(&b, map[string]any{"Language": language, "Words": of, "JSON": string(text)})
		}
		if err != nil {
			panic(err) // the files are embedded
		}
		pages[language] = b.Bytes()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", phonePolicy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Vary", "Accept-Language")
		w.Write(pages[words.language(hr)]) // the only error is a closed connection
	})
}

func servePairFile(name, contentType string) http.Handler {
	body, err := pairFiles.ReadFile("pair/" + name)
	if err != nil {
		panic(err) // the files are embedded
	}
	return newAsset(contentType, body)
}

// pairWords are the sentences of the page, by language and name.
type pairWords map[string]map[string]string

func readPairWords() pairWords {
	var words pairWords
	text, err := pairFiles.ReadFile("pair/words.json")
	if err == nil {
		err = json.Unmarshal(text, &words)
	}
	if err != nil {
		panic(err) // the files are embedded
	}
	return words
}

func (w pairWords) of(hr *http.Request) map[string]string { return w[w.language(hr)] }

// pairLanguages are the languages of the page; the first is the default.
var pairLanguages = []string{"en", "id", "pt-BR"}

func (w pairWords) language(hr *http.Request) string { return asset.Language(hr, pairLanguages) }
