package clients_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// sandbox is a server with simulated phones, for an example.
type sandbox struct {
	*testing.T
	env []string
}

// call asks the server with the channel's token.
func (s sandbox) call(method, path, body string, out any) {
	s.Helper()
	values := map[string]string{}
	for _, line := range s.env {
		name, value, _ := strings.Cut(line, "=")
		values[name] = value
	}
	r, err := http.NewRequestWithContext(s.Context(), method, values["PARLEY_URL"]+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+values["PARLEY_TOKEN"])
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(text, out) != nil {
		s.Fatalf("%s %s: %d %v %s", method, path, response.StatusCode, err, text)
	}
}

type phoneMessage struct {
	Body   string
	Codes  []string
	Cursor string
}

// messages waits for messages on a phone that have a text.
func (s sandbox) messages(number, text string) []phoneMessage {
	s.Helper()
	var answer struct{ Data []phoneMessage }
	s.call("GET", "/api/sandbox/phones/"+number+"/messages?wait=30&contains="+url.QueryEscape(text), "", &answer)
	return answer.Data
}

// typed returns a shell that runs what the README of an example tells its reader to type in a checkout. Nothing else sets the
// example's environment.
func (s sandbox) typed(ctx context.Context, checkout, name string) *exec.Cmd {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(checkout, "examples", name, "README.md"))
	if err != nil {
		s.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```sh\n")
	block, _, _ = strings.Cut(block, "```")
	file := filepath.Join(s.TempDir(), "dev.env")
	if err := os.WriteFile(file, []byte(strings.Join(s.env, "\n")), 0o600); err != nil {
		s.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", "set -e\n"+strings.ReplaceAll(block, ".parley/dev.env", file))
	cmd.Dir, cmd.Env = checkout, append(os.Environ(), "npm_config_prefer_offline=true", "npm_config_audit=false", "npm_config_fund=false")
	return cmd
}

// begin starts an example, and returns the first line that it prints and that has the prefix.
func (s sandbox) begin(checkout, name, prefix string) string {
	s.Helper()
	ctx, stop := context.WithCancel(context.Background())
	cmd := s.typed(ctx, checkout, name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the example, too, ends with its shell
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		stop()
		cmd.Wait() // the error is that of the signal
		if s.Failed() {
			s.Logf("%s says: %s", name, complaint.String())
		}
	})
	if prefix == "" {
		return ""
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), prefix) {
			return lines.Text()
		}
	}
	s.Fatalf("%s printed no %s: %s", name, prefix, complaint.String())
	return ""
}

// TestLogin logs in to both applications with a code and with a link, as a browser and a phone do.
func TestLogin(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"login-go", "login-node"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkout := root
			if name == "login-node" {
				need(t, "npm")
				checkout = t.TempDir() // npm writes into it
				for _, dir := range []string{"clients/typescript", "examples/login-node"} {
					if err := os.CopyFS(filepath.Join(checkout, dir), os.DirFS(filepath.Join(root, dir))); err != nil {
						t.Fatal(err)
					}
				}
			}
			s := sandbox{t, development(t)}
			address := s.begin(checkout, name, "http://")
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			browser := &http.Client{Jar: jar}
			post := func(path string, form url.Values) (int, string) { return read(t, browser, address+path, form) }

			post("/login/code", url.Values{"number": {"6281234567890"}})
			if status, text := post("/login/check", url.Values{"code": {"wrong"}}); status != http.StatusUnauthorized {
				t.Errorf("a wrong code: %d %s", status, text)
			}
			code := s.messages("6281234567890", "Toko Ayu")[0].Codes[0]
			status, text := post("/login/check", url.Values{"code": {code}})
			if status != http.StatusOK || !strings.Contains(text, "6281234567890") {
				t.Errorf("the code: %d %s", status, text)
			}

			_, link := post("/login/link", url.Values{"number": {"6281234567891"}})
			if status, text := post("/login/state", nil); status != http.StatusUnauthorized || !strings.Contains(text, "PENDING") {
				t.Errorf("a link that nobody used: %d %s", status, text)
			}
			body, _ := json.Marshal(map[string]string{"link": strings.TrimSpace(link)})
			s.call("POST", "/api/sandbox/phones/6281234567891/open", string(body), &struct{}{})
			s.messages("6281234567891", "Toko Ayu") // the reply comes after the approval
			if status, text := post("/login/state", nil); status != http.StatusOK || !strings.Contains(text, "6281234567891") {
				t.Errorf("the link: %d %s", status, text)
			}
			if status, _ := read(t, &http.Client{}, address+"/login/state", nil); status != http.StatusUnauthorized {
				t.Errorf("another browser is logged in: %d", status)
			}
		})
	}
}

// read posts a form, or reads a page if there is none.
func read(t *testing.T, browser *http.Client, address string, form url.Values) (int, string) {
	t.Helper()
	do := func() (*http.Response, error) { return browser.Get(address) }
	if form != nil {
		do = func() (*http.Response, error) { return browser.PostForm(address, form) }
	}
	response, err := do()
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestSupportBot writes to the bot, also while it is not running.
func TestSupportBot(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	state := filepath.Join(t.TempDir(), "bot.state")
	s := sandbox{t, append(development(t), "BOT_STATE="+state, "PYTHONDONTWRITEBYTECODE=1")}
	write := func(text string) {
		s.call("POST", "/api/sandbox/phones/6281234567890/send", `{"type":"text","message":"`+text+`"}`, &struct{}{})
	}
	write("before") // the bot goes on after this one
	var recent struct{ Data []struct{ ID string } }
	for len(recent.Data) == 0 {
		s.call("GET", "/api/events/recent?types=message.received", "", &recent)
	}
	if err := os.WriteFile(state, []byte(recent.Data[0].ID), 0o644); err != nil {
		t.Fatal(err)
	}
	write("hours") // nobody answers yet
	s.begin(root, "support-bot", "")
	s.messages("6281234567890", "open from 9 to 18")
	write("order 1017")
	s.messages("6281234567890", "Order 1017 is on its way")
	var all struct{ Data []phoneMessage }
	s.call("GET", "/api/sandbox/phones/6281234567890/messages", "", &all)
	if len(all.Data) != 2 {
		t.Errorf("the phone got %v", all.Data)
	}
}

// TestOrderNotifications runs the script twice. Everybody gets one message.
func TestOrderNotifications(t *testing.T) {
	t.Parallel()
	need(t, "php")
	s := sandbox{t, development(t)}
	for range 2 {
		said, err := s.typed(t.Context(), root, "order-notifications").CombinedOutput()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 1 { // one number does not exist
			t.Errorf("the script: %v %s", err, said)
		}
		if want := "1017 SENT\n1018 SENT\n1019 not_on_network\n"; string(said) != want {
			t.Errorf("the script says %q, want %q", said, want)
		}
	}
	if got := s.messages("6281234567890", "on its way"); len(got) != 1 {
		t.Errorf("the customer got %v", got)
	}
	if got := s.messages("6281234567891", "picked up"); len(got) != 1 {
		t.Errorf("the other customer got %v", got)
	}
}
