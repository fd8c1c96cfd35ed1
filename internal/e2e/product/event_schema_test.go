package product_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"parley"
	"parley/internal/callback"
)

// eventDocs is where the schema and the example of every type of event are.
const eventDocs = "../../../docs/events"

// describedTypes are all types of events, with that of tests.
var describedTypes = append(slices.Clone(parley.EventTypes), callback.TestEvent)

// readSchema reads the schema of a type.
func readSchema(t *testing.T, kind parley.EventType) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(eventDocs, string(kind)+".schema.json"))
	if err != nil {
		t.Fatalf("the schema of %s: %v", kind, err)
	}
	if schema.DraftVersion != 2020 {
		t.Errorf("the schema of %s is of draft %d", kind, schema.DraftVersion)
	}
	return schema
}

// readJSON reads a value as the schemas take it.
func readJSON(t *testing.T, text []byte) any {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

func readEventDoc(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(eventDocs, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func readExample(t *testing.T, kind parley.EventType) map[string]any {
	t.Helper()
	return readJSON(t, readEventDoc(t, string(kind)+".example.json")).(map[string]any)
}

// TestEveryEventIsDescribed finds a schema and an example of every type, and nothing else, and a link
// to both.
func TestEveryEventIsDescribed(t *testing.T) {
	page, err := os.ReadFile("../../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(eventDocs)
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, f := range files {
		left[f.Name()] = true
	}
	for _, kind := range describedTypes {
		example := readExample(t, kind)
		if err := readSchema(t, kind).Validate(example); err != nil {
			t.Errorf("the example of %s: %v", kind, err)
		}
		seq, err := parley.EventID(example["id"].(string)).Seq()
		if err != nil || json.Number(fmt.Sprint(seq)) != example["seq"] {
			t.Errorf("the example of %s has id %s, which is of place %d, and seq %s: %v", kind, example["id"], seq, example["seq"], err)
		}
		for _, name := range []string{string(kind) + ".schema.json", string(kind) + ".example.json"} {
			if !strings.Contains(string(page), "](events/"+name+")") {
				t.Errorf("events.md has no link to %s", name)
			}
			delete(left, name)
		}
	}
	for name := range left {
		t.Errorf("%s belongs to no type of event", name)
	}
}

// TestSchemasAgree holds what several schemas define to one text. Each is whole by itself, so that it
// can be used without the others.
func TestSchemasAgree(t *testing.T) {
	defined := map[string]any{}
	for _, kind := range describedTypes {
		schema := readJSON(t, readEventDoc(t, string(kind)+".schema.json")).(map[string]any)
		for name, one := range schema["$defs"].(map[string]any) {
			if other, there := defined[name]; there && !reflect.DeepEqual(one, other) {
				t.Errorf("%s of %s is defined otherwise than before", name, kind)
			}
			defined[name] = one
		}
	}
	data := func(kind parley.EventType) map[string]any {
		schema := readJSON(t, readEventDoc(t, string(kind)+".schema.json")).(map[string]any)
		return schema["properties"].(map[string]any)["data"].(map[string]any)["properties"].(map[string]any)
	}
	without := map[parley.EventType][]string{ // what such a message cannot have
		parley.MessageDeleted:  {"media", "location", "contacts", "quoted", "poll"},
		parley.PollVoted:       {"media", "location", "contacts"},
		parley.MessageMedia:    {"location", "contacts", "poll", "possible_duplicate", "copies", "sent_as"}, // it is somebody else's
		parley.MessageReceived: {"possible_duplicate", "copies", "sent_as"},
		parley.MessageEdited:   {"location", "contacts", "poll"},
	}
	for _, kind := range []parley.EventType{parley.MessageReceived, parley.MessageReaction, parley.MessageDeleted, parley.MessageEdited,
		parley.MessageMedia, parley.PollVoted} {
		for name, one := range data(parley.MessageStatus) {
			other, there := data(kind)[name]
			if !there && slices.Contains(without[kind], name) {
				continue
			}
			if special := name == "status" || name == "body" || name == "type" || name == "is_media" || name == "from_me" || name == "outgoing" ||
				name == "message_id" || name == "error"; special {
				continue
			}
			if !there || !reflect.DeepEqual(one, other) {
				t.Errorf("%s of %s is described otherwise than that of message.status", name, kind)
			}
		}
	}
}

// TestSchemasAreStrict holds the schemas to what strict compilers want beyond the standard: keywords of a type stand beside
// that type, and what is required is described in the same place.
func TestSchemasAreStrict(t *testing.T) {
	typeOf := map[string]string{"pattern": "string", "minLength": "string", "properties": "object", "required": "object",
		"additionalProperties": "object", "items": "array", "minItems": "array", "minimum": "integer", "maximum": "integer"}
	for _, kind := range describedTypes {
		var walk func(path string, value any)
		walk = func(path string, value any) {
			schema, ok := value.(map[string]any)
			if !ok {
				return // true or false
			}
			for keyword, of := range typeOf {
				if _, there := schema[keyword]; there && schema["type"] != of {
					t.Errorf("%s%s has %s without the type %s", kind, path, keyword, of)
				}
			}
			described, _ := schema["properties"].(map[string]any)
			required, _ := schema["required"].([]any)
			for _, name := range required {
				if _, there := described[name.(string)]; !there {
					t.Errorf("%s%s requires %s, which it does not describe", kind, path, name)
				}
			}
			for keyword, inner := range schema {
				switch inner := inner.(type) {
				case map[string]any:
					if keyword != "properties" && keyword != "$defs" {
						walk(path+"/"+keyword, inner)
						continue
					}
					for name, one := range inner {
						walk(path+"/"+keyword+"/"+name, one)
					}
				case []any:
					for i, one := range inner { // what is no schema is a string
						walk(fmt.Sprintf("%s/%s/%d", path, keyword, i), one)
					}
				}
			}
		}
		walk("", readJSON(t, readEventDoc(t, string(kind)+".schema.json")))
	}
}

// sometimes are the fields that some events of a type do not have; those of "" are of all types.
var sometimes = map[parley.EventType][]string{
	"":                     {"reply_to", "media", "quoted", "poll"},
	parley.ChannelPairing:  {"code"},
	parley.MessageStatus:   {"contact_id"}, // as below
	parley.MessageReaction: {"contact_id"}, // as below
	parley.MessageEdited:   {"contact_id"}, // as below
	parley.MessageDeleted:  {"contact_id"}, // one's own message in a group has no contact
	parley.PollVoted:       {"contact_id"}, // one's own poll in a group has none
	parley.GroupChanged:    {"contact_id"}, // nobody knows who changed it

	parley.ChannelRestricted:  {"until"}, // the network did not say so
	parley.ChannelNotice:      {"template", "language"},
	parley.MessageSentOnPhone: {"contact_id"}, // in a group
}

// TestSchemasCatchMistakes spoils the examples in many ways: every one of them must be noticed.
func TestSchemasCatchMistakes(t *testing.T) {
	for _, kind := range describedTypes {
		t.Run(string(kind), func(t *testing.T) {
			schema := readSchema(t, kind)
			spoil := func(what string, change func(event, data map[string]any)) {
				t.Helper()
				event := readExample(t, kind)
				change(event, event["data"].(map[string]any))
				if schema.Validate(event) == nil {
					t.Errorf("not noticed: %s", what)
				}
			}
			whole := readExample(t, kind)
			for name := range whole {
				spoil("without "+name, func(event, _ map[string]any) { delete(event, name) })
				spoil("null as "+name, func(event, _ map[string]any) { event[name] = nil })
			}
			for name, value := range whole["data"].(map[string]any) {
				if !slices.Contains(sometimes[kind], name) && !slices.Contains(sometimes[""], name) {
					spoil("without data."+name, func(_, data map[string]any) { delete(data, name) })
				}
				spoil("null as data."+name, func(_, data map[string]any) { data[name] = nil })
				if inner, ok := value.(map[string]any); ok {
					for part := range inner {
						if slices.Contains([]string{"filename", "width", "height", "sha256"}, part) {
							continue // what is known of a file
						}
						spoil("without data."+name+"."+part, func(_, data map[string]any) { delete(data[name].(map[string]any), part) })
					}
					spoil("more in data."+name, func(_, data map[string]any) { data[name].(map[string]any)["more"] = "x" })
				}
			}
			spoil("more", func(event, _ map[string]any) { event["more"] = "x" })
			spoil("more data", func(_, data map[string]any) { data["more"] = "x" })
			spoil("another type", func(event, _ map[string]any) { event["type"] = "message.gone" })
			spoil("another form of id", func(event, _ map[string]any) { event["id"] = "evt_1" })
			spoil("a time without milliseconds", func(event, _ map[string]any) { event["timestamp"] = "2026-11-15T08:30:00Z" })
			spoil("a seq that is a text", func(event, _ map[string]any) { event["seq"] = "66" })
			for _, name := range []string{"contact_id", "id", "status", "step", "since", "number", "from_me", "type", "timestamp", "message_id"} {
				if _, there := whole["data"].(map[string]any)[name]; there {
					spoil("a wrong data."+name, func(_, data map[string]any) { data[name] = "+62 812" })
				}
			}
		})
	}
}

// shape lists the paths of everything in a value, so that two can be compared whatever they say.
func shape(value any) string {
	paths := map[string]bool{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		object, ok := v.(map[string]any)
		if !ok {
			paths[path] = true
			return
		}
		for name, inner := range object {
			walk(path+"."+name, inner)
		}
	}
	walk("", value)
	return strings.Join(slices.Sorted(maps.Keys(paths)), " ")
}
