package safehttp

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

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
