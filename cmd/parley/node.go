package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"parley/internal/client"
)

func (c *cli) node() *cobra.Command {
	return newGroup("node", "Manage the nodes of a cluster", `  parley node list
  parley node drain 7`,
		c.nodeList(), c.nodeDrain())
}

func (c *cli) nodeList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the nodes that share the database",
		Long: `List the nodes that share the PostgreSQL database of the running server: where other nodes reach them, how many of
the 128 shards they serve, and when they renewed their membership last. A server whose database is a file is not
a node: the list is empty.`,
		Example: `  parley node list
  parley node list --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.manage(cmd, func(ctx context.Context, api *client.Client) error {
				var nodes []client.Node
				r, err := api.Get(ctx, client.Path("nodes"), nil, &nodes)
				if err == nil && len(nodes) == 0 {
					c.hint("The database is a file, so this server is not a node of a cluster")
				}
				return printRows(c, r, err, []any{"id", "url", "version", "state", "shards", "started", "renewed"}, nodeCells)
			})
		},
	}
}

func nodeCells(n *client.Node) []any {
	state := n.State
	if n.Self {
		state += " (this node)"
	}
	return []any{n.ID, n.URL, n.Version, state, n.Shards, when(n.StartedAt), when(n.RenewedAt)}
}

func (c *cli) nodeDrain() *cobra.Command {
	return &cobra.Command{
		Use:   "drain [ID]",
		Short: "Make a node hand its channels over to other nodes",
		Long: `Make a node hand its channels over to other nodes, before you stop it. It gets no others until it is started again.
Without an ID it is the node of this data directory. A node also does this by itself when it gets SIGTERM. The
last node that serves channels cannot be drained.`,
		Example: `  parley node drain 7
  parley node list --json | jq -r '.[] | select(.version == "0.2.0") | .id' | xargs -n1 parley node drain`,
		Args: cobra.MaximumNArgs(1),
		RunE: c.onNode(func(ctx context.Context, api *client.Client, id string) error {
			r, err := api.Post(ctx, client.Path("nodes", id, "drain"), nil, nil)
			if err == nil {
				c.hint("Node %s hands its channels over. See how far it is with: parley node list", id)
			}
			return printData(c, r, err, func(*client.Node) {})
		}),
	}
}

// onPostgres reports whether the settings name a PostgreSQL database.
func (c *cli) onPostgres() bool { return c.set.text(keyDatabase) != "" }

// onNode makes the body of a command about a node: the one of the argument, else that of the data directory.
func (c *cli) onNode(do func(context.Context, *client.Client, string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return c.onResource("node", do)(cmd, args)
		}
		return c.manage(cmd, func(ctx context.Context, api *client.Client) error {
			var nodes []client.Node
			if _, err := api.Get(ctx, client.Path("nodes"), nil, &nodes); err != nil {
				return err
			}
			for _, n := range nodes {
				if n.Self {
					return do(ctx, api, fmt.Sprint(n.ID))
				}
			}
			return fail(exitUsage, "The database is a file, so this server is not a node of a cluster")
		})
	}
}
