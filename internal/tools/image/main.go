// Command image writes the image of a release as an archive that docker load, podman load and skopeo read. It needs neither a
// daemon nor a registry:
//
//	go run ./internal/tools/image -tag parley:1.0.0 -o dist/image.tar dist/parley-1.0.0-linux-amd64
//
// The image has the program, Mozilla's CA certificates and a user, and the settings of the last stage of deploy/Dockerfile.
//
// Invariant: the same program makes the same archive, byte by byte, on every machine.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const owner = 65532 // the user of the program in the image

func main() {
	tag := flag.String("tag", "", "the name of the image: parley:1.0.0")
	out := flag.String("o", "", "the file to write")
	dockerfile := flag.String("dockerfile", "deploy/Dockerfile", "where the settings of the image are")
	flag.Parse()
	if *tag == "" || *out == "" || flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: image -tag NAME:VERSION -o FILE PROGRAM")
		os.Exit(2)
	}
	if err := run(*tag, *out, *dockerfile, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(tag, out, dockerfile, program string) error {
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		return err
	}
	settings, err := parseSettings(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", dockerfile, err)
	}
	archive, err := makeArchive(tag, program, settings)
	if err != nil {
		return err
	}
	return os.WriteFile(out, archive, 0o644)
}

// settings are what an image says about running it, in Docker's own words.
type settings struct {
	User         string
	Env          []string
	Entrypoint   []string
	Cmd          []string
	Volumes      map[string]struct{}
	ExposedPorts map[string]struct{}
	Healthcheck  *healthcheck
}

type healthcheck struct {
	Test                           []string
	Interval, Timeout, StartPeriod time.Duration
	Retries                        int
}

// parseSettings reads the last stage of a Dockerfile. It fails on an instruction that it does not know, rather than leave it out.
func parseSettings(dockerfile string) (settings, error) {
	var s settings
	for line := range strings.Lines(dockerfile[strings.LastIndex(dockerfile, "\nFROM ")+1:]) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		var err error
		switch instruction {
		case "", "#", "FROM", "COPY": // makeLayer knows the files
		case "USER":
			s.User = rest
		case "ENV":
			s.Env = strings.Fields(rest)
		case "VOLUME":
			s.Volumes = map[string]struct{}{rest: {}}
		case "EXPOSE":
			s.ExposedPorts = map[string]struct{}{rest + "/tcp": {}}
		case "ENTRYPOINT":
			err = json.Unmarshal([]byte(rest), &s.Entrypoint)
		case "CMD":
			err = json.Unmarshal([]byte(rest), &s.Cmd)
		case "HEALTHCHECK":
			s.Healthcheck, err = parseHealthcheck(rest)
		default:
			err = fmt.Errorf("the instruction is unknown")
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
		}
	}
	return s, nil
}

func parseHealthcheck(text string) (*healthcheck, error) {
	options, command, _ := strings.Cut(text, " CMD ")
	h := &healthcheck{}
	if err := json.Unmarshal([]byte(command), &h.Test); err != nil {
		return nil, err
	}
	h.Test = slices.Insert(h.Test, 0, "CMD")
	for option := range strings.FieldsSeq(options) {
		name, value, _ := strings.Cut(option, "=")
		var err error
		switch name {
		case "--interval":
			h.Interval, err = time.ParseDuration(value)
		case "--timeout":
			h.Timeout, err = time.ParseDuration(value)
		case "--start-period":
			h.StartPeriod, err = time.ParseDuration(value)
		case "--retries":
			_, err = fmt.Sscan(value, &h.Retries)
		default:
			err = fmt.Errorf("the option %s is unknown", name)
		}
		if err != nil {
			return nil, err
		}
	}
	return h, nil
}

// makeArchive returns an image of one layer, as docker save writes it. Only the layer is compressed: some programs read no archive
// that is compressed as a whole.
func makeArchive(tag, program string, s settings) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	built := map[string]string{}
	for _, setting := range info.Settings {
		built[setting.Key] = setting.Value
	}
	if built["GOOS"] != "linux" {
		return nil, fmt.Errorf("%s is a program for %s, and images are for linux", program, built["GOOS"])
	}
	created, err := time.Parse(time.RFC3339, built["vcs.time"]) // that of the commit: the same on every machine
	if err != nil {
		created = time.Unix(0, 0).UTC()
	}
	body, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	layer := makeLayer(created, body)
	type object = map[string]any
	config, err := json.Marshal(object{
		"architecture": built["GOARCH"], "os": "linux", "created": created, "config": s,
		"rootfs":  object{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
		"history": []object{{"created": created, "created_by": "parley"}},
	})
	if err != nil {
		return nil, err
	}
	configName := fmt.Sprintf("%x.json", sha256.Sum256(config))
	manifest, err := json.Marshal([]object{{"Config": configName, "RepoTags": []string{tag}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return nil, err
	}
	var archive, zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	zip.Write(layer) // into memory
	zip.Close()
	w := &writer{tar.NewWriter(&archive), created}
	w.file(configName, 0o644, config)
	w.file("layer.tar", 0o644, zipped.Bytes())
	w.file("manifest.json", 0o644, manifest)
	w.close()
	return archive.Bytes(), nil
}

// makeLayer returns the files of the image: the same that the Dockerfile copies. A new volume takes owner and mode from /data.
func makeLayer(created time.Time, program []byte) []byte {
	var certificates, layer bytes.Buffer
	for root := range bundle.Roots() {
		pem.Encode(&certificates, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
	}
	w := &writer{tar.NewWriter(&layer), created}
	for _, dir := range []string{"etc/", "etc/ssl/", "etc/ssl/certs/", "usr/", "usr/local/", "usr/local/bin/"} {
		w.add(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}, nil)
	}
	for _, dir := range []string{"data/", "media/"} {
		w.add(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o700, Uid: owner, Gid: owner}, nil)
	}
	w.file("etc/passwd", 0o644, fmt.Appendf(nil, "parley:x:%d:%[1]d:parley:/data:/sbin/nologin\n", owner))
	w.file("etc/group", 0o644, fmt.Appendf(nil, "parley:x:%d:\n", owner))
	w.file("etc/ssl/certs/ca-certificates.crt", 0o644, certificates.Bytes())
	w.file("usr/local/bin/parley", 0o755, program)
	w.close()
	return layer.Bytes()
}

// writer writes a tar file into memory, which cannot fail unless the program is wrong.
type writer struct {
	tar     *tar.Writer
	created time.Time
}

func (w *writer) add(h *tar.Header, body []byte) {
	h.Size, h.ModTime, h.Format = int64(len(body)), w.created, tar.FormatUSTAR
	err := w.tar.WriteHeader(h)
	if err == nil {
		_, err = io.Copy(w.tar, bytes.NewReader(body))
	}
	if err != nil {
		panic(err)
	}
}

func (w *writer) file(name string, mode int64, body []byte) {
	w.add(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode}, body)
}

func (w *writer) close() {
	if err := w.tar.Close(); err != nil {
		panic(err)
	}
}
