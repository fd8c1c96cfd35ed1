// Package squeeze takes out of scripts and style sheets what only people read: comments, indentation and
// needless blanks. It renames nothing and moves nothing. A file that it cannot read it leaves as it is.
package squeeze

import (
	"bytes"
	"strings"
)

// JS squeezes a script. Statements stay on lines of their own, so that a browser's report of an error
// still says where it was.
func JS(src []byte) []byte {
	s := script{src: src, out: make([]byte, 0, len(src))}
	if !s.code(false) {
		return src
	}
	return s.out
}

// script is a file that is being read and written.
type script struct {
	src []byte
	at  int // what comes next in src
	out []byte
}

// code reads and writes up to the end of the file, or up to the brace that ends what a template inserts.
// It reports whether it understood everything.
func (s *script) code(inserted bool) bool {
	var last token
	var open []token // brackets that are not closed yet; head says that the matching one ends a head
	for {
		between, ok := s.skip()
		if !ok {
			return false
		}
		if s.at == len(s.src) {
			return !inserted && len(open) == 0
		}
		if inserted && len(open) == 0 && s.src[s.at] == '}' {
			return true
		}
		next, ok := s.look(last)
		if !ok {
			return false
		}
		if next.kind == sign {
			switch c := next.text[0]; c {
			case '(', '[', '{':
				open = append(open, token{text: next.text, head: c == '(' && last.heads()})
			case ')', ']', '}':
				if len(open) == 0 || closing[open[len(open)-1].text[0]] != c {
					return false
				}
				next.head = open[len(open)-1].head
				open = open[:len(open)-1]
			}
		}
		s.out = append(s.out, separator(last, between, next)...)
		if next.text[0] == '`' {
			if !s.template(last.kind == word && !last.member && string(last.text) == "html") {
				return false
			}
		} else {
			s.out = append(s.out, next.text...)
			s.at += len(next.text)
		}
		last = next
	}
}

var closing = map[byte]byte{'(': ')', '[': ']', '{': '}'}

// skip passes over blanks and comments.
func (s *script) skip() (between gap, ok bool) {
	for s.at < len(s.src) {
		rest := s.src[s.at:]
		length := 1
		switch {
		case rest[0] == '\n' || rest[0] == '\r':
			between = line
		case rest[0] == ' ' || rest[0] == '\t':
			between = max(between, blank)
		case rest[0] != '/':
			return between, true
		case bytes.HasPrefix(rest, []byte("//")):
			if length = bytes.IndexAny(rest, "\n\r\u2028\u2029"); length < 0 {
				length = len(rest)
			}
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest[2:], []byte("*/"))
			if end < 0 {
				return between, false
			}
			length = 2 + end + 2
			between = max(between, blank)
			if bytes.ContainsAny(rest[:length], "\n\r\u2028\u2029") {
				between = line
			}
		default:
			return between, true
		}
		s.at += length
	}
	return between, true
}

// look finds the token that comes next; of a template, its first quote.
func (s *script) look(last token) (next token, ok bool) {
	rest := s.src[s.at:]
	length := 1
	switch c := rest[0]; {
	case digit(c), c == '.' && len(rest) > 1 && digit(rest[1]):
		next.kind = word
		for length < len(rest) && (wordly(rest[length]) || rest[length] == '.') {
			length++
		}
	case wordly(c):
		next.kind, next.member = word, last.is('.')
		for length < len(rest) && wordly(rest[length]) {
			length++
		}
	case c == '`':
		next.kind = text
	case c == '"' || c == '\'':
		next.kind, length = text, literal(rest)
	case c == '/' && last.wantsValue():
		next.kind, length = regexp, literal(rest)
		for 0 < length && length < len(rest) && wordly(rest[length]) {
			length++
		}
	case strings.IndexByte("{}()[];,<>+-*/%&|^!~?:=.", c) >= 0:
		next.kind = sign
		if (c == '+' || c == '-') && len(rest) > 1 && rest[1] == c {
			length = 2
		}
	default: // a sign that our scripts do not use
		return next, false
	}
	if length < 0 {
		return next, false
	}
	next.text = rest[:length]
	return next, true
}

// literal returns the length of a string or of a regular expression without its flags; -1 if it has no
// end on its line.
func literal(src []byte) int {
	class := false // in a class of a regular expression a slash is a slash
	for i := 1; i < len(src); i++ {
		switch c := src[i]; {
		case c == '\n' || c == '\r':
			return -1
		case c == '\\':
			if i++; bytes.HasPrefix(src[i:], []byte("\r\n")) {
				i++
			}
		case src[0] == '/' && (c == '[' || c == ']'):
			class = c == '['
		case c == src[0] && !class:
			return i + 1
		}
	}
	return -1
}

// template reads and writes a template literal. One that is markup is squeezed as htm reads it.
func (s *script) template(isMarkup bool) bool {
	m := markup{asItIs: !isMarkup}
	s.out = append(s.out, '`')
	s.at++
	for start := s.at; s.at < len(s.src); s.at++ {
		switch s.src[s.at] {
		case '\\':
			s.at++
		case '`':
			s.out = m.append(s.out, s.src[start:s.at])
			s.out = append(s.out, '`')
			s.at++
			return true
		case '$':
			if !bytes.HasPrefix(s.src[s.at:], []byte("${")) {
				continue
			}
			s.out = append(m.append(s.out, s.src[start:s.at]), "${"...)
			s.at += 2
			if !s.code(true) {
				return false
			}
			s.out = append(s.out, '}')
			start = s.at + 1
		}
	}
	return false
}
