package main

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"parley/internal/client"
	"parley/internal/wait"
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
			call: "GET nodes", none: notANode + ".", print: rows("id,url,version,state,shards,started,renewed", nodeCells),
		}, {
			use: "drain [ID]", short: "Make a node hand its channels over to other nodes",
			long: `Make a node hand its channels over to other nodes, before you stop it. It gets no others until you start it again.
Without an ID, this is the node of this data directory. A node also does this by itself on SIGTERM. The
last node that serves channels cannot be drained.

--wait returns once the node serves no channel, or fails after 30 seconds. --linger then waits longer, while the node still
accepts requests: load balancers need some seconds to stop sending to it.`,
			example: `  parley node drain 7
  parley node list --json | jq -r '.[] | select(.version == "1.0.0") | .id' | xargs -n1 parley node drain`,
			flags: []flag{
				boolFlag("wait", "return once it serves no channel, within 30 s"),
				{name: "linger", value: time.Duration(0), usage: "then wait this long, for example 10s"},
			},
			call: "POST nodes/*/drain", hint: "Node * hands its channels over. See how far it is with: parley node list",
			print: one(func(*cli, *wire.Node) string { return "" }),
			run: func(ctx context.Context, t *task) error {
				waits, linger := t.fields.pop("wait") != nil, t.fields.pop("linger").(time.Duration)
				if len(t.args) == 0 {
					id, err := thisNode(ctx, t.api)
					if err != nil {
						return err
					}
					t.args = []string{id}
				}
				r, err := t.request(ctx)
				if err == nil && waits {
					r, err = t.awaitDrained(ctx)
				}
				if !wait.Sleep(ctx, linger) { // also for a node that was not drained: it ends all the same
					return ctx.Err()
				}
				return t.finish(r, err)
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

// drainTime is how long a drain may take. A node that ends keeps enough of the time that Kubernetes gives it.
const drainTime = 30 * time.Second

// awaitDrained waits until a node serves no shards.
func (t *task) awaitDrained(ctx context.Context) (*client.Response, error) {
	bar := t.cli.newCount("drain")
	defer bar.Done()
	first := 0
	for deadline := time.Now().Add(drainTime); ; {
		var nodes []wire.Node
		if _, err := t.api.Get(ctx, client.Path("nodes"), nil, &nodes); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(nodes, func(n wire.Node) bool { return n.ID == t.args[0] })
		switch {
		case i < 0 || nodes[i].Shards == 0:
			t.hint = "Node * serves no channels any more"
			var drained wire.Node
			if i >= 0 {
				drained = nodes[i]
			}
			data, err := json.Marshal(drained)
			return &client.Response{Success: true, Data: data}, err
		case time.Now().After(deadline):
			return nil, fail(exitTimeout, "node %s still serves %s after %s. See: parley node list", t.args[0],
				count(nodes[i].Shards, "shard"), drainTime)
		}
		first = max(first, nodes[i].Shards)
		bar.Set(int64(first-nodes[i].Shards), int64(first))
		if !wait.Sleep(ctx, healthEvery) {
			return nil, ctx.Err()
		}
	}
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
