package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"parley/internal/cluster"
	"parley/internal/postgrestest"
)

// nodes are gateways on one PostgreSQL, with a channel "demo".
type nodes struct {
	o      options
	server *postgrestest.Server
	all    []*benchNode
	token  string // of the channel
}

type benchNode struct {
	*process
	data, listen string
}

func withNodes(ctx context.Context, o options, f func(*nodes) error) error {
	return withSomeNodes(ctx, o, 3, f)
}

func withSomeNodes(ctx context.Context, o options, count int, f func(*nodes) error) error {
	return withPostgres(func(server *postgrestest.Server) error {
		return inTempDir(func(dir string) error {
			c := &nodes{o: o, server: server}
			defer func() {
				for _, n := range c.all {
					n.stop()
				}
			}()
			for i := range count {
				n := &benchNode{data: filepath.Join(dir, strconv.Itoa(i))}
				if err := c.add(ctx, n); err != nil {
					return err
				}
			}
			first := c.all[0]
			if _, err := parleyCommand(o, first.data, "channel", "create", "demo"); err != nil {
				return err
			}
			if err := first.tokens(o, first.data); err != nil {
				return err
			}
			c.token = first.token
			if err := c.awaitBalance(); err != nil {
				return err
			}
			return f(c)
		})
	})
}

// add starts a node with the key of the first.
func (c *nodes) add(ctx context.Context, n *benchNode) (err error) {
	if err := os.Mkdir(n.data, 0o700); err != nil {
		return err
	}
	if n.listen, err = freeAddress(); err != nil {
		return err
	}
	if len(c.all) > 0 {
		key, err := os.ReadFile(filepath.Join(c.all[0].data, "secret.key"))
		if err == nil {
			err = os.WriteFile(filepath.Join(n.data, "secret.key"), key, 0o600)
		}
		if err != nil {
			return err
		}
	}
	if err := c.start(ctx, n); err != nil {
		return err
	}
	c.all = append(c.all, n)
	return nil
}

func (c *nodes) start(ctx context.Context, n *benchNode) (err error) {
	admin := ""
	if n.process != nil {
		admin = n.admin
	}
	n.process, err = startServe(ctx, c.o, n.data, c.server.Address(), "--node-listen", n.listen, "--media", filepath.Dir(n.data)+"/media",
		"--allow-private", loopback)
	if err == nil {
		n.admin = admin
	}
	return err
}

// awaitBalance waits until the shards are shared equally and the channel works.
func (c *nodes) awaitBalance() error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		most, err := c.server.Query("SELECT max(n) FROM (SELECT count(*) AS n FROM shard GROUP BY node) AS counts")
		if err != nil {
			return err
		}
		if n, err := strconv.Atoi(most); err == nil && n <= cluster.Shards/len(c.all)+1 {
			break
		}
		if time.Now().After(deadline) {
			return errors.New("the shards were not shared equally within a minute")
		}
	}
	return c.send(c.all[0], time.Minute)
}

// owner returns the node that serves the channel, and another one.
func (c *nodes) owner() (owner, other *benchNode, err error) {
	url, err := c.server.Query(fmt.Sprintf("SELECT url FROM node JOIN shard ON shard.node = node.id WHERE shard.id = %d",
		cluster.ToShard("demo")))
	if err != nil {
		return nil, nil, err
	}
	for _, n := range c.all {
		if strings.HasSuffix(url, "//"+n.listen) {
			owner = n
		} else {
			other = n
		}
	}
	if owner == nil {
		return nil, nil, errors.New("nobody serves the channel")
	}
	return owner, other, nil
}

// send sends one message at a node, and repeats that until it was accepted.
func (c *nodes) send(at *benchNode, limit time.Duration) error {
	client := &process{addr: at.addr, admin: c.token}
	message := map[string]string{"contact_id": "6281200000000@c.us", "message": benchText}
	for deadline := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		err := client.call("POST", "/api/send-message/text", message, nil)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// measureForward compares requests at the node that serves the channel with the same at another one, which forwards them.
func measureForward(ctx context.Context, o options, t *table) error {
	return withNodes(ctx, o, func(c *nodes) error {
		owner, other, err := c.owner()
		if err != nil {
			return err
		}
		request := [][]byte{get("/api/channel/health", c.token)}
		var costs []float64
		for round := range o.rounds + 1 {
			var p50 [2]time.Duration
			for i, n := range []*benchNode{owner, other} {
				l, err := drive(n.addr, 1, request, `"WORKING"`, o.slice/2)
				if err != nil {
					return err
				}
				p50[i] = quantile(l.latencies, 0.5)
			}
			if round > 0 { // the first one is the warm-up
				costs = append(costs, ms(p50[1]-p50[0]))
			}
		}
		t.add("forwarding a request to another node, p50", fmt.Sprintf("%.2f ms longer", median(costs)), "<= 1 ms", median(costs) <= 1)
		return nil
	})
}

const idleNodesFor = 20 * time.Second

// measureIdleNodes measures what nodes cost that have nothing to do.
func measureIdleNodes(ctx context.Context, o options, t *table) error {
	return withNodes(ctx, o, func(c *nodes) error {
		if err := c.server.Exec("CREATE EXTENSION pg_stat_statements"); err != nil {
			return err
		}
		time.Sleep(3 * time.Second) // what the start left to do
		if err := c.server.Exec("SELECT pg_stat_statements_reset()"); err != nil {
			return err
		}
		before, began := make([]time.Duration, len(c.all)), time.Now()
		for i, n := range c.all {
			before[i] = n.cpu()
		}
		time.Sleep(idleNodesFor)
		took := time.Since(began).Seconds()
		var busiest time.Duration
		for i, n := range c.all {
			busiest = max(busiest, n.cpu()-before[i])
		}
		calls, err := c.server.Query("SELECT sum(calls) FROM pg_stat_statements")
		if err != nil {
			return err
		}
		statements, err := strconv.Atoi(calls)
		if err != nil {
			return err
		}
		share, each := busiest.Seconds()/took, float64(statements)/took/float64(len(c.all))
		t.add("three idle nodes, CPU of the busiest", fmt.Sprintf("%.1f %% of a core", 100*share), "<= 2 %", share <= 0.02)
		t.add("three idle nodes, statements each", fmt.Sprintf("%.1f/s", each), "<= 20/s", each <= 20)
		return nil
	})
}

// measureKilled measures the time from the SIGKILL of the node that serves a channel to the next message that is accepted.
func measureKilled(ctx context.Context, o options, t *table) error {
	return measureEnds(ctx, o, t, "first send after SIGKILL of the channel's node, p95", 9*time.Second,
		func(c *nodes, owner, other *benchNode) (time.Duration, error) {
			owner.cmd.Process.Kill()
			owner.cmd.Wait()
			return c.timedSend(other)
		})
}

// measureStopped measures the slowest send while the node that serves the channel stops.
func measureStopped(ctx context.Context, o options, t *table) error {
	return measureEnds(ctx, o, t, "slowest send while the channel's node stops, p95", time.Second,
		func(c *nodes, owner, other *benchNode) (slowest time.Duration, err error) {
			owner.cmd.Process.Signal(syscall.SIGTERM)
			ended := make(chan struct{})
			go func() {
				owner.cmd.Wait()
				close(ended)
			}()
			for running := true; running; {
				select {
				case <-ended:
					running = false // one more send
				default:
				}
				took, err := c.timedSend(other)
				if err != nil {
					return 0, err
				}
				slowest = max(slowest, took)
			}
			return slowest, nil
		})
}

// measureEnds ends the node that serves a channel, several times. end ends it and returns how long a send took.
func measureEnds(ctx context.Context, o options, t *table, name string, bound time.Duration,
	end func(c *nodes, owner, other *benchNode) (time.Duration, error)) error {
	return withNodes(ctx, o, func(c *nodes) error {
		var gaps []time.Duration
		for range o.rounds {
			owner, other, err := c.owner()
			if err != nil {
				return err
			}
			gap, err := end(c, owner, other)
			if err != nil {
				return err
			}
			gaps = append(gaps, gap)
			if err := errors.Join(c.start(ctx, owner), c.awaitBalance()); err != nil {
				return err
			}
		}
		p50, p95 := quantile(gaps, 0.5), quantile(gaps, 0.95)
		t.add(name, fmt.Sprintf("%.2f s (p50 %.2f s)", p95.Seconds(), p50.Seconds()), fmt.Sprintf("<= %.0f s", bound.Seconds()), p95 <= bound)
		return nil
	})
}

func (c *nodes) timedSend(n *benchNode) (time.Duration, error) {
	began := time.Now()
	err := c.send(n, time.Minute)
	return time.Since(began), err
}
