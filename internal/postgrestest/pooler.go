package postgrestest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Pooler starts PgBouncer in front of the server, in a mode such as "session" or "transaction", and returns the address of a
// database at the server as it is there. The test is skipped if PgBouncer is not installed: make check installs it.
func (s *Server) Pooler(t testing.TB, mode, address string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program = "/usr/sbin/pgbouncer"; exec.Command("test", "-x", program).Run() != nil {
			t.Skip("PgBouncer is not installed: apt-get install pgbouncer")
		}
	}
	port, err := freePort()
	must(t, err)
	dir, err := os.MkdirTemp("", "parley-pooler-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	_, err = owner(dir)
	must(t, err)
	file := filepath.Join(dir, "pgbouncer.ini")
	must(t, os.WriteFile(file, fmt.Appendf(nil, `[databases]
postgres = host=%s port=%s dbname=postgres user=parley
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = 100
`, s.options.Host, s.options.Port, port, mode), 0o644))
	pooler := s.command(program, file)
	pooler.SysProcAttr.Pdeathsig = syscall.SIGKILL
	log := &bytes.Buffer{}
	pooler.Stderr = log
	must(t, pooler.Start())
	t.Cleanup(func() {
		pooler.Process.Kill()
		pooler.Wait()
		if t.Failed() {
			t.Logf("PgBouncer: %s", log)
		}
	})
	behind := strings.Replace(address, s.Host(), "127.0.0.1:"+port, 1)
	for deadline := time.Now().Add(startLimit); ; time.Sleep(20 * time.Millisecond) {
		bare, _, _ := strings.Cut(behind, "&search_path") // PgBouncer refuses it when a connection starts
		if _, err = RoundTrip(bare); err == nil {
			return behind
		}
		if time.Now().After(deadline) {
			t.Fatalf("PgBouncer does not answer: %v", err)
		}
	}
}
