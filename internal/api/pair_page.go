package api

import (
	"bytes"
	"encoding/json"
	"html/template"
	"net/http"

	"parley/internal/asset"
)

// servePairPage serves the page where the owner of a number links it to a channel, in the viewer's language. Its script
// uses the ticket in the URL fragment, which browsers do not send.
func servePairPage() http.Handler {
	words := readPairWords()
	page := template.Must(template.ParseFS(embedded, "pair/page.html"))
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
		setPageHeaders(w.Header())
		w.Header().Set("Vary", "Accept-Language")
		w.Write(pages[words.language(hr)]) // the only error is a closed connection
	})
}

type pairWords map[string]map[string]string

func readPairWords() pairWords {
	var words pairWords
	if err := json.Unmarshal(mustRead("pair/words.json"), &words); err != nil {
		panic(err) // the file is embedded
	}
	return words
}

func (w pairWords) of(hr *http.Request) map[string]string { return w[w.language(hr)] }

// pairLanguages are the languages of the page; the first is the default.
var pairLanguages = []string{"en", "id", "pt-BR"}

func (w pairWords) language(hr *http.Request) string { return asset.Language(hr, pairLanguages) }
