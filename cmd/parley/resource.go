package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
)

// resource describes the commands about one kind of thing in the API.
type resource struct {
	name, short, example string  // of the group of commands
	kind                 string  // one of them, in sentences; empty: the name
	id                   string  // an example of their ids
	on                   connect // nil: the management API
	verbs                []verb
}

// connect calls do with a client of a server.
type connect func(cmd *cobra.Command, do func(context.Context, *client.Client) error) error

// verb describes a command: what it reads from the command line, asks of the API and prints.
type verb struct {
	use, short, long string
	example          string               // empty: one with the resource's id, and one with --json
	args             cobra.PositionalArgs // nil: as in use
	words            []string             // that the first argument may be
	flags            []flag
	arg              string // the field that the first argument becomes; empty: it names a thing in the path
	set              fields // constant ones
	call             string // method and path, below /api/manage unless it begins with a slash; * is the first argument
	live             bool   // the server must be running
	creates          bool   // it may create the data directory
	limit            int    // of a list: the default of --limit; zero: all rows
	none             string // the sentence for an empty list

	check    func(fields) error                 // completes and checks what was given; may be nil
	question func(id string, now fields) string // to answer first, about the present state; nil: none
	run      func(context.Context, *task) error // instead of one request; may be nil
	hint     string                             // of success, for a person; * is the first argument
	says     bool                               // the hint is the message of the response
	print    printer                            // zero: nothing
}

// task is a verb that runs.
type task struct {
	verb
	*resource
	cli    *cli
	cmd    *cobra.Command
	api    *client.Client
	args   []string
	fields fields // of the request
}

func (c *cli) resource(r resource) *cobra.Command {
	group := newGroup(r.name, r.short, r.example)
	for _, v := range r.verbs {
		group.AddCommand(c.command(&r, v))
	}
	return group
}

func (c *cli) command(r *resource, v verb) *cobra.Command {
	cmd := &cobra.Command{Use: v.use, Short: v.short, Long: v.long, Example: v.example, Args: v.args, ValidArgs: v.words}
	if v.example == "" {
		line := "  parley " + r.name + " " + strings.NewReplacer("ID", r.id, "CODE", r.id).Replace(v.use)
		cmd.Example = line + "\n" + line + " --json"
	}
	if v.limit > 0 {
		v.flags = append(v.flags, intFlag("limit", v.limit, "list this many at most"))
	}
	if v.question != nil {
		v.flags = append(v.flags, boolFlag("yes", "do not ask for confirmation"))
	}
	for _, f := range v.flags {
		f.add(cmd)
	}
	if name, _, _ := strings.Cut(v.use, " "); v.print.list || name == "list" || name == "show" {
		c.outputFlag(cmd)
	}
	on := r.on
	switch {
	case on != nil:
	case v.live:
		settingFlags(cmd.Flags(), keyURL, keyAdminToken)
		on = c.onServer
	case v.creates:
		on = c.manageOrCreate
	default:
		on = c.manage
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		t := &task{verb: v, resource: r, cli: c, cmd: cmd, args: args}
		if t.fields, err = readFlags(cmd, v); err != nil {
			return err
		}
		if v.arg != "" {
			t.fields[v.arg] = args[0]
		}
		if v.check != nil {
			if err := v.check(t.fields); err != nil {
				return err
			}
		}
		if v.question != nil {
			if err := t.confirm(cmd, on); err != nil {
				return err
			}
		}
		return on(cmd, func(ctx context.Context, api *client.Client) error {
			t.api = api
			if v.run != nil {
				return t.explain(ctx, v.run(ctx, t))
			}
			return t.explain(ctx, t.requestAndPrint(ctx))
		})
	}
	return cmd
}

// confirm asks the question. The data directory is not locked meanwhile.
func (t *task) confirm(cmd *cobra.Command, on connect) error {
	present, id := fields{}, t.name
	if t.namesOne() {
		id = t.args[0]
		err := on(cmd, func(ctx context.Context, api *client.Client) error {
			t.api = api
			_, err := api.Get(ctx, t.path(), nil, &present)
			return t.explain(ctx, err)
		})
		if err != nil {
			return err
		}
	}
	question := t.question(id, present)
	if t.cli.profile != "" {
		question += " on " + t.cli.set.text(keyURL)
	}
	return t.cli.confirm(cmd.Context(), t.fields.pop("yes") != nil, question, id)
}

// namesOne reports whether the first argument names one thing that exists.
func (t *task) namesOne() bool {
	return t.id != "" && t.arg == "" && (len(t.args) == 1 || len(t.args) > 1 && !strings.Contains(t.use, "[ID…]"))
}

// explain says in an error what does not exist, and how to find what does.
func (t *task) explain(ctx context.Context, err error) error {
	if t.namesOne() {
		err = explainNotFound(err, cmp.Or(t.kind, t.name), t.args[0])
	}
	if code, ok := t.fields["channel"].(string); ok && t.on == nil {
		err = explainNoChannel(ctx, t.api, err, code)
	}
	return err
}

func (t *task) path() string {
	_, path, _ := strings.Cut(t.call, " ")
	if strings.HasPrefix(path, "/") {
		return path
	}
	parts := strings.Split(path, "/")
	if i := slices.Index(parts, "*"); i >= 0 {
		parts[i] = t.args[0]
	}
	return client.Path(parts...)
}

// request makes the request that the verb describes.
func (t *task) request(ctx context.Context) (*client.Response, error) {
	method, _, _ := strings.Cut(t.call, " ")
	switch {
	case t.print.list:
		limit, _ := t.fields.pop("limit").(int)
		if t.limit > 0 && limit < 1 {
			return nil, fail(exitUsage, "--limit must be at least 1")
		}
		r, err := t.api.List(ctx, t.path(), t.fields.query(), limit)
		if err == nil && r.Meta.Total > int64(r.Rows) {
			t.cli.hint("%d of %d. List more with --limit", r.Rows, r.Meta.Total)
		}
		return r, err
	case method == http.MethodGet:
		return t.api.Get(ctx, t.path(), t.fields.query(), nil)
	case len(t.fields) == 0:
		return t.api.Call(ctx, method, t.path(), nil, nil, nil)
	}
	return t.api.Call(ctx, method, t.path(), nil, t.fields, nil)
}

func (t *task) requestAndPrint(ctx context.Context) error {
	r, err := t.request(ctx)
	return t.finish(r, err)
}

// finish prints a response. One that was not a success ends the command with its message.
func (t *task) finish(r *client.Response, err error) error {
	if err != nil {
		return err
	}
	switch {
	case t.says:
		t.cli.hint("%s", r.Message)
	case t.hint != "" && r.Success:
		t.cli.hint("%s", strings.ReplaceAll(t.hint, "*", t.args[0]))
	}
	switch {
	case t.print.list && !t.cli.json && isEmptyList(r.Data):
		t.cli.sayNone(len(t.fields) > 0, t.none)
	case t.print.text != nil:
		err = t.cli.show(t.print, r)
	case t.cli.json:
		err = t.cli.printJSON(struct{}{})
	}
	if err == nil && !r.Success {
		return fail(exitNegative, "%s", r.Message)
	}
	return err
}

// printer makes the text of a response. With --json the text is not printed.
type printer struct {
	list bool
	part string // the field with the rows, for JSON lines and CSV; empty: the data itself
	text func(c *cli, data json.RawMessage) (string, error)
}

// one prints the text that show makes of one thing.
func one[T any](show func(*cli, *T) string) printer {
	return printer{text: func(c *cli, data json.RawMessage) (string, error) {
		var thing T
		if err := json.Unmarshal(data, &thing); err != nil {
			return "", err
		}
		return show(c, &thing), nil
	}}
}

// rows prints a list as a table with these columns, separated by commas.
func rows[T any](columns string, row func(*T) []any) printer {
	p := one(func(c *cli, all *[]T) string { return newTable(c, columns, *all, row) })
	p.list = true
	return p
}

// rows are what JSON lines and CSV have one line for each of.
func (p printer) rows(c *cli, data json.RawMessage) json.RawMessage {
	var parts map[string]json.RawMessage
	if p.part == "" || c.output != "jsonl" && c.output != "csv" || json.Unmarshal(data, &parts) != nil {
		return data
	}
	return parts[p.part]
}

// show prints the data of a response.
func (c *cli) show(p printer, r *client.Response) error {
	text, err := p.text(c, r.Data)
	switch {
	case err != nil:
		return err
	case c.json:
		return c.printJSON(p.rows(c, r.Data))
	case text != "":
		fmt.Fprintln(c.out, strings.TrimSuffix(text, "\n"))
	}
	return nil
}

// pairs are lines of names and values, given in turns.
func pairs(texts ...string) string {
	width := 0
	for pair := range slices.Chunk(texts, 2) {
		width = max(width, len(pair[0])+1)
	}
	var b strings.Builder
	for pair := range slices.Chunk(texts, 2) {
		fmt.Fprintf(&b, "%-*s %s\n", width, pair[0], pair[1])
	}
	return b.String()
}

// withoutEmpty removes the pairs without a value.
func withoutEmpty(texts []string) (filled []string) {
	for pair := range slices.Chunk(texts, 2) {
		if pair[1] != "" {
			filled = append(filled, pair...)
		}
	}
	return filled
}

// fields are those of a request, by the API's names.
type fields map[string]any

// pop removes a field and returns its value; nil: it is not set.
func (f fields) pop(name string) any {
	value := f[name]
	delete(f, name)
	return value
}

// text is the value of a field of text.
func (f fields) text(name string) string {
	text, _ := f[name].(string)
	return text
}

func (f fields) query() url.Values {
	query := url.Values{}
	for name, value := range f {
		query.Set(name, fmt.Sprint(value))
	}
	return query
}

// flag describes a flag and the field that it becomes: only if it is given, except a number.
type flag struct {
	name, short, usage string
	value              any    // the default; its type is that of the flag
	field              string // empty: the name, with _ for -
	read               func(flag, text string) (any, error)
}

func textFlag(name, usage string) flag              { return flag{name: name, usage: usage, value: ""} }
func listFlag(name, usage string) flag              { return flag{name: name, usage: usage, value: []string(nil)} }
func boolFlag(name, usage string) flag              { return flag{name: name, usage: usage, value: false} }
func intFlag(name string, n int, usage string) flag { return flag{name: name, usage: usage, value: n} }

// as gives the field another name than the flag.
func (f flag) as(field string) flag { f.field = field; return f }

// by makes the field from the text that was given.
func (f flag) by(read func(flag, text string) (any, error)) flag { f.read = read; return f }

func (f flag) add(cmd *cobra.Command) {
	switch value := f.value.(type) {
	case string:
		cmd.Flags().StringP(f.name, f.short, value, f.usage)
	case []string:
		cmd.Flags().StringSliceP(f.name, f.short, value, f.usage)
	case bool:
		cmd.Flags().BoolP(f.name, f.short, value, f.usage)
	case int:
		cmd.Flags().IntP(f.name, f.short, value, f.usage)
	case time.Duration:
		cmd.Flags().DurationP(f.name, f.short, value, f.usage)
	}
}

// readFlags returns the fields that the flags of a verb give.
func readFlags(cmd *cobra.Command, v verb) (fields, error) {
	all := fields{}
	maps.Copy(all, v.set)
	for _, f := range v.flags {
		var value any
		var given bool
		var err error // only of reading: a flag has its own type
		switch f.value.(type) {
		case string:
			text, _ := cmd.Flags().GetString(f.name)
			if value, given = text, text != ""; given && f.read != nil {
				value, err = f.read("--"+f.name, text)
			}
		case []string:
			texts, _ := cmd.Flags().GetStringSlice(f.name)
			value, given = texts, len(texts) > 0
		case bool:
			given, _ = cmd.Flags().GetBool(f.name)
			value = true
		case int:
			value, _ = cmd.Flags().GetInt(f.name)
			given = true
		case time.Duration:
			value, _ = cmd.Flags().GetDuration(f.name)
			given = true
		}
		if err != nil {
			return nil, err
		}
		if given {
			all[cmp.Or(f.field, strings.ReplaceAll(f.name, "-", "_"))] = value
		}
	}
	return all, nil
}

func readUpper(_, text string) (any, error) { return strings.ToUpper(text), nil }
func readLower(_, text string) (any, error) { return strings.ToLower(text), nil }

// readNumber reads a phone number, and readContact the contact with it.
func readNumber(_, text string) (any, error) { return digits(text) }

func readContact(_, text string) (any, error) {
	number, err := digits(text)
	return parley.NewContactID(number), err
}
