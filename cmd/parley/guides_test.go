package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// notTyped are commands of the guides that need WhatsApp, another server, an id of the reader's own or a failed delivery, or that
// do not end.
var notTyped = regexp.MustCompile(`(?m)^.*(_…|/channels/toko/|parley login http|replay --failed|curl -N |--forward-to|--follow|` +
	`^parley chat ).*\n`)

// TestGuides types the shell blocks of the guides in order beside a development server. Every command must succeed. A response
// may only be an error if the page shows that error below the block.
func TestGuides(t *testing.T) {
	for _, program := range []string{"jq", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not installed")
		}
	}
	w := newNewcomer(t)
	w.types("make run")
	w.at = w.terminals[1]
	w.at.run("PATH=$PWD/bin:$PATH; . .parley/dev.env; set -e")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
	listener.Close()
	block := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$(?:\n\n^```json$\n([^\n]*))?")
	for _, page := range []string{"api.md", "otp.md", "webhooks.md", "events.md", "cli.md"} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range block.FindAllStringSubmatch(string(text), -1) {
			if strings.HasPrefix(found[1], "parley dev ") {
				continue
			}
			lines := notTyped.ReplaceAllString(found[1], "")
			out := w.at.run(strings.NewReplacer("/tmp/files &", w.dir+"/files >/dev/null 2>&1 &", "/tmp/files", w.dir+"/files",
				":8123/", ":"+port+"/", " 8123 ", " "+port+" ").Replace(lines))
			for line := range strings.Lines(out) {
				for _, refusal := range []string{`{"message":`, `{"success":false`} {
					if strings.HasPrefix(line, refusal) && !strings.HasPrefix(found[2], refusal) {
						t.Errorf("%s:\n%s\nprinted %s", page, lines, line)
					}
				}
			}
		}
	}
}
