package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"

	"parley/internal/network/whatsapp/keystore"
	"parley/internal/network/whatsapp/whatsapptest"
)

// The server that stands in for WhatsApp, with the phones of all who are written to, is a process of its own,
// so that its processor time is nobody else's. It is told what to do over HTTP.

// scanning asks a phone to link what shows a code.
type scanning struct {
	Number string `json:"number"`
	Code   string `json:"code"`
}

// tally is what became of the messages that the network was given.
type tally struct {
	Given      int `json:"given"`      // different messages
	Shown      int `json:"shown"`      // that the phone of their recipient showed
	Unsealed   int `json:"unsealed"`   // that had nothing for the recipient to read
	Unreadable int `json:"unreadable"` // that the recipient could not read
}

// wrong is how many reached nobody.
func (t tally) wrong() int { return t.Unsealed + t.Unreadable }

// serveStandIn is the process of that server. It shares the cores with what is measured, so that it is made
// as cheap as it can be, for both sides.
func serveStandIn() error {
	debug.SetGCPercent(400)
	keystore.UseCompactSessions()
	quietSignal()
	s, err := whatsapptest.Start(whatsapptest.Config{FewKeys: true})
	if err != nil {
		return err
	}
	defer s.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /trust", answer(func(struct{}) (any, error) { return s.Trust(), nil }))
	mux.HandleFunc("POST /phones", answer(func(numbers []string) (any, error) {
		for _, number := range numbers {
			s.Phone(number, whatsapptest.Named("Someone"))
		}
		return nil, nil
	}))
	mux.HandleFunc("POST /scan", answer(func(scan scanning) (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := s.Phone(scan.Number).Scan(ctx, scan.Code)
		return nil, err
	}))
	mux.HandleFunc("POST /drop", answer(func(struct{}) (any, error) { s.Inject(whatsapptest.DropAfterTaking()); return nil, nil }))
	mux.HandleFunc("POST /roundtrip", answer(func(d time.Duration) (any, error) { s.SetRoundTrip(d); return nil, nil }))
	mux.HandleFunc("POST /down", answer(func(struct{}) (any, error) { s.Down(); return nil, nil }))
	mux.HandleFunc("POST /up", answer(func(struct{}) (any, error) { s.Up(); return nil, nil }))
	mux.HandleFunc("POST /hold-files", answer(func(struct{}) (any, error) { s.HoldDownloads(true); return nil, nil }))
	mux.HandleFunc("POST /say", answer(func(what saying) (any, error) {
		return s.Phone(what.From).Send(context.Background(), s.Phone(what.To), what.Text)
	}))
	mux.HandleFunc("POST /picture", answer(func(what saying) (any, error) {
		return s.Phone(what.From).SendImage(context.Background(), s.Phone(what.To), make([]byte, 200<<10), "image/png", what.Text)
	}))
	mux.HandleFunc("GET /tally", answer(func(struct{}) (any, error) { return count(s), nil }))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	return http.Serve(ln, mux)
}

func count(s *whatsapptest.Server) tally {
	t := tally{Unsealed: len(s.Unsealed()), Unreadable: len(s.Unreadable())}
	for _, e := range s.Ledger() {
		if e.Peer {
			continue
		}
		t.Given++
		for _, d := range e.Deliveries {
			if d.Phone == e.To && d.Device == 0 {
				t.Shown += d.Shown
			}
		}
	}
	return t
}

// answer serves a function of JSON.
func answer[In any](f func(In) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil && !errors.Is(err, io.EOF) {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := f(in)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(out)
	}
}

// standIn is that process as seen from here.
type standIn struct {
	*server
	endpoint string
	trust    []byte // as a file for the gateway
}

func startStandIn(ctx context.Context) (*standIn, error) {
	child, err := startSelf(ctx, "-standin")
	if err != nil {
		return nil, err
	}
	s := &standIn{server: child}
	var trust whatsapptest.Trust
	if err := s.call("GET", "/trust", nil, &trust); err != nil {
		child.stop()
		return nil, err
	}
	s.endpoint = trust.Address
	s.trust, err = json.Marshal(trust)
	return s, err
}

// startSelf starts this program in another role and waits for the address that it prints.
func startSelf(ctx context.Context, args ...string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	s := &server{cmd: cmd, addr: strings.TrimSpace(line)}
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("%s did not start: %w", strings.Join(args, " "), err)
	}
	return s, nil
}

// call asks a child for something.
func (s *server) call(method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	request, err := http.NewRequest(method, "http://"+s.addr+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if s.admin != "" {
		request.Header.Set("Authorization", "Bearer "+s.admin)
	}
	request.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}
