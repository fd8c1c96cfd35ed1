package doctor

import (
	"cmp"
	"fmt"
)

// Settings is where the settings of a server came from.
type Settings struct {
	File                      string // the configuration file; empty: there is none
	Environment, Files, Flags int    // how many came from each; files are those that the environment names
}

// Look tells where they came from: wrong ones never get this far.
func (s Settings) Look() Finding {
	f := Finding{"config", Fine, cmp.Or(s.File, "no configuration file"), ""}
	for _, from := range []struct {
		count int
		where string
	}{{s.Environment, "environment"}, {s.Files, "files that the environment names"}, {s.Flags, "flags"}} {
		if from.count > 0 {
			f.Found += fmt.Sprintf(", %d from %s", from.count, from.where)
		}
	}
	return f
}
