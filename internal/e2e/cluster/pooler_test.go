package cluster_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/postgrestest"
)

// TestNodeBehindTransactionPooler starts a node behind PgBouncer in transaction mode: it must refuse.
func TestNodeBehindTransactionPooler(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	address := server.Pooler(t, "transaction", server.Schema(t))
	for range 3 {
		out, err := exec.CommandContext(t.Context(), program, "serve", "--data", filepath.Join(t.TempDir(), "data"),
			"--listen", freeAddress(t), "--database", address).CombinedOutput()
		const want = "connection pooler in transaction mode (PgBouncer?): use the address of PostgreSQL itself"
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// TestNodesBehindSessionPooler runs three nodes behind PgBouncer in session mode, and kills one.
func TestNodesBehindSessionPooler(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	c := startNodesOn(t, server.Pooler(t, "session", server.Schema(t)))
	l := startLoad(t, c)
	l.progress()
	c.all[0].kill()
	l.progress()
	c.all[0].start()
	l.progress()
	l.judge()
}
