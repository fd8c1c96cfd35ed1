package parley_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrows is the whole list of which of our packages may import which. Imports only point down; a new
// arrow is a decision that is made here. Tests may import more: they put things together.
var arrows = map[string][]string{
	".": {},

	// What imports the vocabulary alone.
	"internal/asset":       {},
	"internal/client":      {".", "internal/wire"},
	"internal/mcp":         {".", "internal/client", "internal/wire"},
	"internal/bus":         {},
	"internal/confine":     {},
	"internal/encrypt":     {},
	"internal/safehttp":    {},
	"internal/wait":        {},
	"internal/wire":        {"."},
	"internal/network":     {"."},
	"internal/socket":      {},
	"internal/store/sqldb": {".", "internal/socket", "internal/wait"},

	"internal/otp/rule":        {"."},
	"internal/store":           {".", "internal/otp/rule", "internal/store/sqldb"},
	"internal/token":           {".", "internal/encrypt", "internal/store"},
	"internal/feed":            {".", "internal/bus", "internal/encrypt", "internal/wait", "internal/wire"},
	"internal/otp":             {".", "internal/encrypt", "internal/network", "internal/otp/rule", "internal/store"},
	"internal/callback":        {".", "internal/safehttp", "internal/encrypt", "internal/store", "internal/wait"},
	"internal/media":           {".", "internal/confine", "internal/safehttp", "internal/store", "internal/wait"},
	"internal/outbox":          {".", "internal/network", "internal/store", "internal/wait"},
	"internal/network/sandbox": {".", "internal/network", "internal/safehttp", "internal/store/sqldb", "internal/wait"},
	"internal/cluster":         {".", "internal/store", "internal/store/sqldb", "internal/wait"},

	"internal/doctor":      {".", "internal/confine", "internal/otp/rule"},
	"internal/diagnostics": {".", "internal/doctor", "internal/network"},
	"internal/stats":       {".", "internal/store"},
	"internal/gateway": {".", "internal/bus", "internal/cluster", "internal/media", "internal/network", "internal/otp", "internal/outbox",
		"internal/encrypt", "internal/store", "internal/wait"},
	"internal/requestlog": {".", "internal/store"},
	"internal/alert":      {".", "internal/callback", "internal/cluster", "internal/doctor", "internal/gateway", "internal/store"},
	"internal/api/form":   {".", "internal/safehttp"},
	"internal/api/limit":  {"."},
	"internal/api": {".", "internal/alert", "internal/api/form", "internal/api/limit", "internal/asset", "internal/callback",
		"internal/client", "internal/cluster", "internal/diagnostics", "internal/doctor", "internal/feed", "internal/gateway",
		"internal/mcp", "internal/media", "internal/network", "internal/network/sandbox", "internal/otp", "internal/otp/rule",
		"internal/safehttp", "internal/encrypt", "internal/socket", "internal/requestlog", "internal/stats", "internal/store",
		"internal/token", "internal/wait", "internal/wire"},
	"internal/console": {".", "internal/api", "internal/asset", "internal/store"},
	"internal/app": {".", "internal/alert", "internal/api", "internal/callback", "internal/cluster", "internal/console",
		"internal/diagnostics", "internal/doctor", "internal/feed", "internal/gateway", "internal/mcp", "internal/media", "internal/network",
		"internal/network/cloud",
		"internal/network/sandbox", "internal/network/whatsapp", "internal/otp", "internal/requestlog", "internal/safehttp", "internal/encrypt",
		"internal/store", "internal/store/sqldb", "internal/token", "internal/wait"},
	"cmd/parley": {".", "internal/app", "internal/callback", "internal/client", "internal/confine", "internal/console", "internal/diagnostics",
		"internal/doctor", "internal/mcp", "internal/media", "internal/wait", "internal/wire"},

	"internal/network/whatsapp": {".", "internal/network", "internal/network/whatsapp/keystore", "internal/safehttp",
		"internal/store/sqldb", "internal/wait"},
	"internal/network/whatsapp/keystore": {".", "internal/store/sqldb", "internal/wait"},
	"internal/network/cloud":             {".", "internal/network", "internal/safehttp", "internal/store", "internal/wait"},

	// Tools: third-party files in the tree, running tests, and releases.
	"internal/tools/image":         {},
	"internal/tools/sbom":          {},
	"internal/tools/vendorjs":      {},
	"internal/tools/whatsmeowdiff": {},
	"internal/tools/runtests":      {},
	"internal/tools/compareapi":    {},
	"internal/tools/clienttypes":   {},

	// An application that shows the use of the API.
	"examples/login-go": {},

	// Suites, networks on this machine and whole gateways for tests.
	"internal/network/whatsapp/whatsapptest": {"internal/wait"},
	"internal/network/cloud/cloudtest":       {},
	"internal/store/storetest":               {},
	"internal/postgrestest":                  {},
	"internal/e2e/runs":                      {},
	"internal/media/mediatest":               {},
	"internal/network/networktest":           {".", "internal/network"},
	"internal/parleytest": {".", "internal/api", "internal/app", "internal/gateway", "internal/media", "internal/network",
		"internal/network/sandbox", "internal/network/whatsapp/whatsapptest", "internal/postgrestest", "internal/safehttp", "internal/encrypt",
		"internal/store", "internal/token"},
	"internal/bench": {".", "internal/cluster", "internal/network/cloud/cloudtest", "internal/network/whatsapp/keystore",
		"internal/network/whatsapp/whatsapptest",
		"internal/postgrestest", "internal/store", "internal/store/sqldb"},
}

// onlyIn says which packages alone may import a module, so that what it brings stays in one place.
var onlyIn = map[string][]string{
	"modernc.org/sqlite":           {"internal/store/storetest", "internal/bench"}, // bench: the stock store, to compare with
	"zombiezen.com/go/sqlite":      {"internal/store/sqldb"},
	"github.com/jackc/pgx/v5":      {"internal/cluster", "internal/store/sqldb", "internal/postgrestest"},
	"github.com/golang-jwt/jwt/v5": {"internal/token"},
	"github.com/spf13/cobra":       {"cmd/parley"},

	"github.com/modelcontextprotocol/go-sdk": {"internal/mcp"},

	"database/sql": {"internal/store/sqldb", "internal/store", "internal/store/storetest", "internal/network/sandbox",
		"internal/network/whatsapp/keystore", "internal/bench"},
	"code.dny.dev/ssrf":                 {"internal/safehttp"},
	"github.com/HugoSmits86/nativewebp": {"internal/media"},           // makes stickers
	"github.com/aws/aws-sdk-go-v2":      {"internal/media"},           // signs requests
	"github.com/johannesboyne/gofakes3": {"internal/media/mediatest"}, // an S3 server for tests
	"go.mau.fi/whatsmeow": {"internal/network/whatsapp", "internal/network/whatsapp/keystore",
		"internal/network/whatsapp/whatsapptest", "internal/bench"}, // bench: a bare client, to compare with
}

// TestImportsPointDown fails on an arrow between our packages that the table does not list.
func TestImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		allowed, listed := arrows[p.dir]
		if !listed {
			t.Errorf("package %s is not in the table of arrows", p.dir)
			continue
		}
		for _, imported := range p.imports {
			ours, ok := strings.CutPrefix(imported, "parley/")
			if imported == "parley" {
				ours, ok = ".", true
			}
			if ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s, which the table does not allow", p.dir, ours)
			}
			for module, in := range onlyIn {
				if (imported == module || strings.HasPrefix(imported, module+"/")) && !slices.Contains(in, p.dir) {
					t.Errorf("%s imports %s: only %s may", p.dir, imported, strings.Join(in, ", "))
				}
			}
			if p.dir == "." && strings.Contains(imported, ".") {
				t.Errorf("the vocabulary imports %s: the standard library must do", imported)
			}
		}
	}
}

// TestEveryPackageSaysWhatItIsFor fails on a package without a comment.
func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range packages(t) {
		if len(strings.Fields(p.doc)) < 6 {
			t.Errorf("package %s has no comment that says what it is for", p.dir)
		}
	}
}

type pkg struct {
	dir     string
	doc     string
	imports []string
}

// packages reads the packages of this module, without their tests.
func packages(t *testing.T) []*pkg {
	t.Helper()
	byDir := map[string]*pkg{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "vendor" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(file))
		p := byDir[dir]
		if p == nil {
			p = &pkg{dir: dir}
			byDir[dir] = p
		}
		p.doc += f.Doc.Text()
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			p.imports = append(p.imports, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []*pkg
	for _, p := range byDir {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return all
}
