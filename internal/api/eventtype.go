package api

import (
	"slices"

	"parley"
	"parley/internal/api/form"
)

// maxTypes is far above how many types there are.
const maxTypes = 100

// eventTypes reads an optional list of types of events, each once.
func eventTypes(f form.Form, name string) []parley.EventType {
	var types []parley.EventType
	f.List(name, 0, maxTypes, false, func(f form.Form, index string) {
		t, known := parley.ParseEventType(f.Choice(index, true, typeNames()...))
		if known && !slices.Contains(types, t) {
			types = append(types, t)
		}
	})
	return types
}

func typeNames() []string {
	names := make([]string, len(parley.EventTypes))
	for i, t := range parley.EventTypes {
		names[i] = string(t)
	}
	return names
}
