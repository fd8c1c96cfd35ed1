package main

import (
	"context"

	"github.com/spf13/cobra"

	"parley/internal/client"
	"parley/internal/wire"
)

const notANode = "The database is a file, so this server is not a node of a cluster"

func (c *cli) node() *cobra.Command {
	return c.resource(resource{
		name: "node", short: "Manage the nodes of a cluster", id: "7",
		example: `  parley node list
  parley node drain 7`,
		verbs: []verb{{
			use: "list", short: "List the nodes that share the database",
			long: `List the nodes that share the PostgreSQL database of the running server: where other nodes reach them, how many of
the 128 shards they serve, and when they last renewed their membership. A server whose database is a file is not
a node, so the list is empty.`,
			call: "GET nodes", print: rows("id,url,version,state,shards,started,renewed", nodeCells),
			run: func(ctx context.Context, t *task) error {
				r, err := t.request(ctx)
				if err == nil && r.Rows == 0 {
					t.cli.hint(notANode)
				}
				return t.finish(r, err)
			},
		}, {
			use: "drain [ID]", short: "Make a node hand its channels over to other nodes",
			long: `Make a node hand its channels over to other nodes, before you stop it. It gets no others until you start it again.
Without an ID, this is the node of this data directory. A node also does this by itself on SIGTERM. The
last node that serves channels cannot be drained.`,
			example: `  parley node drain 7
  parley node list --json | jq -r '.[] | select(.version == "1.0.0") | .id' | xargs -n1 parley node drain`,
			call: "POST nodes/*/drain", hint: "Node * hands its channels over. See how far it is with: parley node list",
			print: one(func(*cli, *wire.Node) string { return "" }),
			run: func(ctx context.Context, t *task) error {
				if len(t.args) == 0 {
					id, err := thisNode(ctx, t.api)
					if err != nil {
						return err
					}
					t.args = []string{id}
				}
				return t.requestAndPrint(ctx)
			},
		}},
	})
}

func nodeCells(n *wire.Node) []any {
	state := n.State
	if n.Self {
		state += " (this node)"
	}
	return []any{n.ID, n.URL, n.Version, state, n.Shards, when(n.StartedAt.Time), when(n.RenewedAt.Time)}
}

// thisNode is the id of the node of the data directory.
func thisNode(ctx context.Context, api *client.Client) (string, error) {
	var nodes []wire.Node
	if _, err := api.Get(ctx, client.Path("nodes"), nil, &nodes); err != nil {
		return "", err
	}
	for _, n := range nodes {
		if n.Self {
			return n.ID, nil
		}
	}
	return "", fail(exitUsage, notANode)
}

// onPostgres reports whether the settings name a PostgreSQL database.
func (c *cli) onPostgres() bool { return c.set.text(keyDatabase) != "" }
