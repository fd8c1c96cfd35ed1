package media

import (
	"bytes"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
)

// sniffLen is how many first bytes identify a file. The codecs of a WebM file are among them.
const sniffLen = 4 << 10

const (
	mimeOpus = "audio/ogg; codecs=opus" // without the codec, WhatsApp accepts a voice note but never delivers it
	mimeAny  = "application/octet-stream"
)

// sniff detects a media type by the first bytes. The standard library detects what browsers need; this adds the rest.
func sniff(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("OggS")):
		return sniffOgg(head)
	case bytes.HasPrefix(head, []byte("fLaC")):
		return "audio/flac"
	case bytes.HasPrefix(head, []byte("#!AMR")):
		return "audio/amr"
	case bytes.HasPrefix(head, []byte("\x1aE\xdf\xa3")):
		return sniffMatroska(head)
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WAVE":
		return "audio/wav"
	case len(head) >= 12 && string(head[4:8]) == "ftyp":
		return sniffMP4(string(head[8:12]))
	case len(head) >= 8 && slices.Contains([]string{"moov", "mdat", "wide"}, string(head[4:8])): // from before "ftyp"
		return "video/quicktime"
	case isMPEGAudio(head):
		return "audio/mpeg"
	case isADTS(head):
		return "audio/aac"
	}
	detected := http.DetectContentType(head)
	if (strings.HasPrefix(detected, "text/plain") || strings.HasPrefix(detected, "text/xml")) &&
		bytes.Contains(bytes.ToLower(head), []byte("<svg")) {
		return "image/svg+xml"
	}
	return detected
}

// sniffOgg looks at the first packet of the first stream, which names its codec.
func sniffOgg(head []byte) string {
	const headerLen = 27
	if len(head) <= headerLen {
		return "application/ogg"
	}
	first := head[min(len(head), headerLen+int(head[headerLen-1])):]
	switch {
	case bytes.HasPrefix(first, []byte("OpusHead")):
		return mimeOpus
	case bytes.HasPrefix(first, []byte("\x01vorbis")), bytes.HasPrefix(first, []byte("\x7fFLAC")),
		bytes.HasPrefix(first, []byte("Speex   ")):
		return "audio/ogg"
	case bytes.HasPrefix(first, []byte("\x80theora")), bytes.HasPrefix(first, []byte("fishead")):
		return "video/ogg"
	}
	return "application/ogg"
}

// sniffMatroska looks for the codecs, which are named before the first cluster of sound and pictures:
// behind that, any letters come up by chance.
func sniffMatroska(head []byte) string {
	head, _, _ = bytes.Cut(head, []byte("\x1f\x43\xb6\x75"))
	switch {
	case !bytes.Contains(head, []byte("webm")):
		return "video/x-matroska"
	case bytes.Contains(head, []byte("A_OPUS")) && !bytes.Contains(head, []byte("V_")):
		return mimeWebM
	}
	return "video/webm"
}

func sniffMP4(brand string) string {
	switch {
	case brand == "M4A " || brand == "M4B ":
		return "audio/mp4"
	case brand == "qt  ":
		return "video/quicktime"
	case strings.HasPrefix(brand, "3gp"), strings.HasPrefix(brand, "3g2"):
		return "video/3gpp"
	case brand == "heic" || brand == "heix" || brand == "mif1" || brand == "msf1":
		return "image/heic"
	case brand == "avif" || brand == "avis":
		return "image/avif"
	}
	return "video/mp4"
}

func isMPEGAudio(head []byte) bool {
	if bytes.HasPrefix(head, []byte("ID3")) {
		return true
	}
	if len(head) < 4 || head[0] != 0xff || head[1]&0xe0 != 0xe0 {
		return false
	}
	version, layer := head[1]>>3&3, head[1]>>1&3
	bitrate, rate := head[2]>>4, head[2]>>2&3
	return version != 1 && layer != 0 && bitrate != 0 && bitrate != 15 && rate != 3
}

func isADTS(head []byte) bool {
	return len(head) >= 7 && head[0] == 0xff && head[1]&0xf6 == 0xf0 && head[2]>>2&15 < 13
}

// isGeneric reports whether a type says so little that the caller's word or the name's extension
// says more.
func isGeneric(sniffed string) bool {
	return slices.Contains([]string{mimeAny, "text/plain", "text/xml", "application/zip", "application/ogg"}, bare(sniffed))
}

// byExtension has the types of documents that begin like any text or archive.
var byExtension = map[string]string{
	".csv": "text/csv", ".md": "text/markdown", ".json": "application/json", ".ics": "text/calendar", ".vcf": "text/vcard",
	".xml": "application/xml", ".yaml": "application/yaml", ".yml": "application/yaml",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".odt":  "application/vnd.oasis.opendocument.text", ".ods": "application/vnd.oasis.opendocument.spreadsheet",
	".doc": "application/msword", ".xls": "application/vnd.ms-excel", ".ppt": "application/vnd.ms-powerpoint",
	".epub": "application/epub+zip", ".apk": "application/vnd.android.package-archive", ".zip": "application/zip",
}

// IsChecked reports whether a file has a type of pictures, sounds or films only if its content says so. Browsers may show it.
func IsChecked(kind string) bool {
	return isPicture(kind) || films[kind] || slices.Contains([]string{"audio/ogg", "audio/mpeg", "audio/mp4", "audio/aac", "audio/wav",
		"audio/flac", "audio/amr", mimeWebM}, kind)
}

func documentType(sniffed, given, name string) string {
	if !isGeneric(sniffed) {
		return sniffed
	}
	if kind, params, err := mime.ParseMediaType(given); err == nil && strings.Contains(kind, "/") && !IsChecked(kind) {
		return mime.FormatMediaType(kind, params)
	}
	if kind, ok := byExtension[strings.ToLower(path.Ext(name))]; ok {
		return kind
	}
	return sniffed
}

func bare(kind string) string {
	kind, _, _ = strings.Cut(kind, ";")
	return kind
}
