package product_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/api"
)

// language is one that the documents show how to check signatures in.
type language struct {
	name    string
	fence   string // what its blocks are marked with
	program string
	file    string
	compile []string // run once in the folder of the file; nil: it needs none
	run     []string // run in the folder of the file, with what the driver takes
	// What is put after the snippet, so that it can be called: for each line of its input, of parts with
	// bars between, it prints a line. That of a webhook gets secret, id, time and signatures, and the file
	// with the body as its argument; it gets the event twice and prints both statuses and how many events were
	// handled. That of a callback gets secret and query and prints status and id, or "no".
	webhook, callback string
}

var languages = []language{
	{name: "Shell", fence: "bash", program: "bash", file: "snippet.sh", run: []string{"bash", "snippet.sh"},
		webhook: `
handle() { echo "$1" >> handled; }
while IFS='|' read -r secret id timestamp signatures; do
  : > handled; seen=$(mktemp -d -p .)
  first=$(receive "$secret" "$id" "$timestamp" "$signatures" "$1" "$seen")
  second=$(receive "$secret" "$id" "$timestamp" "$signatures" "$1" "$seen")
  echo "$first $second $(grep -c . handled)"
done
`,
		callback: `
while IFS='|' read -r secret query; do
  if got=$(login_callback "$secret" "$query"); then
    echo "$(sed -n s/^status=//p <<< "$got") $(sed -n s/^id=//p <<< "$got")"
  else
    echo no
  fi
done
`},
	{name: "Go", fence: "go", program: "go", file: "snippet.go", compile: []string{"go", "build", "-o", "snippet",
		"snippet.go", "main.go"}, run: []string{"./snippet"},
		webhook: `package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
)

var handled int

func handle([]byte) { handled++ }

func main() {
	body, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		given := strings.Split(in.Text(), "|")
		handled, seen = 0, map[string]bool{}
		var codes [2]int
		for i := range codes {
			r := httptest.NewRequest("POST", "/", bytes.NewReader(body))
			r.Header.Set("Webhook-Id", given[1])
			r.Header.Set("Webhook-Timestamp", given[2])
			r.Header.Set("Webhook-Signature", given[3])
			w := httptest.NewRecorder()
			receive(given[0])(w, r)
			codes[i] = w.Code
		}
		fmt.Println(codes[0], codes[1], handled)
	}
}
`,
		callback: `package main

import (
	"bufio"
	"fmt"
	"net/url"
	"os"
	"strings"
)

func main() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		secret, text, _ := strings.Cut(in.Text(), "|")
		query, _ := url.ParseQuery(text)
		if got := loginCallback(secret, query); got != nil {
			fmt.Println(got["status"], got["id"])
		} else {
			fmt.Println("no")
		}
	}
}
`},
	{name: "JavaScript", fence: "js", program: "node", file: "snippet.mjs", run: []string{"node", "snippet.mjs"},
		webhook: `
import { readFileSync } from 'node:fs'
let handled
function handle(event) { if (event.id) handled++ }
for (const line of readFileSync(0, 'utf8').trimEnd().split('\n')) {
  const [secret, id, timestamp, signature] = line.split('|')
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature }
  handled = 0
  seen.clear()
  const codes = [1, 2].map(() => receive(secret, headers, readFileSync(process.argv[2])))
  console.log(...codes, handled)
}
`,
		callback: `
import { readFileSync } from 'node:fs'
for (const line of readFileSync(0, 'utf8').trimEnd().split('\n')) {
  const got = loginCallback(...line.split('|'))
  console.log(got ? got.status + ' ' + got.id : 'no')
}
`},
	{name: "Python", fence: "python", program: "python3", file: "snippet.py", run: []string{"python3", "snippet.py"},
		webhook: `
import sys
handled = []
handle = handled.append
body = open(sys.argv[1], "rb").read()
for line in sys.stdin:
    given = line.rstrip("\n").split("|")
    headers = dict(zip(["webhook-id", "webhook-timestamp", "webhook-signature"], given[1:]))
    handled.clear()
    seen.clear()
    print(receive(given[0], headers, body), receive(given[0], headers, body), len(handled))
`,
		callback: `
import sys
for line in sys.stdin:
    got = login_callback(*line.rstrip("\n").split("|"))
    print(got["status"] + " " + got["id"] if got else "no")
`},
	{name: "PHP", fence: "php", program: "php", file: "snippet.php", run: []string{"php", "snippet.php"},
		webhook: `
function handle(array $event): void { global $handled; $handled++; }
$body = file_get_contents($argv[1]);
while (($line = fgets(STDIN)) !== false) {
    [$secret, $id, $timestamp, $signature] = explode('|', rtrim($line, "\n"));
    $headers = ['HTTP_WEBHOOK_ID' => $id, 'HTTP_WEBHOOK_TIMESTAMP' => $timestamp, 'HTTP_WEBHOOK_SIGNATURE' => $signature];
    $handled = 0;
    $seen = [];
    echo receive($secret, $headers, $body, $seen), ' ', receive($secret, $headers, $body, $seen), " $handled\n";
}
`,
		callback: `
while (($line = fgets(STDIN)) !== false) {
    [$secret, $text] = explode('|', rtrim($line, "\n"));
    parse_str($text, $query);
    $got = login_callback($secret, $query);
    echo $got ? "$got[status] $got[id]\n" : "no\n";
}
`},
}

// blocks returns the blocks of a document that are marked with a language.
func blocks(t *testing.T, document, fence string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../docs", document))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, match := range regexp.MustCompile("(?ms)^```"+fence+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		found = append(found, match[1])
	}
	if len(found) == 0 {
		t.Fatalf("%s has no block marked %s", document, fence)
	}
	return found
}

// ask runs a document's snippet with its driver and returns a line for each line of the input; nil:
// the program is not installed, and the snippet need not be run everywhere.
func (l language) ask(t *testing.T, document, driver string, input []string, args ...string) []string {
	t.Helper()
	snippet := blocks(t, document, l.fence)[0]
	if _, err := exec.LookPath(l.program); err != nil {
		t.Logf("%s is not installed: what %s says in %s was not run", l.program, document, l.name)
		return nil
	}
	dir := t.TempDir()
	files := map[string]string{l.file: snippet + driver}
	if l.compile != nil {
		files = map[string]string{l.file: snippet, "main.go": driver}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if l.compile != nil {
		run(t, dir, "", l.compile...)
	}
	out := run(t, dir, strings.Join(input, "\n")+"\n", append(slices.Clone(l.run), args...)...)
	answers := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if len(answers) != len(input) {
		t.Fatalf("%d answers to %d questions:\n%s", len(answers), len(input), out)
	}
	return answers
}

// run runs a program in a folder.
func run(t *testing.T, dir, input string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", command[0], err, out, complaint.String())
	}
	return string(out)
}

// TestDocumentedPathsExist finds every path of the API that the documents name among the routes.
func TestDocumentedPathsExist(t *testing.T) {
	mux := http.NewServeMux()
	paths := map[string]bool{}
	for _, route := range api.Routes() {
		_, path, _ := strings.Cut(route, " ")
		if !paths[path] {
			paths[path] = true
			mux.Handle(path, http.NotFoundHandler())
			if path == "/api/chat" || path == "/api/contact" {
				mux.Handle(path+"/{$}", http.NotFoundHandler())
			}
		}
	}
	for _, document := range []string{"api.md", "events.md", "webhooks.md", "otp.md"} {
		text, err := os.ReadFile(filepath.Join("../../../docs", document))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`/api/[a-z][a-zA-Z0-9_/{}$-]*`).FindAllString(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s names no path: does the pattern still fit?", document)
		}
		for _, path := range found {
			path = strings.NewReplacer("{", "", "}", "", "$", "").Replace(path)
			if _, pattern := mux.Handler(httptest.NewRequest("GET", path, nil)); pattern == "" {
				t.Errorf("%s names %s, which is not there", document, path)
			}
		}
	}
}
