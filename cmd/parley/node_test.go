package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"parley/internal/postgrestest"
)

// TestScriptsOnPostgres is TestScripts for nodes: each file in testdata/postgres has a database of its own.
func TestScriptsOnPostgres(t *testing.T) {
	server := postgrestest.Start(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/postgres",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("NO_COLOR", "1")
			e.Setenv("GORACE", noLinger)
			e.Setenv("PARLEY_DATABASE", server.Schema(e.T().(testing.TB)))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"await": await, "exits": exits, "setenv": setenv},
	})
}
