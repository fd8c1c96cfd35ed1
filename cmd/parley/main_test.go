package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// testTimeout is the limit of every wait in these tests. Only a program that hangs reaches it.
const testTimeout = 2 * time.Minute

// noLinger keeps the race detector from waiting a second at the end of each of our many processes.
const noLinger = "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	os.Setenv("GORACE", noLinger) // for processes that tests start themselves
	testscript.Main(m, map[string]func(){"parley": main, "loopwa": loopwa})
}

// TestScripts runs the whole program as people do: each file in testdata/script is a transcript.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("NO_COLOR", "1")
			e.Setenv("GORACE", noLinger)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"await":  await,
			"exits":  exits,
			"hook":   hook,
			"meta":   meta,
			"http":   request,
			"setenv": setenv,
			"mode":   mode,
		},
	})
}

// exits runs a command and compares its exit code: exits 2 parley serve --listen 0.0.0.0:0
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG…]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("%s exited with %s, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

// request makes an HTTP request and says its status on the first line of stdout, its body after:
// http [-until TEXT] METHOD URL [TOKEN [BODY]]. With -until it asks again until the answer contains
// the text.
func request(ts *testscript.TestScript, neg bool, args []string) {
	until := ""
	if len(args) > 2 && args[0] == "-until" {
		until, args = args[1], args[2:]
	}
	if neg || len(args) < 2 || len(args) > 4 {
		ts.Fatalf("usage: http [-until TEXT] METHOD URL [TOKEN [BODY]]")
	}
	args = append(args, "", "")
	var answer string
	again(ts, "the answer does not contain "+until, func() bool {
		answer = ask(ts, args[0], args[1], args[2], args[3])
		return strings.Contains(answer, until)
	})
	io.WriteString(ts.Stdout(), answer)
}

func ask(ts *testscript.TestScript, method, url, token, content string) string {
	req, err := http.NewRequest(method, url, strings.NewReader(content))
	ts.Check(err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if content != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	return resp.Status + "\n" + string(body) + "\n"
}

// again tries until it works.
func again(ts *testscript.TestScript, wrong string, works func() bool) {
	deadline := time.After(testTimeout)
	for tick := time.Tick(20 * time.Millisecond); !works(); {
		select {
		case <-tick:
		case <-deadline:
			ts.Fatalf("after %s: %s", testTimeout, wrong)
		}
	}
}

// setenv reads variables from a file of NAME=value lines, or one from a file that holds its value, or
// from what a pattern's group matches in one: setenv FILE | setenv NAME FILE [PATTERN]
func setenv(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 3 {
		ts.Fatalf("usage: setenv FILE | setenv NAME FILE [PATTERN]")
	}
	text := ts.ReadFile(args[min(1, len(args)-1)])
	switch len(args) {
	case 1:
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				ts.Setenv(name, value)
			}
		}
	case 2:
		ts.Setenv(args[0], strings.TrimSpace(text))
	case 3:
		found := regexp.MustCompile(args[2]).FindStringSubmatch(text)
		if len(found) < 2 {
			ts.Fatalf("no match for %s in:\n%s", args[2], text)
		}
		ts.Setenv(args[0], found[1])
	}
}

// await runs a command until its output contains a text:
// await TEXT COMMAND [ARG…]
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await TEXT COMMAND [ARG…]")
	}
	again(ts, args[0]+" was not said", func() bool {
		ts.Exec(args[1], args[2:]...) // it may fail until the time has come
		return strings.Contains(ts.ReadFile("stdout")+ts.ReadFile("stderr"), args[0])
	})
}

// mode compares the permissions of a file: mode 0600 FILE
func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode MODE FILE")
	}
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}
