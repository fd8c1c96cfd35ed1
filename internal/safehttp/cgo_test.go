//go:build cgo

package safehttp

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/idna"
)

// The system's resolver reads more spellings of an address than Go's does.
func TestHostileAddressesReachNothingWithTheSystemsResolver(t *testing.T) {
	if os.Getenv("PARLEY_TEST_CHILD") == "" {
		runAgain(t, "GODEBUG=netdns=cgo")
		return
	}
	if addrs, err := net.LookupHost("127.1"); err != nil || addrs[0] != "127.0.0.1" {
		t.Fatalf("this is not the system's resolver: 127.1 is %v, %v", addrs, err)
	}
	testCorpus(t, Policy{}, slices.DeleteFunc(slices.Clone(hostile), needsNameServer))
}

// needsNameServer reports whether the system would ask a name server about an address: tests send
// nothing out of this machine.
func needsNameServer(address string) bool {
	u, err := url.Parse(strings.ReplaceAll(address, "{p}", "1"))
	if err != nil || u.Host == "" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii
	}
	_, err = netip.ParseAddr(host)
	return err != nil && host != "localhost" && !(isHostname(host) && endsInNumber(host))
}
