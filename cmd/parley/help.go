package main

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// topic is help that concerns several commands.
type topic struct{ name, short string }

func (t topic) String() string { return t.name }

var topics = []topic{
	{"risks", "Why WhatsApp restricts numbers, and how to avoid it"},
	{"passkey", "How to pair an account that asks for its passkey"},
	{"tls", "How to make the server reachable from other machines"},
	{"settings", "Where a setting can be given, and which value wins"},
	{"exit-codes", "Exit codes, and errors as JSON"},
}

//go:embed help
var helpFiles embed.FS

// helpText reads the text of a topic.
func helpText(file string) string {
	text, err := helpFiles.ReadFile("help/" + file)
	if err != nil {
		panic(err) // the file is not part of the program
	}
	return strings.TrimSuffix(string(text), "\n")
}

func (c *cli) help(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND… | TOPIC]",
		Short: "Explain a command or a topic",
		Long:  "Explain a command or a topic.\n\n" + listTopics(),
		Example: `  parley help channel pair
  parley help risks`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return append(names(root), words(topics)...), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				for _, t := range topics {
					if t.name == args[0] {
						fmt.Fprintln(c.out, helpText(t.name+".txt"))
						return nil
					}
				}
			}
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				known := names(cmd)
				if cmd == root {
					known = append(known, words(topics)...)
				}
				return fail(exitUsage, "there is no command or topic %q.%s See: parley help", strings.Join(args, " "), didYouMean(rest[0], known))
			}
			cmd.InitDefaultHelpFlag()
			cmd.InitDefaultVersionFlag()
			return cmd.Help()
		},
	}
}

func names(cmd *cobra.Command) []string {
	var list []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			list = append(list, sub.Name())
		}
	}
	return list
}

func listTopics() string {
	var b strings.Builder
	b.WriteString("Topics, by parley help TOPIC:")
	for _, t := range topics {
		fmt.Fprintf(&b, "\n  %-11s %s", t.name, t.short)
	}
	return b.String()
}

// describeFlag prints a command's description instead of running it, even if arguments are missing.
const describeFlag = "describe"

// description is a command and its flags, for programs.
type description struct {
	Command  string            `json:"command"`
	About    string            `json:"about"`
	Usage    string            `json:"usage"`
	Examples []string          `json:"examples"`
	Commands []subcommand      `json:"commands,omitempty"`
	Flags    []flagDescription `json:"flags"`
}

type subcommand struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

type flagDescription struct {
	Name    string `json:"name"`
	Short   string `json:"short,omitempty"`
	Type    string `json:"type"`
	Default string `json:"default"`
	About   string `json:"about"`
}

// described finds the command to describe, if the arguments contain the flag.
func described(root *cobra.Command, args []string) (*cobra.Command, bool) {
	end := slices.Index(args, "--")
	if end < 0 {
		end = len(args)
	}
	at := slices.Index(args[:end], "--"+describeFlag)
	if at < 0 {
		return nil, false
	}
	cmd, rest, err := root.Find(slices.Delete(slices.Clone(args), at, at+1))
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err != nil || cmd.HasSubCommands() && cmd.Flags().NArg() > 0 {
		return nil, false // running the command reports the error
	}
	return cmd, true
}

func describe(cmd *cobra.Command) description {
	d := description{
		Command: cmd.CommandPath(), About: cmp.Or(cmd.Long, cmd.Short), Usage: cmd.UseLine(), Flags: []flagDescription{},
	}
	for example := range strings.SplitSeq(cmd.Example, "\n") {
		d.Examples = append(d.Examples, strings.TrimSpace(example))
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			d.Commands = append(d.Commands, subcommand{sub.Name(), sub.Short})
		}
	}
	add := func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			d.Flags = append(d.Flags, flagDescription{f.Name, f.Shorthand, f.Value.Type(), f.DefValue, f.Usage})
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	return d
}
