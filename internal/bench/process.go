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
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	kib = 1 << 10
	mb  = 1 << 20
)

type process struct {
	cmd   *exec.Cmd
	out   *bufio.Reader // what a role prints after its address
	addr  string
	token string        // of the channel "demo"
	admin string        // token of the management API
	took  time.Duration // from start to ready
}

// inTempDir calls f with a new directory and removes it afterwards.
func inTempDir(f func(dir string) error) error {
	dir, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return f(dir)
}

// withParley runs a gateway on a data directory, or on a new one, for as long as f runs.
func withParley(ctx context.Context, o options, data string, f func(*process) error, flags ...string) error {
	if data == "" {
		return inTempDir(func(dir string) error { return withParley(ctx, o, dir, f, flags...) })
	}
	p, err := startParley(ctx, o.parley, data, flags...)
	if err != nil {
		return err
	}
	defer p.stop()
	return f(p)
}

func startParley(ctx context.Context, binary, data string, flags ...string) (*process, error) {
	p, err := startServer(ctx, binary, "dev", data, append([]string{"--no-open"}, flags...)...)
	if err != nil {
		return nil, err
	}
	env, err := os.ReadFile(filepath.Join(data, "dev.env"))
	if err != nil {
		p.stop()
		return nil, err
	}
	for line := range strings.Lines(string(env)) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "PARLEY_TOKEN":
			p.token = value
		case "PARLEY_ADMIN_TOKEN":
			p.admin = value
		}
	}
	return p, nil
}

// startServer starts the binary with a command that serves, and waits until it is ready.
func startServer(ctx context.Context, binary, command, data string, flags ...string) (*process, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, binary, append([]string{command, "--data", data, "--listen", addr}, flags...)...)
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
	p := &process{cmd: cmd, addr: addr}
	for p.call("GET", "/readyz", nil, nil) != nil {
		if time.Since(begun) > 30*time.Second {
			p.stop()
			return nil, fmt.Errorf("%s was not ready in 30 s; see %s", binary, log.Name())
		}
		time.Sleep(time.Millisecond)
	}
	p.took = time.Since(begun)
	return p, nil
}

func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

// startRole starts this program in another role and reads the first line that it prints, its address.
func startRole(ctx context.Context, role string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return startChild(exec.CommandContext(ctx, self, append([]string{"-role", role}, args...)...))
}

func startChild(cmd *exec.Cmd) (*process, error) {
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, out: bufio.NewReader(out)}
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("%s did not start: %w", strings.Join(cmd.Args, " "), err)
	}
	p.addr = strings.TrimSpace(line)
	return p, nil
}

// serveRole serves a role: it prints the address and handles requests until the process ends.
func serveRole(handler http.Handler) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	return http.Serve(ln, handler)
}

// serveEcho is the baseline of sends: net/http, one decoded and one encoded JSON object.
func serveEcho() error {
	return serveRole(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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

// handleJSON makes a handler of a function from JSON to JSON.
func handleJSON[In any](f func(In) (any, error)) http.HandlerFunc {
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

func (p *process) call(method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	request, err := http.NewRequest(method, "http://"+p.addr+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if p.admin != "" {
		request.Header.Set("Authorization", "Bearer "+p.admin)
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

func (p *process) stop() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.cmd.Wait()
}

func (p *process) rss() (int64, error) { return p.memory("VmRSS") }

// memory is one of the figures that the kernel has of the memory of the process.
func (p *process) memory(name string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kb, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kb * kib, err
		}
	}
	return 0, fmt.Errorf("no %s of process %d", name, p.cmd.Process.Pid)
}

// cpu is the CPU time of the process so far, from the clock that the kernel keeps for it: /proc counts in steps of 10 ms.
func (p *process) cpu() time.Duration {
	const scheduled = 2 // what clock_getcpuclockid makes of a process
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^p.cmd.Process.Pid<<3|scheduled), &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// awaitIdle waits until the process uses hardly any CPU, for two seconds at most.
func (p *process) awaitIdle() {
	for quiet, tries := 0, 0; quiet < 3 && tries < 100; tries++ {
		before := p.cpu()
		time.Sleep(20 * time.Millisecond)
		if quiet++; p.cpu() > before+2*time.Millisecond {
			quiet = 0
		}
	}
}
