package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDescribe lists the modules of the test's own program, of which this package's only import is one.
func TestDescribe(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bom.json")
	if err := run("9.9.9", file, program); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BOMFormat string
		Metadata  struct {
			Component struct{ Name, Version string }
		}
		Components []struct {
			Name, Version, PURL string
			Hashes              []struct{ Alg, Content string }
		}
	}
	if err := json.Unmarshal(text, &bom); err != nil || bom.BOMFormat != "CycloneDX" || bom.Metadata.Component.Version != "9.9.9" {
		t.Fatalf("%v: %s", err, text)
	}
	found := map[string]bool{}
	for _, c := range bom.Components {
		found[c.Name] = true
		if c.Version == "" || !strings.HasSuffix(c.PURL, c.Name+"@"+c.Version) || c.Name != "std" && len(c.Hashes) != 1 {
			t.Errorf("a component is %+v", c)
		}
	}
	if !found["std"] || !found["github.com/CycloneDX/cyclonedx-go"] {
		t.Errorf("the components are %v", found)
	}
}
