package main

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
)

// completionTimeout is how long Tab waits for a server.
const completionTimeout = 2 * time.Second

type completer func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

func fixed(words ...string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// entry is a row of any list of the API, with the fields that describe it.
type entry struct {
	ID    string           `json:"id"`
	Code  string           `json:"code"`
	Name  string           `json:"name"`
	Kind  parley.TokenKind `json:"kind"`
	URL   string           `json:"url"`
	Type  parley.EventType `json:"type"`
	State string           `json:"state"`
}

// listed completes the codes of channels, or the ids of webhooks, tokens, nodes and deliveries, of the running server. Without a
// server there are no proposals.
func (c *cli) listed(kind string) completer {
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		var proposals []string
		for _, e := range c.entries(cmd, kind, begun) {
			id := e.ID + e.Code
			about := strings.TrimSpace(strings.Join([]string{e.Name, string(e.Kind), e.URL, string(e.Type), e.State}, " "))
			if strings.HasPrefix(id, begun) {
				proposals = append(proposals, id+"\t"+strings.Join(strings.Fields(about), " "))
			}
		}
		return proposals, cobra.ShellCompDirectiveNoFileComp
	}
}

// networkNames completes the networks of the running server.
func (c *cli) networkNames(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if api := c.runningServer(cmd); api != nil {
		ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
		defer cancel()
		for _, network := range readNetworks(ctx, api) {
			names = append(names, string(network.Name)+"\t"+network.Title)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// runningServer returns the API of the running server; nil: there is none. Errors are ignored: completion prints nothing else.
func (c *cli) runningServer(cmd *cobra.Command) *client.Client {
	set, err := loadSettings(cmd.Flags(), c.getenv)
	if err != nil {
		return nil
	}
	c.set = set
	if c.useProfile(cmd) != nil {
		return nil
	}
	if c.profile != "" {
		if api, err := c.client(keyAdminToken, "", nil); err == nil {
			return api
		}
		return nil
	}
	running, ok := c.dir().Running()
	if !ok || running.URL == "" {
		return nil
	}
	return newAdmin(running)
}

// entries requests a list from the running server.
func (c *cli) entries(cmd *cobra.Command, kind, begun string) (all []entry) {
	api := c.runningServer(cmd)
	if api == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	query := url.Values{}
	switch kind {
	case "deliveries":
		query.Set("limit", "100")
	case "channels":
		query.Set("limit", "200")
		query.Set("search", begun[:min(len(begun), 32)])
	}
	if _, err := api.Get(ctx, client.Path(kind), query, &all); err != nil {
		return nil
	}
	return all
}

// completeArgs derives the checks and the completion of every command from its usage line and its flags.
func (c *cli) completeArgs(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		c.completeArgs(cmd)
	}
	if root.Args == nil {
		root.Args = wantArgs(strings.Fields(root.Use)[1:]...)
	}
	for flag, complete := range map[string]completer{
		"channel": c.listed("channels"), "webhook": c.listed("webhooks"),
		"role":    fixed(parley.RoleNames()...),
		"kind":    fixed(string(parley.ChannelToken), string(parley.GlobalToken), string(parley.AdminToken)),
		"network": c.networkNames,
		"events":  fixed(words(parley.EventTypes)...),
		"print":   fixed("code", "link", "body", "id", "json"),
		"profile": profileNames,
		"status":  fixed(words(parley.Statuses)...), "direction": fixed("in", "out"), "format": fixed("csv", "jsonl"),
	} {
		if f := root.Flag(flag); f != nil && f.Value.Type() != "bool" {
			_ = root.RegisterFlagCompletionFunc(flag, complete) // fails only if it is registered already
		}
	}
	if f := root.Flag("output"); f != nil && f.Value.Type() == formType { // that of an export is a file
		_ = root.RegisterFlagCompletionFunc("output", fixed(outputs...))
	}
	if root.ValidArgs != nil || root.ValidArgsFunction != nil {
		return
	}
	if first := c.firstArgument(root); first != nil {
		root.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 && !strings.Contains(cmd.Use, "…]") { // further arguments are numbers and texts
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return first(cmd, args, begun)
		}
	}
}

// firstArgument completes the first argument of a command; nil: it is a file, or there is none.
func (c *cli) firstArgument(cmd *cobra.Command) completer {
	if !cmd.HasParent() {
		return nil
	}
	_, words, _ := strings.Cut(cmd.Use, " ")
	switch {
	case strings.HasPrefix(words, "[CODE]"), strings.HasPrefix(words, "CODE") && cmd.Name() != "create":
		return c.listed("channels")
	case strings.HasPrefix(words, "ID"), strings.HasPrefix(words, "[ID"):
		return c.listed(strings.TrimSuffix(cmd.Parent().Name(), "s") + "s") // tokens, webhooks, nodes, deliveries
	case strings.HasPrefix(words, "FILE"), cmd.HasSubCommands():
		return nil
	}
	return fixed()
}

func (c *cli) completion(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script that completes commands in your shell",
		Long: `Print a script that completes commands in your shell: flags, channels, ids and profiles. zsh reads it from a file in
$fpath, for example parley completion zsh > "${fpath[1]}/_parley".`,
		Example: `  source <(parley completion bash)
  parley completion fish > ~/.config/fish/completions/parley.fish`,
		Args:      wantArgs("SHELL"),
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
			return fail(exitUsage, "%q is not one of bash, zsh, fish and powershell", args[0])
		},
	}
}
