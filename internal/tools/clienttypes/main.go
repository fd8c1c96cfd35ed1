// Command clienttypes writes the types of the client libraries from the OpenAPI document: TypeScript interfaces and Python
// TypedDicts for the schemas, and a table of the operations for TypeScript.
//
//	clienttypes openapi.json types.ts types.py
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

type document struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct {
		Schemas    map[string]schema
		Parameters map[string]parameter
		Responses  map[string]response
	}
}

type operation struct {
	Parameters  []parameter
	RequestBody response
	Responses   map[string]response
}

type parameter struct {
	Ref      string `json:"$ref"`
	Name, In string
	Required bool
	Schema   schema
}

// response is also the body of a request.
type response struct {
	Ref      string `json:"$ref"`
	Required bool
	Content  map[string]struct{ Schema schema }
}

type schema struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Description          string
	Enum                 []any
	Const                any
	Properties           map[string]schema
	Required             []string
	AdditionalProperties json.RawMessage
	Items                *schema
	OneOf                []schema
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 4 {
		log.Fatal("usage: clienttypes openapi.json types.ts types.py")
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		log.Fatal(err)
	}
	d.removeManagement()
	for file, text := range map[string]string{os.Args[2]: d.typeScript(), os.Args[3]: d.python()} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// removeManagement leaves what a program does with the token of a channel: the rest is for operators, and twice as much.
func (d *document) removeManagement() {
	maps.DeleteFunc(d.Paths, func(path string, _ map[string]json.RawMessage) bool {
		return strings.HasPrefix(path, "/api/manage/") || !strings.HasPrefix(path, "/api/")
	})
	used := map[string]bool{"schemas/Event": true}
	note := func(value any) {
		text, err := json.Marshal(value)
		if err != nil {
			log.Fatal(err)
		}
		for _, ref := range reference.FindAllStringSubmatch(string(text), -1) {
			used[ref[1]] = true
		}
	}
	note(d.Paths)
	for before := 0; before != len(used); {
		before = len(used)
		for ref := range maps.Clone(used) {
			note([]any{d.Components.Schemas[refName(ref)], d.Components.Parameters[refName(ref)], d.Components.Responses[refName(ref)]})
		}
	}
	maps.DeleteFunc(d.Components.Schemas, func(name string, _ schema) bool { return !used["schemas/"+name] })
}

var reference = regexp.MustCompile(`#/components/(\w+/\w+)`)

func refName(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

// types lists the JSON types of a schema.
func (s schema) types() []string {
	switch t := s.Type.(type) {
	case string:
		return []string{t}
	case []any:
		var list []string
		for _, one := range t {
			list = append(list, one.(string))
		}
		return list
	}
	return nil
}

// others is the schema of further properties; false: there are none that are known.
func (s schema) others() (schema, bool) {
	var one schema
	err := json.Unmarshal(s.AdditionalProperties, &one) // true and false are none
	return one, err == nil
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

var space = regexp.MustCompile(`\s+`)

func sentence(s string) string { return space.ReplaceAllString(strings.TrimSpace(s), " ") }

// TypeScript.

func (d *document) typeScript() string {
	var b bytes.Buffer
	b.WriteString("// Generated from the OpenAPI document by internal/tools/clienttypes. Do not edit.\n")
	for _, name := range sorted(d.Components.Schemas) {
		s := d.Components.Schemas[name]
		if s.Description != "" {
			fmt.Fprintf(&b, "\n/** %s */", strings.ReplaceAll(sentence(s.Description), "*/", "* /"))
		}
		fmt.Fprintf(&b, "\nexport type %s = %s;\n", name, tsType(s, ""))
	}
	b.WriteString("\n/** Every operation: what it takes, and what it returns. */\nexport interface Operations {\n")
	for _, path := range sorted(d.Paths) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			if raw, there := d.Paths[path][method]; there {
				fmt.Fprintf(&b, "  %q: %s;\n", strings.ToUpper(method)+" "+path, d.tsOperation(path, raw))
			}
		}
	}
	b.WriteString("}\n")
	return b.String()
}

func (d *document) tsOperation(path string, raw json.RawMessage) string {
	var op operation
	if err := json.Unmarshal(raw, &op); err != nil {
		log.Fatalf("%s: %v", path, err)
	}
	var shared []parameter
	if raw := d.Paths[path]["parameters"]; raw != nil {
		if err := json.Unmarshal(raw, &shared); err != nil {
			log.Fatalf("%s: %v", path, err)
		}
	}
	fields := map[string][]string{}
	required := map[string]bool{}
	for _, p := range append(shared, op.Parameters...) {
		if p.Ref != "" {
			p = d.Components.Parameters[refName(p.Ref)]
		}
		if p.In == "header" {
			continue // the client sets these
		}
		mark := "?"
		if p.Required {
			mark, required[p.In] = "", true
		}
		fields[p.In] = append(fields[p.In], fmt.Sprintf("%q%s: %s", p.Name, mark, tsType(p.Schema, "")))
	}
	var input []string
	for _, in := range []string{"path", "query"} {
		if len(fields[in]) > 0 {
			mark := "?"
			if required[in] {
				mark = ""
			}
			input = append(input, fmt.Sprintf("%s%s: { %s }", in, mark, strings.Join(fields[in], "; ")))
		}
	}
	if body, there := op.RequestBody.Content["application/json"]; there {
		mark := "?"
		if op.RequestBody.Required {
			mark = ""
		}
		input = append(input, "body"+mark+": "+tsType(body.Schema, ""))
	}
	answer := "string" // of a text; files are downloaded
	for _, status := range []string{"200", "201", "202"} {
		r := op.Responses[status]
		if r.Ref != "" {
			r = d.Components.Responses[refName(r.Ref)]
		}
		if media, there := r.Content["application/json"]; there {
			answer = tsType(media.Schema, "")
			break
		}
	}
	return fmt.Sprintf("{ input: { %s }; answer: %s }", strings.Join(input, "; "), answer)
}

func tsType(s schema, indent string) string {
	if s.Ref != "" {
		return refName(s.Ref)
	}
	var list []string
	for _, one := range s.OneOf {
		list = append(list, tsType(one, indent))
	}
	for _, value := range append(slices.Clone(s.Enum), s.Const) {
		if value != nil {
			list = append(list, literal(value))
		}
	}
	if len(list) > 0 {
		return strings.Join(list, " | ")
	}
	for _, kind := range s.types() {
		switch kind {
		case "integer", "number":
			list = append(list, "number")
		case "string", "boolean", "null":
			list = append(list, kind)
		case "array":
			list = append(list, "Array<"+tsType(*s.Items, indent)+">")
		case "object":
			list = append(list, tsObject(s, indent))
		}
	}
	if len(list) == 0 {
		return "unknown"
	}
	return strings.Join(list, " | ")
}

func tsObject(s schema, indent string) string {
	if len(s.Properties) == 0 {
		if others, known := s.others(); known {
			return "Record<string, " + tsType(others, indent) + ">"
		}
		return "Record<string, unknown>"
	}
	var b strings.Builder
	b.WriteString("{\n")
	for _, name := range sorted(s.Properties) {
		p, mark := s.Properties[name], "?"
		if slices.Contains(s.Required, name) {
			mark = ""
		}
		if p.Description != "" {
			fmt.Fprintf(&b, "%s  /** %s */\n", indent, strings.ReplaceAll(sentence(p.Description), "*/", "* /"))
		}
		fmt.Fprintf(&b, "%s  %q%s: %s;\n", indent, name, mark, tsType(p, indent+"  "))
	}
	return b.String() + indent + "}"
}

func literal(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		log.Fatal(err)
	}
	return string(text)
}

// Python. Objects inside others become classes of their own, named by where they are.

type python struct {
	classes, aliases bytes.Buffer
}

func (d *document) python() string {
	var p python
	for _, name := range sorted(d.Components.Schemas) {
		s := d.Components.Schemas[name]
		if len(s.Properties) > 0 {
			p.class(name, s)
		} else if s.Ref != "" {
			fmt.Fprintf(&p.aliases, "%s = %s\n", name, refName(s.Ref))
		} else {
			fmt.Fprintf(&p.aliases, "%s = %s\n", name, p.expression(s, name))
		}
	}
	return `"""Generated from the OpenAPI document by internal/tools/clienttypes. Do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired

` + p.aliases.String() + p.classes.String()
}

var keyword = regexp.MustCompile(`^(from|import|class|is|in|as|not|pass|global|with|for|while|if|else)$|[^A-Za-z0-9_]`)

func (p *python) class(name string, s schema) {
	var b strings.Builder
	functional := slices.ContainsFunc(sorted(s.Properties), keyword.MatchString)
	if functional {
		fmt.Fprintf(&b, "\n%s = TypedDict(%q, {\n", name, name)
	} else {
		fmt.Fprintf(&b, "\n\nclass %s(TypedDict):\n", name)
	}
	for _, field := range sorted(s.Properties) {
		kind := p.annotation(s.Properties[field], name+camel(field))
		if !slices.Contains(s.Required, field) {
			kind = "NotRequired[" + kind + "]"
		}
		if functional {
			fmt.Fprintf(&b, "    %q: %q,\n", field, kind)
		} else {
			fmt.Fprintf(&b, "    %s: %s\n", field, kind)
		}
	}
	if functional {
		b.WriteString("})\n")
	}
	p.classes.WriteString(b.String())
}

func camel(field string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(field, func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// annotation is the type of a field, which nothing evaluates; an expression of an alias is evaluated, so names stand in quotes.
func (p *python) annotation(s schema, name string) string {
	return strings.ReplaceAll(p.expression(s, name), "'", "")
}

func (p *python) expression(s schema, name string) string {
	if s.Ref != "" {
		return "'" + refName(s.Ref) + "'"
	}
	var list, literals []string
	for i, one := range s.OneOf {
		list = append(list, p.expression(one, fmt.Sprint(name, i+1)))
	}
	for _, value := range append(slices.Clone(s.Enum), s.Const) {
		switch value := value.(type) {
		case nil:
		case bool:
			literals = append(literals, map[bool]string{true: "True", false: "False"}[value])
		default:
			literals = append(literals, literal(value))
		}
	}
	if len(literals) > 0 {
		list = append(list, "Literal["+strings.Join(literals, ", ")+"]")
	}
	if len(list) == 0 {
		for _, kind := range s.types() {
			list = append(list, p.simple(kind, s, name))
		}
	}
	null := slices.Contains(list, "None")
	list = slices.DeleteFunc(list, func(one string) bool { return one == "None" })
	one := "Any"
	switch len(list) {
	case 0:
		if null {
			return "None"
		}
	case 1:
		one = list[0]
	default:
		one = "Union[" + strings.Join(list, ", ") + "]"
	}
	if null {
		return "Optional[" + one + "]"
	}
	return one
}

func (p *python) simple(kind string, s schema, name string) string {
	switch kind {
	case "integer":
		return "int"
	case "number":
		return "float"
	case "string":
		return "str"
	case "boolean":
		return "bool"
	case "null":
		return "None"
	case "array":
		return "List[" + p.expression(*s.Items, name+"Item") + "]"
	}
	if len(s.Properties) > 0 {
		p.class(name, s)
		return "'" + name + "'"
	}
	if others, known := s.others(); known {
		return "Dict[str, " + p.expression(others, name+"Value") + "]"
	}
	return "Dict[str, Any]"
}
