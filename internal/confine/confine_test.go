//go:build linux && (amd64 || arm64)

package confine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// act has this test binary, run as a confined program, do something and say what came of it: "read:FILE".
const act = "CONFINE_TEST_ACT"

func TestMain(m *testing.M) {
	if what, on, ok := strings.Cut(os.Getenv(act), ":"); ok {
		fmt.Print("result: ", acts[what](on))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// acts are what a program might do that somebody took over.
var acts = map[string]func(string) error{
	"dial": func(address string) error {
		_, err := net.Dial("tcp", address)
		return err
	},
	"read": func(file string) error {
		_, err := os.ReadFile(file)
		return err
	},
	"list": func(file string) error {
		_, err := os.ReadDir(filepath.Dir(file))
		return err
	},
	"open to write": func(file string) error { return openFile(file, os.O_WRONLY) },
	"empty":         func(file string) error { return openFile(file, os.O_RDONLY|os.O_TRUNC) },
	"create":        func(file string) error { return openFile(file+".new", os.O_RDONLY|os.O_CREATE) },
	"truncate":      func(file string) error { return os.Truncate(file, 0) },
	"remove":        os.Remove,
	"rename":        func(file string) error { return os.Rename(file, file+".moved") },
	"link":          func(file string) error { return os.Link(file, file+".linked") },
	"symlink":       func(file string) error { return os.Symlink(file, file+".linked") },
	"mkdir":         func(file string) error { return os.Mkdir(file+".d", 0o700) },
	"chmod":         func(file string) error { return os.Chmod(file, 0) },
	"touch":         func(file string) error { return os.Chtimes(file, time.Time{}, time.Unix(1, 0)) },
	"signal":        func(string) error { return unix.Kill(os.Getppid(), 0) },
	"signal group":  func(string) error { return unix.Kill(0, 0) },
	"signal thread": func(string) error { return unix.Tgkill(os.Getppid(), os.Getppid(), 0) },
	"pidfd": func(string) error {
		_, err := unix.PidfdOpen(os.Getppid(), 0)
		return err
	},
	"limit": func(string) error {
		var limit unix.Rlimit
		return unix.Prlimit(os.Getppid(), unix.RLIMIT_CORE, nil, &limit)
	},
	"memory": func(string) error { return openFile(fmt.Sprintf("/proc/%d/mem", os.Getppid()), os.O_RDONLY) },
	"hide memory": func(string) error {
		err := HideMemory()
		if visible, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); visible != 0 {
			err = errors.Join(err, errors.New("it is still visible"))
		}
		return err
	},
	"environment": func(string) error { return openFile(fmt.Sprintf("/proc/%d/environ", os.Getppid()), os.O_RDONLY) },
}

func openFile(path string, flags int) error {
	f, err := os.OpenFile(path, flags, 0o600)
	if err == nil {
		f.Close()
	}
	return err
}

// run runs a confined program and returns what it says, and how it ended.
func run(t *testing.T, l Limits, program string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // only a program that ignores its limits takes so long
	defer cancel()
	out, err := Command(ctx, l, program, args...).CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s %q goes on and on", program, args)
	}
	return string(out), err
}

func TestProgramRunsAsItIs(t *testing.T) {
	out, err := run(t, Limits{Memory: 512 << 20, CPU: time.Minute}, "sh", "-c", `echo "$0, $1"; exit 3`, "one", "two words")
	if ended, ok := errors.AsType[*exec.ExitError](err); out != "one, two words\n" || !ok || ended.ExitCode() != 3 {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := run(t, Limits{}, "no-such-program"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestMemoryIsLimited(t *testing.T) {
	fill := func(l Limits) error { // its output is discarded: it may not open a file to write to
		return Command(t.Context(), l, "dd", "if=/dev/zero", "bs=256M", "count=1").Run()
	}
	if err := fill(Limits{Memory: 1 << 30}); err != nil {
		t.Errorf("within the limit: %v", err)
	}
	if err := fill(Limits{Memory: 128 << 20}); err == nil {
		t.Error("over the limit")
	}
}

func TestCPUIsLimited(t *testing.T) {
	_, err := run(t, Limits{CPU: time.Second}, "sh", "-c", "while :; do :; done")
	if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.Exited() {
		t.Errorf("it ended with %v, want a signal", err)
	}
}

func TestFilesAreLimited(t *testing.T) {
	file := filepath.Join(t.TempDir(), "written")
	if out, err := run(t, Limits{}, "sh", "-c", `echo something > "$0"`, file); err == nil {
		t.Errorf("a file could be written: %s", out)
	}
	if info, err := os.Stat(file); err == nil && info.Size() > 0 {
		t.Errorf("the file has %d bytes", info.Size())
	}
	if out, err := run(t, Limits{}, "sh", "-c", "ulimit -n"); err != nil || strings.TrimSpace(out) != fmt.Sprint(maxFiles) {
		t.Errorf("%s files may be open, %v", out, err)
	}
}

func TestNetworkIsDenied(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	mustBeDenied(t, "dial", ln.Addr().String())
}

// mustBeDenied has this test binary do something, which works unless it is confined.
func mustBeDenied(t *testing.T, what, on string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(act, what+":"+on)
	out, err := run(t, Limits{}, self)
	if err != nil || !strings.Contains(out, "operation not permitted") && !strings.Contains(out, "permission denied") {
		t.Errorf("%s, confined: %s, %v", what, out, err)
	}
	free, err := exec.CommandContext(t.Context(), self).CombinedOutput()
	if err != nil || string(free) != "result: <nil>" {
		t.Errorf("%s, without limits: %s, %v", what, free, err)
	}
}

// newSecret makes a file such as secret.key.
func newSecret(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "secret.key")
	if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFilesAndProcessesAreUntouchable(t *testing.T) {
	for _, what := range []string{"open to write", "empty", "create", "truncate", "remove", "rename", "link", "symlink", "mkdir", "chmod",
		"touch", "signal", "signal group", "signal thread", "pidfd", "limit"} {
		t.Run(what, func(t *testing.T) { mustBeDenied(t, what, newSecret(t)) })
	}
}

func TestFilesAreHidden(t *testing.T) {
	if !HidesFiles() {
		t.Skip("this kernel has no Landlock")
	}
	for _, what := range []string{"read", "list", "memory", "environment"} {
		t.Run(what, func(t *testing.T) {
			if _, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && what == "memory" {
				t.Skip("Yama hides the memory of a parent already")
			}
			mustBeDenied(t, what, newSecret(t))
		})
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	input := newSecret(t)
	t.Setenv(act, "read:"+input)
	if out, err := run(t, Limits{Input: input}, self); err != nil || out != "result: <nil>" {
		t.Errorf("the input cannot be read: %s, %v", out, err)
	}
}

func TestHideMemory(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(act, "hide memory:") // in a process of its own
	if out, err := exec.CommandContext(t.Context(), self).CombinedOutput(); err != nil || string(out) != "result: <nil>" {
		t.Errorf("%s, %v", out, err)
	}
}

// TestProgramsStart runs a program often, several at a time, with a limit that this process is above already: nothing may
// be allocated between the limit and the program.
func TestProgramsStart(t *testing.T) {
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 100 {
				out, err := Command(t.Context(), Limits{Memory: 1 << 30, CPU: time.Minute}, "true").CombinedOutput()
				if err != nil {
					t.Errorf("%v: %.500s", err, out)
					return
				}
			}
		})
	}
	running.Wait()
}
