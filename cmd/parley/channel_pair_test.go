package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// script is a server that tells the steps of a pairing, one for each time that it is asked.
type script struct {
	*httptest.Server
	t       *testing.T
	network string

	mu     sync.Mutex
	steps  []string // of the attempts to come; an attempt ends with an empty one
	now    string
	begun  bool
	bodies []string // of what changed something
}

// play starts a server with some attempts, each a list of steps.
func play(t *testing.T, attempts ...[]string) *script {
	s := &script{t: t, network: "whatsapp", now: "null"}
	for _, attempt := range attempts {
		s.steps = append(append(s.steps, attempt...), "")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/manage/channels/demo", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		status := "SCAN_QR_CODE"
		if strings.Contains(s.now, `"paired"`) {
			status = "WORKING"
		}
		fmt.Fprintf(w, `{"success":true,"data":{"network":%q,"simulated":%t,"status":%q,"number":"6281211112222","name":"Toko","reason":""}}`,
			s.network, s.network == "sandbox", status)
	})
	mux.HandleFunc("GET /api/manage/channels/demo/pairing", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.begun && len(s.steps) > 0 && s.steps[0] != "" {
			s.now, s.steps = begun(s.steps[0]), s.steps[1:]
		}
		fmt.Fprintf(w, `{"success":true,"data":%s}`, s.now)
	})
	mux.HandleFunc("POST /api/manage/channels/demo/{verb}", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.bodies = append(s.bodies, r.PathValue("verb")+" "+string(body))
		switch r.PathValue("verb") {
		case "pair":
			s.begun = true
			if len(s.steps) > 0 && s.steps[0] == "" {
				s.steps = s.steps[1:]
			}
		case "go-live":
			s.network = "whatsapp"
		case "pair-link":
			fmt.Fprintf(w, `{"success":true,"data":{"url":"%s/pair#ticket=SECRET","expires_at":%q}}`, s.URL,
				time.Now().Add(time.Hour).Format(time.RFC3339))
			return
		}
		fmt.Fprint(w, `{"success":true,"data":{"status":"SCAN_QR_CODE"}}`)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

var serial int

// begun fills in when a step ends, now that it begins.
func begun(step string) string {
	return regexp.MustCompile(`"in ([0-9hms.]+)"`).ReplaceAllStringFunc(step, func(in string) string {
		d, err := time.ParseDuration(strings.TrimPrefix(strings.Trim(in, `"`), "in "))
		if err != nil {
			panic(err)
		}
		return time.Now().Add(d).Format(`"` + time.RFC3339Nano + `"`)
	})
}

// step writes a step as the server tells it.
func step(kind string, more map[string]any) string {
	serial++
	data := map[string]any{"step": kind, "at": time.Now().Add(time.Duration(serial) * time.Millisecond), "code": nil, "qr": []string{},
		"expires_at": nil, "reason": "", "n": 0, "of": 0}
	for key, value := range more {
		data[key] = value
	}
	text, _ := json.Marshal(data)
	return string(text)
}

// squares is a QR code as large as those of the network, with a pattern that is the same nowhere.
var squares = func() []string {
	rows := make([]string, 57)
	for y := range rows {
		var b strings.Builder
		for x := range rows {
			b.WriteByte('0' + byte((x*x+3*y*y+x*y)%7%2))
		}
		rows[y] = b.String()
	}
	return rows
}()

func qrStep(n int, left time.Duration) string {
	return step("qr", map[string]any{"code": fmt.Sprintf("2@code%d", n), "qr": squares, "n": n, "of": 6, "expires_at": "in " + left.String()})
}

// person is somebody at a terminal of some size, who types.
type person struct {
	columns, rows int // zero: it is no terminal
	types         string
	env           map[string]string
}

// run runs a command as a person does, against the script.
func (s *script) run(p person, args ...string) (out, said string, code exitCode) {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	c := &cli{
		in: strings.NewReader(p.types), out: &stdout, err: &stderr,
		inTerminal: p.rows > 0, outTerminal: p.rows > 0, errTerminal: p.rows > 0,
		size: func() (int, int) { return p.columns, p.rows },
		getenv: func(name string) (string, bool) {
			value, set := p.env[name]
			return value, set
		},
	}
	code = run(s.t.Context(), c, append(args, "--url", s.URL, "--admin-token", "x", "--data", filepath.Join(s.t.TempDir(), "none")))
	return stdout.String(), stderr.String(), code
}

var roomy = person{columns: 120, rows: 50}

func TestPairDrawsTheCodeInPlace(t *testing.T) {
	s := play(t, []string{step("starting", nil), qrStep(1, 41*time.Second), qrStep(2, 20*time.Second), step("paired", nil)})
	out, said, code := s.run(roomy, "channel", "pair", "demo")
	if code != exitDone || out != "WORKING\n" {
		t.Fatalf("exit %d, stdout %q, stderr %s", code, out, said)
	}
	for _, part := range []string{"Asking WhatsApp for a code…", "Scan with WhatsApp → Settings → Linked devices → Link a device",
		"code 1 of 6 · 41 s", "code 2 of 6 · 20 s",
		"No camera? parley channel pair demo --code", "\x1b[35A\r\x1b[J", "✓ linked to +62 812-1111-2222",
		"Send yourself a test: parley send demo"} {
		if !strings.Contains(said, part) {
			t.Errorf("the terminal does not show %q", part)
		}
	}
	if strings.Contains(said+out, "2@code") {
		t.Error("the code is shown as text")
	}
	if drawn := strings.Count(said, strings.Join(drawQR(squares, true), "\n")); drawn != 2 {
		t.Errorf("it was drawn %d times", drawn)
	}
	if left := strings.Count(said, "\x1b[J"); left != 2 { // each was taken away
		t.Errorf("wiped %d times", left)
	}
}

func TestPairOnANarrowTerminal(t *testing.T) {
	s := play(t, []string{qrStep(1, time.Minute), step("paired", nil)})
	_, said, code := s.run(person{columns: 65, rows: 36}, "channel", "pair", "demo")
	if code != exitDone || !strings.Contains(said, "code 1 of 6 · 60 s") || !strings.Contains(said, "No camera? --code NUMBER") {
		t.Errorf("exit %d, %s", code, said)
	}
	drawn, _, _ := strings.Cut(said, "\x1b[J") // what is there before it is wiped
	for line := range strings.Lines(drawn) {
		line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimRight(line, "\r\n"), blackOnWhite), plainColours)
		if n := len([]rune(line)); n > 65 && !strings.Contains(line, "\x1b[") {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
}

func TestPairWithoutColours(t *testing.T) {
	s := play(t, []string{qrStep(1, time.Minute), step("paired", nil)})
	p := roomy
	p.env = map[string]string{"NO_COLOR": "1"}
	_, said, _ := s.run(p, "channel", "pair", "demo")
	if !strings.Contains(said, strings.Join(drawQR(squares, false), "\n")) || strings.Contains(said, blackOnWhite) {
		t.Error("it is not drawn without colours")
	}
}

func TestDrawnCodeIsTheCode(t *testing.T) {
	for _, colour := range []bool{true, false} {
		lines := drawQR(squares, colour)
		if columns, rows := qrSize(squares); columns != 65 || rows != 33 || len(lines) != 33 {
			t.Errorf("it needs %d columns and %d rows, and %d were drawn", columns, rows, len(lines))
		}
		for y := range 65 {
			line := []rune(strings.TrimSuffix(strings.TrimPrefix(lines[y/2], blackOnWhite), plainColours))
			if len(line) != 65 {
				t.Fatalf("line %d has %d characters", y/2, len(line))
			}
			for x, r := range line {
				inked := r == '█' || r == '▀' && y%2 == 0 || r == '▄' && y%2 == 1
				if black := inked == colour; black != isBlack(squares, x, y) {
					t.Fatalf("square %d, %d is wrong with colour %v", x, y, colour)
				}
			}
		}
	}
	if isBlack(squares, 3, 10) || isBlack(squares, 10, 3) || isBlack(squares, 61, 10) || isBlack(squares, 10, 61) {
		t.Error("the white around it is not white")
	}
}

func TestPairOnASmallTerminal(t *testing.T) {
	for _, c := range []struct {
		person
		wants []string
	}{
		{person{columns: 80, rows: 24}, []string{"Your terminal has 24 rows, the code needs 36. Open http://", "/pair#ticket=SECRET",
			"--code NUMBER", "--png qr.png"}},
		{person{columns: 60, rows: 50}, []string{"Your terminal has 60 columns, the code needs 65."}},
		{person{columns: 80, rows: 24, env: map[string]string{"SSH_CONNECTION": "x"}},
			[]string{"needs 36. Use --code NUMBER, or --png qr.png, or open http://"}},
	} {
		s := play(t, []string{qrStep(1, time.Minute)})
		_, said, code := s.run(c.person, "channel", "pair", "demo")
		if code != exitNeedsPerson {
			t.Errorf("exit %d", code)
		}
		for _, part := range c.wants {
			if !strings.Contains(said, part) {
				t.Errorf("no %q in %s", part, said)
			}
		}
		if strings.ContainsAny(said, "█▀▄") {
			t.Error("something is drawn all the same")
		}
	}
}

func TestPairNeedsATerminalOrAFlag(t *testing.T) {
	s := play(t)
	_, said, code := s.run(person{}, "channel", "pair", "demo")
	if code != exitUsage || !strings.Contains(said, "--code NUMBER, --png FILE, --link or --json") || len(s.bodies) != 0 {
		t.Errorf("exit %d, %q, and %q was done", code, said, s.bodies)
	}
	if _, said, code := s.run(roomy, "channel", "pair", "demo", "--link", "--png", "x"); code != exitUsage {
		t.Errorf("two ways at once: exit %d, %s", code, said)
	}
	if _, said, code := s.run(roomy, "channel", "pair", "../../tokens"); code != exitNotFound {
		t.Errorf("a code that is none: exit %d, %s", code, said)
	}
}

func TestPairAfterATimeOut(t *testing.T) {
	timedOut := []string{qrStep(1, time.Minute), step("timeout", nil)}
	s := play(t, timedOut, []string{qrStep(1, time.Minute), step("paired", nil)})
	p := roomy
	p.types = "\n"
	_, said, code := s.run(p, "channel", "pair", "demo")
	if code != exitDone || !strings.Contains(said, "Nobody scanned in 2 min 40 s. Press Enter for new codes, q to stop.") ||
		len(s.bodies) != 2 {
		t.Errorf("exit %d, %q, %q", code, said, s.bodies)
	}
	p.types = "q\n"
	if _, said, code := play(t, timedOut).run(p, "channel", "pair", "demo"); code != exitNeedsPerson || !strings.Contains(said,
		"demo is not paired") {
		t.Errorf("q: exit %d, %s", code, said)
	}
	p.types = ""
	if _, _, code := play(t, timedOut).run(p, "channel", "pair", "demo"); code != exitNeedsPerson {
		t.Errorf("nobody there: exit %d", code)
	}
	if _, said, code := play(t, timedOut).run(p, "channel", "pair", "demo", "--no-input"); code != exitNeedsPerson ||
		strings.Contains(said, "Press Enter") {
		t.Errorf("--no-input: exit %d, %s", code, said)
	}
}

func TestPairFails(t *testing.T) {
	for _, c := range []struct {
		last string
		code exitCode
		says string
	}{
		{step("passkey", map[string]any{"reason": "WhatsApp asks this account for its passkey.",
			"passkey": map[string]any{"request": map[string]any{"challenge": "x"}}}), exitNeedsPerson,
			"passkey. Pair again with --passkey-file FILE"},
		{step("failed", map[string]any{"reason": "The phone has too many devices."}), exitRefused, "too many devices"},
		{"null", exitNegative, "is no longer being paired: it is SCAN_QR_CODE"},
	} {
		_, said, code := play(t, []string{qrStep(1, time.Minute), c.last}).run(roomy, "channel", "pair", "demo")
		if code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("exit %d, want %d with %q: %s", code, c.code, c.says, said)
		}
	}
}

func TestPairByCode(t *testing.T) {
	s := play(t, []string{step("code", map[string]any{"code": "K7QM-3XPB", "expires_at": "in 151s"}), step("paired", nil)})
	out, said, code := s.run(roomy, "channel", "pair", "demo", "--code", "+62 812-1111-2222")
	if code != exitDone || out != "K7QM-3XPB\nWORKING\n" || !strings.Contains(said, "Link with phone number · 2 min 31 s") ||
		s.bodies[0] != `pair {"number":"6281211112222"}` {
		t.Errorf("exit %d, stdout %q, stderr %q, %q", code, out, said, s.bodies)
	}
}

func TestPairAsJSON(t *testing.T) {
	s := play(t, []string{qrStep(1, time.Minute), step("paired", nil)})
	out, _, code := s.run(person{}, "channel", "pair", "demo", "--json")
	want := []string{`{"step":"starting"}`, `{"step":"qr","code":"2@code1","expires_in":60,"n":1,"of":6}`, `{"step":"paired"}`,
		`{"step":"working","number":"6281211112222"}`, ""}
	if code != exitDone || !slices.Equal(strings.Split(out, "\n"), want) {
		t.Errorf("exit %d, %s", code, out)
	}
	out, _, code = play(t, []string{qrStep(6, time.Second), step("timeout", nil)}).run(person{}, "channel", "pair", "demo", "--json")
	if code != exitNeedsPerson || !strings.HasSuffix(out, `{"step":"timeout"}`+"\n") {
		t.Errorf("exit %d, %s", code, out)
	}
}

func TestPairWithAPicture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "qr.png")
	s := play(t, []string{qrStep(1, time.Minute), step("paired", nil)})
	var seen []byte
	var mode os.FileMode
	s.Config.Handler = watch(s.Config.Handler, "GET /api/manage/channels/demo/pairing", func() {
		if data, err := os.ReadFile(file); err == nil && len(data) > 0 {
			seen = data
			info, _ := os.Stat(file)
			mode = info.Mode()
		}
	})
	if out, said, code := s.run(person{}, "channel", "pair", "demo", "--png", file); code != exitDone || out != "WORKING\n" {
		t.Errorf("exit %d, %q, %s", code, out, said)
	}
	picture, err := png.Decode(bytes.NewReader(seen))
	if err != nil || mode.Perm() != 0o600 || picture.Bounds().Dx() != 65*pngScale {
		t.Fatalf("the picture: %v, mode %v", err, mode)
	}
	for y := range 65 {
		for x := range 65 {
			if r, _, _, _ := picture.At(x*pngScale+3, y*pngScale+3).RGBA(); (r == 0) != isBlack(squares, x, y) {
				t.Fatalf("square %d, %d is wrong", x, y)
			}
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	if err := os.WriteFile(file, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, said, code := s.run(person{}, "channel", "pair", "demo", "--png", file); code != exitUsage || !strings.Contains(said,
		"already exists") {
		t.Errorf("a file that was there: exit %d, %s", code, said)
	}
	if data, _ := os.ReadFile(file); string(data) != "mine" {
		t.Error("it was overwritten")
	}
}

// watch calls look before a path is answered.
func watch(next http.Handler, pattern string, look func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method+" "+r.URL.Path == pattern {
			look()
		}
		next.ServeHTTP(w, r)
	})
}

func TestPairLink(t *testing.T) {
	s := play(t)
	out, said, code := s.run(roomy, "channel", "pair", "demo", "--link")
	if code != exitDone || out != s.URL+"/pair#ticket=SECRET\n" || !strings.Contains(said, "works once, until") || !strings.Contains(said,
		"this machine only") {
		t.Errorf("exit %d, %q, %s", code, out, said)
	}
	if out, _, _ := s.run(person{}, "channel", "pair", "demo", "--link", "--json"); !strings.Contains(out, `"url": "http://`) {
		t.Errorf("as JSON: %s", out)
	}
}

func TestGoLive(t *testing.T) {
	paired := []string{qrStep(1, time.Minute), step("paired", nil)}
	for _, c := range []struct {
		types string
		args  []string
		body  string
	}{
		{"\n+62 812-9876-5432, 6281200000001\n", nil, `go-live {"allow":["6281298765432","6281200000001"],"network":"whatsapp"}`},
		{"2\n", nil, `go-live {"everybody":true,"network":"whatsapp"}`},
		{"demo\n", []string{"--everybody"}, `go-live {"everybody":true,"network":"whatsapp"}`},
		{"", []string{"--allow", "+62 812-9876-5432", "--yes"}, `go-live {"allow":["6281298765432"],"network":"whatsapp"}`},
	} {
		s := play(t, paired)
		s.network = "sandbox"
		p := roomy
		p.types = c.types
		_, said, code := s.run(p, append([]string{"channel", "go-live", "demo"}, c.args...)...)
		if code != exitDone || len(s.bodies) != 2 || s.bodies[0] != c.body || s.bodies[1] != "pair " {
			t.Errorf("%q %q: exit %d, %q, %s", c.types, c.args, code, s.bodies, said)
		}
		for _, part := range []string{"demo moves from the sandbox to WhatsApp.", "stays      code demo, its name, tokens, webhooks",
			"their history is archived", "✓ saved. Change later: parley channel allow demo", "code 1 of 6"} {
			if !strings.Contains(said, part) {
				t.Errorf("no %q in %s", part, said)
			}
		}
	}
}

func TestGoLiveRejected(t *testing.T) {
	terminal := roomy
	for _, c := range []struct {
		types string
		rows  int
		args  []string
		code  exitCode
		says  string
	}{
		{"3\n", 50, nil, exitUsage, "neither 1 nor 2"},
		{"1\n\n", 50, nil, exitUsage, "Nothing was changed"},
		{"1\nmy friend\n", 50, nil, exitUsage, "not a phone number"},
		{"", 50, nil, exitNeedsPerson, "nothing was typed"},
		{"no\n", 50, []string{"--everybody"}, exitNegative, "nothing was changed"},
		{"", 0, nil, exitUsage, "--allow NUMBER,NUMBER or --everybody"},
		{"", 0, []string{"--everybody"}, exitUsage, "--yes"},
		{"", 50, []string{"--no-input"}, exitUsage, "--allow NUMBER,NUMBER or --everybody"},
		{"", 50, []string{"--everybody", "--allow", "6281298765432"}, exitUsage, "everybody"},
	} {
		s := play(t)
		s.network = "sandbox"
		terminal.types, terminal.rows = c.types, c.rows
		_, said, code := s.run(terminal, append([]string{"channel", "go-live", "demo"}, c.args...)...)
		if code != c.code || !strings.Contains(said, c.says) || len(s.bodies) != 0 {
			t.Errorf("%q %q: exit %d, want %d with %q, %q was done: %s", c.types, c.args, code, c.code, c.says, s.bodies, said)
		}
	}
	s := play(t)
	if _, said, code := s.run(roomy, "channel", "go-live", "demo", "--everybody", "--yes"); code != exitRefused || !strings.Contains(said,
		"whatsapp already") {
		t.Errorf("a live channel: exit %d, %s", code, said)
	}
	s.network = "sandbox"
	if _, said, code := s.run(person{}, "channel", "go-live", "demo", "--everybody", "--yes"); code != exitNeedsPerson ||
		!strings.Contains(said, "not paired yet") || len(s.bodies) != 1 {
		t.Errorf("without a terminal: exit %d, %q, %s", code, s.bodies, said)
	}
}
