// Command parley is a chat messaging gateway and the tools to run it, one file per command or group of commands.
//
// Invariants: only dev, serve, migrate and restore open a data directory themselves; every other command calls the API
// through internal/client, of the running server or of one in its own process. Data goes to stdout, everything else to
// stderr. With --json an error is one line of JSON. Settings are read in settings.go alone.
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
	"strings"
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

// run runs one command line. An error goes to stderr as a sentence, or with --json as one line of JSON.
func run(ctx context.Context, c *cli, args []string) exitCode {
	root := newRoot(c)
	root.SetArgs(args)
	var err error
	if cmd, asked := described(root, args); asked {
		err = c.printJSON(describe(cmd))
	} else {
		err = errors.Join(root.ExecuteContext(ctx), c.helpErr)
	}
	code := toExitCode(err)
	switch {
	case err == nil:
	case c.json && c.output != "csv" || slices.Contains(args, "--json"): // a wrong flag before it ends the parsing
		line, _ := json.Marshal(toErrorDocument(err)) // of texts only
		fmt.Fprintf(c.err, "%s\n", line)
	case code == exitInterrupted:
		fmt.Fprintln(c.err, "parley: interrupted")
	default:
		fmt.Fprintln(c.err, "parley:", sentence(err))
	}
	return code
}

// cli is what every command has: its streams, the common flags and the settings.
type cli struct {
	in          io.Reader
	out, err    io.Writer // out is for data only
	inTerminal  bool
	outTerminal bool
	errTerminal bool
	getenv      func(string) (string, bool)
	size        func() (columns, rows int) // of the terminal that err is

	json    bool   // the data is for programs
	output  string // of -o; empty: text, or with json one document
	quiet   bool
	verbose bool
	noInput bool

	set     *settings // loaded before a command runs
	profile string    // the profile whose server is used; empty: none
	helpErr error     // --help was asked of a command that does not exist
}

// hint prints something for a person, which is not data. Programs get it only with --verbose.
func (c *cli) hint(format string, args ...any) {
	if c.verbose || c.errTerminal && !c.quiet {
		fmt.Fprintf(c.err, format+"\n", args...)
	}
}

// warn prints what a person should know even where nobody watches.
func (c *cli) warn(format string, args ...any) {
	if !c.quiet {
		fmt.Fprintf(c.err, format+"\n", args...)
	}
}

// maxTyped bounds a text that is read from stdin. No message is longer.
const maxTyped = 1 << 20

// readText returns an argument, or for - the text of stdin without the line break at its end.
func (c *cli) readText(argument string) (string, error) {
	if argument != "-" {
		return argument, nil
	}
	data, err := io.ReadAll(io.LimitReader(c.in, maxTyped+1))
	text := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	switch {
	case err != nil:
		return "", fail(exitUsage, "read the text from stdin: %w", err)
	case len(data) > maxTyped:
		return "", fail(exitUsage, "the text on stdin is longer than 1 MiB")
	case text == "":
		return "", fail(exitUsage, "- reads the text from stdin, which is empty")
	}
	return text, nil
}

// confirm requires --yes or the typed name before something is destroyed.
func (c *cli) confirm(ctx context.Context, yes bool, what, name string) error {
	if yes {
		return nil
	}
	if c.noInput || !c.inTerminal {
		return fail(exitUsage, "%s. Pass --yes to confirm", what)
	}
	typed, err := c.ask(ctx, fmt.Sprintf("%s. Type %s to confirm: ", what, name))
	if ctx.Err() != nil {
		return err
	}
	if typed != name {
		return fail(exitNegative, "nothing was changed")
	}
	return nil
}

// ask asks a person at the terminal and returns the line that was typed.
func (c *cli) ask(ctx context.Context, question string) (string, error) {
	fmt.Fprint(c.err, question)
	return awaitLine(ctx, func() (string, error) { return readTypedLine(c.in) })
}

// awaitLine returns the line that read reads, or an error when ctx ends.
func awaitLine(ctx context.Context, read func() (string, error)) (string, error) {
	type line struct {
		text string
		err  error
	}
	typed := make(chan line, 1)
	go func() { // ends with the process if nothing is typed
		text, err := read()
		typed <- line{strings.TrimSpace(text), err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case l := <-typed:
		if l.err != nil {
			return "", fail(exitNeedsPerson, "nothing was typed")
		}
		return l.text, nil
	}
}

// readTypedLine reads one line byte by byte: a buffered reader would take the input of the next question.
func readTypedLine(r io.Reader) (string, error) {
	var b strings.Builder
	one := make([]byte, 1)
	for {
		n, err := r.Read(one)
		switch {
		case n == 1 && one[0] == '\n':
			return b.String(), nil
		case n == 1:
			b.WriteByte(one[0])
		case err == io.EOF && b.Len() > 0:
			return b.String(), nil
		}
		if err != nil {
			return "", err
		}
	}
}
