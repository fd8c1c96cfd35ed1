package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	signallog "go.mau.fi/libsignal/logger"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	_ "modernc.org/sqlite"

	"parley/internal/network/whatsapp/whatsapptest"
)

// The baseline is whatsmeow alone, with its own store as its users set it up: synchronous NORMAL, which may lose the last
// commits when the power fails. It has as many goroutines that send as the gateway has callers.

// bareLoad asks the baseline to send for a while.
type bareLoad struct {
	Accounts int           `json:"accounts"`
	Callers  int           `json:"callers"`  // of each account
	Contacts int           `json:"contacts"` // of each account: each caller has its share and sends to them in turn
	For      time.Duration `json:"for"`
}

type bareResult struct {
	Sent    int           `json:"sent"`
	Elapsed time.Duration `json:"elapsed"`
}

func serveBare(network, dir string) error {
	silenceSignal()
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "bare.db")+
		"?_pragma=foreign_keys(1)&_pragma=journal_mode(WAL)&_pragma=busy_timeout(20000)&_pragma=synchronous(NORMAL)&_txlock=immediate")
	if err != nil {
		return err
	}
	// One connection is best for the baseline: more of them wait for each other inside SQLite, by sleeping.
	db.SetMaxOpenConns(1)
	container := sqlstore.NewWithDB(db, "sqlite", nil)
	if err := container.Upgrade(ctx); err != nil {
		return err
	}
	wire := &process{addr: network}
	var trust whatsapptest.Trust
	if err := wire.call("GET", "/trust", nil, &trust); err != nil {
		return err
	}
	var clients []*whatsmeow.Client
	for i := range manyChannels {
		c, err := bareClient(ctx, container.NewDevice(), wire, trust, fmt.Sprintf("62813%08d", i))
		if err != nil {
			return fmt.Errorf("link account %d: %w", i, err)
		}
		clients = append(clients, c)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /load", handleJSON(func(l bareLoad) (any, error) { return sendBare(ctx, clients[:l.Accounts], l) }))
	return serveRole(mux)
}

// bareClient links an account and waits until it is connected.
func bareClient(ctx context.Context, device *store.Device, wire *process, trust whatsapptest.Trust, number string) (*whatsmeow.Client,
	error) {
	c := whatsmeow.NewClient(device, nil)
	c.SendReportingTokens = true // as the driver does
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
	if err := wire.call("POST", "/scan", scan{number, <-codes}, nil); err != nil {
		return nil, err
	}
	<-up
	return c, nil
}

// sendBare has accounts send to their contacts.
func sendBare(ctx context.Context, clients []*whatsmeow.Client, l bareLoad) (bareResult, error) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		sent int
		last error
	)
	start := time.Now()
	for i, c := range clients {
		for j := range l.Callers {
			wg.Go(func() {
				n := 0
				var err error
				for err == nil && time.Since(start) < l.For {
					to := types.NewJID(contact(i, (j+n*l.Callers)%l.Contacts), types.DefaultUserServer)
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
	return bareResult{sent, time.Since(start)}, last
}

// silenceSignal stops libsignal from printing to stdout, which the parent process reads.
func silenceSignal() {
	quiet := signallog.Loggable(silent{})
	signallog.Setup(&quiet)
}

type silent struct{}

func (silent) Debug(string, string)   {}
func (silent) Info(string, string)    {}
func (silent) Warning(string, string) {}
func (silent) Error(string, string)   {}
func (silent) Configure(string)       {}
