package store

import (
	"context"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"parley/internal/store/sqldb"
)

// Version reads at which version the database in a file is, which it does not change, and the version that this
// program needs. A new file is at version 0. Nobody else may have the file open.
func Version(ctx context.Context, file string) (at, needed int, err error) {
	names, err := fs.Glob(embedded, "migrations/sqlite/*.sql") // sorted
	if err != nil {
		return 0, 0, err
	}
	number, _, _ := strings.Cut(path.Base(names[len(names)-1]), "_")
	if needed, err = strconv.Atoi(number); err != nil {
		return 0, 0, err
	}
	err = sqldb.ReadFile(ctx, file, func(c *sqldb.Conn) error {
		var tables int // none: nothing was stored in it yet
		err := c.QueryRow(`SELECT count(*) FROM sqlite_master WHERE name = 'schema_version'`, nil, &tables)
		if err != nil || tables == 0 {
			return err
		}
		return c.QueryRow(`SELECT coalesce(max(version), 0) FROM schema_version`, nil, &at)
	})
	return at, needed, err
}
