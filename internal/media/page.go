package media

import (
	"io"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
)

// Lengths at which a preview's texts are cut, in characters: a chat shows a few lines.
const (
	maxTitle       = 200
	maxDescription = 500
)

// page is the metadata in the head of a page.
type page struct {
	title, description, image string
}

func (p page) isEmpty() bool { return p == page{} }

// parsePage reads the head of an HTML page in any encoding. Open Graph metadata wins over the page's title and
// description.
func parsePage(r io.Reader, contentType string) page {
	utf8, err := charset.NewReader(r, contentType)
	if err != nil {
		return page{}
	}
	var own, shared page
	tokens := html.NewTokenizer(utf8)
	tokens.SetMaxBuf(maxPage)
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			break // the end, or the truncation
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		tag := tokens.Token()
		if tag.DataAtom == atom.Body {
			break
		}
		switch {
		case tag.DataAtom == atom.Meta:
			readMeta(tag, &own, &shared)
		case tag.DataAtom == atom.Title && own.title == "" && kind == html.StartTagToken:
			if tokens.Next() == html.TextToken {
				own.title = tokens.Token().Data
			}
		}
	}
	return page{
		title:       firstLine(maxTitle, shared.title, own.title),
		description: firstLine(maxDescription, shared.description, own.description),
		image:       strings.TrimSpace(shared.image),
	}
}

func readMeta(tag html.Token, own, shared *page) {
	var name, content string
	for _, a := range tag.Attr {
		switch a.Key {
		case "property", "name":
			name = strings.ToLower(strings.TrimSpace(a.Val))
		case "content":
			content = a.Val
		}
	}
	into := map[string]*string{
		"og:title": &shared.title, "og:description": &shared.description, "og:image": &shared.image, "og:image:url": &shared.image,
		"description": &own.description,
	}[name]
	if into != nil && *into == "" {
		*into = content
	}
}

// firstLine returns the first non-empty text, on one line and truncated.
func firstLine(limit int, texts ...string) string {
	for _, text := range texts {
		text = strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return ' '
			}
			if unicode.IsControl(r) {
				return -1
			}
			return r
		}, strings.ToValidUTF8(text, "\ufffd"))
		text = strings.Join(strings.Fields(text), " ")
		if runes := []rune(text); len(runes) > limit {
			text = string(runes[:limit-1]) + "…"
		}
		if text != "" {
			return text
		}
	}
	return ""
}
