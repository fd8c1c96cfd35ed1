package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"

	"parley/internal/client"
)

// exportFlags say how and where an export is written.
func exportFlags() []flag {
	return []flag{
		{name: "format", value: "csv", usage: "csv, or jsonl: one JSON object per line"},
		{name: "output", short: "o", value: "-", usage: "the FILE to write; -: stdout"},
		boolFlag("force", "overwrite an existing file"),
	}
}

// export streams rows of the management API to a file or to stdout. An incomplete file is removed.
func export(ctx context.Context, t *task) (err error) {
	c, to, format, force := t.cli, t.fields.pop("output").(string), t.fields.text("format"), t.fields.pop("force") != nil
	resp, err := t.api.Open(ctx, http.MethodGet, t.path(), t.fields.query(), nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	out := c.out
	if to != "-" {
		how := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		if !force {
			how |= os.O_EXCL
		}
		file, err := os.OpenFile(to, how, 0o600)
		if errors.Is(err, os.ErrExist) {
			return fail(exitUsage, "%s already exists. Give another name, or pass --force", to)
		}
		if err != nil {
			return err
		}
		out = file
		defer func() {
			if err = errors.Join(err, file.Close()); err != nil {
				os.Remove(to)
			}
		}()
	}
	bar := c.newCount("export")
	defer bar.Done()
	most, err := strconv.ParseInt(resp.Header.Get("Parley-Rows-At-Most"), 10, 64)
	if err != nil {
		most = -1
	}
	rows := &rowCounter{out: out, csv: format == "csv", seen: func(n int64) { bar.Set(n, most) }}
	if _, err := io.Copy(rows, resp.Body); err != nil {
		return &client.UnreachableError{Base: t.api.Base, Err: err}
	}
	bar.Done()
	n := rows.n
	if rows.csv {
		n-- // the names
	}
	if to != "-" {
		return c.print(map[string]any{"rows": n, "file": to}, fmt.Sprintf("%s written to %s", count(int(n), "row"), to))
	}
	return nil
}

// rowCounter counts the rows that pass. A line break inside quotes is part of a cell.
type rowCounter struct {
	out    io.Writer
	csv    bool
	quoted bool
	n      int64
	seen   func(n int64)
}

func (r *rowCounter) Write(p []byte) (int, error) {
	for _, b := range p {
		switch {
		case b == '"' && r.csv:
			r.quoted = !r.quoted
		case b == '\n' && !r.quoted:
			r.n++
		}
	}
	r.seen(r.n)
	return r.out.Write(p)
}
