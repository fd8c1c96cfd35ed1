package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley"
)

func newRoot(c *cli) *cobra.Command {
	printVersion := false
	root := &cobra.Command{
		Use:   "parley",
		Short: "A self-hosted WhatsApp gateway",
		Example: `  parley dev                                    a sandbox to try it
  parley serve --data /var/lib/parley           the gateway itself`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs, // group rejects unknown commands
		RunE: func(cmd *cobra.Command, args []string) error {
			if printVersion {
				fmt.Fprintln(c.out, "parley", version)
				return nil
			}
			return group(cmd, args)
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			if printVersion {
				return nil
			}
			if c.set, err = loadSettings(cmd.Flags(), c.getenv); err != nil {
				return err
			}
			return c.useProfile(cmd)
		},
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		writeUsage(cmd.OutOrStderr(), cmd)
		return nil
	})
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fail(exitUsage, "%w.%s See: %s --help", err, suggestFlag(cmd, err), cmd.CommandPath())
	})
	root.CompletionOptions.DisableDefaultCmd = true // ours has examples
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 { // NONSENSE --help
			c.helpErr = group(cmd, words)
			return
		}
		writeHelp(cmd.OutOrStdout(), cmd)
	})

	root.Flags().BoolVar(&printVersion, "version", false, "version for parley")
	global := root.PersistentFlags()
	settingFlags(global, keyData, keyConfig)
	global.BoolVar(&c.json, "json", false, "print one JSON document; errors are JSON on stderr")
	global.BoolVarP(&c.quiet, "quiet", "q", false, "no hints and no progress")
	global.BoolVarP(&c.verbose, "verbose", "v", false, "more hints and log lines")
	global.BoolVar(&c.noInput, "no-input", false, "never ask; fail with the name of the missing flag")
	global.Bool(describeFlag, false, "describe the command and its flags as JSON, and do nothing")

	help := c.help(root)
	root.SetHelpCommand(help)
	section(root, "Run", c.dev(), c.serve(), c.open())
	section(root, "Use", c.login(), c.logout(), c.channel(), c.token(), c.webhook(), c.deliveries(), c.send(), c.chat(), c.messages(),
		c.optOut(), c.template(), c.logs(), c.requests(), c.mcp())
	section(root, "Develop", c.sandbox(), c.listen(), c.trigger(), c.env())
	section(root, "Operate", c.doctor(), c.diagnostics(), c.health(), c.node(), c.audit(), c.alert(), c.session(),
		c.config(), c.backup(), c.restore(), c.migrate(), c.secret())
	for _, cmd := range root.Commands() {
		if slices.Contains(withProfile, cmd.Name()) {
			settingFlags(cmd.PersistentFlags(), keyProfile)
		}
	}
	section(root, "More", help, c.completion(root), c.version())
	c.completeArgs(root)
	return root
}

// withProfile are the commands that call a server, and so may use a login.
var withProfile = []string{"open", "channel", "token", "webhook", "deliveries", "send", "chat", "messages", "opt-out", "logs", "requests",
	"sandbox", "listen", "trigger", "diagnostics", "health", "node", "audit", "alert", "session", "config", "mcp"}

func section(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
		root.AddCommand(cmd)
	}
}

// group runs a command that has subcommands: it prints the help, or rejects an unknown subcommand.
func group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return fail(exitUsage, "there is no command %q.%s See: %s --help",
		cmd.CommandPath()+" "+args[0], didYouMean(args[0], names(cmd)), cmd.CommandPath())
}

func newGroup(name, short, example string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Example: example, Args: cobra.ArbitraryArgs, RunE: group}
	cmd.AddCommand(subs...)
	return cmd
}

// wantArgs checks the arguments of a command against their names in its usage line. A name in brackets is optional; one
// that ends in … may be repeated.
func wantArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for i, name := range names {
			if i >= len(args) && !strings.HasPrefix(name, "[") {
				return fail(exitUsage, "%s is missing. Usage: %s", strings.TrimSuffix(name, "…"), cmd.UseLine())
			}
		}
		many := len(names) > 0 && strings.Contains(names[len(names)-1], "…")
		if len(args) > len(names) && !many {
			return fail(exitUsage, "unexpected argument %q. Usage: %s", args[len(names)], cmd.UseLine())
		}
		return nil
	}
}

// oneFlag rejects a command line with more than one of some flags.
func oneFlag(cmd *cobra.Command, names ...string) {
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		given := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !cmd.Flags().Changed(name) })
		if len(given) > 1 {
			return fail(exitUsage, "give --%s or --%s, not both", given[0], given[1])
		}
		return nil
	}
}

func didYouMean(written string, names []string) string {
	if name := nearest(written, names); name != "" {
		return fmt.Sprintf(" Did you mean %q?", name)
	}
	return ""
}

// suggestFlag names the flag that is nearest to an unknown one, also to one written with a single dash.
func suggestFlag(cmd *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return ""
	}
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags = append(flags, f.Name)
		}
	})
	written := cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName())
	if name := nearest(written, flags); name != "" && len(written) > 2 {
		return " Did you mean --" + name + "?"
	}
	return ""
}

// nearest is the name that was most likely meant; empty: none.
func nearest(written string, names []string) string {
	best, least := "", 3 // with more than two changes it is another word
	for _, name := range names {
		if d := distance(written, name); d < least || (best == "" && strings.HasPrefix(name, written)) {
			best, least = name, min(d, least)
		}
	}
	return best
}

func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

func sentence(err error) string {
	e, ok := errors.AsType[*parley.Error](err)
	if !ok {
		return err.Error()
	}
	if e.Cause != nil {
		return e.Message + "\n  " + e.Cause.Error()
	}
	return e.Message
}
