package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"parley/internal/confine"
)

const timeout = 5 * time.Second // for a response from this machine

// Server checks whether the server of a lock file is ready.
func Server(ctx context.Context, url string, pid int) Finding {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return Finding{Check: "server", Level: Problem, Found: err.Error()}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Finding{Check: "server", Level: Problem, Found: fmt.Sprintf("pid %d does not answer at %s", pid, url),
			Remedy: "start it again"}
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return Ready(url, pid)
	}
	var said struct{ Message string }
	if json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&said) != nil || said.Message == "" {
		said.Message = resp.Status
	}
	return NotReady(url, said.Message)
}

func NotReady(url, reason string) Finding {
	return Finding{Check: "server", Level: Problem, Found: fmt.Sprintf("%s is not ready: %s", url, reason),
		Remedy: "read its log"}
}

func Ready(url string, pid int) Finding {
	return Finding{Check: "server", Level: Fine, Found: fmt.Sprintf("%s is ready, pid %d", url, pid)}
}

// Reach is who can reach a server.
type Reach struct {
	Listen      string `json:"listen"`
	TLS         bool   `json:"tls,omitempty"`
	BehindProxy bool   `json:"behind_proxy,omitempty"`
	// UntrustedProxy means that a proxy on this machine forwards requests and is not trusted.
	UntrustedProxy bool `json:"untrusted_proxy,omitempty"`
}

func (r Reach) Look() Finding { return r.look("listens") }

// WouldReach reports who could reach a server with these settings.
func (r Reach) WouldReach() Finding { return r.look("would listen") }

func (r Reach) look(verb string) Finding {
	f := Finding{Check: "exposure", Level: Fine, Found: verb + " on " + r.Listen}
	switch {
	case r.UntrustedProxy:
		f.Level, f.Remedy = Warning, "set --behind-proxy, or add 127.0.0.1/32 to --trusted-proxies"
		f.Found += ", and requests come through a proxy on this machine that is not trusted: all its callers share one address"
	case r.TLS:
		f.Found += " with TLS"
	case r.BehindProxy:
		f.Found += " without TLS: a proxy must be in front"
	default:
		f.Found += ", this machine alone"
	}
	return f
}

// Private reports the private addresses that webhooks and alerts may reach, and those that any token may name.
func Private(webhooks, callers []netip.Prefix) []Finding {
	var found []string
	if len(webhooks) > 0 {
		found = append(found, "webhooks and alerts may reach "+ranges(webhooks)+" (--allow-private)")
	}
	if len(callers) > 0 {
		found = append(found, "anyone with a token can read what responds on "+ranges(callers)+" (--allow-private-callers)")
	}
	if found == nil {
		return nil
	}
	return []Finding{{Check: "addresses", Level: Fine, Found: strings.Join(found, "; ")}}
}

func ranges(prefixes []netip.Prefix) string {
	texts := make([]string, len(prefixes))
	for i, p := range prefixes {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}

// Links reports problems with the address in links: the server's public address or, without one, this machine.
func Links(public string, behindProxy bool) []Finding {
	switch {
	case public == "" && behindProxy:
		return []Finding{{Check: "links", Level: Warning, Remedy: "set --public-url, for example https://chat.example.com",
			Found: "those made on this machine lead to its own address, which nobody else can open: the address of " +
				"the proxy is not set"}}
	case public == "":
		return nil
	case IsUnencrypted(public):
		return []Finding{{Check: "links", Level: Warning, Remedy: "use https in --public-url",
			Found: "they lead to " + public + ", which is not encrypted: anyone on the network path can sign in with them"}}
	}
	return []Finding{{Check: "links", Level: Fine, Found: "they lead to " + public}}
}

// IsLoopback reports whether a host is this machine only. Names other than localhost may resolve to anything.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// FFmpeg checks for the program that converts audio.
func FFmpeg(ctx context.Context) Finding {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := confine.Command(ctx, confine.Limits{}, "ffmpeg", "-hide_banner", "-version").Output()
	release := "of unknown version"
	if fields := strings.Fields(string(out)); len(fields) > 2 { // ffmpeg version 7.1 …
		release = fields[2]
	}
	f := Finding{Check: "ffmpeg", Level: Warning}
	ended, _ := errors.AsType[*exec.ExitError](err)
	switch {
	case ended != nil && ended.ExitCode() == confine.Failed:
		f.Found = "cannot be run with limits, so voice messages must be ogg/opus already: " + strings.TrimSpace(string(ended.Stderr))
		f.Remedy = "allow seccomp filters to this process"
	case errors.Is(err, exec.ErrNotFound): // a hint: it is optional
		f.Level, f.Found, f.Remedy = Fine, "not found: voice messages must be ogg/opus already", "install ffmpeg"
	case err != nil:
		f.Found = "does not run, so voice messages must be ogg/opus already: " + err.Error()
		f.Remedy = "install ffmpeg from a package of your system: a confined one finds its libraries there"
	case !strings.Contains(string(out), "--enable-libopus"):
		f.Found, f.Remedy = release+" without libopus: voice messages must be ogg/opus already", "install an ffmpeg with libopus"
	case !confine.Available:
		f.Found = release + ", libopus: voice in any format. On this system it reads the files of callers without limits on memory, CPU, " +
			"files and network"
		f.Remedy = "run parley on Linux, or without ffmpeg"
	case !confine.HidesFiles():
		f.Found = release + ", libopus: voice in any format. This kernel lacks Landlock, so an audio file that takes ffmpeg over could " +
			"read secret.key and the database"
		f.Remedy = "use Linux 5.13 or later with Landlock on, or run parley without ffmpeg"
	default:
		f.Level, f.Found = Fine, release+", libopus: voice in any format"
	}
	return f
}
