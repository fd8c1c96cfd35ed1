// Command runtests runs "go test" with its own arguments and prints progress while tests run: each package when
// it ends, the output of what failed, and every few seconds which tests are running.
//
//	go run ./internal/tools/runtests [-C DIRECTORY] -timeout 30m ./...
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

// interval is the time between two progress lines.
const interval = 10 * time.Second

func main() {
	signal.Ignore(os.Interrupt) // go test gets it too, and ends
	code, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "runtests:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func run(args []string, out io.Writer) (int, error) {
	dir := ""
	if len(args) > 1 && args[0] == "-C" { // in another module
		dir, args = args[1], args[2:]
	}
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	p := newProgress(out)
	stop := make(chan struct{})
	go p.report(stop) // it only prints, and ends with the process
	readErr := p.read(events)
	close(stop)
	fmt.Fprintln(out, p.slowest(20))
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), readErr
	}
	return 0, errors.Join(readErr, err)
}
