package api

import (
	"math"
	"strings"
	"testing"
	"time"

	"parley"
)

// FuzzStamp holds what is put together to what the library writes.
func FuzzStamp(f *testing.F) {
	for _, seconds := range []int64{0, 1, -1, 1_800_000_000, 253402300799, 253402300800, -62167219201, -62135596800, math.MaxInt32} {
		for _, nanoseconds := range []int64{0, 1, 999_999, 1_000_000, 98_765_432, 999_999_999} {
			f.Add(seconds, nanoseconds, 7*3600)
		}
	}
	f.Fuzz(func(t *testing.T, seconds, nanoseconds int64, east int) {
		at := time.Unix(seconds, nanoseconds).In(time.FixedZone("", east))
		if got, want := parley.Stamp(at), at.UTC().Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// TestBodiesEndTheirLine holds that a body of JSON, also of an error and of a replay, is one line with its end, and
// that plain text is what the interface says, to the letter.
func TestBodiesEndTheirLine(t *testing.T) {
	e := newEnv(t)
	send := m{"contact_id": ayu, "message": "Hello"}
	first := e.call("POST", "/api/send-message/text", e.main, send, "Idempotency-Key", "k")
	again := e.call("POST", "/api/send-message/text", e.main, send, "Idempotency-Key", "k")
	if first.text != again.text || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%q was replayed as %q", first.text, again.text)
	}
	for what, r := range map[string]reply{
		"a send": first, "its replay": again,
		"a list":       e.call("GET", "/api/chat", e.main, nil),
		"no token":     e.call("GET", "/api/chat", "", nil),
		"wrong fields": e.call("POST", "/api/send-message/text", e.main, m{}),
		"no such path": e.call("GET", "/api/nowhere", e.main, nil),
		"keys":         e.call("GET", "/.well-known/jwks.json", "", nil),
		"JSON as text": e.call("GET", "/api/contact", e.main, nil),
	} {
		if !strings.HasSuffix(r.text, "}\n") || strings.Count(r.text, "\n") != 1 || r.ContentLength != int64(len(r.text)) {
			t.Errorf("%s: %q with Content-Length %d", what, r.text, r.ContentLength)
		}
	}
	head := e.call("HEAD", "/api/channel/health", e.main, nil)
	if get := e.call("GET", "/api/channel/health", e.main, nil); head.ContentLength != int64(len(get.text)) {
		t.Errorf("HEAD says %d, GET has %d", head.ContentLength, len(get.text))
	}
	typing := e.call("POST", "/api/send-message/typing", e.main, m{"contact_id": ayu})
	if typing.text != "OK" || typing.ContentLength != 2 {
		t.Errorf("typing: %q", typing.text)
	}
}
