package squeeze

import (
	"bytes"
	"strings"
)

// CSS squeezes a style sheet.
func CSS(src []byte) []byte {
	out := make([]byte, 0, len(src))
	for at := 0; at < len(src); {
		between, length := space(src[at:])
		if length < 0 {
			return src
		}
		if at += length; at == len(src) {
			break
		}
		c := src[at]
		end := at + 1
		switch c {
		case '"', '\'':
			if length = literal(src[at:]); length < 0 {
				return src
			}
			end = at + length
		case '\\': // a blank after it may be part of it
			return src
		}
		if len(out) > 0 && strings.IndexByte("{};,>(:", out[len(out)-1]) < 0 && strings.IndexByte("{};,>)!", c) < 0 {
			out = append(out, between...)
		}
		out = append(out, src[at:end]...)
		at = end
	}
	return out
}

// space finds what stands before the next token: how long it is, and what means the same. The length is
// -1 if a comment has no end.
func space(src []byte) (same string, length int) {
	for length < len(src) {
		rest := src[length:]
		switch {
		case strings.IndexByte(" \t\n\r\f", rest[0]) >= 0:
			same = " "
			length++
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest[2:], []byte("*/"))
			if end < 0 {
				return "", -1
			}
			if same == "" {
				same = "/**/" // what it parts is not two words, and not one either
			}
			length += 2 + end + 2
		default:
			return same, length
		}
	}
	return same, length
}
