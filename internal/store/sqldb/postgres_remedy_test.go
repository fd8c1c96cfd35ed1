package sqldb

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"parley/internal/postgrestest"
)

func TestExplainSaysWhatToDo(t *testing.T) {
	for code, want := range map[string]string{
		"3F000": "GRANT USAGE, CREATE ON SCHEMA", "42501": "GRANT USAGE, CREATE ON SCHEMA", "3D000": "createdb", "28P01": "password",
		"28000": "pg_hba.conf", "53300": "max_connections", "57P03": "Try again", "25006": "primary",
	} {
		got := Explain(fmt.Errorf("migrate: %w", &pgconn.PgError{Code: code, Message: "what PostgreSQL says"}))
		if !strings.HasPrefix(got, "what PostgreSQL says (SQLSTATE "+code+"). ") || !strings.Contains(got, want) {
			t.Errorf("%s: %s", code, got)
		}
	}
	if got := Explain(fmt.Errorf("read: %w", &pgconn.PgError{Code: "22012", Message: "division by zero"})); strings.Contains(got, "GRANT") {
		t.Errorf("another error: %s", got)
	}
}

// TestPostgresRightsAreExplained connects as a user without rights, and to a database that does not exist.
func TestPostgresRightsAreExplained(t *testing.T) {
	server := postgrestest.Start(t)
	if err := server.Exec(`CREATE ROLE nobody LOGIN; REVOKE ALL ON SCHEMA public FROM PUBLIC`); err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(server.Address())
	if err != nil {
		t.Fatal(err)
	}
	as := func(user, database string) string {
		u := *address
		u.User = url.User(user)
		if database != "" {
			u.Path = "/" + database
		}
		return u.String()
	}
	missing := as(address.User.Username(), "missing")
	for path, want := range map[string]string{as("nobody", ""): "GRANT USAGE, CREATE ON SCHEMA", missing: "createdb"} {
		db, err := Open(context.Background(), Options{Path: path, Migrations: postgresThings})
		if err == nil {
			db.Close()
			t.Errorf("%s could be opened", path)
			continue
		}
		if got := Explain(err); !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
}
