// Package postgrestest runs a PostgreSQL server for tests, on a loopback address and with files of its own. [Again] runs all
// tests of a package on it that open their databases at a [Path].
//
// Invariants: the server ends with the test that started it, and at the latest with the process.
package postgrestest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// startLimit is how long the server may take to start. Only one that cannot start reaches it.
const startLimit = 2 * time.Minute

// Server is a running server.
type Server struct {
	address string
	schemas atomic.Int64
	command func() *exec.Cmd
	process *exec.Cmd
	ended   chan struct{} // closed when process has ended
}

// Start starts a server that ends with the test. The test is skipped unless PARLEY_POSTGRES=1: make check sets it.
func Start(t testing.TB) *Server {
	t.Helper()
	if os.Getenv("PARLEY_POSTGRES") == "" {
		t.Skip("PARLEY_POSTGRES is not set")
	}
	programs := find()
	if programs == "" {
		t.Fatal("PostgreSQL is not installed: apt-get install postgresql")
	}
	dir, err := os.MkdirTemp("", "parley-postgres-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	runAs := owner(t, dir)
	data := filepath.Join(dir, "data")
	run(t, runAs, filepath.Join(programs, "initdb"), "-D", data, "-U", "parley", "--auth=trust",
		"--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")

	port := freePort(t)
	s := &Server{address: "postgres://parley@127.0.0.1:" + port + "/postgres?sslmode=disable"}
	s.command = func() *exec.Cmd {
		server := exec.Command(filepath.Join(programs, "postgres"), "-D", data, "-k", dir, "-h", "127.0.0.1", "-p", port,
			"-c", "fsync=off", "-c", "max_connections=200", "-c", "log_min_messages=error")
		server.SysProcAttr = &syscall.SysProcAttr{Credential: runAs, Pdeathsig: syscall.SIGQUIT}
		return server
	}
	s.Run(t)
	t.Cleanup(func() { s.end(syscall.SIGQUIT) }) // at once: nobody needs the files
	return s
}

// Run starts the server again after Kill.
func (s *Server) Run(t testing.TB) {
	t.Helper()
	s.process = s.command()
	log := &bytes.Buffer{}
	s.process.Stderr = log
	must(t, s.process.Start())
	process, ended := s.process, make(chan struct{})
	s.ended = ended
	go func() {
		process.Wait()
		close(ended)
	}()
	s.wait(t, ended, log)
}

// Kill ends the server as a crash does. Its files stay.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

func (s *Server) end(with syscall.Signal) {
	s.process.Process.Signal(with)
	<-s.ended
}

// Schema makes an empty schema and returns the address of a database that shows only that.
func (s *Server) Schema(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), s.schemas.Add(1))
	conn, err := pgx.Connect(t.Context(), s.address)
	must(t, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), "CREATE SCHEMA "+name)
	must(t, err)
	return s.address + "&search_path=" + name
}

// wait returns when the server answers.
func (s *Server) wait(t testing.TB, ended <-chan struct{}, log *bytes.Buffer) {
	t.Helper()
	deadline := time.Now().Add(startLimit)
	for {
		conn, err := pgx.Connect(t.Context(), s.address)
		if err == nil {
			conn.Close(t.Context())
			return
		}
		select {
		case <-ended:
			t.Fatalf("PostgreSQL ended: %s", log)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("PostgreSQL does not answer: %v", err)
		}
	}
}

// find returns the folder of the server's programs; empty: there is none.
func find() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // Debian
	if len(found) > 0 {
		return filepath.Dir(found[len(found)-1])
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(path)
	}
	return ""
}

// owner returns whom the server runs as: PostgreSQL refuses to run as root.
func owner(t testing.TB, dir string) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	must(t, err)
	uid, err := strconv.Atoi(u.Uid)
	must(t, err)
	gid, err := strconv.Atoi(u.Gid)
	must(t, err)
	must(t, os.Chown(dir, uid, gid))
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func run(t testing.TB, as *syscall.Credential, program string, args ...string) {
	t.Helper()
	c := exec.Command(program, args...)
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	return port
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
