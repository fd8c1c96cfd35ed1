// Package cluster_test runs three nodes on one PostgreSQL, disturbs them while clients send, and then compares what was
// acknowledged with what arrived. It is skipped unless PARLEY_POSTGRES=1.
package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// waitLimit is the limit of every wait in these tests. Only a program that hangs reaches it.
const waitLimit = 4 * time.Minute

// program is the path of the program, built for these tests.
var program string

func TestMain(m *testing.M) {
	if os.Getenv("PARLEY_POSTGRES") == "" {
		os.Exit(m.Run()) // all are skipped
	}
	enterOwnNetwork()
	dir, err := os.MkdirTemp("", "parley-cluster-")
	if err == nil {
		program = filepath.Join(dir, "parley")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", program, "parley/cmd/parley").CombinedOutput(); err != nil {
			err = fmt.Errorf("build the program: %w\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// inOwnNetwork is set in the environment of a process that enterOwnNetwork started.
const inOwnNetwork = "PARLEY_OWN_NETWORK"

// enterOwnNetwork starts this process again in a network namespace that has nothing but a loopback interface, where that is possible. The
// bridges of the labs would otherwise come and go in the machine's own network, and browsers there drop their requests whenever one does.
func enterOwnNetwork() {
	if os.Getuid() != 0 || os.Getenv(inOwnNetwork) != "" || exec.Command("unshare", "--net", "ip", "link", "set", "lo", "up").Run() != nil {
		return
	}
	unshare, err := exec.LookPath("unshare")
	self, unknown := os.Executable()
	if err = errors.Join(err, unknown); err == nil {
		args := append([]string{"unshare", "--net", "sh", "-c", `ip link set lo up && exec "$0" "$@"`, self}, os.Args[1:]...)
		err = syscall.Exec(unshare, args, append(os.Environ(), inOwnNetwork+"=1"))
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
