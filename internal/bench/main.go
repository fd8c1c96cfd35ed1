// Command bench measures the gateway as its users meet it and prints a table. It starts the built
// binary and an empty JSON server beside it, loads both from the same process in turns, and reports
// ratios of one run, because absolute figures say more about the machine than about the program.
//
// Usage: go run ./internal/bench [-parley bin/parley] [-rounds 7] [-slice 1s]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// options are what can be set from the command line.
type options struct {
	parley      string
	rounds      int
	slice       time.Duration
	connections int
	messages    int
}

func main() {
	var o options
	flag.StringVar(&o.parley, "parley", "bin/parley", "the binary to measure")
	flag.IntVar(&o.rounds, "rounds", 7, "how often each server is loaded; the median counts")
	flag.DurationVar(&o.slice, "slice", time.Second, "how long each server is loaded at a time")
	flag.IntVar(&o.connections, "connections", 64, "connections at once")
	flag.IntVar(&o.messages, "messages", 1_000_000, "messages in the large chat history")
	echo := flag.Bool("echo", false, "be the empty JSON server (used by the program itself)")
	flag.Parse()
	if *echo {
		if err := serveEcho(); err != nil {
			fail(err)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// run takes every measurement and prints the table; it fails where a figure misses its bound.
func run(ctx context.Context, o options) error {
	var t table
	for _, measure := range []func(context.Context, options, *table) error{measureFootprint, measureSends, measureHistory} {
		if err := measure(ctx, o, &t); err != nil {
			return err
		}
	}
	return t.print(os.Stdout)
}
