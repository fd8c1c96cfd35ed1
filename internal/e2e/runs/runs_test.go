package runs

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the sums into docs/reliability.md")

// test is a test that may fail without failing this one.
type test struct {
	testing.TB
	name   string
	failed bool
	after  []func()
}

func (t *test) Name() string      { return t.name }
func (t *test) Failed() bool      { return t.failed }
func (t *test) Skipped() bool     { return false }
func (t *test) Cleanup(do func()) { t.after = append(t.after, do) }

// TestRuns records three runs, of which one lost, doubled and mixed up messages, and sums them.
func TestRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.tsv")
	t.Setenv("PARLEY_RUNS", file)
	for _, got := range []string{"a b c d", "a c c b x", "a b c d"} {
		one := &test{TB: t, name: "TestA"}
		r := Begin(one)
		r.Times, r.Messages, r.Skipped = 3, 4, 1
		r.Compare(strings.Fields(got), strings.Fields("a b c d"))
		r.Watch(os.Getpid())
		one.failed = r.Sum() > 0
		for _, do := range one.after {
			do()
		}
	}
	rows, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := regexp.MustCompile(`(?s)^time\t.*\tresult\n(\S+\t\S+\tTestA\t0\t3\t4\t0\t0\t0\t1\t\d+\t0\tok\n)` +
		`(\S+\t\S+\tTestA\t0\t3\t4\t1\t2\t1\t1\t\d+\t0\tfailed\n)\S+.*ok\n$`); !want.Match(rows) {
		t.Errorf("the rows are\n%s", rows)
	}
	table, err := Table(string(rows))
	if want := "| `TestA` | 3 (1) | 0 | 9 | 12 | 1 | 2 | 1 | 3 | "; err != nil || !strings.Contains(table, want) {
		t.Errorf("the table is\n%s(%v), want %s", table, err, want)
	}
}

// TestReliabilityPage compares the sums in docs/reliability.md with the rows in docs/runs.tsv.
func TestReliabilityPage(t *testing.T) {
	const page = "../../../docs/reliability.md"
	rows, err1 := os.ReadFile("../../../docs/runs.tsv")
	text, err2 := os.ReadFile(page)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	table, err := Table(string(rows))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?s)(<!-- sums of runs.tsv -->\n\n).*?(\n<!-- end of the sums -->)`)
	want := block.ReplaceAllString(string(text), "${1}"+strings.ReplaceAll(table, "$", "$$")+"${2}")
	switch {
	case !block.Match(text):
		t.Error("the page has no place for the sums")
	case *update:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	case want != string(text):
		t.Error("the page has other sums than docs/runs.tsv: run go test ./internal/e2e/runs -run TestReliabilityPage -update")
	}
}
