package sqldb

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/postgrestest"
)

// cuttable passes connections on to a server until they are cut. It drops requests to cancel a statement, which a client sends on a
// connection of their own when it loses one.
type cuttable struct {
	net.Listener
	mu   sync.Mutex
	open []net.Conn
}

func (c *cuttable) run(to string) {
	for {
		conn, err := c.Accept()
		if err != nil {
			return
		}
		const cancelRequest = 80877102
		head := make([]byte, 8)
		if _, err := io.ReadFull(conn, head); err != nil || binary.BigEndian.Uint32(head[4:]) == cancelRequest {
			conn.Close()
			continue
		}
		server, err := net.Dial("tcp", to)
		if err == nil {
			_, err = server.Write(head)
		}
		if err != nil {
			conn.Close()
			continue
		}
		c.mu.Lock()
		c.open = append(c.open, conn, server)
		c.mu.Unlock()
		for _, pair := range [][2]net.Conn{{conn, server}, {server, conn}} {
			go func() {
				io.Copy(pair[0], pair[1])
				pair[0].Close()
			}()
		}
	}
}

func (c *cuttable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		conn.Close()
	}
	c.open = nil
}

// TestPostgresLostCommit cuts the connection while a commit waits for a standby. What it wrote is visible much later. Nothing else is
// written before that, and the caller hears of it then.
func TestPostgresLostCommit(t *testing.T) {
	server := postgrestest.Start(t)
	address := server.Schema(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := &cuttable{Listener: ln}
	go proxy.run(server.Host())
	t.Cleanup(func() { ln.Close() })
	db := openWith(t, Options{Path: strings.Replace(address, server.Host(), ln.Addr().String(), 1), Migrations: postgresThings})
	beside := openWith(t, Options{Path: address, Migrations: postgresThings})
	set := func(standbys string) {
		for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + standbys + "'", "SELECT pg_reload_conf()"} {
			if err := server.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	waiting := func() (n int) {
		err := beside.Read(t.Context()).QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`, nil, &n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	set("nobody")
	t.Cleanup(func() {
		server.Exec("ALTER SYSTEM RESET synchronous_standby_names")
		server.Exec("SELECT pg_reload_conf()")
	})
	// The server takes the setting up after a while: commits follow each other until one waits.
	var probe sync.WaitGroup
	var waits atomic.Bool
	probe.Go(func() {
		for i := 0; !waits.Load(); i++ {
			if err := server.Exec(fmt.Sprintf("CREATE TABLE probe_%d ()", i)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer probe.Wait()
	for waiting() == 0 && !t.Failed() {
		time.Sleep(time.Millisecond)
	}
	waits.Store(true)
	var mu sync.Mutex
	var called []int // how many things there were at each call
	first, second := make(chan error, 1), make(chan error, 1)
	db.Begin(t.Context(), func(tx *Tx) error {
		tx.OnUnknown(func() {
			mu.Lock()
			defer mu.Unlock()
			called = append(called, len(names(t, beside)))
		})
		return tx.Do(insert, "first")
	}, func(err error) { first <- err })
	for waiting() < 2 {
		time.Sleep(time.Millisecond)
	}
	proxy.cut()
	if err := <-first; parley.ToCode(err) != parley.Unavailable {
		t.Fatalf("the lost commit: %v", err)
	}
	if waiting() < 2 {
		t.Fatal("the commit does not wait any more")
	}
	db.Begin(t.Context(), func(tx *Tx) error { return tx.Do(insert, "second") }, func(err error) { second <- err })
	set("")
	if err := <-second; err != nil {
		t.Errorf("the next write: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(called, []int{0, 1}) {
		t.Errorf("at the calls there were %v things, want 0 and then the first one", called)
	}
	if got := names(t, beside); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("there are %q", got)
	}
}
