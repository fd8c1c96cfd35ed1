package check

import (
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const (
	user65532 = 65532
	suite     = "trixie" // the Debian of the images in the Dockerfile
)

// builder runs buildah with a storage of its own. The official images cannot be had without a registry: a Debian made from
// packages replaces them, with the Go of this machine mounted into it.
type builder struct {
	t      *testing.T
	global []string
}

func newBuilder(t *testing.T) *builder {
	t.Helper()
	needRoot(t, "Images can be built and run")
	need(t, "buildah", "buildah")
	need(t, "mmdebstrap", "mmdebstrap")
	dir := t.TempDir()
	b := &builder{t: t, global: []string{"--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"),
		"--storage-driver", "vfs"}} // vfs works inside of containers too
	t.Cleanup(func() {
		exec.Command("buildah", append(b.global, "rm", "--all")...).Run()
		exec.Command("buildah", append(b.global, "rmi", "--all", "--force")...).Run()
	})
	b.debian()
	return b
}

func (b *builder) cmd(args ...string) *exec.Cmd {
	return exec.Command("buildah", append(slices.Clone(b.global), args...)...)
}

func (b *builder) run(args ...string) string {
	b.t.Helper()
	return strings.TrimSpace(runCmd(b.t, b.cmd(args...)))
}

// debian makes the images localhost/debian and localhost/go.
func (b *builder) debian() {
	b.t.Helper()
	dir := b.t.TempDir()
	run(b.t, "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--include=ca-certificates", suite,
		filepath.Join(dir, "debian.tar"), "http://deb.debian.org/debian")
	dockerfile := `FROM scratch AS debian
ADD debian.tar /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

FROM debian AS go
ENV PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin GOPATH=/go GOTOOLCHAIN=local
`
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o600); err != nil {
		b.t.Fatal(err)
	}
	for _, target := range []string{"debian", "go"} {
		b.run("bud", "--isolation", "chroot", "--target", target, "--tag", "localhost/"+target, dir)
	}
}

// build builds a target of our Dockerfile and returns its name.
func (b *builder) build(target string) string {
	b.t.Helper()
	name := "localhost/parley-" + target
	run(b.t, "go", "-C", root, "mod", "download") // the image may not trust the proxy of this machine
	env := map[string]string{}
	if err := json.Unmarshal([]byte(run(b.t, "go", "env", "-json", "GOROOT", "GOMODCACHE", "GOCACHE")), &env); err != nil {
		b.t.Fatal(err)
	}
	b.run("bud", "--isolation", "chroot", "--format", "docker", "--file", filepath.Join(deploy, "Dockerfile"), "--target", target,
		"--build-arg", "GO_IMAGE=localhost/go", "--build-arg", "DEBIAN_IMAGE=localhost/debian", "--build-arg", "VERSION="+release(b.t),
		"--volume", env["GOROOT"]+":/usr/local/go:ro", "--volume", env["GOMODCACHE"]+":/go/pkg/mod",
		"--volume", env["GOCACHE"]+":/go/cache",
		"--tag", name, root)
	return name
}

// container is a container of an image. Its volume is a directory of this machine, which buildah makes as Docker makes a new
// volume: with the owner and the mode that it has in the image.
type container struct {
	*builder
	id, mount, volume string
}

func (b *builder) from(image string) *container {
	b.t.Helper()
	c := &container{builder: b, id: b.run("from", "--pull-never", image)}
	c.mount = b.run("mount", c.id)
	runCmd(b.t, c.command(nil, "parley", "version")) // the first command makes the volume
	found, _ := filepath.Glob(filepath.Join(b.global[1], "*", b.run("inspect", "--format", "{{.ContainerID}}", c.id),
		"userdata/buildah-volumes/*"))
	if len(found) != 1 {
		b.t.Fatalf("the volumes are %v", found)
	}
	c.volume = found[0]
	return c
}

// command runs a program in the container, as its user and with its environment.
func (c *container) command(env []string, args ...string) *exec.Cmd {
	all := []string{"run", "--isolation", "chroot"}
	for _, e := range env {
		all = append(all, "--env", e)
	}
	return c.cmd(append(append(all, c.id, "--"), args...)...)
}

// config is what the image says about running it.
type config struct {
	User            string
	Env             []string
	Entrypoint, Cmd []string
	Volumes         map[string]any
	ExposedPorts    map[string]any
	Healthcheck     struct{ Test []string }
}

func (b *builder) config(image string) config {
	b.t.Helper()
	var found struct {
		Docker struct{ Config config }
	}
	if err := json.Unmarshal([]byte(b.run("inspect", "--type", "image", image)), &found); err != nil {
		b.t.Fatal(err)
	}
	return found.Docker.Config
}

// TestImages builds both images and runs a server in each.
func TestImages(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	for _, target := range []string{"parley", "ffmpeg"} {
		t.Run(target, func(t *testing.T) {
			b := &builder{t: t, global: b.global}
			image := b.build(target)
			cfg := b.config(image)
			checkConfig(t, cfg)
			c := b.from(image)
			if target == "parley" {
				checkFiles(t, c.mount)
			}
			before := tree(t, c.mount)
			c.serve(cfg, target == "ffmpeg")
			if after := tree(t, c.mount); !slices.Equal(before, after) {
				t.Errorf("files outside of the volume: before %d, after %d", len(before), len(after))
			}
			if target == "parley" {
				b.from(image).serveAsInKubernetes(cfg)
				b.checkArchive(c.mount)
			}
		})
	}
}

// checkArchive makes the image that make release makes, of the program of another image, and runs a server in it.
func (b *builder) checkArchive(mount string) {
	t := b.t
	t.Helper()
	archive := filepath.Join(t.TempDir(), "image.tar")
	run(t, "go", "-C", root, "run", "./internal/tools/image", "-tag", "parley:archived", "-o", archive,
		filepath.Join(mount, "usr/local/bin/parley"))
	b.run("pull", "docker-archive:"+archive)
	image := "localhost/parley:archived"
	cfg := b.config(image)
	checkConfig(t, cfg)
	c := b.from(image)
	checkFiles(t, c.mount)
	c.serve(cfg, false)
}

func checkConfig(t *testing.T, cfg config) {
	t.Helper()
	if cfg.User != "65532:65532" || !slices.Equal(cfg.Entrypoint, []string{"parley"}) || !slices.Equal(cfg.Cmd, []string{"serve"}) {
		t.Errorf("user %q, entry point %q, command %q", cfg.User, cfg.Entrypoint, cfg.Cmd)
	}
	if _, ok := cfg.Volumes["/data"]; !ok || len(cfg.Volumes) != 1 {
		t.Errorf("volumes %v", cfg.Volumes)
	}
	if !slices.Equal(slices.Collect(maps.Keys(cfg.ExposedPorts)), []string{"7275/tcp"}) {
		t.Errorf("ports %v", cfg.ExposedPorts)
	}
	if len(cfg.Healthcheck.Test) < 2 || cfg.Healthcheck.Test[0] != "CMD" { // not CMD-SHELL: there is no shell
		t.Errorf("the health check is %q", cfg.Healthcheck.Test)
	}
	for _, want := range []string{"SQLITE_TMPDIR=/data", "PARLEY_DATA=/data", "PARLEY_LISTEN=0.0.0.0:7275", "PARLEY_BEHIND_PROXY=true"} {
		if !slices.Contains(cfg.Env, want) {
			t.Errorf("the environment has no %s", want)
		}
	}
}

// checkFiles wants the program, certificates and the user in the image from scratch, and nothing else.
func checkFiles(t *testing.T, mount string) {
	t.Helper()
	want := []string{"etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "usr/local/bin/parley"}
	var got []string
	for _, path := range tree(t, mount) {
		if info, err := os.Lstat(filepath.Join(mount, path)); err == nil && !info.IsDir() {
			got = append(got, path)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the files are %v, want %v", got, want)
	}
	program, err := elf.Open(filepath.Join(mount, "usr/local/bin/parley"))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP {
			t.Error("the program is not static")
		}
	}
	rest, n := []byte(read(t, mount, "etc/ssl/certs/ca-certificates.crt")), 0
	for block, more := pem.Decode(rest); block != nil; block, more = pem.Decode(more) {
		if _, err := x509.ParseCertificate(block.Bytes); err == nil {
			n++
		}
	}
	if n < 50 {
		t.Errorf("the image has %d certificates", n)
	}
}

// tree lists the paths below a directory, without the places that a container gets when it runs.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		switch name {
		case "dev", "proc", "sys", "run", "etc/hosts", "etc/resolv.conf", "etc/hostname":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case ".":
			return nil
		}
		paths = append(paths, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// start starts the server and waits until the container is healthy. It returns a function that ends the server.
func (c *container) start(cfg config, env ...string) (stop func()) {
	t := c.t
	t.Helper()
	listen := fmt.Sprintf("PARLEY_LISTEN=0.0.0.0:%d", freePort(t)) // the network is this machine's
	wait := start(t, c.command(append(env, listen), append(cfg.Entrypoint, cfg.Cmd...)...))
	eventually(t, "the container is healthy", func() error {
		out, err := c.command(env, cfg.Healthcheck.Test[1:]...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	return func() {
		t.Helper()
		found, _ := filepath.Glob(filepath.Join(c.volume, "parley.lock"))
		inside, _ := filepath.Glob(filepath.Join(c.volume, "*/parley.lock"))
		var running struct{ PID int }
		if err := json.Unmarshal([]byte(read(t, append(found, inside...)[0])), &running); err != nil || running.PID <= 1 {
			t.Fatalf("the lock names no process: %v", err)
		}
		syscall.Kill(running.PID, syscall.SIGTERM) // not buildah
		if err := wait(0); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	}
}

// serve runs the server in the container, and the commands that people run beside it.
func (c *container) serve(cfg config, ffmpeg bool) {
	t := c.t
	t.Helper()
	if out := runCmd(t, c.command(nil, "parley", "version")); !strings.HasPrefix(out, "parley "+release(t)+",") {
		t.Errorf("the image has %s", out)
	}
	stop := c.start(cfg)
	if link := runCmd(t, c.command(nil, "parley", "open", "--print")); !strings.HasPrefix(link, "http://127.0.0.1:") {
		t.Errorf("parley open prints %q", link)
	}
	runCmd(t, c.command(nil, "parley", "channel", "create", "toko", "--name", "Toko"))
	runCmd(t, c.command(nil, "parley", "backup", "/data/backup.tar"))
	out, _ := c.command(nil, "parley", "doctor").CombinedOutput() // warnings are an exit status too
	if found := strings.Contains(string(out), "libopus: voice in any format"); found != ffmpeg {
		t.Errorf("ffmpeg found: %v, want %v:\n%s", found, ffmpeg, out)
	}
	c.checkVolume()
	stop()
	if out, err := c.command(nil, cfg.Healthcheck.Test[1:]...).CombinedOutput(); err == nil {
		t.Errorf("without a server the container is healthy: %s", out)
	}
}

// serveAsInKubernetes runs the server on a volume of root that a group can write to.
func (c *container) serveAsInKubernetes(cfg config) {
	t := c.t
	t.Helper()
	if err := errors.Join(os.Chown(c.volume, 0, user65532), os.Chmod(c.volume, 0o775|fs.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	c.start(cfg, "PARLEY_DATA=/data/parley")()
}

// checkVolume wants every file to belong to the user of the image, and to nobody else.
func (c *container) checkVolume() {
	c.t.Helper()
	for _, path := range append(tree(c.t, c.volume), ".") {
		info, err := os.Lstat(filepath.Join(c.volume, path))
		if err != nil {
			continue // removed meanwhile
		}
		stat := info.Sys().(*syscall.Stat_t)
		if stat.Uid != user65532 || stat.Gid != user65532 || info.Mode().Perm()&0o077 != 0 {
			c.t.Errorf("%s belongs to %d:%d with mode %o", path, stat.Uid, stat.Gid, info.Mode().Perm())
		}
	}
	if _, err := os.Stat(filepath.Join(c.volume, "parley.db")); err != nil {
		c.t.Error(err)
	}
}
