package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
)

// TestTableFits lists messages on terminals of several widths. Only a terminal gets cut cells, and ids are cut last.
func TestTableFits(t *testing.T) {
	type message struct{ at, text, id string }
	all := []message{
		{"2026-11-18 04:50", strings.Repeat("panjang ", 12), "true_6281234567890@c.us_3EB0A1C4F29D77E01B5C42"},
		{"2026-11-18 04:51", "你好\n世界", "false_6281234567890@c.us_3EB0A1C4F29D77E01B5C43"},
	}
	show := func(terminal bool, width int) string {
		c := &cli{outTerminal: terminal, size: func() (int, int) { return width, 24 }}
		return newTable(c, "at,text,id", all, func(m *message) []any { return []any{m.at, m.text, m.id} })
	}
	for _, width := range []int{60, 80, 100, 200} {
		shown := show(true, width)
		for line := range strings.Lines(shown) {
			if got := text.StringWidth(strings.TrimSuffix(line, "\n")); got > width {
				t.Errorf("%d columns are used of %d: %q", got, width, line)
			}
		}
		if lines := strings.Count(shown, "\n"); lines != len(all) {
			t.Errorf("%d lines, want a line for each row:\n%s", lines, shown)
		}
		if width >= 80 && !strings.Contains(shown, all[0].id) {
			t.Errorf("the id is cut on %d columns:\n%s", width, shown)
		}
	}
	if shown := show(false, 60); !strings.Contains(shown, all[0].text[:90]) {
		t.Errorf("a program gets cut cells:\n%s", shown)
	}
}

// TestCSV prints objects with different fields: what one of them lacks is empty, and texts are no formulas.
func TestCSV(t *testing.T) {
	var out bytes.Buffer
	c := &cli{out: &out, output: "csv"}
	data := json.RawMessage(`[{"id":"a","n":-1,"on":true,"none":null,"list":[1, 2]},{"id":"=1+1","text":"a, \"b\"\nc"}]`)
	if err := c.printJSON(data); err != nil {
		t.Fatal(err)
	}
	want := "id,n,on,none,list,text\na,-1,true,,\"[1,2]\",\n'=1+1,,,,,\"a, \"\"b\"\"\nc\"\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

// TestColour: a terminal that cannot show colours, and a person who wants none, get none.
func TestColour(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want bool
	}{{nil, true}, {[]string{"TERM=dumb"}, false}, {[]string{"NO_COLOR=1"}, false}, {[]string{"NO_COLOR=", "TERM=xterm"}, true}} {
		cl := &cli{getenv: func(name string) (string, bool) {
			i := slices.IndexFunc(c.env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
			if i < 0 {
				return "", false
			}
			return strings.TrimPrefix(c.env[i], name+"="), true
		}}
		if got := cl.colour(true); got != c.want {
			t.Errorf("%q: colour %v", c.env, got)
		}
	}
}
