// Package cluster_test runs three nodes on one PostgreSQL, disturbs them while clients send, and then compares what was
// acknowledged with what arrived. It is skipped unless PARLEY_POSTGRES=1.
package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
