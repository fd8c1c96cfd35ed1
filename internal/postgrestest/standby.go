package postgrestest

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Standby starts a synchronous standby: from now on the server confirms a commit when the standby has it. A port may be that of
// a server that was killed.
func (s *Server) Standby(t testing.TB, port string) *Server {
	t.Helper()
	o := s.options
	o.Port = port
	standby, err := prepare(o)
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(standby.dir) })
	must(t, standby.tool("pg_basebackup", "-D", standby.data(), "-h", s.options.Host, "-p", s.options.Port, "-U", "parley",
		"--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"))
	// After its promotion it has no standby, so its commits must not wait for one. The last line of a setting counts.
	must(t, appendTo(filepath.Join(standby.data(), "postgresql.auto.conf"), "synchronous_standby_names = ''\n"))
	must(t, standby.runFirst(port == ""))
	t.Cleanup(standby.Close)
	must(t, s.Exec("ALTER SYSTEM SET synchronous_standby_names = '*'"))
	must(t, s.Exec("SELECT pg_reload_conf()"))
	s.await(t, "the standby is synchronous", "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", "1")
	return standby
}

// Promote makes a standby accept writes.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	must(t, s.tool("pg_ctl", "promote", "--pgdata="+s.data(), "--wait"))
}

// PID is the id of its first process.
func (s *Server) PID() int { return s.process.Process.Pid }

// Port is the port that it listens on.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.Host())
	return port
}

// await waits until a query returns a value.
func (s *Server) await(t testing.TB, what, query, want string) {
	t.Helper()
	for deadline := time.Now().Add(startLimit); ; time.Sleep(20 * time.Millisecond) {
		got, err := s.Query(query)
		if err == nil && got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never: %s: %s, %v", what, got, err)
		}
	}
}
