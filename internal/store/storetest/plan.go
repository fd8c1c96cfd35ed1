package storetest

import (
	"database/sql"
	"strings"
	"testing"
)

// abort is how SQLite undoes a statement alone, as the constants of its programs have it.
const abort = 2

// CopiesPages returns the first step of a statement of several rows which makes SQLite copy every page that the statement changes, so
// that it could undo it alone; empty: there is none. Such a step is one that may fail without an end of the transaction.
func CopiesPages(t testing.TB, path, statement string) (step string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("EXPLAIN "+statement, make([]any, strings.Count(statement, "?")+strings.Count(statement, "$"))...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var addr, p1, p2, p3 int64
		var p4, p5, comment any
		if err := rows.Scan(&addr, &step, &p1, &p2, &p3, &p4, &p5, &comment); err != nil {
			t.Fatal(err)
		}
		switch step {
		case "Function", "PureFunc", "FkCounter":
			return step
		case "Halt", "HaltIfNull":
			if p1 != 0 && p2 == abort {
				return step
			}
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ""
}
