// Package postgrestest runs a PostgreSQL server for tests, on a loopback address and with files of its own. [Again] runs all
// tests of a package on it that open their databases at a [Path].
//
// Invariants: the server ends with the test that started it, and at the latest with the process.
package postgrestest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// startLimit is how long the server may take to start. Only one that cannot start reaches it.
const startLimit = 2 * time.Minute

// Options configure a server. The zero value is for tests: files of the system's temporary directory, which are not synced.
type Options struct {
	Dir       string   // where its files are made; empty: the system's temporary directory
	OwnLog    bool     // its log of changes is in the system's temporary directory, wherever Dir is
	Fsync     bool     // commits reach the disk
	Host      string   // the address it listens on, which hosts of the same network may use; empty: 127.0.0.1
	Port      string   // empty: a free one
	Namespace string   // the network namespace that it runs in; empty: this one
	Settings  []string // of postgresql.conf, such as work_mem=8MB
}

// Server is a running server.
type Server struct {
	options Options
	dir     string // of its files
	log     string // the directory of its log of changes; empty: in dir
	as      *syscall.Credential
	address string
	schemas atomic.Int64
	process *exec.Cmd
	ended   chan struct{} // closed when process has ended
}

// Start starts a server that ends with the test. The test is skipped unless PARLEY_POSTGRES=1: make check sets it.
func Start(t testing.TB) *Server {
	t.Helper()
	return StartWith(t, Options{})
}

// StartWith is Start with options.
func StartWith(t testing.TB, o Options) *Server {
	t.Helper()
	if os.Getenv("PARLEY_POSTGRES") == "" {
		t.Skip("PARLEY_POSTGRES is not set")
	}
	s, err := New(o)
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

// New starts a server that runs until Close.
func New(o Options) (*Server, error) {
	s, err := prepare(o)
	if err != nil {
		return nil, err
	}
	args := []string{"-D", s.data(), "-U", "parley", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"}
	if s.log != "" {
		args = append(args, "--waldir="+s.log)
	}
	if err = s.tool("initdb", args...); err == nil {
		err = appendTo(filepath.Join(s.data(), "pg_hba.conf"), "host all all samenet trust\nhost replication all samenet trust\n")
	}
	if err == nil {
		err = s.runFirst(o.Port == "")
	}
	if err != nil {
		s.removeFiles()
		return nil, err
	}
	return s, nil
}

// runFirst is run for a new server. If another program has taken its port meanwhile, it gets another one, unless it must have this.
func (s *Server) runFirst(anyPort bool) error {
	err := s.run()
	for range 5 {
		if !anyPort || err == nil || !strings.Contains(err.Error(), "Address already in use") {
			break
		}
		port, free := freePort()
		if free != nil {
			return free
		}
		s.usePort(port)
		err = s.run()
	}
	return err
}

func (s *Server) usePort(port string) {
	s.options.Port = port
	s.address = "postgres://parley@" + s.Host() + "/postgres?sslmode=disable"
}

// prepare makes the directory of a server and chooses its address.
func prepare(o Options) (s *Server, err error) {
	if find() == "" {
		return nil, errors.New("PostgreSQL is not installed: apt-get install postgresql")
	}
	o.Host = cmp.Or(o.Host, "127.0.0.1")
	if o.Port == "" {
		if o.Port, err = freePort(); err != nil {
			return nil, err
		}
	}
	s = &Server{options: o}
	s.usePort(o.Port)
	if s.dir, err = os.MkdirTemp(o.Dir, "parley-postgres-"); err != nil {
		return nil, err
	}
	if s.as, err = owner(s.dir); err == nil && o.OwnLog {
		if s.log, err = os.MkdirTemp("", "parley-postgres-log-"); err == nil {
			_, err = owner(s.log)
		}
	}
	if err != nil {
		s.removeFiles()
		return nil, err
	}
	return s, nil
}

func (s *Server) removeFiles() {
	os.RemoveAll(s.dir)
	if s.log != "" {
		os.RemoveAll(s.log)
	}
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Host is the address that it listens on.
func (s *Server) Host() string { return net.JoinHostPort(s.options.Host, s.options.Port) }

// Address is the address of its database.
func (s *Server) Address() string { return s.address }

// Close ends the server and removes its files.
func (s *Server) Close() {
	s.end(syscall.SIGQUIT) // at once: nobody needs the files
	s.removeFiles()
}

// Run starts the server again after Kill.
func (s *Server) Run(t testing.TB) {
	t.Helper()
	must(t, s.run())
}

func (s *Server) run() error {
	args := []string{"-D", s.data(), "-k", s.dir, "-h", s.options.Host, "-p", s.options.Port,
		"-c", "max_connections=200", "-c", "log_min_messages=error"}
	if !s.options.Fsync {
		args = append(args, "-c", "fsync=off")
	}
	for _, setting := range s.options.Settings {
		args = append(args, "-c", setting)
	}
	s.process = s.command(filepath.Join(find(), "postgres"), args...)
	s.process.SysProcAttr.Pdeathsig = syscall.SIGQUIT
	log := &bytes.Buffer{}
	s.process.Stderr = log
	if err := s.process.Start(); err != nil {
		return err
	}
	process, ended := s.process, make(chan struct{})
	s.ended = ended
	go func() {
		process.Wait()
		close(ended)
	}()
	return s.wait(ended, log)
}

// command makes a command of the server's user, in its network namespace.
func (s *Server) command(program string, args ...string) *exec.Cmd {
	c := exec.Command(program, args...)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	if s.options.Namespace != "" { // only root may enter it; each program replaces itself with the next
		c = exec.Command("nsenter", append([]string{"--net=/run/netns/" + s.options.Namespace, "setpriv", fmt.Sprint("--reuid=", s.as.Uid),
			fmt.Sprint("--regid=", s.as.Gid), "--clear-groups", "--pdeathsig=QUIT", program}, args...)...)
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	c.Dir = "/"
	return c
}

// tool runs one of PostgreSQL's programs.
func (s *Server) tool(name string, args ...string) error {
	if out, err := s.command(filepath.Join(find(), name), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// Kill ends the server as a crash does. Its files stay.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

func (s *Server) end(with syscall.Signal) {
	if s.process == nil {
		return
	}
	s.process.Process.Signal(with)
	<-s.ended
}

// Schema makes an empty schema and returns the address of a database that shows only that.
func (s *Server) Schema(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), s.schemas.Add(1))
	must(t, s.Exec("CREATE SCHEMA "+name))
	return s.address + "&search_path=" + name
}

// Exec runs a statement.
func (s *Server) Exec(statement string) error {
	_, err := s.Query(statement)
	return err
}

// Query runs a statement and returns the first column of its first row as a text.
func (s *Server) Query(statement string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	return s.query(ctx, statement)
}

func (s *Server) query(ctx context.Context, statement string) (string, error) {
	conn, err := pgx.Connect(ctx, s.address)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, statement, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	value := ""
	if rows.Next() {
		if values := rows.RawValues(); len(values) > 0 {
			value = string(values[0])
		}
	}
	rows.Close()
	return value, rows.Err()
}

// wait returns when the server answers.
func (s *Server) wait(ended <-chan struct{}, log *bytes.Buffer) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	go func() { // another program may listen on its port, and say nothing
		select {
		case <-ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		data, err := s.query(ctx, "SHOW data_directory") // another server may have taken the port
		if err == nil && data == s.data() {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("PostgreSQL ended: %s", log)
		case <-time.After(20 * time.Millisecond):
		}
		if ctx.Err() != nil {
			return fmt.Errorf("PostgreSQL does not answer: %w", err)
		}
	}
}

// RoundTrip is the median time that a database takes to answer.
func RoundTrip(address string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	took := make([]time.Duration, 201)
	for i := range took {
		began := time.Now()
		if err := conn.Ping(ctx); err != nil {
			return 0, err
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
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
func owner(dir string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, uid, gid)
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// freePort chooses a port below those that the system gives to clients, because a server takes it a while later.
func freePort() (string, error) {
	for {
		port := strconv.Itoa(20_000 + rand.IntN(12_000))
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			return port, l.Close()
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return "", err
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
