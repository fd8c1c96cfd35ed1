package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	defaultWait = 10 * time.Second // for the network's confirmation
	maxWait     = 30 * time.Second // shorter than any sensible client's own time-out
)

// preference is what the header Prefer (RFC 7240) says of waiting for the network's confirmation.
type preference struct {
	wait    time.Duration
	applied string // for the header Preference-Applied; empty: none was asked for
}

// preferenceOf reads the header. Preferences that are not known, or not sensible, are ignored: that
// is what the header is for. With respond-async and wait=N together, the answer comes at once unless
// it is there within N seconds.
func preferenceOf(h http.Header) preference {
	p := preference{wait: defaultWait}
	var async, waits bool
	for _, line := range h["Prefer"] {
		for part := range strings.SplitSeq(line, ",") {
			part, _, _ = strings.Cut(part, ";")
			name, value, _ := strings.Cut(part, "=")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "respond-async":
				async = true
			case "wait":
				n, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 32)
				if err == nil && !waits { // of several, the first counts
					waits = true
					p.wait = min(time.Duration(n)*time.Second, maxWait)
				}
			}
		}
	}
	switch seconds := strconv.Itoa(int(p.wait / time.Second)); {
	case async && waits:
		p.applied = "respond-async, wait=" + seconds
	case async:
		p.wait, p.applied = 0, "respond-async"
	case waits:
		p.applied = "wait=" + seconds
	}
	return p
}
