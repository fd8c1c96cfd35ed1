package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// table is what was measured, with the bound of each figure.
type table struct{ rows []row }

type row struct {
	what, value, bound string
	ok                 bool
}

func (t *table) add(what, value, bound string, ok bool) {
	t.rows = append(t.rows, row{what, value, bound, ok})
}

func (t *table) note(what, value string) { t.add(what, value, "", true) }

func (t *table) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "what\tmeasured\tbound\t")
	fmt.Fprintln(tw, "----\t--------\t-----\t")
	var missed []string
	for _, r := range t.rows {
		mark := ""
		if !r.ok {
			mark = "MISSED"
			missed = append(missed, r.what)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", r.what, r.value, r.bound, mark)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if len(missed) > 0 {
		return fmt.Errorf("missed: %s", strings.Join(missed, "; "))
	}
	return nil
}
