// Command parley is a chat messaging gateway and the tools to run it, one file per command. It reads
// flags and environment; everything else is done by the packages under internal.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	c := &cli{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		inTerminal: isTerminal(os.Stdin), outTerminal: isTerminal(os.Stdout), errTerminal: isTerminal(os.Stderr),
		getenv: os.LookupEnv, size: terminalSize,
	}
	os.Exit(int(run(ctx, c, os.Args[1:])))
}

// run runs one command line and writes on stderr what went wrong: a sentence, or with --json one line of JSON.
func run(ctx context.Context, c *cli, args []string) exitCode {
	root := newRoot(c)
	root.SetArgs(args)
	var err error
	if cmd, asked := described(root, args); asked {
		err = c.printJSON(describe(cmd))
	} else {
		err = errors.Join(root.ExecuteContext(ctx), c.helpErr)
	}
	code := exitCodeOf(err)
	switch {
	case err == nil:
	case c.json || slices.Contains(args, "--json"): // flags may have been wrong before it was read
		line, _ := json.Marshal(documentOf(err)) // of texts only
		fmt.Fprintf(c.err, "%s\n", line)
	case code == exitInterrupted:
		fmt.Fprintln(c.err, "parley: interrupted")
	default:
		fmt.Fprintln(c.err, "parley:", sentence(err))
	}
	return code
}

// cli is what every command has: where it reads and writes, and what all of them can be told.
type cli struct {
	in          io.Reader
	out, err    io.Writer // out is for data only
	inTerminal  bool
	outTerminal bool
	errTerminal bool
	getenv      func(string) (string, bool)
	size        func() (columns, rows int) // of the terminal that err is

	json    bool
	quiet   bool
	verbose bool
	noInput bool

	set     *settings // loaded before a command runs
	helpErr error     // --help was asked of a command that does not exist
}

// hint tells a person something that is no data. Programs hear it only if they ask with --verbose.
func (c *cli) hint(format string, args ...any) {
	if c.verbose || c.errTerminal && !c.quiet {
		fmt.Fprintf(c.err, format+"\n", args...)
	}
}

// confirm makes sure that a person means to destroy something: --yes, or its name typed.
func (c *cli) confirm(ctx context.Context, yes bool, what, name string) error {
	if yes {
		return nil
	}
	if c.noInput || !c.inTerminal {
		return fail(exitUsage, "%s. Say --yes if you mean it", what)
	}
	fmt.Fprintf(c.err, "%s. Type %s to go on: ", what, name)
	typed := make(chan string, 1)
	go func() { // ends with the process if nobody types
		var word string
		fmt.Fscanln(c.in, &word) // nothing typed is not the name
		typed <- word
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case word := <-typed:
		if word != name {
			return fail(exitNotSo, "nothing was done")
		}
		return nil
	}
}
