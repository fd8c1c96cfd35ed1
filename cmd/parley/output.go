package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"parley/internal/client"
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

// printTable prints rows under a head, aligned and not truncated.
func (c *cli) printTable(head []any, rows [][]any) {
	t := table.NewWriter()
	t.SetOutputMirror(c.out)
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatUpper
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	t.AppendHeader(head)
	for _, row := range rows {
		t.AppendRow(row)
	}
	t.Render()
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

// newList makes a command that lists the resources of one kind.
func newList[T any](c *cli, short, kind string, head []any, row func(*T) []any) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   short,
		Example: "  parley " + kind + " list\n  parley " + kind + " list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.manage(cmd, func(ctx context.Context, api *client.Client) error {
				r, err := api.All(ctx, client.Path(kind+"s"), nil, nil)
				return printRows(c, r, err, head, row)
			})
		},
	}
}

// printRows prints a list that was requested, as JSON or as a table.
func printRows[T any](c *cli, r *client.Response, err error, head []any, row func(*T) []any) error {
	return printData(c, r, err, func(all *[]T) {
		rows := make([][]any, len(*all))
		for i := range *all {
			rows[i] = row(&(*all)[i])
		}
		c.printTable(head, rows)
	})
}

// printData prints the data of a response, as JSON or with print. It returns the error of the request.
func printData[T any](c *cli, r *client.Response, err error, print func(*T)) error {
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(r.Data)
	}
	var data T
	if err := json.Unmarshal(r.Data, &data); err != nil {
		return err
	}
	print(&data)
	return nil
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
