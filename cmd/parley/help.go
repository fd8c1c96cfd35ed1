package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// topic is something to know that belongs to no command alone.
type topic struct {
	name, short, text string
}

var topics = []topic{
	{"risks", "What WhatsApp may do to a number, and how to keep it", risksHelp},
	{"passkey", "Why a channel cannot be paired while its account has a passkey", passkeyHelp},
	{"tls", "How to let others than this machine reach the server", tlsHelp},
	{"settings", "Where a setting can be given, and which one counts", settingsHelp},
	{"exit-codes", "What a command tells the shell", exitCodesHelp},
}

const tlsHelp = `Tokens and messages must not cross a network in the clear, so the server listens on this machine alone
unless it is told how it is protected.

A proxy in front that does TLS (it passes Host and X-Forwarded-For on, and does not buffer /api/events):

  parley serve --listen 0.0.0.0:7275 --behind-proxy --public-url https://chat.example.com

Its own certificate, which is read again when the files change:

  parley serve --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --public-url https://chat.example.com`

const settingsHelp = `A setting is taken from the first place that has it. For --public-url these are:

  1. the flag                    --public-url https://chat.example.com
  2. the variable                PARLEY_PUBLIC_URL=https://chat.example.com
  3. the file that it names      PARLEY_PUBLIC_URL_FILE=/run/secrets/public_url
  4. parley.toml in --data       public_url = "https://chat.example.com"
  5. the default

parley config show tells the value of each, and where it came from.`

const exitCodesHelp = `    0  done
    1  the thing asked about is not so: a wait timed out, a check found a problem
    2  wrong usage or configuration
    3  the server cannot be reached
    4  not allowed: no token, or one that may not do this
    5  the server understood and refused
    6  somebody must act, at a phone or at a prompt
  130  interrupted

Data goes to standard output, everything else to standard error. With --json a command answers with one
document; one that follows something writes a document on each line. With --json an error is one line of
JSON too, the last one of standard error: {"success":false,"code":"not_found","message":"…"}, with what is
wrong with each field in "errors". The code is that of the API, or usage, unreachable, unauthenticated,
refused, not_so, needs_person or interrupted.`

func (c *cli) help(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND… | TOPIC]",
		Short: "Explain a command, or something to know",
		Long:  "Explain a command, or something to know that belongs to no command alone.\n\n" + listTopics(),
		Example: `  parley help channel pair
  parley help risks`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return append(names(root), topicNames()...), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				for _, t := range topics {
					if t.name == args[0] {
						fmt.Fprintln(c.out, t.text)
						return nil
					}
				}
			}
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				known := names(cmd)
				if cmd == root {
					known = append(known, topicNames()...)
				}
				return fail(exitUsage, "there is no command or topic %q.%s See: parley help", strings.Join(args, " "), didYouMean(rest[0], known))
			}
			cmd.InitDefaultHelpFlag()
			cmd.InitDefaultVersionFlag()
			return cmd.Help()
		},
	}
}

// names lists the commands under one.
func names(cmd *cobra.Command) []string {
	var list []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			list = append(list, sub.Name())
		}
	}
	return list
}

func topicNames() []string {
	var list []string
	for _, t := range topics {
		list = append(list, t.name)
	}
	return list
}

// listTopics is the part of the help that names them.
func listTopics() string {
	var b strings.Builder
	b.WriteString("Topics, by parley help TOPIC:")
	for _, t := range topics {
		fmt.Fprintf(&b, "\n  %-11s %s", t.name, t.short)
	}
	return b.String()
}

// describeFlag asks for a command's description instead of running it, whatever arguments are missing.
const describeFlag = "describe"

// description tells a program what a command is and takes.
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

// described finds the command to describe, if the arguments ask for that.
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
		return nil, false // which is answered as an unknown command or flag is
	}
	return cmd, true
}

func describe(cmd *cobra.Command) description {
	d := description{
		Command: cmd.CommandPath(), About: cmd.Long, Usage: cmd.UseLine(), Flags: []flagDescription{},
	}
	if d.About == "" {
		d.About = cmd.Short
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
