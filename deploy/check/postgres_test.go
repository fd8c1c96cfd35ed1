package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// postgres runs the scripts of deploy/postgres with the PostgreSQL of this machine, as the official image runs them.
type postgres struct {
	t    *testing.T
	dir  string
	as   *syscall.Credential
	path string // of PostgreSQL's programs
	env  []string

	primary, standby int // ports
}

func newPostgres(t *testing.T) *postgres {
	t.Helper()
	needRoot(t, "PostgreSQL can be started as its own user")
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		t.Fatal("initdb is missing. Install the Debian package postgresql, or run make deploy-check as root.")
	}
	owner, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	dir := newDir(t, uid)
	p := &postgres{t: t, dir: dir, as: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
		path: filepath.Dir(slices.Max(found)), primary: freePort(t), standby: freePort(t)}
	for name, text := range map[string]string{
		"password": "one\n", "replication": "it's \"two\"\n",
		"primary.sh": read(t, deploy, "postgres/primary.sh"), "standby.sh": read(t, deploy, "postgres/standby.sh"),
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chown(path, uid, gid)); err != nil {
			t.Fatal(err)
		}
	}
	// As in docs/deploy.md, for the addresses here.
	runCmd(t, p.cmd(t.Context(), nil, "/usr/bin/openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt",
		"ec_paramgen_curve:prime256v1", "-days", "2", "-subj", "/CN=postgres", "-addext", "subjectAltName=IP:127.0.0.1",
		"-keyout", filepath.Join(dir, "postgres.key"), "-out", p.certificate()))
	p.env = []string{"CERTIFICATE_FILE=" + p.certificate(), "CERTIFICATE_KEY_FILE=" + filepath.Join(dir, "postgres.key"),
		"PATH=" + p.path + ":" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + dir, "PGHOST=" + dir,
		"POSTGRES_USER=parley", "POSTGRES_DB=parley", "REPLICATION_PASSWORD_FILE=" + filepath.Join(dir, "replication")}
	return p
}

// certificate is the file with the certificate of both servers.
func (p *postgres) certificate() string { return filepath.Join(p.dir, "postgres.crt") }

// cmd makes a command of PostgreSQL's user with more variables.
func (p *postgres) cmd(ctx context.Context, env []string, name string, args ...string) *exec.Cmd {
	if !strings.Contains(name, "/") && name != "bash" {
		name = filepath.Join(p.path, name)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = p.dir
	cmd.Env = append(slices.Clone(p.env), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
	return cmd
}

// sql runs a statement over TCP with the password, at the server that accepts writes.
func (p *postgres) sql(ctx context.Context, statement string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, hang)
	defer cancel()
	cmd := p.cmd(ctx, nil, "psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1",
		"--command="+statement, p.url()+"&target_session_attrs=read-write")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), errors.Join(ctx.Err(), err)
}

// url is the address of both servers.
func (p *postgres) url() string {
	return fmt.Sprintf("postgres://parley:one@127.0.0.1:%d,127.0.0.1:%d/parley?sslmode=verify-full&sslrootcert=%s", p.primary, p.standby,
		p.certificate())
}

// startPrimary does what the official image does at the first start of a database, and starts it.
func (p *postgres) startPrimary() (stop func(syscall.Signal) error) {
	t, ctx, data := p.t, p.t.Context(), filepath.Join(p.dir, "primary")
	runCmd(t, p.cmd(ctx, nil, "initdb", "--pgdata="+data, "--encoding=UTF8", "--username=parley", "--pwfile="+filepath.Join(p.dir, "password"),
		"--auth-host=scram-sha-256", "--auth-local=trust"))
	conf := fmt.Sprintf("unix_socket_directories = '%s'\nlisten_addresses = '127.0.0.1'\nfsync = off\n", p.dir)
	env := []string{"PGDATA=" + data, fmt.Sprintf("PGPORT=%d", p.primary)}
	for file, text := range map[string]string{"postgresql.conf": conf, "pg_hba.conf": "host all all all scram-sha-256\n"} {
		f, err := os.OpenFile(filepath.Join(data, file), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString(text)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	runCmd(t, p.cmd(ctx, env, "pg_ctl", "--wait", "--silent", "--log="+filepath.Join(p.dir, "log"),
		"--options=-c listen_addresses=", "start"))
	runCmd(t, p.cmd(ctx, env, "createdb", "--username=parley", "parley"))
	runCmd(t, p.cmd(ctx, env, "bash", filepath.Join(p.dir, "primary.sh")))
	runCmd(t, p.cmd(ctx, env, "pg_ctl", "--wait", "--silent", "--mode=fast", "stop"))
	stop = start(t, p.cmd(ctx, env, "postgres"))
	eventually(t, "the primary accepts connections", func() error {
		_, err := p.sql(ctx, "SELECT 1")
		return err
	})
	return stop
}

func (p *postgres) startStandby() (stop func(syscall.Signal) error) {
	env := []string{"PGDATA=" + filepath.Join(p.dir, "standby"), fmt.Sprintf("PGPORT=%d", p.standby), "PRIMARY=127.0.0.1",
		fmt.Sprintf("PRIMARY_PORT=%d", p.primary)}
	return start(p.t, p.cmd(p.t.Context(), env, "bash", filepath.Join(p.dir, "standby.sh")))
}

// TestPostgres starts the primary and its standby: a commit waits for the standby. Then the primary is killed and the
// standby promoted: what was committed is there, and it accepts writes alone.
func TestPostgres(t *testing.T) {
	t.Parallel()
	p := newPostgres(t)
	stopPrimary := p.startPrimary()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if out, err := p.sql(ctx, "CREATE TABLE alone (n int)"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a commit did not wait for the standby: %s, %v", out, err)
	}

	stopStandby := p.startStandby()
	eventually(t, "the standby is synchronous", func() error {
		out, err := p.sql(t.Context(), "SELECT application_name || ' ' || sync_state || ' ' || ssl FROM pg_stat_replication "+
			"JOIN pg_stat_ssl USING (pid)")
		if err == nil && out != "standby sync true" {
			err = errors.New(out)
		}
		return err
	})
	if out, err := p.sql(t.Context(), "CREATE TABLE kept AS SELECT 42 AS n"); err != nil {
		t.Fatalf("%s: %v", out, err)
	}

	// It follows again after a restart.
	if err := stopStandby(syscall.SIGINT); err != nil {
		t.Errorf("the standby ended with %v", err)
	}
	p.startStandby()
	if out, err := p.sql(t.Context(), "INSERT INTO kept VALUES (43)"); err != nil {
		t.Fatalf("%s: %v", out, err)
	}

	stopPrimary(syscall.SIGKILL)
	runCmd(t, p.cmd(t.Context(), []string{"PGDATA=" + filepath.Join(p.dir, "standby")}, "pg_ctl", "--wait", "promote"))
	if out, err := p.sql(t.Context(), "INSERT INTO kept VALUES (44); SELECT sum(n) FROM kept"); err != nil || out != "129" {
		t.Errorf("after the failover: %s, %v", out, err)
	}
}
