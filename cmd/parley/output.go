package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"parley/internal/doctor"
	"parley/internal/wire"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// terminalSize is the size of the terminal, or 80 by 24 if it is not known.
func terminalSize() (columns, rows int) {
	columns, rows, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil { // it is a file, and stdout may be the terminal
		columns, rows, err = term.GetSize(int(os.Stdout.Fd()))
	}
	if err != nil || columns == 0 || rows == 0 {
		return 80, 24
	}
	return columns, rows
}

// colour reports whether output to a terminal may be coloured.
func (c *cli) colour(terminal bool) bool {
	value, _ := c.getenv("NO_COLOR")
	kind, _ := c.getenv("TERM")
	return terminal && value == "" && kind != "dumb"
}

// outputs are the forms of lists and of things that are shown.
var outputs = []string{"table", "json", "jsonl", "csv"}

// outputFlag adds -o. --json is short for -o json.
func (c *cli) outputFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(outputValue{c}, "output", "o", "the form: "+strings.Join(outputs, ", "))
}

// formType is the type of -o in the help.
const formType = "form"

type outputValue struct{ cli *cli }

func (o outputValue) String() string { return "table" }
func (o outputValue) Type() string   { return formType }

func (o outputValue) Set(form string) error {
	if !slices.Contains(outputs, form) {
		return fmt.Errorf("must be one of %s", strings.Join(outputs, ", "))
	}
	o.cli.output, o.cli.json = form, o.cli.json || form != "table"
	return nil
}

// printJSON prints data for programs: one document or, with -o, one line per row.
func (c *cli) printJSON(v any) error {
	var document bytes.Buffer
	enc := json.NewEncoder(&document)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	if err != nil || c.output != "jsonl" && c.output != "csv" {
		return errors.Join(err, c.write(document.Bytes()))
	}
	rows := []json.RawMessage{document.Bytes()}
	if document.Bytes()[0] == '[' {
		err = json.Unmarshal(document.Bytes(), &rows)
	}
	if c.output == "csv" {
		return errors.Join(err, c.printCSV(rows))
	}
	for _, row := range rows {
		var line bytes.Buffer
		err = errors.Join(err, json.Compact(&line, row), c.write(append(line.Bytes(), '\n')))
	}
	return err
}

func (c *cli) write(p []byte) error { _, err := c.out.Write(p); return err }

// printCSV prints objects under the names of their fields. What is not a text, a number or a truth value stays JSON.
func (c *cli) printCSV(rows []json.RawMessage) error {
	var names []string
	cells := make([]map[string]string, len(rows))
	for i, row := range rows {
		cells[i] = map[string]string{}
		from := json.NewDecoder(bytes.NewReader(row))
		for from.More() {
			token, err := from.Token()
			if err != nil {
				return err
			}
			name, isName := token.(string)
			if !isName { // the brace
				continue
			}
			var value json.RawMessage
			if err := from.Decode(&value); err != nil {
				return err
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			cells[i][name] = newCell(value)
		}
	}
	to := csv.NewWriter(c.out)
	if len(names) > 0 {
		to.Write(names) // Flush keeps the error
	}
	for _, row := range cells {
		line := make([]string, len(names))
		for i, name := range names {
			line[i] = row[name]
		}
		to.Write(line)
	}
	to.Flush()
	return to.Error()
}

func newCell(value json.RawMessage) string {
	var text string
	var line bytes.Buffer
	switch {
	case string(value) == "null":
		return ""
	case json.Unmarshal(value, &text) == nil:
		return wire.SafeCell(text)
	case json.Compact(&line, value) != nil:
		return string(value)
	}
	return line.String()
}

// isEmptyList reports whether a list has no rows.
func isEmptyList(data json.RawMessage) bool {
	var rows []json.RawMessage
	return json.Unmarshal(data, &rows) == nil && len(rows) == 0
}

// sayNone says that a list is empty, where a table would be a line of names. It is no data: a program gets an empty list.
func (c *cli) sayNone(filtered bool, none string) {
	if filtered {
		none = "Nothing matches these filters."
	}
	c.warn("%s", cmp.Or(none, "There is nothing to list."))
}

// done prints a hint, and with --json an empty document.
func (c *cli) done(format string, args ...any) error {
	c.hint(format, args...)
	if c.json {
		return c.printJSON(struct{}{})
	}
	return nil
}

// newTable aligns rows under the names of their columns, which are separated by commas. On a terminal, long cells are cut so that a
// row is a line. Elsewhere nothing is cut.
func newTable[T any](c *cli, columns string, all []T, row func(*T) []any) string {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatUpper
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	names := strings.Split(columns, ",")
	var head table.Row
	widths := make([]int, len(names))
	for i, name := range names {
		head, widths[i] = append(head, name), text.StringWidth(name)
	}
	t.AppendHeader(head)
	for i := range all {
		cells := row(&all[i])
		for i, cell := range cells {
			widths[i] = max(widths[i], text.StringWidth(fmt.Sprint(cell)))
		}
		t.AppendRow(cells)
	}
	if c.outTerminal {
		room, _ := c.size()
		fit(names, widths, room)
		var limits []table.ColumnConfig
		for i, width := range widths {
			limits = append(limits, table.ColumnConfig{Number: i + 1, WidthMax: width, WidthMaxEnforcer: cut})
		}
		t.SetColumnConfigs(limits)
	}
	return t.Render()
}

const (
	gap       = 2 // between columns
	leastWide = 8 // a column is cut to this width before the ids are
)

// fit makes the widest columns narrower until a row has room. Ids are cut last, because people copy them.
func fit(names []string, widths []int, room int) {
	total := gap * (len(widths) - 1)
	for _, width := range widths {
		total += width
	}
	for least, ids := leastWide, false; total > room; {
		widest := -1
		for i, width := range widths {
			isID := names[i] == "id" || names[i] == "code"
			if width > least && (ids || !isID) && (widest < 0 || width > widths[widest]) {
				widest = i
			}
		}
		switch {
		case widest >= 0:
			widths[widest]--
			total--
		case !ids:
			ids = true
		case least > 1:
			least = 1
		default:
			return
		}
	}
}

// cut shortens a cell to one line of this width.
func cut(cell string, width int) string {
	return text.Snip(strings.ReplaceAll(cell, "\n", " "), width, "…")
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
