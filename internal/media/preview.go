package media

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"parley"
	"parley/internal/safehttp"
)

const (
	maxPage          = 1 << 20
	maxPreviewImage  = 1 << 20
	maxPreviewPixels = 16_000_000 // the text waits while they are decoded
	previewLarge     = 400        // pixels wide, in high quality
	previewSmall     = thumbnailSize
	maxPreviewJPEG   = 64 << 10 // it travels inside the message
)

// Preview returns the preview of the first link in a text, or nil. It takes at most three seconds and never fails.
// onRead gets the number of bytes read; may be nil.
func (l *Library) Preview(ctx context.Context, text string, highQuality bool, onRead func(n int)) *parley.Preview {
	link := firstLink(text)
	if link == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, previewTimeout)
	defer cancel()
	p, at, err := l.readPage(ctx, link, onRead)
	if err != nil || p.isEmpty() {
		return nil
	}
	preview := &parley.Preview{URL: link, Title: p.title, Description: p.description}
	if preview.Title == "" {
		preview.Title = at.Hostname()
	}
	width := previewSmall
	if highQuality {
		width = previewLarge
	}
	if picture, err := l.previewPicture(ctx, at, p.image, width, onRead); err == nil {
		preview.Thumbnail, preview.Width, preview.Height = picture.jpeg, picture.width, picture.height
	}
	return preview
}

func firstLink(text string) string {
	for _, link := range safehttp.Links(text) {
		if _, err := safehttp.CheckURL(link); err == nil {
			return link
		}
	}
	return ""
}

func (l *Library) readPage(ctx context.Context, link string, onRead func(n int)) (page, *url.URL, error) {
	resp, err := l.fetcher.Get(ctx, link)
	if err != nil {
		return page{}, nil, err
	}
	defer resp.Body.Close()
	kind := resp.Header.Get("Content-Type")
	body := io.LimitReader(countReads(resp.Body, onRead), maxPage)
	if kind == "" {
		head := make([]byte, 512)
		n, _ := io.ReadFull(body, head)
		kind = http.DetectContentType(head[:n])
		body = io.MultiReader(bytes.NewReader(head[:n]), body)
	}
	if !strings.Contains(strings.ToLower(kind), "html") {
		return page{}, nil, errors.New("not an HTML page")
	}
	return parsePage(body, kind), resp.Request.URL, nil
}

func (l *Library) previewPicture(ctx context.Context, at *url.URL, address string, width int, onRead func(n int)) (small, error) {
	if address == "" {
		return small{}, errors.New("no picture")
	}
	u, err := at.Parse(address)
	if err != nil {
		return small{}, err
	}
	resp, err := l.fetcher.Get(ctx, u.String())
	if err != nil {
		return small{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(countReads(resp.Body, onRead), maxPreviewImage+1))
	if err != nil {
		return small{}, err
	}
	if len(data) > maxPreviewImage {
		return small{}, errors.New("picture too large")
	}
	var picture small
	err = l.work(ctx, l.decoding, func() error {
		r, kind := bytes.NewReader(data), sniff(data[:min(len(data), sniffLen)])
		img, _, err := readPicture(ctx, r, kind, maxPreviewPixels)
		if err != nil {
			return err
		}
		turn := orientation(r, kind)
		for ; ; width = width * 3 / 4 { // noise compresses badly: rather smaller than too heavy
			if picture, err = thumbnail(img, turn, width, 2*width); err != nil || len(picture.jpeg) <= maxPreviewJPEG {
				return err
			}
		}
	})
	return picture, err
}

// Lengths at which a preview's texts are cut, in characters: a chat shows a few lines.
const (
	maxTitle       = 200
	maxDescription = 500
)

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
			if unicode.IsControl(r) && !unicode.IsSpace(r) {
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
