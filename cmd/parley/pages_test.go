package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/network/cloud/cloudtest"
)

// untyped are the commands of docs that this test cannot type, and why. A pattern may match anywhere in a command.
var untyped = []struct {
	reason   string
	patterns []string
}{
	{"runs beside the pages already", []string{`^parley dev `}},
	{"is for another server than that one", []string{`^export PARLEY_DATA=`}},
	{"doesn't end by itself", []string{`--follow\b`, `--forward-to`, `^curl -N `, `^parley chat \+\d+ --channel`}},
	{"asks at a terminal", []string{`^parley login https:\S+ +#`}},
	{"needs a browser that is signed in", []string{`/sessions/ses_…`}},
	{"needs what has failed, which deliveries.txtar has", []string{`request_id=req_…`, `retry dlv_…`, `/dlv_…/retry`, `deliveries replay `}},
	{"has been done by an earlier command of the page", []string{`/channels/demo/go-live`}},
	{"changes the machine", []string{`^install .*-[og] `, `^useradd `, `^sudo `, `^chown `, `^systemctl `}},
	{"needs the files of a release", []string{`^sha256sum --check`, `^install .*parley-1\.0\.0`}},
	{"needs Docker", []string{`\bdocker `}},
	{"needs Kubernetes", []string{`^kubectl `}},
	{"needs PostgreSQL or another machine", []string{`^parley serve .* 'postgres:`, `^pg_dump `, `\bscp `}},
	{"needs a bucket", []string{`s3://`}},
	{"needs the Internet", []string{`^npm pack (?s:.*)`, `^npm install `, `^(\w+=\S+ )?npx `, `^go get `, `^go run github\.com`, `^cosign `}},
	{"needs a test framework that few machines have", []string{`^pytest `, `^phpunit `}},
	{"takes minutes or hours", []string{`\bmake [a-z]+ `, `^go run \./internal/bench`, `^PARLEY_RUNS=`}},
}

// preparations are what has happened before a page is read.
var preparations = map[string]string{
	"api":        "parley channel create toko",
	"cli":        "parley channel delete toko --yes --wait; echo $PARLEY_ADMIN_TOKEN >token.txt",
	"cloud":      "echo EAAtoken >token.txt",
	"operations": "rm -f help.zip",
	"upgrade":    "rm -f backups/before.tar",
	"whatsapp":   "parley channel delete toko --yes --wait || true",
}

// prelude is for the shell of each page. An id such as whk_… is the last one that was printed. A server that a page starts stops when it is
// ready. A simulated phone scans the code of a channel, which is logged out first, because pages show several ways to pair one. What a
// person would be asked is answered with --yes. What is left after a webhook was removed is listed, for the ids.
const prelude = `
. .parley/dev.env
last() { cat ~/typed.log ~/typed.new | grep -ao "$1[0-9A-Za-z]*" | tail -n 1; }
parley() {
	case "$1 $2" in
	serve*) command parley "$@" & command parley health --ready --wait 2m --data ~/var/lib/parley && kill -INT $! && wait $! ;;
	"channel pair" | "channel go-live")
		command parley channel logout "$3" || true
		case "$*" in *go-live*) set -- "$@" --yes ;; *--link*) command parley "$@"; set -- channel pair "$3" ;; esac
		rm -f steps.json
		command parley "$@" --json >steps.json &
		case $3 in demo) loopwa scan 6281211113333 steps.json ;; *) loopwa scan 6281211112222 steps.json ;; esac && wait $! ;;
	"webhook remove") command parley "$@" --yes; command parley deliveries list; command parley webhook list ;;
	*) command parley "$@" ;;
	esac
}
set -e
`

// TestPages goes through every page of docs, the guides first, beside one development server. It types the blocks marked sh or console in
// order: every command must succeed and print what a console block shows, and a response may only be an error if the page shows that error
// below the block. Blocks in other languages must parse.
func TestPages(t *testing.T) {
	for _, program := range []string{"jq", "python3", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed: make deps installs it, or names its package")
		}
	}
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := []string{"api", "otp", "webhooks", "events", "cli"}
	for _, file := range files {
		if page := strings.TrimSuffix(filepath.Base(file), ".md"); !slices.Contains(pages, page) {
			pages = append(pages, page)
		}
	}
	blocks, found := map[string][]block{}, map[string]bool{}
	for _, page := range pages {
		text, err := os.ReadFile("../../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		blocks[page] = blocksFromPage(t, string(text), found)
	}
	for _, row := range untyped {
		for _, pattern := range row.patterns {
			if !found[pattern] {
				t.Errorf("no page has a command that matches %s any more: remove it from untyped", pattern)
			}
		}
	}
	r := newPageReader(t)
	for _, page := range pages {
		t.Run(page, func(t *testing.T) { r.read(t, page, blocks[page]) })
	}
}

// block is a block of code in a page.
type block struct {
	language, text string
	file           string  // named by the text before it
	commands       []shown // a block of sh is one
}

var fenced = regexp.MustCompile("(?ms)(?:`(\\w+\\.\\w+)`:\n\n)?^( *)```(\\w*)\n(.*?)^ *```$")

// blocksFromPage returns the blocks of a page, without the commands in untyped, and notes the patterns that match one.
func blocksFromPage(t *testing.T, page string, found map[string]bool) []block {
	t.Helper()
	var blocks []block
	for _, match := range fenced.FindAllStringSubmatch(page, -1) {
		b := block{file: match[1], language: match[3], text: regexp.MustCompile("(?m)^"+match[2]).ReplaceAllString(match[4], "")}
		switch b.language {
		case "sh":
			b.commands = []shown{{command: b.text}}
		case "console":
			b.commands = blockCommands(t, b.text)
		}
		for i := range b.commands {
			b.commands[i].command = withoutUntyped(b.commands[i].command, found)
		}
		b.commands = slices.DeleteFunc(b.commands, func(c shown) bool { return strings.TrimSpace(c.command) == "" })
		blocks = append(blocks, b)
	}
	return blocks
}

func withoutUntyped(lines string, found map[string]bool) string {
	for _, row := range untyped {
		for _, pattern := range row.patterns {
			rest := regexp.MustCompile(`(?m)^.*(?:`+pattern+`)(?:.*\\\n)*.*\n?`).ReplaceAllString(lines, "")
			found[pattern] = found[pattern] || rest != lines
			lines = rest
		}
	}
	return lines
}

// pageReader does what the pages say.
type pageReader struct {
	dir        string
	shorthands string                   // functions of api.md
	here       func(text string) string // replaces machines, files and ids of the pages with those of this test
}

func newPageReader(t *testing.T) *pageReader {
	t.Helper()
	cache, err1 := exec.Command("go", "env", "GOCACHE").Output()
	api, err2 := os.ReadFile("../../docs/api.md")
	listener, err3 := net.Listen("tcp", "127.0.0.1:0")
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	listener.Close()
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache))) // the terminals have another home
	w := newNewcomer(t)
	w.types("make run")
	meta := cloudtest.Start()
	t.Cleanup(meta.Close)
	customer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(customer.Close)
	if err := os.CopyFS(filepath.Join(w.dir, "deploy"), os.DirFS("../../deploy")); err != nil {
		t.Fatal(err)
	}
	w.terminals[1].run(`mkdir -p backups etc/parley etc/systemd/system mnt/media tmp usr/local/bin var/backups/parley var/lib
		touch parley-new typed.log; echo socks5://user:password@127.0.0.1:1 >proxy.txt; echo '` + meta.AppSecret + `' >secret.txt
		openssl req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -subj /CN=chat -keyout key.pem -out cert.pem 2>/dev/null`)
	patterns := []struct{ pattern, here string }{
		{`(?m)(^|[\s=>"'@])/(var|etc|usr|mnt|backups|tmp)/`, "${1}" + w.dir + "/$2/"},
		{`(login|--url) https://chat\.example\.com`, "$1 $$PARLEY_URL"},
		{`https://((crm|ops|n8n)\.)?example\.com`, customer.URL},
		{`localhost:3000|proxy\.example\.com:3128`, customer.Listener.Addr().String()},
		{`0\.0\.0\.0:443`, "127.0.0.1:0"},
		{`127\.0\.0\.1:8123`, listener.Addr().String()},
		{` 8123 `, fmt.Sprintf(" %d ", listener.Addr().(*net.TCPAddr).Port)},
		{`--network cloud `, "--network cloud --graph-url " + meta.URL + " "},
		{`106540352242922`, meta.AddNumber("6281100000001").ID},
		{`\b([a-z]{3}_)…`, "$$(last $1)"},
	}
	return &pageReader{
		dir:        w.dir,
		shorthands: strings.Join(regexp.MustCompile(`(?m)^\w+\(\) \{ .* \}$`).FindAllString(string(api), -1), "\n"),
		here: func(text string) string {
			for _, p := range patterns {
				text = regexp.MustCompile(p.pattern).ReplaceAllString(text, p.here)
			}
			return text
		},
	}
}

// read types the commands of a page and parses its other blocks.
func (r *pageReader) read(t *testing.T, page string, blocks []block) {
	t.Helper()
	var shell *terminal
	for i, b := range blocks {
		if b.file != "" {
			if err := os.WriteFile(filepath.Join(r.dir, b.file), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if b.language != "sh" && b.language != "console" {
			if err := parseBlock(t, b.language, b.text); err != nil {
				t.Errorf("%s.md: %v:\n%s", page, err, b.text)
			}
			continue
		}
		for _, c := range b.commands {
			if shell == nil {
				shell = openTerminal(t, page, r.dir, "127.0.0.1:0")
				shell.run(prelude + r.shorthands + "\n" + preparations[page])
			}
			out := shell.run("cd\n{ :\n" + r.here(c.command) + "\n} >typed.new 2>&1\ncat ~/typed.new | tee -a ~/typed.log")
			for j, line := range c.output {
				c.output[j] = strings.ReplaceAll(line, "127.0.0.1:7275", "127.0.0.1:…")
			}
			if missing := c.missing(out); missing != "" {
				t.Errorf("%s.md: $ %s\nprinted\n%s\nwhich lacks %q", page, c.command, out, missing)
			}
			if refusal := refused.FindString(out); refusal != "" && (i+1 == len(blocks) || !refused.MatchString(blocks[i+1].text)) {
				t.Errorf("%s.md:\n%s\nprinted %s", page, c.command, refusal)
			}
		}
	}
}

// refused is a response that is an error.
var refused = regexp.MustCompile(`(?m)^\{("message":|"success":false).*`)

// parsers are programs that parse their stdin.
var parsers = map[string][]string{
	"bash":   {"bash", "-n"},
	"php":    {"php", "-l"},
	"python": {"python3", "-c", "import ast, sys; ast.parse(sys.stdin.read())"},
	"js":     {"node", "-e", "new (require('vm').Script)(require('fs').readFileSync(0, 'utf8'))"},
	"module": {"node", "--experimental-vm-modules", "-e", "new (require('vm').SourceTextModule)(require('fs').readFileSync(0, 'utf8'))"},
}

// lineForms are what lines of other languages look like. Those of deploy.md are given to systemd and nginx by make deploy-check.
var lineForms = map[string]*regexp.Regexp{
	"ini":   regexp.MustCompile(`^(\[\w+\]|\w+=.*|)$`),
	"nginx": regexp.MustCompile(`^( *\w[^{};]*[{;]| *\}|)$`),
}

func parseBlock(t *testing.T, language, text string) error {
	t.Helper()
	switch language {
	case "": // output, or a drawing
		if regexp.MustCompile(`(?m)^(\$|curl|docker|go|make|parley) [a-z]`).MatchString(text) {
			return errors.New("a block with a command must be marked sh or console")
		}
		return nil
	case "json":
		return json.Unmarshal([]byte(text), new(any))
	case "go":
		formatted, err := format.Source([]byte(text))
		if err == nil && string(formatted) != text {
			err = errors.New("gofmt would change it")
		}
		return err
	case "ini", "nginx":
		for line := range strings.SplitSeq(text, "\n") {
			if !lineForms[language].MatchString(line) {
				return fmt.Errorf("not a line of %s: %q", language, line)
			}
		}
		return nil
	case "js", "ts":
		text = regexp.MustCompile(`(?m)^import type .*$`).ReplaceAllString(text, "") // the only TypeScript in docs that JavaScript can't parse
		if language = "js"; regexp.MustCompile(`(?m)^(import|export) `).MatchString(text) {
			language = "module"
		}
	}
	parser := parsers[language]
	if parser == nil {
		return fmt.Errorf("this test can't parse %q", language)
	}
	if _, err := exec.LookPath(parser[0]); err != nil {
		t.Logf("%s is not installed: a block was not parsed", parser[0])
		return nil
	}
	cmd := exec.CommandContext(t.Context(), parser[0], parser[1:]...)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", parser[0], err, out)
	}
	return nil
}
