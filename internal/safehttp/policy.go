// Package safehttp makes HTTP clients that cannot reach private addresses, for every URL that API callers provide:
// callbacks, webhooks, media and link previews.
//
// Invariants:
//
//   - The address that is dialled is checked, after DNS and again at each redirect. A name says nothing about where it
//     leads.
//   - A client uses no proxy: a proxy would dial without that check.
//   - Errors for callers reveal nothing about the other end but a status.
package safehttp

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// Policy says which addresses clients may reach. The zero Policy allows public ones only.
type Policy struct {
	// AllowPrivate adds private ranges. Link-local and metadata addresses are allowed only by a range within theirs,
	// never by a wider one.
	AllowPrivate []netip.Prefix
	// Forbid names our own listeners, which are blocked even if their range is allowed. An unspecified address means
	// every address of this machine.
	Forbid []netip.AddrPort
	// Resolver looks names up; nil: the system's.
	Resolver *net.Resolver
	// RootCAs are the authorities whose certificates are trusted; nil: the system's.
	RootCAs *x509.CertPool
}

// protectedRanges lists addresses that stay blocked although an operator allows a wide private range: they serve the
// credentials of the machine itself.
var protectedRanges = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"),         // link-local; metadata of AWS, GCP, Azure, Oracle, Scaleway …
	netip.MustParsePrefix("fe80::/10"),              // link-local
	netip.MustParsePrefix("100.100.100.200/32"),     // metadata of Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),       // Azure's wire server: a public address by all registries
	netip.MustParsePrefix("192.0.0.192/32"),         // metadata of Oracle's older cloud
	netip.MustParsePrefix("fd00:ec2::/32"),          // metadata and services of AWS
	netip.MustParsePrefix("fd20:ce::254/128"),       // metadata of GCP
	netip.MustParsePrefix("fd00:42::42/128"),        // metadata of Scaleway
	netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), // metadata of Oracle
}

var errBlocked = errors.New("address not allowed")

// control is called by the dialer with the address it is about to connect to.
func (p Policy) control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("dial by %s: %w", network, errBlocked)
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("parse dialled address: %w", errors.Join(err, errBlocked))
	}
	if !p.allows(to) {
		return fmt.Errorf("dial %s: %w", to, errBlocked)
	}
	return nil
}

func (p Policy) allows(to netip.AddrPort) bool {
	addr := to.Addr().Unmap().WithZone("")
	if p.isOwnListener(netip.AddrPortFrom(addr, to.Port())) || !p.allowsAddr(addr) {
		return false
	}
	if v4, ok := translated(addr); ok {
		return p.allowsAddr(v4)
	}
	return true
}

// Refuses reports whether no connection is made to a URL, because its host is an IP address that is not allowed. A name may lead
// anywhere: only a connection shows where.
func (p Policy) Refuses(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return err == nil && !p.allows(netip.AddrPortFrom(addr, 0))
}

func (p Policy) allowsAddr(addr netip.Addr) bool {
	for _, g := range protectedRanges {
		if g.Contains(addr) {
			return slices.ContainsFunc(p.AllowPrivate, func(a netip.Prefix) bool {
				return a.Contains(addr) && a.Bits() >= g.Bits()
			})
		}
	}
	return isPublic(addr) || slices.ContainsFunc(p.AllowPrivate, func(a netip.Prefix) bool {
		return a.Contains(addr)
	})
}

// isPublic goes by the registries of IANA: in IPv4 everything is public that they do not list, in
// IPv6 nothing outside of global unicast.
func isPublic(addr netip.Addr) bool {
	contains := func(r netip.Prefix) bool { return r.Contains(addr) }
	if addr.Is4() {
		return !slices.ContainsFunc(ssrf.IPv4DeniedPrefixes, contains)
	}
	return ssrf.IPv6GlobalUnicast.Contains(addr) && !slices.ContainsFunc(ssrf.IPv6DeniedPrefixes, contains)
}

var sixToFour = netip.MustParsePrefix("2002::/16")

// translated returns the IPv4 address behind a NAT64 or 6to4 address. If an operator without IPv4 allows such a range,
// that address must be checked.
func translated(addr netip.Addr) (netip.Addr, bool) {
	b := addr.As16()
	switch {
	case ssrf.IPv6NAT64Prefix.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:])), true
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}

func (p Policy) isOwnListener(to netip.AddrPort) bool {
	return slices.ContainsFunc(p.Forbid, func(ours netip.AddrPort) bool {
		if ours.Port() != to.Port() {
			return false
		}
		at := ours.Addr().Unmap().WithZone("")
		return at == to.Addr() || at.IsUnspecified() && isThisMachine(to.Addr())
	})
}

func isThisMachine(addr netip.Addr) bool {
	if addr.IsLoopback() || addr.IsUnspecified() {
		return true
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return true // rather refuse than reach ourselves
	}
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(addr.AsSlice())
	})
}
