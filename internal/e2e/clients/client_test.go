// Package clients_test tests the client libraries and the examples, and that a generator makes a client of the OpenAPI document that
// compiles and works, all with a real server.
// It is a module of its own, so that nothing else downloads what generated code imports.
package clients_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
	t.Parallel()
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
	for _, want := range []string{"sent true_6281234567890@c.us_3EB0", "read 1\n", "wrong [contact_id message]\n", "10 link PENDING\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("the program says %q, want %q", said, want)
		}
	}
}

// parley is the program, which TestMain builds.
var parley string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "clients")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		parley = filepath.Join(dir, "parley")
		build := exec.Command("go", "build", "-o", parley, "./cmd/parley")
		build.Dir, build.Stderr = root, os.Stderr
		if err := build.Run(); err != nil {
			panic(err)
		}
		return m.Run()
	}())
}

// need skips a test whose program is missing.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed", program)
	}
}

// TestPython runs the tests of the Python library.
func TestPython(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	command(t, filepath.Join(root, "clients/python"), []string{"PARLEY_PROGRAM=" + parley, "PYTHONPATH=.", "PYTHONDONTWRITEBYTECODE=1"},
		"python3", "-m", "unittest", "discover", "-s", "tests")
}

// TestTypeScript compiles the TypeScript library and runs its tests.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	dir := typeScript(t)
	command(t, dir, []string{"PARLEY_PROGRAM=" + parley}, "node", "--test", "test/")
}

// typeScript returns a folder with the compiled library.
func typeScript(t *testing.T) string {
	t.Helper()
	need(t, "npm")
	dir, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// compiled compiles the TypeScript library once for all tests.
var compiled = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(filepath.Dir(parley), "typescript")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "clients/typescript"))); err != nil {
		return "", err
	}
	install := []string{"npm", "install", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--no-package-lock"}
	for _, args := range [][]string{install, {"npx", "tsc"}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		if said, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", args, err, said)
		}
	}
	return dir, nil
})

// TestGenerators generates TypeScript clients with three generators, compiles them strictly with programs that use them, and makes ten
// calls with each. The generic node of n8n reads the document, too. It downloads much, so only "make generators" runs it.
func TestGenerators(t *testing.T) {
	if os.Getenv("PARLEY_GENERATORS") == "" {
		t.Skip("only with PARLEY_GENERATORS=1, as in make generators")
	}
	t.Parallel()
	need(t, "npm")
	dir := filepath.Join(t.TempDir(), "generators")
	if err := os.CopyFS(dir, os.DirFS("testdata/generators")); err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(filepath.Join(root, "internal/api/openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "openapi.json"), document, 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, dir, nil, "npm", "install", "--prefer-offline", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts")
	command(t, dir, nil, "npx", "openapi-typescript", "openapi.json", "-o", "fetch/schema.ts")
	command(t, dir, nil, "npx", "openapi-ts", "-i", "openapi.json", "-o", "hey", "-c", "@hey-api/client-fetch")
	command(t, dir, nil, "npx", "orval", "--input", "openapi.json", "--output", "orval/api.ts", "--client", "fetch")
	command(t, dir, nil, "node", "n8n.mjs")
	command(t, dir, nil, "npx", "tsc")
	for _, name := range []string{"fetch", "hey", "orval"} {
		command(t, dir, nil, "npx", "esbuild", name+".ts", "--bundle", "--platform=node", "--format=esm", "--outfile="+name+".mjs")
		if said := command(t, dir, development(t), "node", name+".mjs"); !strings.Contains(said, "10 events\n") {
			t.Errorf("%s says %q", name, said)
		}
	}
}

// development runs "parley dev" until the test ends, and returns its address and tokens as an environment.
func development(t *testing.T) []string {
	t.Helper()
	program, data := parley, filepath.Join(t.TempDir(), "data")
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
