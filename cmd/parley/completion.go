package main

import (
	"github.com/spf13/cobra"
)

func (c *cli) completion(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script that completes commands in your shell",
		Example: `  source <(parley completion bash)
  parley completion fish > ~/.config/fish/completions/parley.fish`,
		Args:      takes("SHELL"),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(_ *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(c.out, true)
			case "zsh":
				return root.GenZshCompletion(c.out)
			case "fish":
				return root.GenFishCompletion(c.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(c.out)
			}
			return fail(exitUsage, "%q is not a shell that we know: bash, zsh, fish or powershell", args[0])
		},
	}
}
