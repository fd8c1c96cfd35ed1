package squeeze

import "strings"

type kind byte

const (
	none   kind = iota // before the first token
	word               // a name, a keyword or a number
	text               // a string or a template
	regexp             // with its flags
	sign               // all else: one byte, or ++ or --
)

// token is what was read last; what it was decides how the next one is read and whether they stay apart.
type token struct {
	kind kind
	text []byte
	// member is a name after a dot, which is never a keyword.
	member bool
	// head is the parenthesis that ends the head of an if or a loop: a statement follows.
	head bool
}

// gap is what stands between two tokens.
type gap byte

const (
	nothing gap = iota
	blank
	line // a blank with a line break in it, which can end a statement
)

// separator says what must stand between two tokens that had something between them.
func separator(last token, between gap, next token) string {
	first := next.text[0]
	switch {
	case last.kind == none || between == nothing:
		return ""
	case between == line && !last.goesOn() && !next.continues():
		return "\n"
	case (last.kind == word || last.kind == regexp) && next.kind == word,
		last.kind == word && digit(last.text[0]) && first == '.', // 1 .toFixed()
		last.is('.') && digit(first),
		last.is('+') && first == '+', last.is('-') && first == '-',
		last.is('/') && (first == '/' || first == '*'), // a comment
		last.is('<') && first == '!':                   // a comment too, outside of modules
		return " "
	}
	return ""
}

// goesOn reports whether a token cannot be the last of a statement, so that a line break after it is
// just a blank. After a brace and a semicolon it stays all the same, for statements to have their lines.
func (t token) goesOn() bool {
	return t.kind == sign && len(t.text) == 1 && strings.IndexByte("([,<>*/%&|^!~?:=.", t.text[0]) >= 0
}

// continues reports whether a token cannot begin a statement, so that a line break before it is just a
// blank.
func (t token) continues() bool {
	return t.kind == sign && len(t.text) == 1 && strings.IndexByte(")]},;?:.&|", t.text[0]) >= 0
}

// wantsValue reports whether a slash after this token begins a regular expression; else it divides.
func (t token) wantsValue() bool {
	switch t.kind {
	case none:
		return true
	case word:
		return !t.member && valueAfter[string(t.text)]
	case sign:
		return t.head || len(t.text) == 1 && t.text[0] != ')' && t.text[0] != ']'
	}
	return false
}

var valueAfter = map[string]bool{
	"return": true, "typeof": true, "case": true, "in": true, "of": true, "delete": true, "void": true, "throw": true,
	"new": true, "instanceof": true, "do": true, "else": true, "yield": true, "await": true,
}

// heads reports whether the parenthesis after this token opens the head of a statement.
func (t token) heads() bool {
	if t.kind != word || t.member {
		return false
	}
	switch string(t.text) {
	case "if", "while", "for", "with":
		return true
	}
	return false
}

func (t token) is(c byte) bool {
	return t.kind == sign && t.text[len(t.text)-1] == c
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// wordly reports whether a byte can be part of a name. Ours are written in ASCII.
func wordly(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || digit(c) || c == '_' || c == '$' || c == '#'
}
