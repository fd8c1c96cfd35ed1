package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// topic is help that concerns several commands.
type topic struct {
	name, short, text string
}

var topics = []topic{
	{"risks", "Why WhatsApp restricts numbers, and how to avoid it", risksHelp},
	{"passkey", "Why a channel cannot be paired while its account has a passkey", passkeyHelp},
	{"tls", "How to make the server reachable from other machines", tlsHelp},
	{"settings", "Where a setting can be given, and which value wins", settingsHelp},
	{"exit-codes", "Exit codes, and errors as JSON", exitCodesHelp},
}

const tlsHelp = `Tokens and messages must not cross a network unencrypted, so the server listens on this machine only, unless
you configure TLS.

Behind a TLS proxy (it must pass on Host and X-Forwarded-For, and must not buffer /api/events):

  parley serve --listen 0.0.0.0:7275 --behind-proxy --public-url https://chat.example.com

With its own certificate, which is reloaded when the files change:

  parley serve --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem --public-url https://chat.example.com`

const settingsHelp = `The value of a setting is the first of these. For --public-url:

  1. the flag                    --public-url https://chat.example.com
  2. the variable                PARLEY_PUBLIC_URL=https://chat.example.com
  3. the file that it names      PARLEY_PUBLIC_URL_FILE=/run/secrets/public_url
  4. parley.toml in --data       public_url = "https://chat.example.com"
  5. the default

parley config show prints every value and its origin.`

const exitCodesHelp = `    0  done
    1  negative: a wait timed out, a check found a problem, something was not found
    2  wrong usage or configuration
    3  the server cannot be reached
    4  not allowed: no token, or one without this permission
    5  the server rejected the request
    6  a person must act, at a phone or at a prompt
  130  interrupted

Data goes to standard output, everything else to standard error. With --json a command prints one document;
commands that follow something print one document per line. With --json an error is one line of JSON, the
last one of standard error: {"success":false,"code":"not_found","message":"…"}, with one list per wrong field
in "errors". The code is the API's, or one of usage, unreachable, unauthenticated, refused, not_so,
needs_person and interrupted.`

func (c *cli) help(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND… | TOPIC]",
		Short: "Explain a command or a topic",
		Long:  "Explain a command or a topic.\n\n" + listTopics(),
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
