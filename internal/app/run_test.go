package app

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
)

// running is a gateway under test.
type running struct {
	url   string
	env   DevEnv
	stop  context.CancelFunc
	ended chan error
	ready chan string
}

// start runs a gateway until the test ends. It waits until it is ready.
func start(t *testing.T, cfg Config) *running {
	t.Helper()
	r := launch(t, cfg)
	select {
	case r.url = <-r.ready:
	case err := <-r.ended:
		t.Fatalf("it did not start: %v", err)
	}
	env, err := ReadDevEnv(cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	r.env = env
	return r
}

func launch(t *testing.T, cfg Config) *running {
	ctx, stop := context.WithCancel(t.Context())
	r := &running{stop: stop, ended: make(chan error, 1), ready: make(chan string, 1)}
	cfg.Listen = "127.0.0.1:0"
	cfg.OnReady = func(url string) { r.ready <- url }
	var done sync.WaitGroup
	done.Go(func() { r.ended <- Run(ctx, cfg) })
	t.Cleanup(func() { stop(); done.Wait() })
	return r
}

func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("it ended with: %v", err)
	}
}

// TestRunningRequestFinishes stops the server while a request is half sent: the port closes at
// once, and the request is still answered.
func TestRunningRequestFinishes(t *testing.T) {
	r := start(t, Config{DataDir: Dir(t.TempDir()), Dev: true})
	address := strings.TrimPrefix(r.url, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"contact_id":"6281234567890@c.us","message":"the last one"}`
	fmt.Fprintf(conn, "POST /api/send-message/text HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", r.env[EnvToken], len(body))
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("answer %q (%v), want 100 Continue", line, err)
	}
	answers.ReadString('\n') // the empty line after it

	r.stop()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		another, err := net.Dial("tcp", address)
		if err != nil {
			break // no longer taking connections
		}
		another.Close()
		if time.Now().After(deadline) {
			t.Fatal("it still takes connections")
		}
	}
	io.WriteString(conn, body)
	resp, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"SENT"`)) {
		t.Errorf("answer %s: %s", resp.Status, answer)
	}
	if err := <-r.ended; err != nil {
		t.Errorf("it ended with: %v", err)
	}
}

// TestDevTokensOnlyOnDev runs a production server on the directory of a development server: it refuses the tokens in dev.env, and
// says so in its log and to the doctor. A development server accepts them again.
func TestDevTokensOnlyOnDev(t *testing.T) {
	dir := Dir(t.TempDir())
	dev := start(t, Config{DataDir: dir, Dev: true})
	dev.end(t)

	var log screen
	serve := start(t, Config{DataDir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for name, path := range map[string]string{
		EnvToken: "/api/channel/health", EnvGlobalToken: "/api/channel/health", EnvAdminToken: "/api/manage/server",
	} {
		status, body := serve.get(t, path, dev.env[name])
		if status != http.StatusUnauthorized || !strings.Contains(body, "parley token create") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	lock, _ := dir.Running()
	status, body := serve.get(t, "/api/manage/doctor", lock.AdminToken)
	if status != http.StatusOK || !strings.Contains(body, `"dev_tokens"`) {
		t.Errorf("the doctor: %d %s", status, body)
	}
	if !strings.Contains(log.String(), "tokens of parley dev") {
		t.Errorf("the log: %s", log.String())
	}
	serve.end(t)

	again := start(t, Config{DataDir: dir, Dev: true})
	for name, token := range again.env {
		if name != EnvURL && token != dev.env[name] {
			t.Errorf("%s was replaced", name)
		}
	}
	if status, body := again.get(t, "/api/channel/health", dev.env[EnvToken]); status != http.StatusOK {
		t.Errorf("on a development server: %d %s", status, body)
	}
}

func (r *running) get(t *testing.T, path, token string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// TestStreamsThroughRestarts opens streams in a loop while the server restarts. A standard EventSource reconnects after a refused or
// broken connection, and never again after any status but 200.
func TestStreamsThroughRestarts(t *testing.T) {
	dir, address := Dir(t.TempDir()), freeAddress(t)
	first := start(t, Config{DataDir: dir, Dev: true})
	first.end(t)
	data, err := OpenData(t.Context(), dir, quiet)
	for i := range 10 { // more of them take longer to start
		if err == nil {
			err = AddChannel(t.Context(), data.Store, parley.Channel{Code: parley.ChannelCode(fmt.Sprintf("c%d", i)), Network: parley.Sandbox})
		}
	}
	if err := errors.Join(err, data.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer func() { stop(); clients.Wait() }()
	var opened atomic.Int64
	for _, stream := range [][2]string{
		{"/api/events", EnvToken}, {"/api/events?channel=c9", EnvGlobalToken}, {"/api/manage/events", EnvAdminToken},
	} {
		clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			for ctx.Err() == nil {
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+stream[0], nil)
				req.Header.Set("Authorization", "Bearer "+first.env[stream[1]])
				resp, err := client.Do(req)
				if err != nil {
					time.Sleep(time.Millisecond) // refused or reset: as an EventSource does, only sooner
					continue
				}
				if resp.StatusCode != http.StatusOK {
					body, _ := io.ReadAll(resp.Body)
					t.Errorf("%s: %s %s", stream[0], resp.Status, body)
				}
				opened.Add(1)
				io.Copy(io.Discard, resp.Body) // until the server stops
				resp.Body.Close()
			}
		})
	}
	for range 20 {
		before := opened.Load()
		r := &running{ended: make(chan error, 1), ready: make(chan string, 1)}
		var running context.Context
		running, r.stop = context.WithCancel(ctx)
		go func() {
			r.ended <- Run(running, Config{DataDir: dir, Dev: true, Listen: address, OnReady: func(url string) { r.ready <- url }})
		}()
		select {
		case <-r.ready:
		case err := <-r.ended:
			t.Fatalf("it did not start: %v", err)
		}
		for opened.Load() < before+3 && !t.Failed() {
			time.Sleep(time.Millisecond)
		}
		r.end(t)
	}
}

// freeAddress is an address that nothing uses. Its port is below those of outgoing connections, which clients that dial in a loop
// would take.
func freeAddress(t *testing.T) string {
	t.Helper()
	for i := range 1000 {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+(os.Getpid()+i)%10_000)); err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no free port")
	return ""
}

// TestDevTokensSurviveRestart restarts on the same data: valid tokens stay, a revoked one is replaced.
func TestDevTokensSurviveRestart(t *testing.T) {
	dir := Dir(t.TempDir())
	first := start(t, Config{DataDir: dir, Dev: true})
	first.end(t)

	data, err := OpenData(t.Context(), dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	data.Tokens.AcceptDev()
	revoked, err := data.Tokens.Verify(t.Context(), first.env[EnvGlobalToken])
	if err == nil {
		err = data.Tokens.Revoke(t.Context(), revoked.ID)
	}
	if err := errors.Join(err, data.Close()); err != nil {
		t.Fatal(err)
	}

	second := start(t, Config{DataDir: dir, Dev: true})
	for name, same := range map[string]bool{EnvToken: true, EnvAdminToken: true, EnvGlobalToken: false, EnvURL: second.url == first.url} {
		if got := first.env[name] == second.env[name]; got != same {
			t.Errorf("%s is the same: %v, want %v", name, got, same)
		}
	}
	if second.env[EnvURL] != second.url {
		t.Errorf("%s is %s, want %s", EnvURL, second.env[EnvURL], second.url)
	}
	second.end(t)
}

// TestDamageIsFound breaks a page of the database. A small one is checked before the server is ready, a large one
// while it works: then it accepts nothing any more, and says why.
func TestDamageIsFound(t *testing.T) {
	t.Run("small", func(t *testing.T) {
		dir := Dir(t.TempDir())
		fill(t, dir, 100<<10)
		breakPage(t, dir.Database())
		r := launch(t, Config{DataDir: dir})
		if err := <-r.ended; err == nil || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(err.Error(),
			"parley restore FILE --data "+string(dir)) {
			t.Errorf("it ended with: %v", err)
		}
		if len(r.ready) != 0 {
			t.Error("it was ready")
		}
	})
	t.Run("large", func(t *testing.T) {
		dir := Dir(t.TempDir())
		fill(t, dir, smallDatabase+1<<20)
		breakPage(t, dir.Database())
		log := new(screen)
		r := start(t, Config{DataDir: dir, Dev: true, Log: slog.New(slog.NewTextHandler(log, nil))})
		eventually(t, "the damage is found", func() bool {
			status, body := get(t, r.url+"/readyz")
			return status == http.StatusServiceUnavailable && strings.Contains(body, "damaged")
		})
		if status, body := r.send(t); status != http.StatusServiceUnavailable || !strings.Contains(body, "damaged") {
			t.Errorf("a send is answered %d %s", status, body)
		}
		eventually(t, "the log says what to do", func() bool {
			return strings.Contains(log.String(), "parley restore FILE --data "+string(dir))
		})
		r.end(t)
	})
}

// eventually waits for a condition, with a limit that only a hang reaches.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(2 * time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("it never came that %s", what)
		}
	}
}

// TestFirstPageIsDamaged: what the database says is put into a sentence that says what to do.
func TestFirstPageIsDamaged(t *testing.T) {
	dir := Dir(t.TempDir())
	fill(t, dir, 100<<10)
	f, err := os.OpenFile(dir.Database(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xff}, 4096), 0); err != nil {
		t.Fatal(err)
	}
	f.Close()
	r := launch(t, Config{DataDir: dir})
	if err := <-r.ended; err == nil || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(err.Error(),
		"parley restore FILE --data "+string(dir)) {
		t.Errorf("it ended with: %v", err)
	}
}

// TestKeyIsMissing: a database without its key is refused, and no new key is written.
func TestKeyIsMissing(t *testing.T) {
	dir := Dir(t.TempDir())
	fill(t, dir, 100)
	if err := os.Rename(dir.Key(), string(dir)+"/kept"); err != nil {
		t.Fatal(err)
	}
	r := launch(t, Config{DataDir: dir})
	if err := <-r.ended; err == nil || !strings.Contains(err.Error(), "secret.key is missing") || !strings.Contains(err.Error(), "backup") {
		t.Errorf("it ended with: %v", err)
	}
	if _, err := OpenData(t.Context(), dir, quiet); err == nil {
		t.Error("the command line opened it")
	}
	if _, err := os.Stat(dir.Key()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a key was written: %v", err)
	}
	if err := os.Rename(string(dir)+"/kept", dir.Key()); err != nil {
		t.Fatal(err)
	}
	start(t, Config{DataDir: dir}).end(t)
}

// fill makes a database of at least a size, in a row that is neither the first nor the last.
func fill(t *testing.T, dir Dir, size int) {
	t.Helper()
	data, err := OpenData(t.Context(), dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	err = data.Store.Tx(t.Context(), func(tx *store.Tx) error {
		for i, name := range []string{"first", strings.Repeat("A", size), "last"} {
			if err := tx.AddToken(t.Context(), parley.Token{ID: parley.TokenID(fmt.Sprint("tok_", i)), Kind: parley.AdminToken,
				Name: name}); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, data.Close()); err != nil {
		t.Fatal(err)
	}
}

// breakPage overwrites the link from one page of a long value to the next.
func breakPage(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	at := bytes.Index(content, bytes.Repeat([]byte("A"), page/2))
	if at < 0 {
		t.Fatal("the value is not in the file")
	}
	if _, err := f.WriteAt([]byte{0xff, 0xff, 0xff, 0xff}, int64((at/page+1)*page)); err != nil {
		t.Fatal(err)
	}
}

// TestFileIsNotADatabase: a file that is no database at all is refused with a sentence.
func TestFileIsNotADatabase(t *testing.T) {
	dir := Dir(t.TempDir())
	if err := os.WriteFile(dir.Database(), bytes.Repeat([]byte("not a database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	r := launch(t, Config{DataDir: dir})
	if err := <-r.ended; err == nil || !strings.Contains(err.Error(), "parley.db") {
		t.Errorf("it ended with: %v", err)
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key, pool := selfSigned(t, dir)
	r := start(t, Config{DataDir: Dir(filepath.Join(dir, "data")), TLSCert: cert, TLSKey: key})
	if !strings.HasPrefix(r.url, "https://") {
		t.Errorf("address %s", r.url)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(r.url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 || resp.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("answer %s by %s, %v", resp.Status, resp.Proto, resp.Header)
	}
	client.CloseIdleConnections()
	r.end(t)

	bad := launch(t, Config{DataDir: Dir(filepath.Join(dir, "other")), TLSCert: key, TLSKey: cert})
	if _, ok := errors.AsType[*ConfigError](<-bad.ended); !ok {
		t.Error("a key for a certificate is no ConfigError")
	}
}

// selfSigned makes a certificate for loopback.
func selfSigned(t *testing.T, dir string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for path, content := range map[string][]byte{cert: public, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(public)
	return cert, key, pool
}

// TestHeadersAreBounded sends as many headers as are allowed, and more.
func TestHeadersAreBounded(t *testing.T) {
	r := start(t, Config{DataDir: Dir(t.TempDir())})
	for size, want := range map[int]int{15 << 10: http.StatusOK, 16 << 10: http.StatusRequestHeaderFieldsTooLarge,
		64 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		req, err := http.NewRequest(http.MethodGet, r.url+"/livez", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Padding", strings.Repeat("a", size))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%d bytes: answer %s, want %d", size, resp.Status, want)
		}
	}
	r.end(t)
}

// TestNotReadyWhileDraining asks the check that /readyz asks.
func TestNotReadyWhileDraining(t *testing.T) {
	data, err := OpenData(t.Context(), Dir(t.TempDir()), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	s := &server{data: data}
	for state, want := range map[int32]string{starting: "The server is starting.", ready: "", draining: "The server is stopping."} {
		s.state.Store(state)
		err := s.checkReady(t.Context())
		if want == "" && err != nil || want != "" && (parley.ToCode(err) != parley.Unavailable || err.Error() != want) {
			t.Errorf("state %d: %v, want %q", state, err, want)
		}
	}
	s.state.Store(ready)
	data.Close()
	if err := s.checkReady(t.Context()); parley.ToCode(err) != parley.Unavailable {
		t.Errorf("with the database closed: %v", err)
	}
}
