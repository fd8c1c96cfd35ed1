package doctor

import (
	"cmp"
	"fmt"
)

// Settings counts the origins of a server's settings.
type Settings struct {
	File                      string // the configuration file; may be empty
	Environment, Files, Flags int    // counts by origin; Files are named by the environment
}

// Look reports the origins. Invalid settings never get this far.
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
