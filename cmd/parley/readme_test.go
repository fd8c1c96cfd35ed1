package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestDocumentedCommandsExist reads every command line of ours in the documents and checks that the
// command and its flags are there. What they do is in testdata/script.
func TestDocumentedCommandsExist(t *testing.T) {
	line := regexp.MustCompile(`(?m)(?:^\$ |\$\(|^)(?:bin/)?parley ([a-z].*)$`)
	found := 0
	for _, file := range []string{"../../README.md", "../../docs/api.md", "../../docs/events.md", "../../docs/webhooks.md",
		"../../docs/otp.md", "../../docs/whatsapp.md", "../../docs/console.md", "../../docs/operations.md", "../../SECURITY.md",
		"../../CONTRIBUTING.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```(?:console|sh)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			for _, match := range line.FindAllStringSubmatch(block[1], -1) {
				found++
				checkCommand(t, file, match[1])
			}
		}
	}
	if found < 8 {
		t.Errorf("only %d commands were found: does the pattern still fit?", found)
	}
}

func checkCommand(t *testing.T, file, text string) {
	t.Helper()
	text, _, _ = strings.Cut(text, " #")
	text = strings.TrimSuffix(text, " &")
	var args []string
	for _, word := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(text, -1) {
		args = append(args, strings.Trim(strings.TrimSuffix(word, ")"), `'"`))
	}
	root := newRoot(&cli{getenv: func(string) (string, bool) { return "", false }})
	command, rest, err := root.Find(args)
	if err != nil || command == root {
		t.Errorf("%s: parley %s: no such command: %v", file, text, err)
		return
	}
	if err := command.ParseFlags(rest); err != nil && err != pflag.ErrHelp {
		t.Errorf("%s: parley %s: %v", file, text, err)
		return
	}
	if err := command.ValidateArgs(command.Flags().Args()); err != nil {
		t.Errorf("%s: parley %s: %v", file, text, err)
	}
}
