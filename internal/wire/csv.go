package wire

import (
	"strings"
	"unicode/utf8"
)

// formulaStarts are the characters with which a spreadsheet program begins a formula, also in their wide forms.
const formulaStarts = "=+-@\t\r\n＝＋－＠"

// SafeCell puts an apostrophe before what a spreadsheet program would run as a formula: texts come from strangers.
func SafeCell(text string) string {
	if first, _ := utf8.DecodeRuneInString(text); text != "" && strings.ContainsRune(formulaStarts, first) {
		return "'" + text
	}
	return text
}
