package cluster_test

import (
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/internal/postgrestest"
)

// TestKilledNodes ends nodes with SIGKILL under load. PARLEY_NODE_KILLS is how often.
func TestKilledNodes(t *testing.T) {
	t.Parallel()
	c := startNodes(t)
	l := startLoad(t, c)
	l.progress()
	for range l.times("PARLEY_NODE_KILLS") {
		n := c.all[rand.N(len(c.all))]
		n.kill()
		l.progress() // also of its channels: another node took over
		n.start()
		l.progress()
	}
	l.judge()
}

// TestRollingRestart stops and starts all nodes, one after the other, under load. PARLEY_NODE_RESTARTS is how often.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	c := startNodes(t)
	l := startLoad(t, c)
	l.progress()
	for range l.times("PARLEY_NODE_RESTARTS") {
		for _, n := range c.all {
			n.terminate()
			l.progress()
			n.start()
			l.progress()
		}
	}
	l.judge()
}

// TestPausedNodes stops nodes with SIGSTOP for longer than their membership lasts. PARLEY_NODE_PAUSES is how often.
func TestPausedNodes(t *testing.T) {
	t.Parallel()
	c := startNodes(t)
	l := startLoad(t, c)
	l.progress()
	for range l.times("PARLEY_NODE_PAUSES") {
		n := c.all[rand.N(len(c.all))]
		n.signal(syscall.SIGSTOP)
		time.Sleep(10 * time.Second) // what the test is about: the others take over meanwhile
		n.signal(syscall.SIGCONT)
		l.progress()
	}
	l.judge()
}

// TestDatabaseCrashes ends PostgreSQL with SIGKILL under load and starts it again. PARLEY_DATABASE_KILLS is how often.
func TestDatabaseCrashes(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	c := startNodesOn(t, server.Schema(t))
	l := startLoad(t, c)
	l.progress()
	for range l.times("PARLEY_DATABASE_KILLS") {
		server.Kill()
		server.Run(t)
		l.progress()
	}
	l.judge()
}

// TestDatabaseFailsOver ends the primary PostgreSQL with SIGKILL under load and promotes its synchronous standby.
// PARLEY_DATABASE_FAILOVERS is how often: each time the killed one is replaced by a new standby.
func TestDatabaseFailsOver(t *testing.T) {
	t.Parallel()
	primary := postgrestest.Start(t)
	address := primary.Schema(t)
	standby := primary.Standby(t, "")
	c := startNodesOn(t, strings.Replace(address, primary.Host(), primary.Host()+","+standby.Host(), 1)+"&target_session_attrs=read-write")
	l := startLoad(t, c)
	l.progress()
	free := ""
	for i := range l.times("PARLEY_DATABASE_FAILOVERS") {
		if i > 0 {
			standby = primary.Standby(t, free)
			l.progress()
		}
		primary.Kill()
		standby.Promote(t)
		free = primary.Port()
		primary = standby
		l.progress()
	}
	l.judge()
}
