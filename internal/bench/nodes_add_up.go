package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/internal/cluster"
)

// Every node gets the same load, so that its batches are as large with any number of nodes.
const (
	addingRate  = 150 // messages per second
	addingFor   = 20  // seconds
	perNode     = 2   // channels
	addingBound = 3 / 2.2
)

// messageCosts are what a message costs: CPU time of the nodes and of PostgreSQL, and statements.
type messageCosts struct{ nodes, postgres, statements float64 }

// measureAddingUp compares what a message costs on three nodes with what it costs on one. Two cores cannot show three nodes at work; but
// if a message costs at most 3 / 2.2 times as much, three nodes with a core each do 2.2 times the work of one.
func measureAddingUp(ctx context.Context, o options, t *table) error {
	var sends, inbound [2]messageCosts
	for i, count := range []int{1, 3} {
		err := withSomeNodes(ctx, o, count, func(c *nodes) (err error) {
			if err = c.server.Exec("CREATE EXTENSION pg_stat_statements"); err != nil {
				return err
			}
			tokens, err := c.spreadChannels()
			if err != nil {
				return err
			}
			if sends[i], err = c.costs(tokens, `"SENT"`, func(n int, token string) []byte {
				return sendText(fmt.Sprintf("62812000%05d", n%64), token)
			}); err != nil {
				return err
			}
			inbound[i], err = c.costs(tokens, "", func(n int, token string) []byte {
				return post("/api/sandbox/phones/"+phone(n%eventChats)+"/send", token, fmt.Sprintf(`{"type":"text","message":"Order %d?"}`, n))
			})
			return err
		})
		if err != nil {
			return err
		}
	}
	for i, what := range []string{"durable sends", "inbound messages"} {
		c := [][2]messageCosts{sends, inbound}[i]
		name := fmt.Sprintf("%s on three nodes, %d/s each, of one node", what, addingRate)
		bound := fmt.Sprintf("<= %.2f", addingBound)
		cpu, statements := c[1].nodes/c[0].nodes, c[1].statements/c[0].statements
		t.add(name+", CPU per message", fmt.Sprintf("%.2f (%.2f of %.2f ms)", cpu, c[1].nodes, c[0].nodes), bound, cpu <= addingBound)
		t.add(name+", statements per message", fmt.Sprintf("%.2f (%.1f of %.1f)", statements, c[1].statements, c[0].statements), bound,
			statements <= addingBound)
		t.note(name+", PostgreSQL's CPU per message",
			fmt.Sprintf("%.2f (%.2f of %.2f ms)", c[1].postgres/c[0].postgres, c[1].postgres, c[0].postgres))
	}
	return nil
}

// spreadChannels creates channels so that each node serves as many. It returns their tokens by node.
func (c *nodes) spreadChannels() (map[*benchNode][]string, error) {
	rows, err := c.server.Query("SELECT string_agg(shard.id || ' ' || url, ',') FROM shard JOIN node ON node.id = shard.node")
	if err != nil {
		return nil, err
	}
	owners := map[int]*benchNode{}
	for row := range strings.SplitSeq(rows, ",") {
		number, url, _ := strings.Cut(row, " ")
		shard, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("shard %q: %w", row, err)
		}
		for _, n := range c.all {
			if strings.HasSuffix(url, "//"+n.listen) {
				owners[shard] = n
			}
		}
	}
	tokens, first := map[*benchNode][]string{}, c.all[0]
	for i, created := 0, 0; created < perNode*len(c.all); i++ {
		code := fmt.Sprint("channel", i)
		owner := owners[cluster.ToShard(code)]
		if i > 1000 {
			return nil, errors.New("some node serves no shard")
		}
		if owner == nil || len(tokens[owner]) == perNode {
			continue
		}
		created++
		if _, err := parleyCommand(c.o, first.data, "channel", "create", code); err != nil {
			return nil, err
		}
		token, err := parleyCommand(c.o, first.data, "token", "create", "--kind", "channel", "--channel", code, "--quiet")
		if err != nil {
			return nil, err
		}
		if _, err := first.poll("/api/manage/channels/"+code, works); err != nil {
			return nil, err
		}
		tokens[owner] = append(tokens[owner], token)
	}
	return tokens, nil
}

// costs loads every node with requests of its own channels, and measures what one costs.
func (c *nodes) costs(tokens map[*benchNode][]string, want string, request func(n int, token string) []byte) (
	costs messageCosts, err error) {
	load := func(seconds int) error {
		var wait sync.WaitGroup
		errs := make([]error, len(c.all))
		for i, node := range c.all {
			requests := make([][]byte, seconds*addingRate)
			for n := range requests {
				requests[n] = request(n, tokens[node][n%len(tokens[node])])
			}
			wait.Go(func() { _, errs[i] = pace(node.addr, 16, addingRate, requests, want) })
		}
		wait.Wait()
		return errors.Join(errs...)
	}
	if err := load(2); err != nil { // the warm-up
		return costs, err
	}
	time.Sleep(time.Second) // receipts and what else follows
	cpu := func() (all time.Duration) {
		for _, n := range c.all {
			all += n.cpu()
		}
		return all
	}
	if err := c.server.Exec("SELECT pg_stat_statements_reset()"); err != nil {
		return costs, err
	}
	nodes, postgres := cpu(), postgresCPU(c.server)
	if err := load(addingFor); err != nil {
		return costs, err
	}
	time.Sleep(time.Second)
	messages := float64(addingRate * addingFor * len(c.all))
	costs.nodes, costs.postgres = ms(cpu()-nodes)/messages, ms(postgresCPU(c.server)-postgres)/messages
	calls, err := c.server.Query("SELECT sum(calls) FROM pg_stat_statements")
	if err != nil {
		return costs, err
	}
	statements, err := strconv.ParseFloat(calls, 64)
	costs.statements = statements / messages
	return costs, err
}
