// Command bench measures the gateway as its users see it and prints a table. It starts the built binary and a baseline
// beside it, loads both from the same process in turns, and reports ratios of one run, because absolute figures say more
// about the machine than about the program.
//
// Invariants: every response is checked, so a failed request ends the run. A figure that misses its bound ends it with an
// error, after the table. Baselines and the test network are processes of their own, so that their CPU time is
// separate; only Meta's API of the group cloud is in this one, which waits more than it works.
//
// Usage: go run ./internal/bench [-parley bin/parley] [-rounds 7] [-slice 1s] [-only sends] [-against OTHER [-data DIR]]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"text/tabwriter"
	"time"
)

type options struct {
	parley      string
	rounds      int
	slice       time.Duration
	connections int
	messages    int
	channels    int
	cloud       time.Duration
	only        string
	against     string // another version's binary
	data        string // a data directory of this version
}

func main() {
	var o options
	flag.StringVar(&o.parley, "parley", "bin/parley", "the binary to measure")
	flag.IntVar(&o.rounds, "rounds", 7, "how often each server is loaded; the median counts")
	flag.DurationVar(&o.slice, "slice", time.Second, "how long each server is loaded at a time")
	flag.IntVar(&o.connections, "connections", 64, "connections at once")
	flag.IntVar(&o.messages, "messages", 1_000_000, "messages in the large chat history")
	flag.IntVar(&o.channels, "channels", 10_000, "sandbox channels of the measurements of many")
	flag.DurationVar(&o.cloud, "cloud", 20*time.Second, "how long a number of the official API sends as fast as it may")
	flag.StringVar(&o.only, "only", "", "run only the measurements whose name contains this, for example sends or whatsapp")
	flag.StringVar(&o.against, "against", "", "compare durable sends with those of this binary, in turns")
	flag.StringVar(&o.data, "data", "", "with -against: the data directory of this version; empty: a new one")
	role := flag.String("role", "", "run as a child process: echo, stream, network, bare or delay (used by the program itself)")
	flag.Parse()
	if err := start(*role, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// start runs the measurements, or one role with its own arguments.
func start(role string, o options) error {
	switch role {
	case "echo":
		return serveEcho()
	case "stream":
		return runStreamReaders(flag.Arg(0), flag.Arg(1))
	case "network":
		return serveNetwork()
	case "bare":
		return serveBare(flag.Arg(0), flag.Arg(1))
	case "delay":
		return serveDelay(flag.Arg(0), flag.Arg(1))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return run(ctx, o)
}

// run takes every measurement and prints the table. It fails if a figure misses its bound.
func run(ctx context.Context, o options) error {
	var t table
	for _, m := range []struct {
		name    string
		measure func(context.Context, options, *table) error
	}{
		{"footprint", measureFootprint},
		{"sends", measureSends},
		{"versions", measureVersions},
		{"writes-failing", measureFailing},
		{"writes-inbound", measureInbound},
		{"writes-snapshot", measureSnapshot},
		{"writes-deadlocks", measureDeadlocks},
		{"codes", measureCodes},
		{"webhooks", measureWebhooks},
		{"draining", measureDraining},
		{"stream", measureStream},
		{"history", measureHistory},
		{"deletions", measureDeletions},
		{"stalls", measureStalls},
		{"whatsapp-sends", measureWhatsApp},
		{"whatsapp-idle", measureIdle},
		{"cloud", measureCloud},
		{"login-links", measureLinks},
		{"memory", measureMemory},
		{"whatsapp-drops", measureDrops},
		{"postgres-sends", measurePostgres},
		{"nodes-forward", measureForward},
		{"nodes-idle", measureIdleNodes},
		{"nodes-killed", measureKilled},
		{"nodes-stopped", measureStopped},
		{"nodes-webhook", measureFollowing},
		{"nodes-add-up", measureAddingUp},
		{"many-channels-file", measureManyChannels},
		{"many-channels-nodes", measureManyOnNodes},
	} {
		if !strings.Contains(m.name, o.only) {
			continue
		}
		if err := m.measure(ctx, o, &t); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", m.name, err), t.print(os.Stdout))
		}
	}
	return t.print(os.Stdout)
}

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
