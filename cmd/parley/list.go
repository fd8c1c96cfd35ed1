package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"parley/internal/client"
)

// newList makes a command that lists what a path of the management API has.
func newList[T any](c *cli, short, kind string, head []any, row func(*T) []any) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   short,
		Example: "  parley " + kind + " list\n  parley " + kind + " list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.manage(cmd, func(ctx context.Context, api *client.Client) error {
				r, err := api.Get(ctx, client.Path(kind+"s"), nil, nil)
				if err != nil {
					return err
				}
				return printRows(c, r.Data, head, row)
			})
		},
	}
}

// printRows answers a list: as it is, or as a table.
func printRows[T any](c *cli, data json.RawMessage, head []any, row func(*T) []any) error {
	if c.json {
		return c.printJSON(data)
	}
	var all []T
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	rows := make([][]any, len(all))
	for i := range all {
		rows[i] = row(&all[i])
	}
	c.printTable(head, rows)
	return nil
}

// printData answers one thing: as it is, or as print does.
func printData[T any](c *cli, r *client.Response, print func(*T)) error {
	if c.json {
		return c.printJSON(r.Data)
	}
	var one T
	if err := json.Unmarshal(r.Data, &one); err != nil {
		return err
	}
	print(&one)
	return nil
}
