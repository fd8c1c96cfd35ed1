// Command runtests runs "go test" with its own arguments and prints progress while tests run: each package when
// it ends, the output of what failed, every few seconds which tests are running, and the slowest ones at the end.
// gotestsum does not replace it: it names a package or test only after it ended, and lists the slowest ones by a second command.
//
//	go run ./internal/tools/runtests [-C DIRECTORY] -timeout 30m ./...
//
// Invariant: it exits with the code of go test, so it never hides a failure.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
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
	go p.report()
	readErr := p.read(events)
	fmt.Fprintln(out, p.slowest(20))
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), readErr
	}
	return 0, errors.Join(readErr, err)
}

// event is a line of "go test -json".
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// test is a top-level test, with the output of its subtests. Without a name it is the package's own output.
type test struct{ pkg, name string }

// progress converts events to lines for people.
type progress struct {
	mu             sync.Mutex
	out            io.Writer
	begun          time.Time
	running        map[test]time.Time // since when
	output         map[test][]string
	passed, failed int
	took           map[test]float64 // seconds
}

func newProgress(out io.Writer) *progress {
	return &progress{out: out, begun: time.Now(), running: map[test]time.Time{}, output: map[test][]string{}, took: map[test]float64{}}
}

// read handles events until they end. It prints other lines, such as those of the compiler.
func (p *progress) read(events io.Reader) error {
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		p.mu.Lock()
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(p.out, lines.Text())
		} else {
			p.handle(e)
		}
		p.mu.Unlock()
	}
	return lines.Err()
}

func (p *progress) handle(e event) {
	name, _, isSubtest := strings.Cut(e.Test, "/")
	t := test{e.Package, name}
	switch e.Action {
	case "build-output":
		io.WriteString(p.out, e.Output)
	case "output":
		p.output[t] = append(p.output[t], e.Output)
	case "run", "cont":
		if !isSubtest {
			p.running[t] = time.Now()
		}
	case "pause": // until others end
		if !isSubtest {
			delete(p.running, t)
		}
	case "pass", "fail", "skip":
		switch {
		case isSubtest:
		case name == "":
			p.endPackage(e)
		default:
			p.took[t] = e.Elapsed
			p.endTest(t, e.Action == "fail")
		}
	}
}

func (p *progress) endTest(t test, failed bool) {
	if failed {
		p.failed++
		p.print(t, func(line string) bool { return !isNoise(line) })
	} else {
		p.passed++
	}
	delete(p.output, t)
	delete(p.running, t)
}

// endPackage prints the last line of a package that passed. If it failed, it prints everything, with the output of tests
// that never ended: one of them may be the cause.
func (p *progress) endPackage(e event) {
	own := test{pkg: e.Package}
	if e.Action == "fail" {
		for _, t := range p.sorted() {
			if t.pkg == e.Package {
				fmt.Fprintf(p.out, "--- did not end: %s\n", t.name)
				p.endTest(t, true)
			}
		}
		p.print(own, func(line string) bool { return !isNoise(line) })
	} else {
		p.print(own, func(line string) bool { return strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "?") })
	}
	delete(p.output, own)
}

func (p *progress) print(t test, wanted func(line string) bool) {
	for line := range strings.Lines(strings.Join(p.output[t], "")) {
		if wanted(line) {
			io.WriteString(p.out, line)
		}
	}
}

// isNoise matches lines that say nothing about a failure.
func isNoise(line string) bool {
	line = strings.TrimSpace(line)
	return slices.ContainsFunc([]string{"=== ", "--- PASS", "--- SKIP", "PASS", "-test.shuffle"}, func(start string) bool {
		return strings.HasPrefix(line, start)
	})
}

func (p *progress) sorted() []test {
	return slices.SortedFunc(maps.Keys(p.running), func(a, b test) int { return p.running[a].Compare(p.running[b]) })
}

// report prints a progress line at each interval, until the process ends.
func (p *progress) report() {
	for now := range time.Tick(interval) {
		p.mu.Lock()
		fmt.Fprintln(p.out, p.status(now))
		p.mu.Unlock()
	}
}

// status is for example "1m20s: 412 tests passed, 0 failed; running internal/api TestTokens 3s".
func (p *progress) status(now time.Time) string {
	const most = 6
	var running []string
	for i, t := range p.sorted() {
		if i == most {
			running = append(running, fmt.Sprintf("%d more", len(p.running)-most))
			break
		}
		running = append(running, fmt.Sprintf("%s %s %s", strings.TrimPrefix(t.pkg, "parley/"), t.name, now.Sub(p.running[t]).Round(time.Second)))
	}
	doing := "compiling"
	if len(running) > 0 {
		doing = "running " + strings.Join(running, ", ")
	}
	return fmt.Sprintf("  %s: %d tests passed, %d failed; %s", now.Sub(p.begun).Round(time.Second), p.passed, p.failed, doing)
}

func (p *progress) slowest(most int) string {
	all := slices.SortedFunc(maps.Keys(p.took), func(a, b test) int {
		return cmp.Or(cmp.Compare(p.took[b], p.took[a]), cmp.Compare(a.name, b.name))
	})
	var lines []string
	for _, t := range all[:min(most, len(all))] {
		lines = append(lines, fmt.Sprintf("%s %s %.0fs", strings.TrimPrefix(t.pkg, "parley/"), t.name, p.took[t]))
	}
	return "slowest: " + strings.Join(lines, ", ")
}
