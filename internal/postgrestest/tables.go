package postgrestest

import (
	"slices"
	"strings"
	"testing"
)

// CompareTables fails unless both databases have the same tables and columns, apart from some tables. A query returns one text
// in each row.
func CompareTables(t *testing.T, sqlite, postgres func(query string) ([]string, error), apart ...string) {
	t.Helper()
	inSQLite, err := sqlite(`SELECT m.name || ' ' || c.name || ' ' || c.type || CASE WHEN c."notnull" = 0 AND c.pk = 0 THEN ' NULL' ELSE '' END
		FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name <> 'sqlite_sequence'`)
	must(t, err)
	inPostgres, err := postgres(`SELECT table_name || ' ' || column_name || ' ' ||
		CASE data_type WHEN 'bigint' THEN 'INTEGER' WHEN 'text' THEN 'TEXT' WHEN 'bytea' THEN 'BLOB' ELSE data_type END ||
		CASE is_nullable WHEN 'YES' THEN ' NULL' ELSE '' END
		FROM information_schema.columns WHERE table_schema = current_schema()`)
	must(t, err)
	apart = append(apart, "schema_version", "schema_serves")
	for _, difference := range []struct {
		where   string
		has, in []string
	}{{"SQLite", inSQLite, inPostgres}, {"PostgreSQL", inPostgres, inSQLite}} {
		if len(difference.has) < 20 {
			t.Errorf("%s has only %q", difference.where, difference.has)
		}
		for _, column := range difference.has {
			if table, _, _ := strings.Cut(column, " "); !slices.Contains(difference.in, column) && !slices.Contains(apart, table) {
				t.Errorf("only %s has %s", difference.where, column)
			}
		}
	}
}
