package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"parley/internal/app"
	"parley/internal/client"
)

func (c *cli) diagnostics() *cobra.Command {
	var to string
	var force bool
	cmd := &cobra.Command{
		Use:   "diagnostics",
		Short: "Write a support bundle (zip) that describes the server's state",
		Long: `Write a support bundle: one zip file with version, settings, findings of the doctor, channels, webhooks, metrics,
the last warnings of the log and the goroutines of the running server. It has no tokens or other secrets, no
texts, codes or names, and only the last three digits of phone numbers. Check its contents before you share
it. FILE may be - for stdout.`,
		Example: `  parley diagnostics
  parley diagnostics -o help.zip --force`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				to = time.Now().UTC().Format("parley-diagnostics-20060102T150405Z.zip")
			}
			if to == "-" && c.outTerminal {
				return fail(exitUsage, "cannot write a zip file to a terminal. Give a file, or a pipe")
			}
			if _, err := os.Lstat(to); err == nil && !force && to != "-" {
				return fail(exitUsage, "%s already exists. Give another name, or pass --force", to)
			}
			return c.onServer(cmd, func(ctx context.Context, api *client.Client) error {
				resp, err := api.Open(ctx, http.MethodGet, client.Path("diagnostics"), nil, nil, nil)
				if err != nil {
					return err
				}
				defer resp.Body.Close()
				packed, err := io.ReadAll(resp.Body)
				if err != nil {
					return &client.UnreachableError{Base: api.Base, Err: err}
				}
				return c.saveDiagnostics(to, packed)
			})
		},
	}
	cmd.Flags().StringVarP(&to, "output", "o", "", "the FILE to write (default: parley-diagnostics-TIME.zip here)")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	settingFlags(cmd.Flags(), keyURL, keyAdminToken)
	return cmd
}

func (c *cli) saveDiagnostics(to string, packed []byte) error {
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return fail(exitRefused, "the response of the server is not a zip file: %w", err)
	}
	type row struct {
		Name  string `json:"name"`
		Bytes uint64 `json:"bytes"`
	}
	var files []row
	for _, f := range archive.File {
		files = append(files, row{f.Name, f.UncompressedSize64})
		c.hint("%8d  %s", f.UncompressedSize64, f.Name)
	}
	if to == "-" {
		_, err := c.out.Write(packed)
		return err
	}
	if err := writePrivate(to, packed); err != nil {
		return err
	}
	err = c.print(map[string]any{"file": to, "bytes": len(packed), "files": files}, to)
	if !c.json {
		c.hint("Check its contents before you share it.")
	}
	return err
}

func writePrivate(path string, data []byte) error {
	err := app.WritePrivate(path, data)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(exitUsage, "folder %s not found", filepath.Dir(path))
	}
	return err
}
