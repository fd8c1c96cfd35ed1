package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version that this source becomes. make release reads it here and wants a section of the CHANGELOG for it.
const release = "1.0.0"

// version is what the program calls itself. The linker removes the suffix from a release.
var version = release + "-dev"

func (c *cli) version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  parley version
  parley version --json`,
		RunE: func(*cobra.Command, []string) error {
			commit := buildCommit()
			if c.json {
				return c.printJSON(map[string]string{
					"version": version, "commit": commit, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			fmt.Fprintf(c.out, "parley %s", version)
			if commit != "" {
				fmt.Fprintf(c.out, " (%s)", commit)
			}
			fmt.Fprintf(c.out, ", %s, %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}

// buildCommit is the commit that the binary was built from, or "" if the build did not record it.
func buildCommit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	return commit + changed
}
