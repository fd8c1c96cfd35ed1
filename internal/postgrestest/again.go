package postgrestest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// addressVariable holds the address of the server in a run of Again.
const addressVariable = "PARLEY_POSTGRES_AGAIN"

// again is the server of a run of Again; nil: this is another run.
var again = func() *Server {
	if address := os.Getenv(addressVariable); address != "" {
		return &Server{address: address}
	}
	return nil
}()

// paths are the addresses that Path returned.
var paths = map[string]string{}

// Again runs all tests of the calling package once more, in another process and on PostgreSQL. A test that has no meaning there
// skips itself if [Running].
func Again(t *testing.T) {
	t.Helper()
	if Running() {
		t.Skip("this is the run on PostgreSQL")
	}
	server := Start(t)
	tests := exec.Command(os.Args[0], "-test.timeout=20m",
		fmt.Sprintf("-test.short=%t", testing.Short()), fmt.Sprintf("-test.v=%t", testing.Verbose()))
	tests.Env = append(os.Environ(), addressVariable+"="+server.address)
	out, err := tests.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	} else if testing.Verbose() {
		t.Logf("%s", out)
	}
}

// Running reports whether this is a run of Again.
func Running() bool { return again != nil }

// Path returns path. In a run of Again it returns the address of a schema instead, the same one for the same path until the
// test ends.
func Path(t testing.TB, path string) string {
	t.Helper()
	if !Running() || strings.Contains(path, "://") {
		return path
	}
	if paths[path] == "" {
		paths[path] = again.Schema(t)
		t.Cleanup(func() { delete(paths, path) })
	}
	return paths[path]
}

// Skip skips a test that has no meaning in a run of Again.
func Skip(t testing.TB, why string) {
	t.Helper()
	if Running() {
		t.Skip("on PostgreSQL: " + why)
	}
}
