package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
