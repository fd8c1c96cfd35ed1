package safehttp

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"code.dny.dev/ssrf"
	"golang.org/x/net/dns/dnsmessage"
)

// reserved is written out here with an address of each, so that a new version of the tables cannot
// open a range unseen.
var reserved = map[string]string{
	"0.0.0.0/8": "0.0.0.0", "10.0.0.0/8": "10.1.2.3", "100.64.0.0/10": "100.64.0.1", "127.0.0.0/8": "127.0.0.1",
	"169.254.0.0/16": "169.254.169.254", "172.16.0.0/12": "172.31.255.255", "192.0.0.0/24": "192.0.0.8", "192.0.2.0/24": "192.0.2.1",
	"192.31.196.0/24": "192.31.196.1", "192.52.193.0/24": "192.52.193.1", "192.88.99.0/24": "192.88.99.1", "192.168.0.0/16": "192.168.1.1",
	"192.175.48.0/24": "192.175.48.1", "198.18.0.0/15": "198.19.0.1", "198.51.100.0/24": "198.51.100.7", "203.0.113.0/24": "203.0.113.7",
	"224.0.0.0/4": "239.1.2.3", "240.0.0.0/4": "255.255.255.255", "168.63.129.16/32": "168.63.129.16",
	"100.100.100.200/32": "100.100.100.200", "192.0.0.192/32": "192.0.0.192",

	"::/128": "::", "::1/128": "::1", "::/96": "::7f00:1", "::ffff:0:0:0/96": "::ffff:0:7f00:1", "64:ff9b::/96": "64:ff9b::808:808",
	"64:ff9b:1::/48": "64:ff9b:1::1",
	"100::/64":       "100::1", "2001::/32": "2001::1", "2001::/23": "2001:1ff::1", "2001:db8::/32": "2001:db8::1",
	"2002::/16":         "2002:808:808::1",
	"2620:4f:8000::/48": "2620:4f:8000::1", "3fff::/20": "3fff::1", "5f00::/16": "5f00::1", "fc00::/7": "fd12::1", "fe80::/10": "fe80::1",
	"fec0::/10": "fec0::1", "ff00::/8": "ff02::1", "fd00:ec2::/32": "fd00:ec2::254", "fd20:ce::254/128": "fd20:ce::254",
	"fd00:42::42/128": "fd00:42::42", "fd00:c1::a9fe:a9fe/128": "fd00:c1::a9fe:a9fe",
}

func TestEveryReservedRangeIsRefused(t *testing.T) {
	for prefix, addr := range reserved {
		t.Run(prefix, func(t *testing.T) {
			p, a := netip.MustParsePrefix(prefix), netip.MustParseAddr(addr)
			if !p.Contains(a) {
				t.Fatalf("%s is not in %s", a, p)
			}
			for _, one := range []netip.Addr{a, p.Masked().Addr(), last(p)} {
				if (Policy{}).allows(netip.AddrPortFrom(one, 80)) {
					t.Errorf("%s is allowed", one)
				}
				if one.Is4() && (Policy{}).allows(netip.AddrPortFrom(netip.AddrFrom16(one.As16()), 80)) {
					t.Errorf("%s in its IPv6 form is allowed", one)
				}
			}
		})
	}
	for _, p := range slices.Concat(ssrf.IPv4DeniedPrefixes, ssrf.IPv6DeniedPrefixes, protectedRanges) {
		if _, ok := reserved[p.String()]; !ok {
			t.Errorf("%s is refused but not tested", p)
		}
	}
}

func last(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	addr, _ := netip.AddrFromSlice(b)
	return addr
}

func TestPublicAddressesAreAllowed(t *testing.T) {
	for _, addr := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "93.184.216.34", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1",
		"168.63.129.15", "168.63.129.17", "172.15.255.255", "172.32.0.0", "192.0.1.1", "192.167.255.255", "192.169.0.0", "198.17.255.255",
		"198.20.0.0", "223.255.255.255",
		"2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001::1", "::ffff:8.8.8.8",
	} {
		if !(Policy{}).allows(netip.AddrPortFrom(netip.MustParseAddr(addr), 443)) {
			t.Errorf("%s is refused", addr)
		}
	}
}

func TestAllowPrivate(t *testing.T) {
	tests := []struct {
		allow []string
		addr  string
		want  bool
	}{
		{[]string{"10.0.0.0/8"}, "10.1.2.3", true},
		{[]string{"10.0.0.0/8"}, "::ffff:10.1.2.3", true},
		{[]string{"10.0.0.0/8"}, "192.168.0.1", false},
		{[]string{"127.0.0.0/8"}, "127.0.0.1", true},
		{[]string{"127.0.0.0/8"}, "::1", false},
		{[]string{"127.0.0.0/8"}, "0.0.0.0", false},
		{[]string{"fd00::/8"}, "fd12::1", true},
		{[]string{"fd00::/8"}, "fd00:ec2::254", false},
		{[]string{"fd00:ec2::/32"}, "fd00:ec2::254", true},
		{[]string{"fd00:ec2::254/128"}, "fd00:ec2::254", true},
		{[]string{"0.0.0.0/0"}, "192.168.0.1", true},
		{[]string{"0.0.0.0/0"}, "169.254.169.254", false},
		{[]string{"0.0.0.0/0"}, "168.63.129.16", false},
		{[]string{"0.0.0.0/0"}, "100.100.100.200", false},
		{[]string{"::/0"}, "fe80::1", false},
		{[]string{"::/0"}, "fd20:ce::254", false},
		{[]string{"::/0", "0.0.0.0/0"}, "::ffff:169.254.169.254", false},
		{[]string{"100.64.0.0/10"}, "100.64.0.1", true},
		{[]string{"100.64.0.0/10"}, "100.100.100.200", false},
		{[]string{"100.100.100.200/32"}, "100.100.100.200", true},
		{[]string{"169.254.0.0/16"}, "169.254.169.254", true},
		{[]string{"169.254.169.254/32"}, "169.254.169.254", true},
		{[]string{"169.254.169.254/32"}, "169.254.169.253", false},
		{[]string{"169.254.0.0/15"}, "169.254.169.254", false},
		{[]string{"fe80::/10"}, "fe80::1%eth0", true},
		{[]string{"168.63.129.16/32"}, "168.63.129.16", true},
		{[]string{"64:ff9b::/96"}, "64:ff9b::8.8.8.8", true},
		{[]string{"64:ff9b::/96"}, "64:ff9b::10.0.0.1", false},
		{[]string{"64:ff9b::/96"}, "64:ff9b::169.254.169.254", false},
		{[]string{"64:ff9b::/96", "10.0.0.0/8"}, "64:ff9b::10.0.0.1", true},
		{[]string{"::/0"}, "2002:a9fe:a9fe::1", false},
	}
	for _, test := range tests {
		policy := Policy{AllowPrivate: prefixes(test.allow...)}
		if got := policy.allows(netip.AddrPortFrom(netip.MustParseAddr(test.addr), 80)); got != test.want {
			t.Errorf("allowing %v, %s: %t, want %t", test.allow, test.addr, got, test.want)
		}
	}
}

func TestForbidKeepsOurListenersOutOfReach(t *testing.T) {
	tests := []struct {
		ours, to string
		want     bool
	}{
		{"127.0.0.1:7275", "127.0.0.1:7275", false},
		{"127.0.0.1:7275", "[::ffff:127.0.0.1]:7275", false},
		{"127.0.0.1:7275", "127.0.0.1:9000", true}, // a developer's own server
		{"127.0.0.1:7275", "127.0.0.2:7275", true}, // not our listener
		{"0.0.0.0:7275", "127.0.0.2:7275", false},
		{"0.0.0.0:7275", "[::1]:7275", false},
		{"[::]:7275", "127.0.0.1:7275", false},
		{"[::]:443", "8.8.8.8:443", true},
		{"[::]:443", "127.0.0.1:8443", true},
		{"[::1]:7275", "[::1]:7275", false},
	}
	for _, test := range tests {
		policy := loopback(Policy{Forbid: []netip.AddrPort{netip.MustParseAddrPort(test.ours)}})
		if got := policy.allows(netip.MustParseAddrPort(test.to)); got != test.want {
			t.Errorf("listening on %s, %s: %t, want %t", test.ours, test.to, got, test.want)
		}
	}
}

func TestControlAcceptsTCPOnly(t *testing.T) {
	for network, want := range map[string]bool{"tcp4": true, "tcp6": true, "udp4": false, "unix": false, "ip4": false} {
		if err := (Policy{}).control(network, "8.8.8.8:80", nil); (err == nil) != want {
			t.Errorf("%s: %v", network, err)
		}
	}
	if err := (Policy{}).control("tcp4", "nonsense", nil); err == nil {
		t.Error("an address that cannot be read is allowed")
	}
}

// nameServer is a DNS server on loopback. It answers with what the function returns; nothing means
// that there is no such name.
func nameServer(t *testing.T, answer func(name string) []string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply, err := answerQuery(buf[:n], answer); err == nil {
				conn.WriteTo(reply, from)
			}
		}
	})
	t.Cleanup(func() { conn.Close(); serving.Wait() })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func answerQuery(query []byte, answer func(name string) []string) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	q := m.Questions[0]
	m.Header.Response = true
	m.Additionals = nil
	var addrs []string
	if q.Type == dnsmessage.TypeA || q.Type == dnsmessage.TypeAAAA {
		addrs = answer(q.Name.String())
		if len(addrs) == 0 {
			m.Header.RCode = dnsmessage.RCodeNameError
		}
	}
	for _, a := range addrs {
		addr := netip.MustParseAddr(a)
		header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 0}
		switch {
		case addr.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: addr.As4()}})
		case !addr.Is4() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}})
		}
	}
	return m.Pack()
}

// noNames is a resolver that knows no name at all.
func noNames(t *testing.T) *net.Resolver {
	return nameServer(t, func(string) []string { return nil })
}
