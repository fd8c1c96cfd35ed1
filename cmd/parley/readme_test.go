package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestDocumentedCommandsExist reads every command line of ours in the documents and checks that the
// command and its flags are there. What they do is in testdata/script.
func TestDocumentedCommandsExist(t *testing.T) {
	line := regexp.MustCompile(`(?m)(?:^\$ |\$\(|^)(?:bin/)?parley ([a-z].*)$`)
	found := 0
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatal(pages, err)
	}
	for _, file := range append(pages, "../../README.md", "../../SECURITY.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```(?:console|sh)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			for _, match := range line.FindAllStringSubmatch(strings.ReplaceAll(block[1], "\\\n", ""), -1) {
				found++
				checkCommand(t, file, match[1])
			}
		}
	}
	if found < 8 {
		t.Errorf("only %d commands were found: does the pattern still fit?", found)
	}
}

// commandOutput is what a shell puts in place of a command.
var commandOutput = regexp.MustCompile(`\$\([^)]*\)`)

func checkCommand(t *testing.T, file, text string) {
	t.Helper()
	text, _, _ = strings.Cut(text, " #")
	text = strings.TrimSuffix(commandOutput.ReplaceAllString(text, "OUTPUT"), " &")
	var args []string
	for _, word := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(text, -1) {
		if slices.Contains([]string{"<", ">", "|", "&&", ")"}, word) {
			break
		}
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
