// Command compareapi compares the responses of two versions of the API to the same requests of the same tests.
//
//	PARLEY_RECORD=/tmp/old go test ./internal/e2e/... ./internal/parleytest   # in the one version
//	PARLEY_RECORD=/tmp/new go test ./internal/e2e/... ./internal/parleytest   # in the other
//	go run ./internal/tools/compareapi /tmp/old /tmp/new
//
// Values that differ between any two runs, such as ids and times, are replaced by placeholders. The exit code is 1 if a
// response differs.
//
// Invariant: a request of the first record is compared or counted as missing, never skipped.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: compareapi OLD NEW")
		os.Exit(2)
	}
	differ, err := run(os.Args[1], os.Args[2], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compareapi:", err)
		os.Exit(2)
	}
	if differ > 0 {
		os.Exit(1)
	}
}

// call is one request and its response, as package parleytest records it.
type call struct {
	Test, Method, Path, Body string
	Status                   int
	Answer                   string
}

// responses are the different responses to each request, without what differs between runs.
type responses map[string]map[string]bool

func read(dir string) (responses, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s contains no record", dir)
	}
	all := responses{}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		err = errors.Join(all.add(f), f.Close())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return all, nil
}

func (all responses) add(record io.Reader) error {
	for lines := bufio.NewReader(record); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var c call
		if err := json.Unmarshal(line, &c); err != nil {
			return err
		}
		request := fmt.Sprintf("%s: %s %s %s", c.Test, c.Method, plainText(c.Path), plainBody(c.Body))
		if all[request] == nil {
			all[request] = map[string]bool{}
		}
		all[request][fmt.Sprintf("%d %s", c.Status, plainBody(c.Answer))] = true
	}
}

// run prints the requests whose responses differ between the versions, and returns how many.
func run(oldDir, newDir string, out io.Writer) (differ int, err error) {
	before, err := read(oldDir)
	if err != nil {
		return 0, err
	}
	after, err := read(newDir)
	if err != nil {
		return 0, err
	}
	same, only := 0, 0
	for _, request := range slices.Sorted(maps.Keys(before)) {
		is, both := after[request]
		switch was := before[request]; {
		case !both:
			only++
		case maps.Equal(was, is):
			same++
		default:
			differ++
			fmt.Fprintln(out, request)
			printMissing(out, "  -", was, is)
			printMissing(out, "  +", is, was)
		}
	}
	fmt.Fprintf(out, "%d requests have the same responses, %d have others, %d are only in the first record\n", same, differ, only)
	return differ, nil
}

// printMissing prints the responses of one version that the other did not give.
func printMissing(out io.Writer, mark string, of, in map[string]bool) {
	for _, a := range slices.Sorted(maps.Keys(of)) {
		if !in[a] {
			fmt.Fprintln(out, mark, strings.TrimSpace(a))
		}
	}
}
