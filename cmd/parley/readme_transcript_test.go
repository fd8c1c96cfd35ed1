package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
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

// TestReadmeTranscript types the README from start to end: every command of every console block, in order, in the terminal that
// the text before the block names, all servers on one port. What the README shows of a response must be in the response; … matches
// anything.
func TestReadmeTranscript(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > 150 {
		t.Errorf("the README has %d lines: readers leave after 150", lines)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil || !regexp.MustCompile(`(?m)^run: build.*\n(\t@.*\n)*\tbin/parley dev$`).Match(makefile) {
		t.Fatalf("make run does not start bin/parley dev any more (%v)", err)
	}
	w := newNewcomer(t)
	linkID := regexp.MustCompile(`otl_[0-9A-Za-z]+`)
	last := ""
	for _, c := range consoleCommands(t, string(text)) {
		command := c.command
		if strings.Contains(command, "otl_…") {
			command = strings.ReplaceAll(command, "otl_…", linkID.FindString(last))
		}
		w.follow(c.before)
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

// shown is a command of a page, the text before its block if it is the first one of it, and what is shown of its output.
type shown struct {
	before, command string
	output          []string
}

// changing is what differs from run to run: the time of day, how long something takes, a message's progress, and how wide columns are.
var changing = regexp.MustCompile(`\d\d:\d\d:\d\d|\d+\.\d+s|SENT|DELIVERED|READ| +`)

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

func consoleCommands(t *testing.T, text string) []shown {
	t.Helper()
	var commands []shown
	from := 0
	for _, at := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatchIndex(text, -1) {
		typed := blockCommands(t, text[at[2]:at[3]])
		typed[0].before = text[from:at[0]]
		from = at[1]
		commands = append(commands, typed...)
	}
	if len(commands) == 0 {
		t.Fatal("no command was found: does the pattern still fit?")
	}
	return commands
}

// blockCommands are the commands of a console block.
func blockCommands(t *testing.T, block string) []shown {
	t.Helper()
	var commands []shown
	continued := false
	for line := range strings.SplitSeq(strings.TrimSuffix(block, "\n"), "\n") {
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
	return commands
}

// newcomer is a person with two terminals.
type newcomer struct {
	t         *testing.T
	dir       string
	terminals [2]*terminal
	at        *terminal // where the next command is typed
}

// terminal is a shell. One command may keep it until Ctrl-C.
type terminal struct {
	t     *testing.T
	name  string
	dir   string
	group int // of the shell and what it starts
	shell io.WriteCloser
	lines chan string
	ended int
	busy  string // the command that keeps it
}

func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed: make deps installs it, or names its package")
	}
	w := &newcomer{t: t, dir: t.TempDir()}
	program, err := exec.LookPath("parley")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(w.dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(w.dir, "bin/parley")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, ".curlrc"), []byte("silent\nshow-error\n"), 0o600); err != nil { // no progress meter
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String() // in place of 127.0.0.1:7275, which may be in use
	listener.Close()
	for i, name := range []string{"first", "second"} {
		w.terminals[i] = openTerminal(t, name, w.dir, address)
	}
	w.terminals[1].run("loopwa serve >wa.log 2>&1 &\nloopwa exists 6281211112222")
	for _, one := range w.terminals {
		one.run("export PARLEY_WHATSAPP_ENDPOINT=$(cat wa.endpoint) PARLEY_WHATSAPP_TRUST=$PWD/wa.trust")
	}
	w.at = w.terminals[0]
	return w
}

func openTerminal(t *testing.T, name, dir, address string) *terminal {
	t.Helper()
	shell := exec.Command("sh")
	shell.Dir = dir
	shell.Env = append(os.Environ(), "HOME="+dir, "NO_COLOR=1", "PARLEY_LISTEN="+address)
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	shell.Stdout, shell.Stderr = write, write
	s := &terminal{t: t, name: name, dir: dir, lines: make(chan string, 10_000)}
	if s.shell, err = shell.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	s.group = shell.Process.Pid
	go func() { // ends when everything that the shell started has ended
		defer close(s.lines)
		out := bufio.NewScanner(read)
		for out.Buffer(nil, 1<<24); out.Scan(); { // the support bundle is one line
			s.lines <- out.Text()
		}
	}()
	t.Cleanup(func() {
		s.shell.Close()
		syscall.Kill(-s.group, syscall.SIGTERM) // the shell and the servers that it started
		shell.Wait()
		for range s.lines {
		}
	})
	s.run("trap : INT") // Ctrl-C is for the command, as in a shell at a terminal
	return s
}

// follow does what the text before a block says: it goes to the terminal that the text names, and presses Ctrl-C there.
func (w *newcomer) follow(text string) {
	w.t.Helper()
	for _, one := range w.terminals {
		if strings.Contains(text, one.name+" terminal") {
			w.at = one
		}
	}
	if strings.Contains(text, "Ctrl-C") {
		w.at.interrupt()
	}
}

// types runs a command of the README. What needs a phone is done by one that is simulated.
func (w *newcomer) types(command string) string {
	w.t.Helper()
	bare, _, _ := strings.Cut(command, "  #")
	bare = strings.TrimSpace(bare)
	switch {
	case bare == "make run":
		return w.at.keep("bin/parley dev --no-open >dev.log 2>&1", ".parley")
	case bare == "bin/parley serve":
		return w.at.keep(bare+" >serve.log 2>&1", "parley")
	case strings.Contains(bare, "channel pair "):
		return w.at.run(bare + " --json >steps.json &\nloopwa scan 6281211112222 steps.json && wait $! && tail -n 1 steps.json")
	}
	return w.at.run(command)
}

// begin types lines of shell, and returns how the line begins that follows when they have ended.
func (s *terminal) begin(lines string) (mark string) {
	s.t.Helper()
	if s.busy != "" {
		s.t.Fatalf("$ %s\nis typed in the %s terminal, where this still runs: %s", lines, s.name, s.busy)
	}
	s.ended++
	mark = fmt.Sprintf("=== %d ended with ", s.ended)
	if _, err := fmt.Fprintf(s.shell, "%s\nstatus=$?; echo; echo \"%s$status\"\n", lines, mark); err != nil {
		s.t.Fatal(err)
	}
	return mark
}

// run runs lines of shell and returns what they print. They must succeed.
func (s *terminal) run(lines string) string {
	s.t.Helper()
	return s.await(lines, s.begin(lines))
}

// keep runs a server, whose output goes to a file, until Ctrl-C. It returns when the server is ready.
func (s *terminal) keep(command, data string) string {
	s.t.Helper()
	s.begin(command)
	ready := make(chan error, 1)
	go func() {
		health := exec.Command("parley", "health", "--ready", "--wait", readmeTimeout.String(), "--data", filepath.Join(s.dir, data))
		ready <- health.Run()
	}()
	select {
	case err := <-ready:
		if err != nil {
			s.t.Fatalf("$ %s\nis not ready: %v\n%s", command, err, s.logs())
		}
	case <-s.lines:
		s.t.Fatalf("$ %s\nended by itself:\n%s", command, s.logs())
	}
	s.busy = command
	return ""
}

// interrupt presses Ctrl-C, and waits until the command has ended.
func (s *terminal) interrupt() {
	s.t.Helper()
	if s.busy == "" {
		s.t.Fatalf("nothing runs in the %s terminal that Ctrl-C could stop", s.name)
	}
	syscall.Kill(-s.group, syscall.SIGINT)
	s.await(s.busy, fmt.Sprintf("=== %d ended with ", s.ended))
	s.busy = ""
}

func (s *terminal) await(lines, mark string) string {
	s.t.Helper()
	var out strings.Builder
	for limit := time.After(readmeTimeout); ; {
		select {
		case line, open := <-s.lines:
			code, isEnd := strings.CutPrefix(line, mark)
			switch {
			case !open:
				s.t.Fatalf("$ %s\nended the shell:\n%s\n%s", lines, out.String(), s.logs())
			case isEnd && code != "0":
				s.t.Fatalf("$ %s\nfailed with %s:\n%s\n%s", lines, code, out.String(), s.logs())
			case isEnd:
				return out.String()
			}
			out.WriteString(line + "\n")
		case <-limit:
			s.t.Fatalf("$ %s\ndoes not end:\n%s\n%s", lines, out.String(), s.logs())
		}
	}
}

// logs are what the servers said.
func (s *terminal) logs() string {
	var all strings.Builder
	for _, name := range []string{"dev.log", "serve.log", "wa.log", "steps.json", "typed.new"} {
		text, _ := os.ReadFile(filepath.Join(s.dir, name)) // it may not have begun
		fmt.Fprintf(&all, "%s:\n%s\n", name, text)
	}
	return all.String()
}
