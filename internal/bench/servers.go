package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// serveEcho is the yardstick: net/http, a decoded and an encoded JSON object, nothing else.
func serveEcho() error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	return http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			ContactID string `json:"contact_id"`
			Message   string `json:"message"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"success": true, "message": "Message sent",
			"data": map[string]string{"status": "SENT", "message": in.Message, "contact_id": in.ContactID}})
	}))
}

// server is a child process that listens.
type server struct {
	cmd   *exec.Cmd
	addr  string
	token string        // of the channel "demo"
	admin string        // the token of the management API
	took  time.Duration // from start to ready
}

func startEcho(ctx context.Context) (*server, error) {
	return startSelf(ctx, "-echo")
}

// withParley starts a gateway without any data for as long as f runs.
func withParley(ctx context.Context, o options, f func(*server) error) error {
	data, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	s, err := startParley(ctx, o, data)
	if err != nil {
		return err
	}
	defer s.stop()
	return f(s)
}

// startParley starts "parley dev" on a data directory and waits until it is ready.
func startParley(ctx context.Context, o options, data string, flags ...string) (*server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // to know a port that is free
	if err != nil {
		return nil, err
	}
	addr := ln.Addr().String()
	ln.Close()
	cmd := exec.CommandContext(ctx, o.parley, append([]string{"dev", "--data", data, "--listen", addr, "--no-open"}, flags...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	log, err := os.Create(filepath.Join(data, "bench.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, addr: addr}
	for !ready(addr) {
		if time.Since(begun) > 30*time.Second {
			s.stop()
			return nil, fmt.Errorf("%s was not ready in 30 s; see %s", o.parley, log.Name())
		}
		time.Sleep(time.Millisecond)
	}
	s.took = time.Since(begun)
	env, err := readEnv(filepath.Join(data, "dev.env"))
	if err != nil {
		s.stop()
		return nil, err
	}
	s.token, s.admin = env["PARLEY_TOKEN"], env["PARLEY_ADMIN_TOKEN"]
	return s, nil
}

func ready(addr string) bool {
	resp, err := http.Get((&url.URL{Scheme: "http", Host: addr, Path: "/readyz"}).String())
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func readEnv(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			env[name] = value
		}
	}
	return env, nil
}

func (s *server) stop() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	s.cmd.Wait()
}

// rss is the memory that the process holds now, in bytes.
func (s *server) rss() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no VmRSS of process %d", s.cmd.Process.Pid)
}

// settle waits until the process has nothing left to do of what it was given before.
func (s *server) settle() {
	for quiet, tries := 0, 0; quiet < 3 && tries < 100; tries++ {
		before := s.cpu()
		time.Sleep(20 * time.Millisecond)
		if quiet++; s.cpu() > before {
			quiet = 0
		}
	}
}

// cpu is the processor time that the process used so far.
func (s *server) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * (time.Second / 100) // ticks
}
