package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"parley/internal/doctor"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// terminalSize is the size of the terminal, or 80 by 24 if it is not known.
func terminalSize() (columns, rows int) {
	columns, rows, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil || columns == 0 || rows == 0 {
		return 80, 24
	}
	return columns, rows
}

// colour reports whether output to a terminal may be coloured.
func (c *cli) colour(terminal bool) bool {
	value, set := c.getenv("NO_COLOR")
	return terminal && !(set && value != "")
}

func (c *cli) printJSON(v any) error {
	enc := json.NewEncoder(c.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// done prints a hint, and with --json an empty document.
func (c *cli) done(format string, args ...any) error {
	c.hint(format, args...)
	if c.json {
		return c.printJSON(struct{}{})
	}
	return nil
}

// newTable aligns rows under the names of their columns, which are separated by commas. Nothing is truncated.
func newTable[T any](columns string, all []T, row func(*T) []any) string {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatUpper
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	var head table.Row
	for name := range strings.SplitSeq(columns, ",") {
		head = append(head, name)
	}
	t.AppendHeader(head)
	for i := range all {
		t.AppendRow(row(&all[i]))
	}
	return t.Render()
}

// when is a time for people. The zero time is a dash.
func when(t time.Time) string { return doctor.When(t) }

// progress shows how far a long task is, to a person at a terminal.
type progress struct {
	bar *progressbar.ProgressBar // nil: no terminal, or finished
}

func (c *cli) newProgress(what string) *progress {
	return c.progress(what, progressbar.OptionShowBytes(true))
}

func (c *cli) newCount(what string) *progress { return c.progress(what, progressbar.OptionShowCount()) }

func (c *cli) progress(what string, unit progressbar.Option) *progress {
	if !c.errTerminal || c.quiet || c.json {
		return &progress{}
	}
	return &progress{progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(c.err),
		progressbar.OptionSetDescription(what),
		unit,
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)}
}

// Set shows how much is done. A total below zero is unknown.
func (p *progress) Set(done, total int64) {
	if p.bar == nil {
		return
	}
	if total > 0 && total != p.bar.GetMax64() {
		p.bar.ChangeMax64(total)
	}
	p.bar.Set64(done) // only the terminal can fail
}

// Done removes the bar. It may be called twice.
func (p *progress) Done() {
	if p.bar != nil {
		p.bar.Finish()
		p.bar = nil
	}
}

// print prints a document with --json, else one line.
func (c *cli) print(document, line any) error {
	if c.json {
		return c.printJSON(document)
	}
	fmt.Fprintln(c.out, line)
	return nil
}

// texts are the fields of a request: names and values in turns. Empty values are left out.
func texts(pairs ...string) map[string]any {
	fields := map[string]any{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			fields[pair[0]] = pair[1]
		}
	}
	return fields
}
