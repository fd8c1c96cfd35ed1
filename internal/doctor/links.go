package doctor

import (
	"net/netip"
	"net/url"
)

// Links reports problems with the address in links: the server's public address or, without one, this machine.
func Links(public string, behindProxy bool) []Finding {
	switch {
	case public == "" && behindProxy:
		return []Finding{{"links", Warning, "those made on this machine lead to its own address, which nobody else can open: the address of " +
			"the proxy is not set",
			"set --public-url, for example https://chat.example.com"}}
	case public == "":
		return nil
	case IsUnencrypted(public):
		return []Finding{{"links", Warning, "they lead to " + public +
			", which is not encrypted: anyone on the network path can sign in with them",
			"use https in --public-url"}}
	}
	return []Finding{{"links", Fine, "they lead to " + public, ""}}
}

// isLoopback reports whether an address is on this machine.
func isLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
