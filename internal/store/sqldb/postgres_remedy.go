package sqldb

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// remedies say what to do about errors of PostgreSQL that an administrator of the database can correct, by SQLSTATE.
var remedies = map[string]string{
	"3F000": "The schema does not exist, or the user may not use it. As the database's owner run: " +
		"GRANT USAGE, CREATE ON SCHEMA public TO the user.",
	"42501": "The user lacks a right. As the database's owner run: GRANT USAGE, CREATE ON SCHEMA public TO the user. " +
		"Tables that another user created must belong to this one: ALTER TABLE … OWNER TO the user.",
	"3D000": "Create the database with: createdb --owner=USER NAME",
	"28P01": "Check the user and the password in the address, or the password file.",
	"28000": "Check the user in the address, and that pg_hba.conf of the server lets it connect from this machine.",
	"53300": "All connections of the server are in use. Raise max_connections, or end some: a node needs about 20.",
	"57P03": "The server is starting or stopping. Try again soon.",
	"25006": "The server is a standby. Use the address of the primary.",
}

// Explain is the text of an error of a database, with what to do about it where that is known. It contains no password.
func Explain(err error) string {
	text := strings.TrimSuffix(err.Error(), ".") + "."
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return text
	}
	if remedy := remedies[e.Code]; remedy != "" {
		return fmt.Sprintf("%s (SQLSTATE %s). %s", e.Message, e.Code, remedy)
	}
	return text
}
