package main

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	signallog "go.mau.fi/libsignal/logger"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"parley/internal/network/whatsapp/whatsapptest"
)

// The yardstick is whatsmeow alone, with its own store as its users set it up (synchronous NORMAL, which may
// lose the last commits when the power fails), and as many goroutines that send as the gateway has callers.

// spurt asks the yardstick to send for a while.
type spurt struct {
	Accounts int           `json:"accounts"`
	Callers  int           `json:"callers"` // of each account
	For      time.Duration `json:"for"`
}

// spurted is what came of it.
type spurted struct {
	Sent    int           `json:"sent"`
	Elapsed time.Duration `json:"elapsed"`
}

// serveBare is the process of the yardstick.
func serveBare(network string, accounts int) error {
	quietSignal()
	dir, err := os.MkdirTemp("", "parley-bench-bare-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "bare.db")+
		"?_pragma=foreign_keys(1)&_pragma=journal_mode(WAL)&_pragma=busy_timeout(20000)&_pragma=synchronous(NORMAL)&_txlock=immediate")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(bareConnections)
	db.SetMaxIdleConns(bareConnections)
	container := sqlstore.NewWithDB(db, "sqlite", nil)
	if err := container.Upgrade(ctx); err != nil {
		return err
	}
	wire := &server{addr: network}
	var trust whatsapptest.Trust
	if err := wire.call("GET", "/trust", nil, &trust); err != nil {
		return err
	}
	var clients []*whatsmeow.Client
	for i := range accounts {
		c, err := bareClient(ctx, container, wire, trust, bareAccount(i))
		if err != nil {
			return fmt.Errorf("link account %d: %w", i, err)
		}
		clients = append(clients, c)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /spurt", answer(func(s spurt) (any, error) { return spurtAll(ctx, clients[:s.Accounts], s) }))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	return http.Serve(ln, mux)
}

// bareConnections to the database serve the yardstick best: it then sends twice as much on many accounts as with
// as many as it likes, which wait for each other inside SQLite, by sleeping.
const bareConnections = 1

// bareClient links an account and waits until it is connected.
func bareClient(ctx context.Context, container *sqlstore.Container, wire *server, trust whatsapptest.Trust, number string) (*whatsmeow.Client, error) {
	c := whatsmeow.NewClient(container.NewDevice(), nil)
	if err := trust.Apply(c); err != nil {
		return nil, err
	}
	codes, up := make(chan string, 8), make(chan struct{}, 8)
	c.AddEventHandler(func(e any) {
		switch e := e.(type) {
		case *events.QR:
			codes <- e.Codes[0]
		case *events.Connected:
			up <- struct{}{}
		}
	})
	if err := c.ConnectContext(ctx); err != nil {
		return nil, err
	}
	if err := wire.call("POST", "/scan", scanning{number, <-codes}, nil); err != nil {
		return nil, err
	}
	<-up
	return c, nil
}

// spurtAll has accounts send, each to as many contacts as it has callers.
func spurtAll(ctx context.Context, clients []*whatsmeow.Client, s spurt) (spurted, error) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		sent int
		last error
	)
	start := time.Now()
	for i, c := range clients {
		for j := range s.Callers {
			to := types.NewJID(contact(i, j), types.DefaultUserServer)
			wg.Go(func() {
				n := 0
				var err error
				for err == nil && time.Since(start) < s.For {
					if _, err = c.SendMessage(ctx, to, &waE2E.Message{Conversation: new(benchText)}); err == nil {
						n++
					}
				}
				mu.Lock()
				defer mu.Unlock()
				sent += n
				if err != nil {
					last = err
				}
			})
		}
	}
	wg.Wait()
	return spurted{sent, time.Since(start)}, last
}

// quietSignal keeps libsignal from printing to where the other process reads.
func quietSignal() {
	quiet := signallog.Loggable(silent{})
	signallog.Setup(&quiet)
}

// silent takes what libsignal would print.
type silent struct{}

func (silent) Debug(string, string)   {}
func (silent) Info(string, string)    {}
func (silent) Warning(string, string) {}
func (silent) Error(string, string)   {}
func (silent) Configure(string)       {}
