package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestEveryHelpBeginsWithTwoExamples walks the whole tree of commands.
func TestEveryHelpBeginsWithTwoExamples(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if examples := strings.Split(cmd.Example, "\n"); len(examples) != 2 {
			t.Errorf("%s has %d examples, want 2", cmd.CommandPath(), len(examples))
		}
		var out bytes.Buffer
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil || !strings.HasPrefix(out.String(), "Examples:\n") {
			t.Errorf("help of %s: error %v, begins with %.20q", cmd.CommandPath(), err, out.String())
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
