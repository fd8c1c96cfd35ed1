package doctor

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

const patience = 5 * time.Second // for an answer of something on this machine

// Server asks a server that should be running whether it is ready.
func Server(ctx context.Context, url string, pid int) Finding {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return Finding{"server", Problem, err.Error(), ""}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Finding{"server", Problem, fmt.Sprintf("pid %d does not answer at %s", pid, url), "start it again"}
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Finding{"server", Problem, fmt.Sprintf("%s is not ready (%s)", url, resp.Status), "read its log"}
	}
	return Ready(url, pid)
}

// Ready is what is found where a server is ready.
func Ready(url string, pid int) Finding {
	return Finding{"server", Fine, fmt.Sprintf("%s is ready, pid %d", url, pid), ""}
}

// Exposure tells who can reach a server that listens on an address.
func Exposure(listen string, tls, behindProxy bool) Finding {
	switch {
	case tls:
		return Finding{"exposure", Fine, "listens on " + listen + " with TLS", ""}
	case behindProxy:
		return Finding{"exposure", Warning, "listens on " + listen + " without TLS: a proxy must be in front", ""}
	}
	return Finding{"exposure", Fine, "listens on " + listen + ", this machine alone", ""}
}
