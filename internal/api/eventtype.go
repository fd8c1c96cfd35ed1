package api

import (
	"slices"
	"strings"

	"parley"
)

// maxTypes is far above how many types there are.
const maxTypes = 100

// eventTypes reads an optional list of types of events, each once.
func (f form) eventTypes(name string) []parley.EventType {
	var types []parley.EventType
	f.list(name, 0, maxTypes, false, func(f form, index string, at int32) {
		if v := &f.doc.values[at]; v.kind == '"' {
			if t, known := parley.ParseEventType(v.text()); known {
				if !slices.Contains(types, t) {
					types = append(types, t)
				}
				return
			}
		}
		f.fail(index, "must be one of %s.", typeNames())
	})
	return types
}

func typeNames() string {
	names := make([]string, len(parley.EventTypes))
	for i, t := range parley.EventTypes {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}
