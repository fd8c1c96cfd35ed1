package media

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"path"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func sha(data []byte) []byte {
	sum := sha256.Sum256(data)
	return sum[:]
}

func TestVideo(t *testing.T) {
	l := open(t)
	film := func(name string, args ...string) []byte {
		return ffmpeg(t, name, append([]string{"-f", "lavfi", "-i", "testsrc=size=64x64:rate=5:duration=1"}, args...)...)
	}
	for name, test := range map[string]struct {
		data []byte
		mime string
	}{
		"a.mp4":  {film("a.mp4", "-c:v", "mpeg4"), "video/mp4"},
		"a.3gp":  {film("a.3gp", "-c:v", "mpeg4"), "video/3gpp"},
		"a.mov":  {film("a.mov", "-c:v", "mpeg4"), "video/quicktime"},
		"a.webm": {film("a.webm", "-c:v", "libvpx", "-deadline", "realtime"), "video/webm"},
	} {
		url := serve(t, map[string][]byte{"/" + name: test.data}) + "/" + name
		m, err := l.Video(t.Context(), Source{URL: url, MIME: "video/avi"})
		if err != nil || m.MIME != test.mime || m.Size != int64(len(test.data)) || !bytes.Equal(m.SHA256, sha(test.data)) ||
			m.Filename != name {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		if err := l.Remove(t.Context(), m.Key); err != nil {
			t.Error(err)
		}
	}
	base := serve(t, map[string][]byte{"/mkv": film("a.mkv", "-c:v", "mpeg4"), "/png": toPNG(t, halves(2, 2)), "/m4a": tone(t, "a.m4a", 1)})
	for path, says := range map[string]string{"/mkv": "gives video/x-matroska, not a video. Send the address of an MP4",
		"/png": "gives image/png", "/m4a": "gives audio/mp4", "/no": "404"} {
		_, err := l.Video(t.Context(), Source{URL: base + path})
		mustRefuse(t, l, err, says)
	}
}

func TestFile(t *testing.T) {
	base := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Disposition", r.URL.Query().Get("disposition"))
		w.Write([]byte(r.URL.Query().Get("content")))
	})
	zip := "?content=PK%03%04"
	for _, test := range []struct {
		path, filename, mime string
		wantName, wantMIME   string
	}{
		{"/report.pdf?content=%25PDF-1.7", "", "", "report.pdf", "application/pdf"},
		{"/report.pdf?content=%25PDF-1.7", "", "text/plain", "report.pdf", "application/pdf"},
		{"/data?content=a", "", "", "data.txt", "text/plain; charset=utf-8"},
		{"/data?content=a", "", "text/csv", "data.csv", "text/csv"},
		{"/data?content=a", "", "text/csv;charset=latin1", "data.csv", "text/csv; charset=latin1"},
		{"/data.csv?content=a", "", "", "data.csv", "text/csv"},
		{"/x" + zip, "Brief.docx", "", "Brief.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"/x" + zip, "", "application/x-mine", "x", "application/x-mine"},
		{"/x" + zip, "", "not a type", "x.zip", "application/zip"},
		{"/x" + zip, "", "evil\r\nX: y/z", "x.zip", "application/zip"},
		{"/x?content=%00%01", "", "", "x", "application/octet-stream"},
		{"/x?content=a&disposition=attachment%3B+filename%3D%22..%2F..%2Fetc%2Fname.txt%22", "", "", "name.txt",
			"text/plain; charset=utf-8"},
		{"/x?content=a&disposition=attachment%3B+filename*%3DUTF-8''%25e2%2582%25ac.txt", "", "", "€.txt", "text/plain; charset=utf-8"},
		{"/x?content=a&disposition=%3B%3B%3B", "", "", "x.txt", "text/plain; charset=utf-8"},
		{"/?content=a", "", "", "file.txt", "text/plain; charset=utf-8"},
		{"/..%2f..%2fpasswd?content=a", "", "", "passwd.txt", "text/plain; charset=utf-8"},
		{"/a%20b.txt?content=a", "", "", "a b.txt", "text/plain; charset=utf-8"},
		{"/a.html?content=<html>", "", "", "a.html", "text/html; charset=utf-8"},
	} {
		l := open(t)
		m, err := l.File(t.Context(), Source{URL: base + test.path, Filename: test.filename, MIME: test.mime})
		if err != nil || m.Filename != test.wantName || m.MIME != test.wantMIME {
			t.Errorf("%s %q %q: %q %q %v, want %q %q", test.path, test.filename, test.mime, m.Filename, m.MIME, err, test.wantName,
				test.wantMIME)
		}
	}
	l := open(t)
	_, err := l.File(t.Context(), Source{URL: base + "/x?content="})
	mustRefuse(t, l, err, "is empty")
}

func TestFileDescribesPictures(t *testing.T) {
	base := serve(t, map[string][]byte{"/a.png": toPNG(t, halves(30, 20)), "/huge.png": hugePNG(t)})
	l := open(t)
	if m, err := l.File(t.Context(), Source{URL: base + "/a.png"}); err != nil || m.Width != 30 || m.Height != 20 || m.Thumbnail == nil {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := l.File(t.Context(), Source{URL: base + "/huge.png"}); err != nil || m.Width != 0 || m.MIME != "image/png" {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestSafeName(t *testing.T) {
	long := strings.Repeat("é", 150)
	for name, want := range map[string]string{
		"a.txt": "a.txt", "../a": "a", `C:\temp\a.txt`: "a.txt", "a/": "", "..": "", ".": "", ".htaccess": "htaccess", " a ": "a",
		"a\x00b\r\n": "ab", "gpj.\u202eexe": "gpj.exe", `a<b>:"|?*c`: "abc", "a\xffb": "ab", "日本語.pdf": "日本語.pdf",
		long + ".pdf": strings.Repeat("é", 98) + ".pdf", "a." + strings.Repeat("x", 300): "a." + strings.Repeat("x", 198),
	} {
		if got := safeName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func FuzzSafeName(f *testing.F) {
	f.Add("../../a.txt")
	f.Add(strings.Repeat("é", 150) + ".x")
	f.Fuzz(func(t *testing.T, name string) {
		got := safeName(name)
		if strings.ContainsAny(got, "/\\\x00") || len(got) > maxName || !utf8.ValidString(got) || strings.HasPrefix(got, ".") ||
			strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%q: %q", name, got)
		}
	})
}

func TestSniff(t *testing.T) {
	for want, data := range map[string]string{
		"audio/ogg; codecs=opus":    "OggS\x00\x02" + strings.Repeat("\x00", 20) + "\x01\x13OpusHead",
		"audio/ogg":                 "OggS\x00\x02" + strings.Repeat("\x00", 20) + "\x01\x1e\x01vorbis",
		"video/ogg":                 "OggS\x00\x02" + strings.Repeat("\x00", 20) + "\x01\x1e\x80theora",
		"application/ogg":           "OggS",
		"audio/flac":                "fLaC\x00",
		"audio/amr":                 "#!AMR\n",
		"audio/wav":                 "RIFF\x00\x00\x00\x00WAVEfmt ",
		"image/webp":                "RIFF\x00\x00\x00\x00WEBPVP8 ",
		"audio/mpeg":                "\xff\xfb\x90\x64",
		"audio/aac":                 "\xff\xf1\x50\x80\x00\x1f\xfc",
		"audio/mp4":                 "\x00\x00\x00\x20ftypM4A ",
		"video/mp4":                 "\x00\x00\x00\x20ftypisom",
		"video/3gpp":                "\x00\x00\x00\x20ftyp3gp4",
		"video/quicktime":           "\x00\x00\x00\x08wide\x00\x00\x00\x00mdat",
		"image/avif":                "\x00\x00\x00\x20ftypavif",
		"video/x-matroska":          "\x1aE\xdf\xa3\x01matroska",
		"video/webm":                "\x1aE\xdf\xa3\x01webm V_VP8 A_OPUS",
		"audio/webm":                "\x1aE\xdf\xa3\x01webm A_OPUS \x1fC\xb6u sound that happens to have V_ in it",
		"image/svg+xml":             "\n<svg>",
		"text/html; charset=utf-8":  "<html><svg>",
		"text/plain; charset=utf-8": "\xef\xbb\xbfhello",
		"application/octet-stream":  "\xff\x00\xff\xff\xff\xff\xff",
	} {
		if got := sniff([]byte(data)); got != want {
			t.Errorf("%q: %s, want %s", data, got, want)
		}
	}
}

// Whatever a file begins with, and whatever it claims to be, telling what it is ends well.
func FuzzSniff(f *testing.F) {
	for _, data := range [][]byte{toPNG(f, halves(4, 4)), toJPEG(f, halves(4, 4)), toGIF(f, halves(4, 4)), []byte("OggS"),
		[]byte("RIFF\x00\x00\x00\x00WEBPVP8X"), []byte("\x00\x00\x00\x20ftypM4A ")} {
		f.Add(data)
	}
	f.Add(withOrientation(toJPEG(f, halves(4, 4)), 6, binary.BigEndian))
	f.Fuzz(func(t *testing.T, data []byte) {
		kind := sniff(data[:min(len(data), sniffLen)])
		if path.Dir(bare(kind)) == "." {
			t.Errorf("%q is no type", kind)
		}
		if !isPicture(kind) {
			return
		}
		img, size, err := readPicture(t.Context(), bytes.NewReader(data), kind, 1_000_000)
		if err != nil {
			return
		}
		if !fits(size.X, size.Y, 1_000_000) {
			t.Errorf("%v is too large", size)
		}
		thumb, err := thumbnail(img, orientation(bytes.NewReader(data), kind), thumbnailSize, thumbnailSize)
		if err != nil || max(thumb.width, thumb.height) > thumbnailSize {
			t.Errorf("thumbnail %dx%d, %v", thumb.width, thumb.height, err)
		}
	})
}
