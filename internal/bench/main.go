// Command bench measures the gateway as its users meet it and prints a table. It starts the built
// binary and an empty JSON server beside it, loads both from the same process in turns, and reports
// ratios of one run, because absolute figures say more about the machine than about the program.
//
// Usage: go run ./internal/bench [-parley bin/parley] [-rounds 7] [-slice 1s] [-only sends] [-against OTHER]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

// options are what can be set from the command line.
type options struct {
	parley      string
	rounds      int
	slice       time.Duration
	connections int
	messages    int
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
	flag.StringVar(&o.only, "only", "", "take only the measurements whose name contains this, for example sends or whatsapp")
	flag.StringVar(&o.against, "against", "", "compare durable sends with those of this binary, in turns")
	flag.StringVar(&o.data, "data", "", "with -against: the data directory of this version; empty: a new one")
	echo := flag.Bool("echo", false, "be the empty JSON server (used by the program itself)")
	follow := flag.String("follow", "", "be readers of the event stream of this server (used by the program itself)")
	readers := flag.Int("readers", 1, "with -follow: how many")
	mark := flag.String("mark", "", "with -follow: what events must hold to be counted")
	standin := flag.Bool("standin", false, "be the server that stands in for WhatsApp (used by the program itself)")
	bare := flag.Int("bare", 0, "be so many accounts of whatsmeow alone (used by the program itself)")
	at := flag.String("at", "", "with -bare: where that server takes orders")
	flag.Parse()
	if *standin {
		if err := serveStandIn(); err != nil {
			fail(err)
		}
		return
	}
	if *bare > 0 {
		if err := serveBare(*at, *bare); err != nil {
			fail(err)
		}
		return
	}
	if *follow != "" {
		if err := serveCrowd(*follow, *mark, *readers); err != nil {
			fail(err)
		}
		return
	}
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
	for _, m := range []struct {
		name string
		take func(context.Context, options, *table) error
	}{
		{"footprint", measureFootprint},
		{"sends", measureSends},
		{"versions", measureVersions},
		{"slow", measureSlow},
		{"codes", measureCodes},
		{"webhooks", measureWebhooks},
		{"draining", measureDraining},
		{"stream", measureStream},
		{"history", measureHistory},
		{"whatsapp", measureWhatsApp},
		{"whatsapp-idle", measureIdle},
		{"login-links", measureLinks},
		{"memory", measureMemory},
		{"whatsapp-drops", measureDrops},
		{"whatsapp-strangers", measureStrangers},
	} {
		if !strings.Contains(m.name, o.only) {
			continue
		}
		if err := m.take(ctx, o, &t); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", m.name, err), t.print(os.Stdout))
		}
	}
	return t.print(os.Stdout)
}
