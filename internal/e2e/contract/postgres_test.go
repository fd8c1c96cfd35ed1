package contract_test

import (
	"testing"

	"parley/internal/postgrestest"
)

// TestPostgres runs the tests of this package on PostgreSQL.
func TestPostgres(t *testing.T) { postgrestest.Again(t) }
