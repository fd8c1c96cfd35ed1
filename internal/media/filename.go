package media

import (
	"mime"
	"net/http"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName bounds a file's name in bytes, extension included: most file systems accept 255.
const maxName = 200

// nameOf prefers the caller's name, then the server's, then the one in the URL, with an extension that fits.
func nameOf(given string, resp *http.Response, kind string) string {
	if name := safeName(given); name != "" {
		return name
	}
	_, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Disposition"))
	name := safeName(params["filename"])
	if name == "" {
		name = safeName(path.Base(resp.Request.URL.Path))
	}
	if name == "" {
		name = "file"
	}
	if path.Ext(name) == "" {
		name += extensions[bare(kind)]
	}
	return name
}

var extensions = map[string]string{
	"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp", "image/gif": ".gif",
	"video/mp4": ".mp4", "video/3gpp": ".3gp", "video/webm": ".webm", "video/quicktime": ".mov",
	"audio/ogg": ".ogg", "audio/mpeg": ".mp3", "audio/wav": ".wav", "audio/aac": ".aac", "audio/mp4": ".m4a", "audio/flac": ".flac",
	"application/pdf": ".pdf", "application/zip": ".zip", "text/plain": ".txt", "text/html": ".html", "text/csv": ".csv", "application/json": ".json",
}

// safeName removes folders, control characters and direction marks, which hide the true extension. The name is not
// hidden and not too long.
func safeName(name string) string {
	name = strings.ToValidUTF8(name, "")
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || strings.ContainsRune(`<>:"|?*`, r) {
			return -1
		}
		return r
	}, name)
	name = strings.Trim(name, " .")
	if len(name) <= maxName {
		return name
	}
	ext := path.Ext(name)
	if len(ext) > 20 {
		ext = "" // no extension, only a dot somewhere
	}
	stem := name[:maxName-len(ext)]
	for !utf8.ValidString(stem) {
		stem = stem[:len(stem)-1]
	}
	return stem + ext
}
