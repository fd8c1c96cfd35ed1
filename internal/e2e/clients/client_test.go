// Package clients_test tests that a generator makes a client of the OpenAPI document that compiles and works with a real server.
// It is a module of its own, so that nothing else downloads what generated code imports.
package clients_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/oapi-codegen/runtime" // what the generated client imports
)

// generator makes the client, as docs/clients.md shows.
const generator = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"

// root is the repository.
const root = "../../.."

// command runs a program in a folder and returns what it printed.
func command(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, complaint.String())
	}
	return string(out)
}

// TestGoClient generates a Go client, compiles it with a program that uses it, and runs that against "parley dev".
func TestGoClient(t *testing.T) {
	dir := t.TempDir()
	document, err := filepath.Abs(filepath.Join(root, "internal/api/openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"go.mod": "go.mod", "go.sum": "go.sum", "testdata/main.go": "main.go"} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "client"), 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, dir, nil, "go", "run", generator, "-generate", "types,client", "-package", "client", "-o", "client/client.gen.go", document)
	command(t, dir, nil, "go", "vet", "./...")
	command(t, dir, nil, "go", "build", "-o", "use", ".")

	said := command(t, dir, development(t), filepath.Join(dir, "use"))
	for _, want := range []string{"sent true_6281234567890@c.us_3EB0", "read 1\n", "wrong [contact_id message]\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("the program says %q, want %q", said, want)
		}
	}
}

// development runs "parley dev" until the test ends, and returns its address and tokens as an environment.
func development(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	program, data := filepath.Join(dir, "parley"), filepath.Join(dir, "data")
	command(t, root, nil, "go", "build", "-o", program, "./cmd/parley")
	ctx, stop := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, program, "dev", "--data", data, "--listen", "127.0.0.1:0", "--no-open")
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		server.Wait() // the error is that of the interrupt
		if t.Failed() {
			t.Logf("the server says:\n%s", log.String())
		}
	})
	command(t, root, nil, program, "health", "--ready", "--wait", "2m", "--data", data)
	return strings.Split(strings.TrimSpace(command(t, root, nil, program, "env", "--data", data)), "\n")
}
