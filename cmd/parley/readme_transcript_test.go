package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// readmeTimeout is the limit of one command of the README: only a dead program reaches it.
const readmeTimeout = 3 * time.Minute

// TestReadmeTranscript types the README from start to end: every command of every console block, in order, in one
// shell. What the README shows of a response must be in the response; … matches anything.
func TestReadmeTranscript(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil || !regexp.MustCompile(`(?m)^run: build.*\n(\t@.*\n)*\tbin/parley dev$`).Match(makefile) {
		t.Fatalf("make run does not start bin/parley dev any more (%v)", err)
	}
	w := newNewcomer(t)
	linkID := regexp.MustCompile(`otl_[0-9A-Za-z]+`)
	last := ""
	for _, c := range readmeCommands(t, string(text)) {
		command := c.command
		if strings.Contains(command, "otl_…") {
			command = strings.ReplaceAll(command, "otl_…", linkID.FindString(last))
		}
		out := w.types(command)
		missing := c.missing(out)
		isRead := strings.Contains(command, "/chat/detail")
		for limit := time.Now().Add(readmeTimeout); missing != "" && isRead && time.Now().Before(limit); { // a person is slower than a phone
			out = w.types(command)
			missing = c.missing(out)
		}
		if missing != "" {
			t.Fatalf("$ %s\nprinted\n%s\nwhich lacks %q of the README", command, out, missing)
		}
		last = out
	}
}

// shown is a command of the README and what is shown of its output.
type shown struct {
	command string
	output  []string
}

// changing is what differs from run to run: the time of day, a message's progress, and how wide columns are.
var changing = regexp.MustCompile(`\d\d:\d\d:\d\d|SENT|DELIVERED|READ| +`)

// missing returns the first part of the output that the README shows and that is not there.
func (s shown) missing(out string) string {
	out = changing.ReplaceAllString(out, " ")
	for _, line := range s.output {
		line = changing.ReplaceAllString(line, " ")
		for part := range strings.SplitSeq(line, "…") {
			at := strings.Index(out, part)
			if at < 0 {
				return part
			}
			out = out[at+len(part):]
		}
	}
	return ""
}

func readmeCommands(t *testing.T, text string) []shown {
	t.Helper()
	var commands []shown
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(text, -1) {
		continued := false
		for line := range strings.SplitSeq(strings.TrimSuffix(block[1], "\n"), "\n") {
			command, isCommand := strings.CutPrefix(line, "$ ")
			switch {
			case isCommand:
				commands = append(commands, shown{command: command})
			case len(commands) == 0:
				t.Fatalf("a block begins with %q", line)
			case continued:
				commands[len(commands)-1].command += "\n" + line
			default:
				last := &commands[len(commands)-1]
				last.output = append(last.output, line)
			}
			continued = strings.HasSuffix(line, `\`)
		}
	}
	if len(commands) < 20 {
		t.Fatalf("only %d commands were found: does the pattern still fit?", len(commands))
	}
	return commands
}

// newcomer is a person with one terminal for commands and others for what keeps running.
type newcomer struct {
	t     *testing.T
	dir   string
	shell io.WriteCloser
	lines chan string
	ended int
}

func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed: make deps installs it, or names its package")
	}
	w := &newcomer{t: t, dir: t.TempDir(), lines: make(chan string, 10_000)}
	program, err := exec.LookPath("parley")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"bin", "path", "backups"} {
		if err := os.Mkdir(filepath.Join(w.dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(program, filepath.Join(w.dir, "bin/parley")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, ".curlrc"), []byte("silent\nshow-error\n"), 0o600); err != nil { // no progress meter
		t.Fatal(err)
	}
	shell := exec.Command("sh")
	shell.Dir = w.dir
	shell.Env = append(os.Environ(), "HOME="+w.dir, "NO_COLOR=1", "PARLEY_LISTEN=127.0.0.1:0", "PATH="+filepath.Join(w.dir,
		"path")+":"+os.Getenv("PATH"))
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	shell.Stdout, shell.Stderr = write, write
	if w.shell, err = shell.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	go func() { // ends when everything that the shell started has ended
		defer close(w.lines)
		for out := bufio.NewScanner(read); out.Scan(); {
			w.lines <- out.Text()
		}
	}()
	t.Cleanup(func() {
		w.shell.Close()
		syscall.Kill(-shell.Process.Pid, syscall.SIGTERM) // the shell and the servers that it started
		shell.Wait()
		for range w.lines {
		}
	})
	w.run("loopwa serve >wa.log 2>&1 &\nloopwa exists 6281211112222 && export PARLEY_WHATSAPP_ENDPOINT=$(cat wa.endpoint) " +
		"PARLEY_WHATSAPP_TRUST=$PWD/wa.trust")
	return w
}

// types runs a command of the README. What keeps a terminal, needs a phone or leaves this directory is replaced by the
// same without that.
func (w *newcomer) types(command string) string {
	w.t.Helper()
	command = strings.NewReplacer("/usr/local/bin/", w.dir+"/path/", "/var/lib/parley", w.dir+"/data", "/var/backups/",
		w.dir+"/backups/").Replace(command)
	bare, _, _ := strings.Cut(command, "  #")
	bare = strings.TrimSpace(bare)
	switch {
	case bare == "make run":
		return w.run("bin/parley dev --no-open >dev.log 2>&1 &\nbin/parley health --ready --wait 3m")
	case strings.HasPrefix(bare, "bin/parley listen "):
		return w.run(bare + " --verbose >listen.log 2>&1 &\n" + `until grep -q "^Ready" listen.log; do sleep 0.1; done`)
	case bare == "parley serve &":
		return w.run("parley serve >serve.log 2>&1 &\nparley health --ready --wait 3m")
	case strings.Contains(bare, "channel go-live "):
		return w.run(bare + " --yes --json >steps.json &\nloopwa scan 6281211112222 steps.json && wait $! && tail -n 1 steps.json")
	case strings.Contains(bare, "channel pair "):
		return w.run(bare + " --json >steps.json &\nloopwa scan 6281211112222 steps.json && wait $! && tail -n 1 steps.json")
	case strings.HasPrefix(bare, "bin/parley send demo 99912345670"): // fails on purpose
		return w.run(command + "\n[ $? = 5 ]")
	}
	return w.run(command)
}

// run runs lines of shell and returns what they print. They must succeed.
func (w *newcomer) run(lines string) string {
	w.t.Helper()
	w.ended++
	mark := fmt.Sprintf("=== %d ended with ", w.ended)
	if _, err := fmt.Fprintf(w.shell, "%s\nstatus=$?; echo; echo \"%s$status\"\n", lines, mark); err != nil {
		w.t.Fatal(err)
	}
	var out strings.Builder
	for limit := time.After(readmeTimeout); ; {
		select {
		case line, open := <-w.lines:
			code, isEnd := strings.CutPrefix(line, mark)
			switch {
			case !open:
				w.t.Fatalf("$ %s\nended the shell:\n%s", lines, out.String())
			case isEnd && code != "0":
				w.t.Fatalf("$ %s\nfailed with %s:\n%s\n%s", lines, code, out.String(), w.logs())
			case isEnd:
				return out.String()
			}
			out.WriteString(line + "\n")
		case <-limit:
			w.t.Fatalf("$ %s\ndoes not end:\n%s\n%s", lines, out.String(), w.logs())
		}
	}
}

// logs are what the servers said.
func (w *newcomer) logs() string {
	var all strings.Builder
	for _, name := range []string{"dev.log", "serve.log", "listen.log", "wa.log", "steps.json"} {
		text, _ := os.ReadFile(filepath.Join(w.dir, name)) // it may not have begun
		fmt.Fprintf(&all, "%s:\n%s\n", name, text)
	}
	return all.String()
}
