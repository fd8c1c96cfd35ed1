package media

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"parley/internal/safehttp"
)

// servePages serves the pages and pictures of TestPreview.
func servePages(t *testing.T) (base string) {
	noise := image.NewRGBA(image.Rect(0, 0, 450, 450))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise.Pix {
		noise.Pix[i] = byte(random.Uint32())
	}
	pages := map[string]string{
		"/full": `<html><head><title>Own</title><meta property="og:title" content=" Shared&amp;  title ">` +
			`<meta property="og:description" content="What it is"><meta property="og:image" content="/pictures/a.png"></head>` +
			`<body><meta property="og:title" content="no">`,
		"/plain":    "<title>\n Just a\ttitle </title><meta name=description content='A page'>",
		"/latin":    "<meta charset=iso-8859-1><title>Caf\xe9</title>",
		"/invalid":  "<title>a\xff\xfeb</title>",
		"/empty":    "<html><head></head><body>text</body>",
		"/noimage":  `<title>t</title><meta property="og:image" content="/none.png">`,
		"/private":  `<title>t</title><meta property="og:image" content="http://169.254.169.254/a.png">`,
		"/htmlpic":  `<title>t</title><meta property="og:image" content="/plain">`,
		"/hugepic":  `<title>t</title><meta property="og:image" content="/huge.png">`,
		"/noise":    `<title>t</title><meta property="og:image" content="/noise.jpg">`,
		"/onlydesc": `<meta property="og:description" content="d">`,
		"/long":     "<title>" + strings.Repeat("ü", 1000) + "</title>",
		"/big":      "<title>early</title>" + strings.Repeat("<script>x</script>", 1<<17) + "<meta property='og:title' content='too late'>",
		"/script":   `<script>"<title>no</title>"</script><title>yes</title>`,
	}
	noisy := toJPEG(t, noise)
	picture := toPNG(t, halves(800, 400))
	return serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/pictures/a.png":
			w.Write(picture)
		case "/huge.png":
			w.Write(hugePNG(t))
		case "/noise.jpg":
			w.Write(noisy)
		case "/json":
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte("<title>no</title>"))
		case "/moved":
			http.Redirect(w, r, "/full", http.StatusMovedPermanently)
		case "/slow":
			<-r.Context().Done()
		default:
			text, ok := pages[r.URL.Path]
			if !ok {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			w.Write([]byte(text))
		}
	})
}

func TestPreview(t *testing.T) {
	l, base := open(t), servePages(t)
	for _, test := range []struct {
		path               string
		title, description string
		picture            bool
	}{
		{"/full", "Shared& title", "What it is", true}, {"/moved", "Shared& title", "What it is", true},
		{"/plain", "Just a title", "A page", false}, {"/latin", "Café", "", false}, {"/noimage", "t", "", false},
		{"/private", "t", "", false},
		{"/htmlpic", "t", "", false}, {"/hugepic", "t", "", false}, {"/noise", "t", "", true}, {"/onlydesc", "127.0.0.1", "d", false},
		{"/long", strings.Repeat("ü", 199) + "…", "", false}, {"/big", "early", "", false}, {"/script", "yes", "", false},
	} {
		link := base + test.path
		p := l.Preview(t.Context(), "Look: "+link+"!", true, nil)
		if p == nil {
			t.Errorf("%s: no preview", test.path)
			continue
		}
		if p.URL != link || p.Title != test.title || p.Description != test.description || (p.Thumbnail != nil) != test.picture {
			t.Errorf("%s: %q %q %q, thumbnail of %d bytes", test.path, p.URL, p.Title, p.Description, len(p.Thumbnail))
		}
		if len(p.Thumbnail) > 64<<10 {
			t.Errorf("%s: a thumbnail of %d bytes", test.path, len(p.Thumbnail))
		}
	}
	if p := l.Preview(t.Context(), base+"/invalid", true, nil); p == nil || !utf8.ValidString(p.Title) {
		t.Errorf("invalid bytes: %+v", p)
	}
	for _, text := range []string{"no link", base + "/empty", base + "/json", base + "/404", "http://10.0.0.1/", "ftp://a.example/",
		"http://127.0.0.1:1/"} {
		if p := l.Preview(t.Context(), text, true, nil); p != nil {
			t.Errorf("%s: %+v, want none", text, p)
		}
	}
	for high, width := range map[bool]int{true: 400, false: 100} {
		p := l.Preview(t.Context(), base+"/full", high, nil)
		c, err := jpeg.DecodeConfig(bytes.NewReader(p.Thumbnail))
		if err != nil || c.Width != width || c.Height != width/2 || p.Width != c.Width || p.Height != c.Height {
			t.Errorf("high quality %t: %dx%d (%dx%d), %v", high, c.Width, c.Height, p.Width, p.Height, err)
		}
	}
}

func TestPreviewDoesNotWait(t *testing.T) {
	base := serveFunc(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	l := open(t)
	l.fetcher = loopback.Client(safehttp.Options{Timeout: 100 * time.Millisecond})
	if p := l.Preview(t.Context(), base, true, nil); p != nil {
		t.Errorf("%+v", p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p := l.Preview(ctx, base, true, nil); p != nil {
		t.Errorf("%+v", p)
	}
}

func TestFirstLink(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"no link at all":                  "",
		"see https://example.com/a.":      "https://example.com/a",
		"(https://example.com/a_(b))":     "https://example.com/a_(b)",
		"<https://example.com/a>":         "https://example.com/a",
		"\"http://example.com\", he said": "http://example.com",
		"HTTP://EXAMPLE.COM/X":            "HTTP://EXAMPLE.COM/X",
		"two: http://one.example http://two.example": "http://one.example",
		"ftp://x.example then https://y.example?!":   "https://y.example",
		"http:// then http://ok.example":             "http://ok.example",
		"http://u:p@x.example http://ok.example":     "http://ok.example",
		"*https://example.com/bold*":                 "https://example.com/bold",
		"日本語https://example.com/道":                   "https://example.com/道",
		"xhttp://example.com":                        "",
		"www.example.com":                            "",
		"http://" + strings.Repeat("a", 3000):        "",
	} {
		if got := firstLink(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzPage(f *testing.F) {
	f.Add("<title>t</title><meta property='og:image' content='/a.png'>", "text/html; charset=latin1", "see https://example.com/a.")
	f.Add("<meta charset=shift_jis><title>\x83e</title><body>", "", "(http://a.example/(b))")
	f.Fuzz(func(t *testing.T, text, kind, message string) {
		p := parsePage(strings.NewReader(text), kind)
		for _, s := range []string{p.title, p.description} {
			if !utf8.ValidString(s) || strings.ContainsAny(s, "\n\r\x00") || utf8.RuneCountInString(s) > maxDescription {
				t.Errorf("%q", s)
			}
		}
		if link := firstLink(message); link != "" && !strings.Contains(message, link) {
			t.Errorf("%q is not in %q", link, message)
		}
	})
}
