package store_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"parley/internal/store"
)

// statements collects what stores run, with the arguments of the first run. Of statements whose lists differ in length it has one.
type statements struct {
	mu    sync.Mutex
	all   map[string][]any
	known map[string]bool
}

var (
	isStatement = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b`)
	ofList      = regexp.MustCompile(`(, )?\$\d+`)
)

func (s *statements) trace(query string, args []any) {
	if !isStatement.MatchString(query) || strings.Contains(query, "schema_") || strings.Contains(query, "information_schema") {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all, s.known = map[string][]any{}, map[string]bool{}
	}
	if like := ofList.ReplaceAllString(query, ""); !s.known[like] {
		s.known[like] = true
		s.all[query] = slices.Clone(args)
	}
}

// step is how a plan reads one table.
type step struct {
	table string
	equal []string // columns that must equal a value; nil: all rows are read
	sorts bool     // what it reads is sorted, before a limit
	text  string
}

// plan is how a database runs a statement.
type plan struct {
	steps []step
	text  string
}

// few are columns that a handful of rows, or one, share the values of.
var few = map[string][][]string{
	"deletion":        {{"id"}},
	"retired_webhook": {{"id"}},
	"alert":           {{"seq"}, {"rule", "cause"}},
	"alert_rule":      {{"id"}},
	"alias":           {{"contact"}, {"chat"}},
	"audit":           {{"seq"}, {"object"}},
	"channel":         {{"id"}, {"code"}},
	"channel_state":   {{"seq"}},
	"chat":            {{"id"}, {"contact"}},
	"counter_hour":    {{"channel", "hour"}},
	"counter_minute":  {{"channel", "minute"}},
	"delivery":        {{"seq"}, {"event"}},
	"event":           {{"seq"}, {"message"}},
	"file":            {{"key"}, {"channel", "sha256"}},
	"idempotency":     {{"scope", "key"}},
	"media_fetch":     {{"seq"}},
	"message":         {{"seq"}, {"id"}, {"chat", "position"}, {"file"}},
	"node":            {{"id"}},
	"otp_alarm":       {{"channel"}},
	"otp_code":        {{"seq"}, {"id"}, {"contact"}},
	"otp_fallback":    {{"id"}},
	"otp_link":        {{"id"}, {"channel", "hash"}, {"channel", "contact"}, {"contact"}},
	"otp_reply":       {{"seq"}, {"channel", "contact"}},
	"otp_stranger":    {{"code"}, {"channel", "contact"}},
	"otp_wrong":       {{"channel", "minute"}},
	"reaction":        {{"seq"}},
	"remote_attempt":  {{"channel", "message"}},
	"remote_contact":  {{"channel", "contact"}, {"channel", "user_id"}},
	"remote_file":     {{"channel", "sha256"}},
	"remote_message":  {{"channel", "remote"}, {"channel", "message"}},
	"request_log":     {{"channel", "seq"}},
	"resend":          {{"seq"}},
	"secret":          {{"owner"}},
	"signing_key":     {{"id"}},
	"stored_hour":     {{"channel", "chat"}},
	"ticket":          {{"hash"}, {"token"}, {"parent"}},
	"token":           {{"id"}},
	"upload":          {{"id"}, {"file"}},
	"webhook":         {{"id"}},
}

func (s step) isNarrow() bool {
	return slices.ContainsFunc(few[s.table], func(columns []string) bool {
		return !slices.ContainsFunc(columns, func(c string) bool { return !slices.Contains(s.equal, c) })
	})
}

// checkPlans looks at the plans of all statements. Every step finds few rows, or the table of walks says why not.
func checkPlans(t *testing.T, ran *statements, onPostgres bool, explain func(query string, args []any) ([]plan, error)) {
	used := make([]bool, len(walks))
	for _, query := range slices.Sorted(maps.Keys(ran.all)) {
		plans, err := explain(query, ran.all[query])
		if err != nil {
			t.Errorf("%s: %v", query, err)
		}
		for _, p := range plans {
			for _, s := range p.steps {
				if !s.isNarrow() && !excused(query, s, onPostgres, used) {
					t.Errorf("a walk over %s: %s\n%s\n%s", s.table, s.text, query, p.text)
				}
			}
		}
	}
	for i, w := range walks {
		if !used[i] && w.on != otherDatabase[onPostgres] {
			t.Errorf("the walk over %s in %q is not there any more", w.table, w.fragment)
		}
	}
	checkComplete(t, ran, onPostgres)
}

var otherDatabase = map[bool]string{false: "postgres", true: "sqlite"}

// excused reports whether the table of walks has a reason for a step.
func excused(query string, s step, onPostgres bool, used []bool) bool {
	query = oneLine(query)
	for i, w := range walks {
		if w.table != "" && w.table != s.table || !strings.Contains(query, w.fragment) || w.on == otherDatabase[onPostgres] {
			continue
		}
		used[i] = true
		if w.why == limited && (s.sorts || !strings.Contains(query, "LIMIT")) {
			continue
		}
		return true
	}
	return false
}

var spaces = regexp.MustCompile(`\s+`)

func oneLine(query string) string { return spaces.ReplaceAllString(strings.TrimSpace(query), " ") }

var (
	looksLikeSQL = regexp.MustCompile(`\b(SELECT|INSERT INTO|DELETE FROM|UPDATE|WHERE|FROM|JOIN|ORDER BY|LIMIT|VALUES|INDEXED BY)\b|` +
		` (AND|IN|DESC)\b|[a-z_]+ (=|<>|<|>|<=|>=) [?$0-9']`)
	placeholders = strings.NewReplacer(`\?`, `\$\d+`, `%d`, `\d+`)
)

// checkComplete makes sure that each piece of SQL in the package is a part of a statement that ran.
func checkComplete(t *testing.T, ran *statements, onPostgres bool) {
	var all strings.Builder
	for query := range ran.all {
		all.WriteString(strings.Replace(oneLine(query), " OR FAIL", "", 1) + "\n")
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	others, pieces := oneLine(store.OnPostgres), 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || unlooked[file] != "" {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING || literal.Value[0] != '`' {
				return true
			}
			piece := oneLine(literal.Value[1 : len(literal.Value)-1])
			if !looksLikeSQL.MatchString(piece) || slices.Contains(onlyOn[otherDatabase[onPostgres]], piece) ||
				!onPostgres && strings.Contains(others, piece) {
				return true
			}
			pieces++
			if !regexp.MustCompile(placeholders.Replace(regexp.QuoteMeta(piece))).MatchString(all.String()) {
				t.Errorf("%s: no test of the suite runs this, so its plan is not known: %s", file, piece)
			}
			return true
		})
	}
	if pieces < 200 {
		t.Errorf("only %d pieces of SQL were found", pieces)
	}
}

// explainSQLite reads a plan. Without statistics, and there are none, SQLite chooses by the tables alone.
func explainSQLite(db *sql.DB, indexes map[string]string) func(query string, args []any) ([]plan, error) {
	return func(query string, args []any) ([]plan, error) {
		rows, err := db.Query(`EXPLAIN QUERY PLAN `+inSQLite(query), args...)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var p plan
		var parts []int64 // of the steps
		sorted := map[int64]bool{}
		for rows.Next() {
			var id, parent, unused int64
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				return nil, err
			}
			p.text += detail + "\n"
			if s, ok := sqliteStep(query, detail, indexes); ok {
				p.steps, parts = append(p.steps, s), append(parts, parent)
			}
			if strings.HasPrefix(detail, "USE TEMP B-TREE FOR ORDER BY") {
				sorted[parent] = true
			}
		}
		for i := range p.steps {
			p.steps[i].sorts = sorted[parts[i]]
		}
		p.steps = slices.DeleteFunc(p.steps, func(s step) bool { // a part of the statement that is named as a table
			return s.text == "SCAN "+s.table &&
				(strings.Contains(p.text, "CO-ROUTINE "+s.table+"\n") || strings.Contains(p.text, "MATERIALIZE "+s.table+"\n"))
		})
		return []plan{p}, rows.Err()
	}
}

// inSQLite is a statement as SQLite reads it. Text in quotes stays as it is.
func inSQLite(query string) string {
	parts := strings.Split(query, "'")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.NewReplacer("$", "?", "greatest(", "max(", "least(", "min(").Replace(parts[i])
	}
	return strings.Join(parts, "'")
}

var (
	sqliteRead  = regexp.MustCompile(`^(SCAN|SEARCH) (\w+)(?: USING (.*))?$`)
	sqliteIndex = regexp.MustCompile(`INDEX (\w+)`)
	sqliteEqual = regexp.MustCompile(`([\w<>]+)=\?`)
)

// sqliteStep reads a line of a plan. It reports false for one that reads no table.
func sqliteStep(query, detail string, indexes map[string]string) (step, bool) {
	found := sqliteRead.FindStringSubmatch(detail)
	if found == nil {
		return step{}, false
	}
	s := step{table: found[2], text: detail}
	if index := sqliteIndex.FindStringSubmatch(found[3]); index != nil && indexes[index[1]] != "" {
		s.table = indexes[index[1]]
	} else if as := regexp.MustCompile(`(\w+)(?: AS)? ` + s.table + `\b`).FindStringSubmatch(query); as != nil && isTable(indexes, as[1]) {
		s.table = as[1]
	}
	if !isTable(indexes, s.table) {
		return step{}, false // what a part of the statement found, which has steps of its own
	}
	if found[1] == "SEARCH" {
		if found[3] == "" {
			return step{}, false // the smallest or the largest of a column, at an end of an index
		}
		for _, equal := range sqliteEqual.FindAllStringSubmatch(found[3], -1) {
			column := equal[1]
			if column == "rowid" {
				column = rowids[s.table]
			}
			s.equal = append(s.equal, column)
		}
	}
	return s, true
}

// rowids are the columns that SQLite calls rowid in a plan.
var rowids = map[string]string{"channel": "id", "chat": "id", "alert": "seq", "audit": "seq", "delivery": "seq", "event": "seq",
	"media_fetch": "seq", "message": "seq", "otp_code": "seq", "otp_reply": "seq", "resend": "seq", "signing_key": "seq", "token": "seq",
	"webhook": "seq", "deletion": "id"}

func isTable(indexes map[string]string, name string) bool {
	return slices.Contains(slices.Collect(maps.Values(indexes)), name)
}

// explainPostgres reads the plans that PostgreSQL makes for the arguments and for any.
func explainPostgres(db *sql.DB) func(query string, args []any) ([]plan, error) {
	indexedBy := regexp.MustCompile(` INDEXED BY \w+`)
	return func(query string, args []any) (plans []plan, err error) {
		if _, err := db.Exec(`PREPARE looked AS ` + indexedBy.ReplaceAllString(query, "")); err != nil {
			return nil, err
		}
		defer db.Exec(`DEALLOCATE looked`)
		values := make([]string, len(args))
		for i, arg := range args {
			values[i] = postgresValue(arg)
			if strings.Contains(query, "unnest(") {
				values[i] = "ARRAY[" + values[i] + "]"
			}
		}
		execute := `EXECUTE looked`
		if len(args) > 0 {
			execute += `(` + strings.Join(values, ", ") + `)`
		}
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			var text string
			if _, err := db.Exec(`SET plan_cache_mode = ` + mode); err != nil {
				return nil, err
			}
			if err := db.QueryRow(`EXPLAIN (FORMAT JSON) ` + execute).Scan(&text); err != nil {
				return nil, err
			}
			var explained []struct{ Plan postgresNode }
			if err := json.Unmarshal([]byte(text), &explained); err != nil {
				return nil, err
			}
			p := plan{text: mode}
			explained[0].Plan.collect(&p, 0)
			plans = append(plans, p)
		}
		return plans, nil
	}
}

func postgresValue(arg any) string {
	switch v := arg.(type) {
	case nil:
		return "NULL"
	case int64:
		return strconv.FormatInt(v, 10)
	case int:
		return strconv.Itoa(v)
	case []byte:
		return fmt.Sprintf(`'\x%x'::bytea`, v)
	}
	return "'" + strings.ReplaceAll(fmt.Sprint(arg), "'", "''") + "'"
}

// postgresNode is a part of a plan.
type postgresNode struct {
	NodeType     string         `json:"Node Type"`
	RelationName string         `json:"Relation Name"`
	IndexName    string         `json:"Index Name"`
	IndexCond    string         `json:"Index Cond"`
	Filter       string         `json:"Filter"`
	Plans        []postgresNode `json:"Plans"`
	table        string         // of a bitmap scan above
	sorts        bool           // there is a sort above, and no limit between
}

var postgresEqual = regexp.MustCompile(`"?(\w+)"?(?:\)?::\w+)? = `)

func (n postgresNode) collect(p *plan, depth int) {
	p.text += fmt.Sprintf("\n%*s%s %s %s %s %s", 2*depth, "", n.NodeType, n.RelationName, n.IndexName, n.IndexCond, n.Filter)
	switch n.NodeType {
	case "Limit":
		n.sorts = false
	case "Sort":
		n.sorts = true
	}
	s := step{table: n.RelationName, sorts: n.sorts, text: n.NodeType + " " + n.IndexName + " " + n.IndexCond}
	if s.table == "" {
		s.table = n.table
	}
	switch n.NodeType {
	case "Index Scan", "Index Only Scan", "Bitmap Index Scan":
		for _, equal := range postgresEqual.FindAllStringSubmatch(n.IndexCond, -1) {
			s.equal = append(s.equal, equal[1])
		}
		p.steps = append(p.steps, s)
	case "Seq Scan":
		p.steps = append(p.steps, s)
	}
	for _, part := range n.Plans {
		part.table, part.sorts = s.table, n.sorts
		part.collect(p, depth+1)
	}
}

// fill adds many rows to every table. The first channel has most of them, and its first chat most of its messages.
func fill(t *testing.T, db *sql.DB, columns func(table string) []column) {
	t.Helper()
	for table, rows := range filled {
		var names, values []string
		for _, c := range columns(table) {
			names = append(names, c.name)
			values = append(values, c.value(table))
		}
		statement := fmt.Sprintf(`WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < %d)
			INSERT INTO %s (%s) SELECT %s FROM counted`, rows, table, strings.Join(names, ", "), strings.Join(values, ", "))
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// filled are how many rows each table gets.
var filled = map[string]int{
	"alert": 20_000, "alert_rule": 5_000, "alias": 20_000, "audit": 20_000, "channel": 5_000, "channel_state": 20_000, "chat": 20_000,
	"counter_hour": 20_000, "counter_minute": 20_000,
	"deletion": 5_000, "delivery": 30_000, "event": 30_000, "file": 20_000,
	"idempotency": 20_000, "media_fetch": 20_000,
	"message": 50_000, "otp_alarm": 5_000, "otp_code": 20_000, "otp_fallback": 20_000,
	"otp_link": 20_000, "otp_reply": 20_000, "otp_stranger": 20_000,
	"otp_wrong": 20_000, "reaction": 20_000, "remote_attempt": 20_000, "remote_contact": 20_000,
	"remote_file": 20_000, "remote_message": 20_000,
	"request_log": 20_000, "resend": 20_000, "retired_webhook": 5_000,
	"secret": 5_000, "stored_hour": 20_000, "ticket": 20_000, "token": 5_000, "upload": 20_000, "webhook": 5_000,
}

// column is a column of a table that fill writes.
type column struct {
	name, kind string
}

// value is SQL for the value in row n.
func (c column) value(table string) string {
	switch table + "." + c.name {
	case "channel.code":
		return `CASE n WHEN 1 THEN 'main' WHEN 2 THEN 'other' ELSE 'c' || n END`
	case "channel.id":
		return `n`
	case "chat.contact", "otp_code.contact", "alias.contact":
		return `'62811' || (100000000 + n) || '@c.us'`
	case "message.chat":
		return `CASE WHEN n % 2 = 0 THEN 1 ELSE n END`
	case "message.status", "delivery.state":
		return `CASE WHEN n % 50 = 0 THEN 0 WHEN n % 50 = 1 THEN 5 ELSE 1 END`
	case "delivery.held", "webhook.disabled_at":
		return `0`
	case "delivery.endpoint":
		return `CASE WHEN n % 2 = 0 THEN 'w1' ELSE 'w' || n % 5000 END`
	case "otp_code.status", "otp_link.status":
		return `CASE WHEN n % 50 = 0 THEN 0 ELSE 1 END`
	case "alert.closed_at":
		return `CASE WHEN n % 50 = 0 THEN 0 ELSE n END`
	case "alert.resolved_at":
		return `n`
	case "event.encrypted":
		return `CASE WHEN n % 50 = 0 THEN CAST('x' AS ` + c.kind + `) END`
	case "ticket.parent":
		return `NULL`
	case "deletion.purged":
		return `1`
	case "message.data":
		return `NULL`
	}
	switch {
	case table == "otp_alarm" && c.name == "channel":
		return `n`
	case strings.HasSuffix(c.name, "_at") || c.name == "at" || c.name == "until":
		return fmt.Sprintf(`%d + n * 1000`, start.UnixMilli()-10_000_000)
	case c.name == "channel" && c.kind != "TEXT" && c.kind != "text":
		return `CASE WHEN n % 3 > 0 THEN 1 ELSE n % 5000 + 1 END`
	case strings.EqualFold(c.kind, "text"):
		return `'` + c.name + `' || n`
	case strings.EqualFold(c.kind, "blob") || strings.EqualFold(c.kind, "bytea"):
		return `CAST('x' || n AS ` + c.kind + `)`
	}
	return `n`
}

func checkSQLitePlans(t *testing.T, ran *statements) {
	path := filepath.Join(t.TempDir(), "parley.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	fill(t, db, func(table string) []column {
		return columns(t, db, `SELECT name, type FROM pragma_table_info('`+table+`')`)
	})
	indexes := map[string]string{}
	for _, c := range columns(t, db, `SELECT name, tbl_name FROM sqlite_master`) {
		indexes[c.name] = c.kind
	}
	if indexes["sqlite_stat1"] != "" {
		t.Error("there are statistics, which change plans")
	}
	checkPlans(t, ran, false, explainSQLite(db, indexes))
}

func checkPostgresPlans(t *testing.T, ran *statements, address string) {
	db, err := store.Open(t.Context(), address)
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.SetMaxOpenConns(1) // it has the prepared statement
	fill(t, raw, func(table string) []column {
		return columns(t, raw, `SELECT column_name, data_type FROM information_schema.columns
			WHERE table_schema = current_schema() AND table_name = '`+table+`'`)
	})
	if _, err := raw.Exec(`ANALYZE`); err != nil {
		t.Fatal(err)
	}
	checkPlans(t, ran, true, explainPostgres(raw))
}

func columns(t *testing.T, db *sql.DB, query string) (all []column) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c column
		if err := rows.Scan(&c.name, &c.kind); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if err := rows.Err(); err != nil || len(all) == 0 {
		t.Fatalf("%s: %v", query, err)
	}
	return all
}
