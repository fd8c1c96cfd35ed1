package squeeze

import "bytes"

// markup is a template for htm, of which it knows no more than where white space means nothing. htm
// drops what has a line break in it at either end of a text, and takes a run of it in a tag for one blank.
type markup struct {
	tag   bool // between < and >
	quote byte // in a value, the quote that ends it
	// asItIs is for what is no markup, and from where on it is not read as htm would.
	asItIs bool
}

// append adds a piece of a template, which ends at what is inserted or at the template's end.
func (m *markup) append(out, piece []byte) []byte {
	// An escape can be anything, a space too, and in a comment htm counts nothing.
	if m.asItIs || bytes.ContainsAny(piece, "\\\r") || bytes.Contains(piece, []byte("!--")) {
		m.asItIs = true
		return append(out, piece...)
	}
	for len(piece) > 0 {
		if m.tag {
			out, piece = m.appendTag(out, piece)
			continue
		}
		words, rest := piece, []byte(nil)
		if i := bytes.IndexByte(piece, '<'); i >= 0 {
			words, rest = piece[:i], piece[i+1:]
			m.tag = true
		}
		out = appendText(out, words)
		if m.tag {
			out = append(out, '<')
		}
		piece = rest
	}
	return out
}

// appendText adds a text: all that stands between two tags or things that are inserted.
func appendText(out, words []byte) []byte {
	inner := bytes.TrimLeft(words, " \t\n")
	if lead := words[:len(words)-len(inner)]; bytes.IndexByte(lead, '\n') < 0 {
		out = append(out, lead...)
	} else if len(inner) > 0 && spacy(inner[0]) {
		out = append(out, '\n')
	}
	words = bytes.TrimRight(inner, " \t\n")
	out = append(out, words...)
	if trail := inner[len(words):]; bytes.IndexByte(trail, '\n') < 0 {
		out = append(out, trail...)
	} else if spacy(words[len(words)-1]) {
		out = append(out, '\n')
	}
	return out
}

// spacy reports whether a byte may belong to a space that is none to us. htm drops such a one too, if it
// is at a line break: the line break stays.
func spacy(c byte) bool { return c < ' ' || c >= 0x80 }

// appendTag adds a tag up to the end of it or of the piece.
func (m *markup) appendTag(out, piece []byte) (added, rest []byte) {
	for i := 0; i < len(piece); i++ {
		c := piece[i]
		switch {
		case m.quote != 0:
			if c == m.quote {
				m.quote = 0
			}
		case c == '"' || c == '\'':
			m.quote = c
		case c == '>':
			m.tag = false
			return append(out, c), piece[i+1:]
		case c == ' ' || c == '\t' || c == '\n':
			after := bytes.TrimLeft(piece[i:], " \t\n")
			i = len(piece) - len(after) - 1
			ends := bytes.HasPrefix(after, []byte(">")) || bytes.HasPrefix(after, []byte("/>"))
			if ends && out[len(out)-1] != '<' { // "< />" is something else than "</>"
				continue
			}
			c = ' '
		}
		out = append(out, c)
	}
	return out, nil
}
