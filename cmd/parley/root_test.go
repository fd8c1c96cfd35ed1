package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestEveryHelp walks the whole tree of commands: each says what it does, then how it is called, with two examples.
func TestEveryHelp(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if examples := strings.Split(cmd.Example, "\n"); len(examples) != 2 {
			t.Errorf("%s has %d examples, want 2", cmd.CommandPath(), len(examples))
		}
		var out bytes.Buffer
		cmd.SetOut(&out)
		about := cmd.Long
		if about == "" {
			about = cmd.Short
		}
		err := cmd.Help()
		usage, examples := strings.Index(out.String(), "\nUsage:\n"), strings.Index(out.String(), "\nExamples:\n")
		if err != nil || !strings.HasPrefix(out.String(), about[:10]) || usage < 0 || examples < usage {
			t.Errorf("help of %s: error %v:\n%s", cmd.CommandPath(), err, out.String())
		}
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				walk(sub)
			}
		}
	}
	walk(newRoot(&cli{out: &bytes.Buffer{}, err: &bytes.Buffer{}}))
}

func TestDidYouMean(t *testing.T) {
	names := []string{"serve", "send", "sandbox", "channel"}
	for written, want := range map[string]string{
		"srve":   ` Did you mean "serve"?`,
		"chanel": ` Did you mean "channel"?`,
		"chan":   ` Did you mean "channel"?`,
		"sned":   ` Did you mean "send"?`,
		"zzzzz":  "",
	} {
		if got := didYouMean(written, names); got != want {
			t.Errorf("didYouMean(%q) = %q, want %q", written, got, want)
		}
	}
}
