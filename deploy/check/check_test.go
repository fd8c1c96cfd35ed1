// Package check tries the files of the folder deploy, as far as that is possible on one machine and without an image
// registry: it builds and runs the images, starts PostgreSQL and the proxy with their configuration, and loads the rest
// as the programs do that it is for.
//
// Invariant: what cannot be tried fails. A missing program is named, and never skips a test.
package check

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	root   = "../.."
	deploy = ".."

	// hang is a time that only something that hangs reaches.
	hang = 2 * time.Minute
)

// need returns the path of a program, or fails with the name of its Debian package.
func need(t *testing.T, program, from string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is missing. Install the Debian package %s, or run make deploy-check as root.", program, from)
	}
	return path
}

func needRoot(t *testing.T, what string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatalf("%s only as root. Run make deploy-check as root, in a container or a virtual machine.", what)
	}
}

// run returns what a program prints on stdout, and fails the test if the program fails.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	return runCmd(t, exec.Command(name, args...))
}

func runCmd(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var out, all bytes.Buffer
	cmd.Stdout = &both{&out, &all}
	cmd.Stderr = &all
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, all.String())
	}
	return out.String()
}

type both struct{ a, b *bytes.Buffer }

func (w *both) Write(p []byte) (int, error) {
	w.a.Write(p)
	return w.b.Write(p)
}

// start runs a program until the test ends. It returns a function that ends it with a signal and returns its error.
func start(t *testing.T, cmd *exec.Cmd) (stop func(syscall.Signal) error) {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), "log-*")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var result error
	go func() {
		result = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s:\n%s", cmd.Args[0], text)
		}
	})
	return func(signal syscall.Signal) error {
		t.Helper()
		syscall.Kill(-cmd.Process.Pid, signal)
		select {
		case <-ended:
			return result
		case <-time.After(hang):
			t.Fatalf("%s did not end after %v", cmd.Args[0], signal)
			return nil
		}
	}
}

// eventually waits for a condition. It fails with what the last try returned.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not so after %s: %s: %v", hang, what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// freePort returns a port of loopback that nobody listens on now.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// newDir makes a directory of another user, if we are root. Its path is short enough for a socket.
func newDir(t *testing.T, uid int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "check-")
	if err == nil && os.Getuid() == 0 {
		err = os.Chown(dir, uid, -1)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// absolute is a path that programs find from any directory.
func absolute(t *testing.T, elements ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// files returns the files of deploy, without this folder.
func files(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(deploy, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "check" || d.Name() == "secrets"):
			return fs.SkipDir
		case !d.IsDir():
			texts[strings.TrimPrefix(path, deploy+"/")] = read(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// release is the version that the source becomes.
func release(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^const release = "(.+)"$`).FindStringSubmatch(read(t, root, "cmd/parley/version.go"))
	if found == nil {
		t.Fatal("cmd/parley/version.go does not say the release")
	}
	return found[1]
}

var buildOnce = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programs, "parley")
	cmd := exec.Command("go", "build", "-C", root, "-trimpath", "-ldflags", "-s -w", "-o", path, "./cmd/parley")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build parley: %w\n%s", err, out)
	}
	return path, nil
})

// parley builds the program once.
func parley(t *testing.T) string {
	t.Helper()
	path, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// programs is a directory for what is built once. Other users can read it.
var programs string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "parley-check-")
		if err == nil {
			err = os.Chmod(dir, 0o755)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		programs = dir
		defer os.RemoveAll(dir)
		return m.Run()
	}())
}
