// Package storetest reads the tables of a store for tests: it finds rows of a deleted channel.
//
// Invariant: it finds the tables by itself, so a new table with a channel is counted without a change here.
package storetest

import (
	"database/sql"
	"fmt"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// leftovers find rows that refer to a deleted message, chat or webhook. Rows that name the channel are found without them.
var leftovers = map[string]string{
	"message without a chat": `SELECT count(*) FROM message WHERE chat NOT IN (SELECT id FROM chat)`,
	"reaction of no message": `SELECT count(*) FROM reaction WHERE seq NOT IN (SELECT seq FROM message)`,
	"resend of no message":   `SELECT count(*) FROM resend WHERE seq NOT IN (SELECT seq FROM message)`,
	"file of no message":     `SELECT count(*) FROM media_fetch WHERE seq NOT IN (SELECT seq FROM message)`,
	"secret of no webhook": `SELECT count(*) FROM secret WHERE owner LIKE 'webhook:%'
		AND substr(owner, 9) NOT IN (SELECT id FROM webhook)`,
}

// ChannelRows counts the rows of a channel and of deleted channels, by table. Tables without any are left out.
func ChannelRows(t testing.TB, path, code string) map[string]int {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	found := map[string]int{}
	count := func(what, query string, args ...any) {
		t.Helper()
		var n int
		if err := db.QueryRow(query, args...).Scan(&n); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n > 0 {
			found[what] = n
		}
	}
	rows, err := db.Query(`SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = 'channel'`)
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, table)
	}
	if err := rows.Err(); err != nil || len(tables) < 10 {
		t.Fatalf("tables with a channel: %v, %v", tables, err)
	}
	for _, table := range tables {
		count(table, fmt.Sprintf(`SELECT count(*) FROM %q WHERE channel = $1 OR channel = (SELECT id FROM channel WHERE code = $1)
			OR typeof(channel) = 'integer' AND channel <> 0 AND channel NOT IN (SELECT id FROM channel)`, table), code)
	}
	count("channel", `SELECT count(*) FROM channel WHERE code = $1`, code)
	count("idempotency by scope", `SELECT count(*) FROM idempotency WHERE scope LIKE 'channel %'
		AND CAST(substr(scope, 9) AS INTEGER) NOT IN (SELECT id FROM channel)`)
	count("secret", `SELECT count(*) FROM secret WHERE owner = 'channel:' || $1`, code)
	for what, query := range leftovers {
		count(what, query)
	}
	return found
}
