package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"time"

	"parley/internal/network/whatsapp/whatsapptest"
)

// The command loopwa is for scripts: a network on this machine that speaks WhatsApp's protocol, as a
// process of its own, and people with phones on it.
//
//	loopwa serve                  runs the network; writes wa.endpoint, wa.trust and wa.control
//	loopwa scan NUMBER FILE       the phone scans the QR code that is the last one in a file
//	loopwa type NUMBER FILE       the phone's owner types the code that is the last one in a file
//	loopwa expect NUMBER TEXT     waits until the phone shows a text
//	loopwa send FROM TO TEXT      a phone writes to another number
//	loopwa unlink NUMBER          the phone's owner removes the device that was linked last
func loopwa() {
	err := errors.New("usage: loopwa serve | scan | type | expect | send | unlink")
	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve":
		err = serveLoopwa()
	case len(os.Args) > 2:
		err = callLoopwa(os.Args[1], os.Args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "loopwa:", err)
		os.Exit(1)
	}
}

// phoneBook is the network with the links that were made.
type phoneBook struct {
	*whatsapptest.Server
	mu    sync.Mutex
	links map[string]*whatsapptest.Link
}

func serveLoopwa() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s, err := whatsapptest.Start()
	if err != nil {
		return err
	}
	defer s.Close()
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer control.Close()
	trust, err := json.Marshal(s.Trust())
	if err != nil {
		return err
	}
	// The last one says that all is there.
	for _, f := range [][2]string{{"wa.endpoint", s.Endpoint()}, {"wa.trust", string(trust)}, {"wa.control", control.Addr().String()}} {
		if err := os.WriteFile(f[0], []byte(f[1]), 0o600); err != nil {
			return err
		}
	}
	book := &phoneBook{Server: s, links: map[string]*whatsapptest.Link{}}
	go http.Serve(control, book) // ends with the process
	<-ctx.Done()
	if wrong := s.Violations(); len(wrong) > 0 {
		return fmt.Errorf("the client sent what the network does not know: %s", strings.Join(wrong, "; "))
	}
	return nil
}

// ServeHTTP does what the path names with the arguments in the body.
func (b *phoneBook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var args []string
	err := json.NewDecoder(r.Body).Decode(&args)
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), testTimeout)
		defer cancel()
		err = b.do(ctx, strings.TrimPrefix(r.URL.Path, "/"), append(args, "", ""))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (b *phoneBook) do(ctx context.Context, verb string, args []string) error {
	phone := b.Phone(args[0], whatsapptest.Named("Toko Ayu"))
	switch verb {
	case "scan":
		return b.link(args[0])(phone.Scan(ctx, args[1]))
	case "type":
		return b.link(args[0])(phone.EnterCode(ctx, args[1]))
	case "expect":
		_, err := phone.Await(ctx, whatsapptest.Text(args[1]))
		return err
	case "send":
		_, err := phone.Send(ctx, b.Phone(args[1]), args[2])
		return err
	case "unlink":
		b.mu.Lock()
		defer b.mu.Unlock()
		b.links[args[0]].Remove()
		return nil
	case "exists": // it is on the network now
		return nil
	}
	return fmt.Errorf("there is no %q", verb)
}

// link keeps a link that was made.
func (b *phoneBook) link(number string) func(*whatsapptest.Link, error) error {
	return func(l *whatsapptest.Link, err error) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if err == nil {
			b.links[number] = l
		}
		return err
	}
}

var (
	scannedCode = regexp.MustCompile(`"code":\s?"([^"]{60,})"`)
	typedCode   = regexp.MustCompile(`\b([A-Z0-9]{4}-[A-Z0-9]{4})\b`)
)

// callLoopwa has the network do something.
func callLoopwa(verb string, args []string) (err error) {
	switch {
	case verb == "scan" && len(args) == 2:
		args[1], err = awaitCode(args[1], scannedCode)
	case verb == "type" && len(args) == 2:
		args[1], err = awaitCode(args[1], typedCode)
	}
	if err != nil {
		return err
	}
	address, err := awaitFile("wa.control", func(text string) (string, bool) { return text, text != "" })
	if err != nil {
		return err
	}
	body, err := json.Marshal(args)
	if err != nil {
		return err
	}
	answer, err := http.Post("http://"+address+"/"+verb, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(answer.Body) // what can be read of it
		return errors.New(strings.TrimSpace(string(said)))
	}
	return nil
}

// awaitCode waits until a file has a code, and returns the last one.
func awaitCode(file string, pattern *regexp.Regexp) (string, error) {
	return awaitFile(file, func(text string) (string, bool) {
		all := pattern.FindAllStringSubmatch(text, -1)
		if len(all) == 0 {
			return "", false
		}
		var code string
		err := json.Unmarshal([]byte(`"`+all[len(all)-1][1]+`"`), &code)
		return code, err == nil
	})
}

func awaitFile(file string, find func(text string) (string, bool)) (string, error) {
	deadline := time.After(testTimeout)
	for tick := time.Tick(20 * time.Millisecond); ; {
		text, err := os.ReadFile(file)
		if found, ok := find(string(text)); err == nil && ok {
			return found, nil
		}
		select {
		case <-tick:
		case <-deadline:
			return "", fmt.Errorf("%s has not what is wanted: %s %v", file, text, err)
		}
	}
}
