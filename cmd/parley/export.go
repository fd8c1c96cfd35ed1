package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"parley/internal/client"
)

// exportFlags say how and where an export is written.
type exportFlags struct {
	format, to string
	force      bool
}

func (f *exportFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.format, "format", "csv", "csv, or jsonl: one JSON object in each line")
	cmd.Flags().StringVarP(&f.to, "output", "o", "-", "the FILE to write; -: stdout")
	cmd.Flags().BoolVar(&f.force, "force", false, "overwrite an existing file")
}

// export streams rows of the management API to a file or to stdout. An incomplete file is removed.
func (c *cli) export(ctx context.Context, api *client.Client, path string, query url.Values, f exportFlags) (err error) {
	query.Set("format", f.format)
	resp, err := api.Open(ctx, http.MethodGet, path, query, nil, nil)
	if err != nil {
		return asUsage(err)
	}
	defer resp.Body.Close()
	out := c.out
	if f.to != "-" {
		how := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		if !f.force {
			how |= os.O_EXCL
		}
		file, err := os.OpenFile(f.to, how, 0o600)
		if errors.Is(err, os.ErrExist) {
			return fail(exitUsage, "%s already exists. Give another name, or pass --force", f.to)
		}
		if err != nil {
			return err
		}
		out = file
		defer func() {
			if err = errors.Join(err, file.Close()); err != nil {
				os.Remove(f.to)
			}
		}()
	}
	bar := c.newCount("export")
	defer bar.Done()
	most, err := strconv.ParseInt(resp.Header.Get("Parley-Rows-At-Most"), 10, 64)
	if err != nil {
		most = -1
	}
	rows := &rowCounter{out: out, csv: f.format == "csv", seen: func(n int64) { bar.Set(n, most) }}
	if _, err := io.Copy(rows, resp.Body); err != nil {
		return &client.UnreachableError{Base: api.Base, Err: err}
	}
	bar.Done()
	n := rows.n
	if rows.csv {
		n-- // the names
	}
	if f.to != "-" {
		return c.print(map[string]any{"rows": n, "file": f.to}, n)
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

func (c *cli) messagesExport(channel *string) *cobra.Command {
	var filter messageFlags
	var to exportFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Export messages as CSV or JSON lines",
		Long: `Export all messages that the filters select, newest first, as CSV or as JSON lines. It needs an admin token and a running
server. The text of one-time codes is never exported. In CSV a cell that begins with =, +, -, @, a tab or a line break has an
apostrophe before it, because spreadsheet programs would run it as a formula. Each export is in the audit log.`,
		Example: `  parley messages export --since 7d > messages.csv
  parley messages export --channel toko --status FAILED --format jsonl -o failed.jsonl`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.onServer(cmd, func(ctx context.Context, api *client.Client) error {
				return c.export(ctx, api, client.Path("messages", "export"), filter.query(*channel), to)
			})
		},
	}
	filter.add(cmd)
	to.add(cmd)
	return cmd
}

func (c *cli) deliveriesExport() *cobra.Command {
	var filter deliveryFlags
	var to exportFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Export deliveries as CSV or JSON lines",
		Long: `Export all deliveries that the filters select, newest first, as CSV or as JSON lines. The server must be running. In CSV a
cell that begins with =, +, -, @, a tab or a line break has an apostrophe before it, because spreadsheet programs would run
it as a formula. Each export is in the audit log.`,
		Example: `  parley deliveries export --failed --since 24h > failed.csv
  parley deliveries export --webhook whk_2f0c6a9be1d84c53a7f0 --format jsonl -o deliveries.jsonl`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fields, err := filter.fields()
			if err != nil {
				return err
			}
			query := url.Values{}
			for name, value := range fields {
				query.Set(name, value.(string))
			}
			return c.onServer(cmd, func(ctx context.Context, api *client.Client) error {
				return c.export(ctx, api, client.Path("deliveries", "export"), query, to)
			})
		},
	}
	filter.add(cmd)
	to.add(cmd)
	settingFlags(cmd.Flags(), keyURL, keyAdminToken)
	return cmd
}
