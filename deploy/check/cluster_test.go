package check

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestCluster runs what compose.cluster.yaml describes on this machine, without containers: PostgreSQL with its standby, the
// three nodes with the settings of the file, and the proxy. Messages are sent through the proxy while a node is stopped, a node
// is killed, and the primary fails. Each must be accepted, at the latest when it is repeated with its key.
func TestCluster(t *testing.T) {
	t.Parallel()
	p := newPostgres(t)
	stopPrimary := p.startPrimary()
	p.startStandby()
	eventually(t, "the standby is there", func() error {
		_, err := p.sql(t.Context(), "CREATE TABLE IF NOT EXISTS tried (n int)")
		return err
	})

	url := fmt.Sprintf("http://127.0.0.1:%d", freePort(t))
	var addresses, dirs []string
	var stops []func(syscall.Signal) error
	shared := secretsFor(t, p)
	for _, name := range []string{"node1", "node2", "node3"} {
		listen := fmt.Sprintf("127.0.0.1:%d", freePort(t))
		data := filepath.Join(t.TempDir(), name)
		cmd := exec.Command(parley(t), "serve")
		cmd.Env = nodeEnvironment(t, name, shared, "PARLEY_PUBLIC_URL="+url, "PARLEY_LISTEN="+listen, "PARLEY_DATA="+data)
		stops = append(stops, start(t, cmd))
		addresses, dirs = append(addresses, listen), append(dirs, data)
		eventually(t, name+" is ready", func() error { // one after the other: the first makes the tables
			_, err := get("http://" + listen + "/readyz")
			return err
		})
	}
	proxyAt(t, url, addresses...)

	run(t, parley(t), "channel", "create", "toko", "--name", "Toko", "--data", dirs[0])
	token := strings.TrimSpace(run(t, parley(t), "token", "create", "--kind", "channel", "--channel", "toko", "--data", dirs[1]))
	n := 0
	send := func(when string) {
		t.Helper()
		n++
		key := fmt.Sprintf("check-%d", n)
		eventually(t, "a message is accepted "+when, func() error { return post(url, token, key) })
	}
	send("by three nodes")
	stops[0](syscall.SIGTERM)
	send("after a node was stopped")
	stops[1](syscall.SIGKILL)
	send("after a node was killed")
	stopPrimary(syscall.SIGKILL)
	runCmd(t, p.cmd(t.Context(), []string{"PGDATA=" + filepath.Join(p.dir, "standby")}, "pg_ctl", "--wait", "promote"))
	send("after the primary failed")
	if out, err := p.sql(t.Context(), "SELECT count(*) FROM message WHERE from_me = 1"); err != nil || out != fmt.Sprint(n) {
		t.Errorf("%s messages of %d are in the database, %v", out, n, err)
	}
}

// secretsFor makes the secrets of the nodes, as docs/deploy.md says, and the directory for media.
func secretsFor(t *testing.T, p *postgres) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"database": p.url(), "secret.key": run(t, "openssl", "rand", "-base64", "32")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// nodeEnvironment is the environment of a node in the compose file, with addresses and paths of this machine.
func nodeEnvironment(t *testing.T, name, shared string, more ...string) []string {
	t.Helper()
	port := freePort(t)
	here := map[string]string{
		"PARLEY_TRUSTED_PROXIES": "127.0.0.1",
		"PARLEY_DATABASE_FILE":   filepath.Join(shared, "database"),
		"PARLEY_SECRET_KEY_FILE": filepath.Join(shared, "secret.key"),
		"PARLEY_MEDIA":           filepath.Join(shared, "media"),
		"PARLEY_NODE_LISTEN":     fmt.Sprintf("127.0.0.1:%d", port),
		"PARLEY_NODE_URL":        fmt.Sprintf("https://127.0.0.1:%d", port),
		"PARLEY_PUBLIC_URL":      "", // in more
	}
	env := append(os.Environ(), "PARLEY_BEHIND_PROXY=true") // the image's
	for variable := range load(t, "compose.cluster.yaml").Services[name].Environment {
		value, ok := here[variable]
		if !ok {
			t.Fatalf("%s has the setting %s, which this test does not know", name, variable)
		}
		env = append(env, variable+"="+value)
	}
	return append(env, more...)
}

// post sends a message with an idempotency key.
func post(url, token, key string) error {
	req, err := http.NewRequest(http.MethodPost, url+"/api/send-message/text",
		strings.NewReader(`{"contact_id": "6281234567890@c.us", "message": "halo"}`))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	return err
}
