package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Usage and help are written by functions, not by templates of cobra. A template finds methods by their names, and then the linker
// must keep every method of every type: the program would be 5 MB larger.

func writeHelp(w io.Writer, cmd *cobra.Command) {
	if about := cmp.Or(cmd.Long, cmd.Short); about != "" {
		fmt.Fprintf(w, "%s\n\n", strings.TrimRight(about, " \n"))
	}
	writeUsage(w, cmd)
}

func writeUsage(w io.Writer, cmd *cobra.Command) {
	line := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		line = cmd.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(w, "Usage:\n  %s\n", line)
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		for _, g := range cmd.Groups() {
			writeCommands(w, g.Title, cmd, func(c *cobra.Command) bool { return c.GroupID == g.ID })
		}
		if len(cmd.Groups()) == 0 {
			writeCommands(w, "Commands", cmd, (*cobra.Command).IsAvailableCommand)
		}
	}
	if !cmd.HasParent() {
		fmt.Fprintf(w, "\n%s\n", listTopics())
	}
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(w, "\nFlags:\n%s\n", strings.TrimRight(cmd.LocalFlags().FlagUsages(), " \n"))
	}
	if cmd.HasAvailableInheritedFlags() {
		fmt.Fprintf(w, "\nCommon flags:\n%s\n", strings.TrimRight(cmd.InheritedFlags().FlagUsages(), " \n"))
	}
}

// writeCommands lists some of the subcommands.
func writeCommands(w io.Writer, title string, cmd *cobra.Command, which func(*cobra.Command) bool) {
	fmt.Fprintf(w, "\n%s:\n", title)
	for _, c := range cmd.Commands() {
		if which(c) {
			fmt.Fprintf(w, "  %-*s %s\n", c.NamePadding(), c.Name(), c.Short)
		}
	}
}
