package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"parley/internal/network/whatsapp/keystore"
	"parley/internal/network/whatsapp/whatsapptest"
)

type scan struct {
	Number string `json:"number"`
	Code   string `json:"code"`
}

type inbound struct {
	From string `json:"from"`
	To   string `json:"to"`
	Text string `json:"text"`
}

type counts struct {
	Given int `json:"given"`
	Wrong int `json:"wrong"` // that no recipient could read
}

// serveNetwork is the process of the test server for WhatsApp's protocol, with all phones.
func serveNetwork() error {
	debug.SetGCPercent(400) // it shares the cores with what is measured
	keystore.UseCompactSessions()
	silenceSignal()
	s, err := whatsapptest.Start()
	if err != nil {
		return err
	}
	defer s.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /trust", handleJSON(func(struct{}) (any, error) { return s.Trust(), nil }))
	mux.HandleFunc("POST /phones", handleJSON(func(numbers []string) (any, error) {
		for _, number := range numbers {
			s.Phone(number, whatsapptest.Named("Someone"))
		}
		return nil, nil
	}))
	mux.HandleFunc("POST /scan", handleJSON(func(scan scan) (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := s.Phone(scan.Number).Scan(ctx, scan.Code)
		return nil, err
	}))
	mux.HandleFunc("POST /drop", handleJSON(func(struct{}) (any, error) { s.Inject(whatsapptest.DropAfterAccept()); return nil, nil }))
	mux.HandleFunc("POST /hold-files", handleJSON(func(struct{}) (any, error) { s.HoldDownloads(true); return nil, nil }))
	mux.HandleFunc("POST /text", handleJSON(func(m inbound) (any, error) {
		return s.Phone(m.From).Send(context.Background(), s.Phone(m.To), m.Text)
	}))
	mux.HandleFunc("POST /picture", handleJSON(func(m inbound) (any, error) {
		return s.Phone(m.From).SendImage(context.Background(), s.Phone(m.To), make([]byte, 200<<10), "image/png", m.Text)
	}))
	mux.HandleFunc("GET /counts", handleJSON(func(struct{}) (any, error) {
		c := counts{Wrong: len(s.Unencrypted()) + len(s.Unreadable())}
		for _, e := range s.Traces() {
			if !e.Peer {
				c.Given++
			}
		}
		return c, nil
	}))
	return serveRole(mux)
}

// withNetwork starts the test network and passes the flags of a gateway that uses it.
func withNetwork(ctx context.Context, f func(network *process, flags []string) error) error {
	network, err := startRole(ctx, "network")
	if err != nil {
		return err
	}
	defer network.stop()
	var trust whatsapptest.Trust
	if err := network.call("GET", "/trust", nil, &trust); err != nil {
		return err
	}
	text, err := json.Marshal(trust)
	if err != nil {
		return err
	}
	return inTempDir(func(dir string) error {
		file := filepath.Join(dir, "trust.json")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
		return f(network, []string{"--whatsapp-endpoint", trust.Address, "--whatsapp-trust", file})
	})
}

// withWhatsApp starts the test network, with phones for contacts, and a gateway with linked channels.
func withWhatsApp(ctx context.Context, o options, numbers []string, channels int,
	f func(network, p *process, tokens []string) error) error {
	return withNetwork(ctx, func(network *process, flags []string) error {
		return withParley(ctx, o, "", func(p *process) error {
			if err := network.call("POST", "/phones", numbers, nil); err != nil {
				return err
			}
			tokens, err := link(network, p, 0, channels)
			if err != nil {
				return err
			}
			return f(network, p, tokens)
		}, flags...)
	})
}

func contact(account, caller int) string { return fmt.Sprintf("62812%03d%05d", account, caller) }

func contacts(accounts, callers int) []string {
	var numbers []string
	for i := range accounts {
		for j := range callers {
			numbers = append(numbers, contact(i, j))
		}
	}
	return numbers
}

func channelAccount(i int) string { return fmt.Sprintf("62814%08d", i) }

// link creates the channels from one index to another, each linked to an account, and returns their tokens.
func link(network, p *process, from, to int) ([]string, error) {
	tokens, errs := make([]string, to-from), make([]error, to-from)
	slots := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for i := range to - from {
		slots <- struct{}{}
		wg.Go(func() {
			tokens[i], errs[i] = linkOne(network, p, from+i)
			<-slots
		})
	}
	wg.Wait()
	return tokens, errors.Join(errs...)
}

// channelState is the part of several responses that link needs.
type channelState struct {
	Data struct {
		Status string `json:"status"`
		Code   string `json:"code"` // of its pairing
		Token  string `json:"token"`
	} `json:"data"`
}

func works(c channelState) bool { return c.Data.Status == "WORKING" }

func linkOne(network, p *process, i int) (string, error) {
	code := fmt.Sprintf("wa%d", i)
	channel := map[string]any{"code": code, "network": "whatsapp", "settings": map[string]string{"pace": "0s"}}
	if err := p.call("POST", "/api/manage/channels", channel, nil); err != nil {
		return "", err
	}
	var token channelState
	if err := p.call("POST", "/api/manage/tokens", map[string]string{"kind": "channel", "channel": code}, &token); err != nil {
		return "", err
	}
	path := "/api/manage/channels/" + code
	if err := p.call("POST", path+"/pair", nil, nil); err != nil {
		return "", err
	}
	shown, err := p.poll(path+"/pairing", func(c channelState) bool { return c.Data.Code != "" })
	if err != nil {
		return "", err
	}
	if err := network.call("POST", "/scan", scan{channelAccount(i), shown.Data.Code}, nil); err != nil {
		return "", err
	}
	_, err = p.poll(path, works)
	return token.Data.Token, err
}

// poll repeats a request until the response is the wanted one, for a minute at most.
func (p *process) poll(path string, wanted func(channelState) bool) (channelState, error) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		var c channelState
		if err := p.call("GET", path, nil, &c); err != nil {
			return c, err
		}
		if wanted(c) {
			return c, nil
		}
	}
	return channelState{}, fmt.Errorf("%s: not as wanted within a minute", path)
}
