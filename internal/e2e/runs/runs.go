// Package runs records what long tests did to the program and what became of its messages, one row per test, in the file that
// PARLEY_RUNS names. make torture and make soak add to docs/runs.tsv; docs/reliability.md has the sums.
//
// Invariant: a test that fails has its row too. Only one that was interrupted has none.
package runs

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// columns are the first line of the file. Numbers are from the fourth to the one before the last.
var columns = []string{"time", "commit", "test", "minutes", "times", "messages", "lost", "doubled", "disordered", "skipped", "memory",
	"drift", "result"}

// Run is one test, in one goroutine.
type Run struct {
	Comparison
	Times    int // how often the program was disturbed
	Messages int // or events, that the test compared
	Skipped  int // events that a webhook or a stream did not get
	Memory   int // the most that the program used, in MiB
	Drift    int // by how many MiB it grew
}

// Begin starts a run. It is written down at the end of the test, after its other cleanups.
func Begin(t testing.TB) *Run {
	r := &Run{}
	file := os.Getenv("PARLEY_RUNS")
	if file == "" {
		return r
	}
	began := time.Now()
	t.Cleanup(func() {
		if t.Skipped() {
			return
		}
		result := "ok"
		if t.Failed() {
			result = "failed"
		}
		commit, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*").Output()
		if err != nil {
			commit = []byte("unknown")
		}
		row := []any{began.UTC().Format("2006-01-02T15:04Z"), strings.TrimSpace(string(commit)), t.Name(),
			int(time.Since(began).Round(time.Minute).Minutes()), max(1, r.Times), r.Messages, r.Lost, r.Doubled + r.Strange, r.Breaks, r.Skipped,
			r.Memory, r.Drift, result}
		if err := add(file, row); err != nil {
			t.Errorf("record the run: %v", err)
		}
	})
	return r
}

// add appends a row, and the names of the columns to a new file.
func add(file string, row []any) error {
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	text := ""
	if info, err := out.Stat(); err == nil && info.Size() == 0 {
		text = strings.Join(columns, "\t") + "\n"
	}
	for i, cell := range row {
		text += fmt.Sprint(cell) + map[bool]string{true: "\n", false: "\t"}[i == len(row)-1]
	}
	_, err = out.WriteString(text)
	return err
}

// Watch counts the memory of a process that is about to end, where the system tells it. r may be nil.
func (r *Run) Watch(pid int) {
	if r != nil {
		r.Memory = max(r.Memory, Memory(pid, "VmHWM"))
	}
}

// Memory reads how much memory a process has now (VmRSS) or had at most (VmHWM), in MiB. It is 0 where there is no /proc.
func Memory(pid int, which string) int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	used := 0
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, which+":"); ok {
			fmt.Sscan(value, &used)
		}
	}
	return used >> 10
}

// Comparison counts how lists differ from what they should be.
type Comparison struct{ Lost, Doubled, Strange, Breaks int }

// Compare adds up how got, in which everything should be once and in order, differs from want.
func (c *Comparison) Compare(got, want []string) {
	place, seen, last := map[string]int{}, map[string]bool{}, -1
	for i, text := range want {
		place[text] = i
	}
	for _, text := range got {
		at, known := place[text]
		switch {
		case !known:
			c.Strange++
		case seen[text]:
			c.Doubled++
		case at < last:
			c.Breaks++
		}
		seen[text], last = true, max(last, at)
	}
	for _, text := range want {
		if !seen[text] {
			c.Lost++
		}
	}
}

// Add adds another comparison.
func (c *Comparison) Add(other Comparison) {
	c.Lost, c.Doubled, c.Strange, c.Breaks = c.Lost+other.Lost, c.Doubled+other.Doubled, c.Strange+other.Strange, c.Breaks+other.Breaks
}

// Sum is 0 if nothing differs.
func (c Comparison) Sum() int { return c.Lost + c.Doubled + c.Strange + c.Breaks }

func (c Comparison) String() string {
	return fmt.Sprintf("lost %d, doubled %d, unexpected %d, order breaks %d", c.Lost, c.Doubled, c.Strange, c.Breaks)
}

// Table sums the rows of a file by test, as a table in Markdown.
func Table(rows string) (string, error) {
	sums, failed, order := map[string][]int{}, map[string]int{}, []string(nil)
	for i, line := range strings.Split(strings.TrimSuffix(rows, "\n"), "\n") {
		cells := strings.Split(line, "\t")
		if i == 0 || line == "" {
			continue
		}
		if len(cells) != len(columns) {
			return "", fmt.Errorf("line %d has %d columns", i+1, len(cells))
		}
		test, numbers := cells[2], cells[3:len(cells)-1]
		if sums[test] == nil {
			order, sums[test] = append(order, test), make([]int, len(numbers)+1)
		}
		if cells[len(cells)-1] != "ok" {
			failed[test]++
		}
		sums[test][len(numbers)]++
		for n, cell := range numbers {
			value, err := strconv.Atoi(cell)
			if err != nil {
				return "", fmt.Errorf("line %d: %w", i+1, err)
			}
			if n >= len(numbers)-2 { // memory and drift
				sums[test][n] = max(sums[test][n], value)
			} else {
				sums[test][n] += value
			}
		}
	}
	if len(order) == 0 {
		return "No run has been recorded yet.\n", nil
	}
	out := "| Test | Runs (failed) | Minutes | Times | Messages | Lost | Doubled | Out of order | Skipped | Most memory |\n" +
		"|---|---|---|---|---|---|---|---|---|---|\n"
	for _, test := range order {
		s := sums[test]
		out += fmt.Sprintf("| `%s` | %d (%d) | %d | %d | %d | %d | %d | %d | %d | %d MiB |\n", test, s[9], failed[test], s[0], s[1], s[2], s[3],
			s[4], s[5], s[6], s[7])
	}
	return out, nil
}
