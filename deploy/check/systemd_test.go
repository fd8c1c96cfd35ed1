package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// maxExposure is the most that "systemd-analyze security" may find, in tenths: 0 is closed, 100 is open.
const maxExposure = "20"

const nobody = 65534

// unit writes the unit with the program that the tests build, and returns its path.
func unit(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "parley.service")
	text := strings.ReplaceAll(read(t, deploy, "parley.service"), "/usr/local/bin/parley", parley(t))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestUnit has systemd read the unit and judge how open it is.
func TestUnit(t *testing.T) {
	need(t, "systemd-analyze", "systemd")
	path := unit(t)
	if out := runAll(t, exec.Command("systemd-analyze", "verify", "--man=no", path)); strings.TrimSpace(out) != "" {
		t.Errorf("systemd-analyze verify: %s", out)
	}
	run(t, "systemd-analyze", "security", "--offline=true", "--threshold="+maxExposure, path)
}

// runAll is run with what the program prints on stderr.
func runAll(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out)
}

// TestUnitAllowsWhatParleyDoes traces a server, a send, the doctor with ffmpeg, and the end of the server. The unit must allow
// every system call and every family of sockets: systemd itself does not run here.
func TestUnitAllowsWhatParleyDoes(t *testing.T) {
	t.Parallel()
	need(t, "systemd-analyze", "systemd")
	need(t, "strace", "strace")
	need(t, "ffmpeg", "ffmpeg")
	text := read(t, deploy, "parley.service")
	allowed := allowedCalls(t, text)

	dir := newDir(t, nobody)
	trace, data := filepath.Join(dir, "trace"), filepath.Join(dir, "data")
	calls := func(command ...string) *exec.Cmd {
		cmd := exec.Command("strace", append([]string{"-f", "-qq", "-A", "-s", "0", "-o", trace, parley(t)}, command...)...)
		cmd.Dir = dir
		if os.Getuid() == 0 { // root does more
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		return cmd
	}
	stop := start(t, calls("dev", "--data", data, "--listen", "127.0.0.1:0", "--no-open"))
	eventually(t, "the server is ready", func() error {
		return exec.Command(parley(t), "health", "--ready", "--data", data).Run()
	})
	run(t, parley(t), "send", "demo", "6281234567890", "halo", "--data", data)
	if out, _ := calls("doctor", "--data", data).CombinedOutput(); !strings.Contains(string(out), "libopus") {
		t.Errorf("the doctor does not find ffmpeg:\n%s", out)
	}
	if err := stop(syscall.SIGTERM); err != nil {
		t.Errorf("the server ended with %v", err)
	}

	lines := read(t, trace)
	used := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^\d+ +([a-z0-9_]+)\(`).FindAllStringSubmatch(lines, -1) {
		used[found[1]] = true
	}
	if !used["execve"] || !used["accept4"] || !used["fsync"] && !used["fdatasync"] {
		t.Fatalf("the trace has not everything: %v", used)
	}
	for call := range used {
		if !allowed[call] {
			t.Errorf("the unit does not allow the system call %s", call)
		}
	}
	families := strings.Fields(value(text, "RestrictAddressFamilies"))
	for _, found := range regexp.MustCompile(`\bsocket\((AF_[A-Z0-9]+)`).FindAllStringSubmatch(lines, -1) {
		if !slices.Contains(families, found[1]) {
			t.Errorf("the unit does not allow sockets of %s", found[1])
		}
	}
	if regexp.MustCompile(`PROT_WRITE\|PROT_EXEC`).MatchString(lines) {
		t.Error("memory is both writable and executable, which the unit does not allow")
	}
}

// value is the last value of a key of the unit.
func value(unit, key string) string {
	found := regexp.MustCompile(`(?m)^`+key+`=(.*)$`).FindAllStringSubmatch(unit, -1)
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1][1]
}

// allowedCalls resolves the filters of the unit with the sets of systemd.
func allowedCalls(t *testing.T, unit string) map[string]bool {
	t.Helper()
	sets := map[string][]string{}
	set := ""
	for line := range strings.Lines(run(t, "systemd-analyze", "syscall-filter")) {
		name := strings.TrimSpace(line)
		switch {
		case name == "" || strings.HasPrefix(name, "#"):
		case line[0] != ' ':
			set = name
		default:
			sets[set] = append(sets[set], name)
		}
	}
	var expand func(name string) []string
	expand = func(name string) []string {
		if !strings.HasPrefix(name, "@") {
			return []string{name}
		}
		var all []string
		for _, element := range sets[name] {
			all = append(all, expand(element)...)
		}
		return all
	}
	allowed := map[string]bool{}
	for _, call := range expand("@default") { // always allowed
		allowed[call] = true
	}
	for _, found := range regexp.MustCompile(`(?m)^SystemCallFilter=(~?)(.+)$`).FindAllStringSubmatch(unit, -1) {
		for _, name := range strings.Fields(found[2]) {
			for _, call := range expand(name) {
				allowed[call] = found[1] == ""
			}
		}
	}
	if len(allowed) < 100 {
		t.Fatalf("the unit allows %d system calls, which cannot be all", len(allowed))
	}
	return allowed
}
