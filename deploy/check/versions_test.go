package check

import (
	"regexp"
	"strings"
	"testing"
)

var (
	// image finds images with their tags, in compose files, the Dockerfile and commands.
	image = regexp.MustCompile(`(?m)(?:image: |_IMAGE=|-t )((?:[a-z0-9.-]+/)*[a-z-]+)(:[A-Za-z0-9._-]+)?(?:\s|$)`)
	// version has at least two numbers, so that it does not move to another release by itself.
	version = regexp.MustCompile(`^:\d+\.\d+(\.\d+)?(-[a-z0-9]+)?$`)
	// ours finds the versions of Parley.
	ours = regexp.MustCompile(`(?:\bparley[:-]|VERSION(?:=|: )|newTag: |/version: )(\d+\.\d+\.\d+)`)
)

// TestVersions fails on an image that is another one tomorrow, and on another version of Parley than the source's.
func TestVersions(t *testing.T) {
	want := release(t)
	texts := files(t)
	for _, page := range []string{"README.md", "docs/deploy.md", "docs/install.md"} {
		texts[page] = read(t, root, page)
	}
	for name, text := range texts {
		if strings.Contains(text, ":latest") {
			t.Errorf("%s names the version latest", name)
		}
		for _, found := range ours.FindAllStringSubmatch(text, -1) {
			if found[1] != want {
				t.Errorf("%s has %s, but the source is %s", name, found[0], want)
			}
		}
		if strings.HasPrefix(name, "kubernetes/") {
			continue // TestKubernetes checks what kustomize makes of it
		}
		for _, found := range image.FindAllStringSubmatch(text, -1) {
			if !version.MatchString(found[2]) {
				t.Errorf("%s: image %s%s has no whole version", name, found[1], found[2])
			}
		}
	}
}

// TestSameGo compares the Go of the image with that of go.mod, to the patch: both must have the same fixes.
func TestSameGo(t *testing.T) {
	mod := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindStringSubmatch(read(t, root, "go.mod"))
	image := regexp.MustCompile(`golang:([\d.]+)-`).FindStringSubmatch(read(t, deploy, "Dockerfile"))
	if mod == nil || image == nil || mod[1] != image[1] {
		t.Errorf("go.mod has Go %q, the Dockerfile %q", mod, image)
	}
}
