package asset

import (
	"fmt"
	"html"
	"strings"
)

// Page is HTML with places such as {{.Title}}, each in a text or in a quoted attribute. Package html/template would keep every
// method of every type in the program, because its places may call them.
type Page string

// Fill replaces each place by its value, escaped. A place without a value is an error.
func (p Page) Fill(values map[string]string) ([]byte, error) {
	var b strings.Builder
	rest := string(p)
	for {
		before, after, found := strings.Cut(rest, "{{.")
		b.WriteString(before)
		if !found {
			return []byte(b.String()), nil
		}
		name, after, _ := strings.Cut(after, "}}")
		value, known := values[name]
		if !known {
			return nil, fmt.Errorf("no value for the place %s of a page", name)
		}
		b.WriteString(html.EscapeString(value))
		rest = after
	}
}
