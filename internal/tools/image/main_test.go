package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// unpack returns the files of a tar file and their headers.
func unpack(t *testing.T, archive io.Reader) (files map[string]string, headers map[string]*tar.Header) {
	t.Helper()
	files, headers = map[string]string{}, map[string]*tar.Header{}
	for in := tar.NewReader(archive); ; {
		h, err := in.Next()
		if err == io.EOF {
			return files, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name], headers[h.Name] = string(body), h
	}
}

// TestArchive makes an image of the test's own program. deploy/check runs one of the real program.
func TestArchive(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("images are for linux")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../../deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	want, err := parseSettings(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if want.User != "65532:65532" || len(want.Env) < 4 || len(want.Volumes) != 1 || len(want.ExposedPorts) != 1 ||
		want.Healthcheck.Interval != 10*time.Second || want.Healthcheck.Retries != 3 {
		t.Errorf("the Dockerfile was read as %+v", want)
	}
	archive, err := makeArchive("parley:9.9.9", program, want)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := makeArchive("parley:9.9.9", program, want); err != nil || !bytes.Equal(archive, again) {
		t.Errorf("a second archive differs (%v)", err)
	}
	outer, _ := unpack(t, bytes.NewReader(archive))
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal([]byte(outer["manifest.json"]), &manifest); err != nil || len(manifest) != 1 ||
		!slices.Equal(manifest[0].RepoTags, []string{"parley:9.9.9"}) {
		t.Fatalf("the manifest is %s (%v)", outer["manifest.json"], err)
	}
	zip, err := gzip.NewReader(strings.NewReader(outer[manifest[0].Layers[0]]))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Architecture string
		Config       settings
		RootFS       struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal([]byte(outer[manifest[0].Config]), &config); err != nil {
		t.Fatal(err)
	}
	if digest := fmt.Sprintf("sha256:%x", sha256.Sum256(layer)); !slices.Equal(config.RootFS.DiffIDs, []string{digest}) {
		t.Errorf("the layer is %s, the configuration names %s", digest, config.RootFS.DiffIDs)
	}
	if config.Architecture != runtime.GOARCH || config.Config.User != want.User || !slices.Equal(config.Config.Cmd, want.Cmd) {
		t.Errorf("the configuration is %+v", config)
	}
	files, headers := unpack(t, bytes.NewReader(layer))
	for name, mode := range map[string]int64{"usr/local/bin/parley": 0o755, "etc/passwd": 0o644, "data/": 0o700, "media/": 0o700} {
		if h := headers[name]; h == nil || h.Mode != mode {
			t.Errorf("%s is %+v among %q", name, h, slices.Sorted(maps.Keys(files)))
		}
	}
	if h := headers["data/"]; h.Uid != owner || h.Gid != owner {
		t.Errorf("/data belongs to %d:%d", h.Uid, h.Gid)
	}
	if n := bytes.Count([]byte(files["etc/ssl/certs/ca-certificates.crt"]), []byte("BEGIN CERTIFICATE")); n < 50 {
		t.Errorf("the image has %d certificates", n)
	}
}

func TestUnknownInstruction(t *testing.T) {
	for _, line := range []string{"LABEL a=b", "HEALTHCHECK --start-interval=1s CMD [\"parley\"]", "CMD parley serve"} {
		if got, err := parseSettings("FROM go\nRUN x\n\nFROM scratch\n" + line + "\n"); err == nil {
			t.Errorf("%s was read as %+v", line, got)
		}
	}
}
