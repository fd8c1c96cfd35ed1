package app

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func node(listen, url string, insecure bool) Config {
	return Config{Database: "postgres://db/parley", NodeListen: listen, NodeURL: url, NodeInsecure: insecure}
}

func TestConfigRejects(t *testing.T) {
	for _, c := range []struct {
		name   string
		config Config
		want   string // part of the sentence; empty: it may run
	}{
		{"default", Config{}, ""},
		{"localhost", Config{Listen: "localhost:1"}, ""},
		{"loopback of IPv6", Config{Listen: "[::1]:1"}, ""},
		{"another loopback", Config{Listen: "127.9.9.9:1"}, ""},
		{"a port that cannot exist", Config{Listen: "localhost:99999"}, "not an address to listen on"},
		{"everywhere", Config{Listen: "0.0.0.0:7275"}, "would travel in clear text"},
		{"everywhere, in short", Config{Listen: ":7275"}, "would travel in clear text"},
		{"a name", Config{Listen: "example.com:7275"}, "would travel in clear text"},
		{"a mapped address", Config{Listen: "[::ffff:10.0.0.1]:7275"}, "would travel in clear text"},
		{"behind a proxy", Config{Listen: ":7275", BehindProxy: true}, ""},
		{"with TLS", Config{Listen: ":7275", TLSCert: "c", TLSKey: "k"}, ""},
		{"half of TLS", Config{TLSCert: "c"}, "both a certificate and its key"},
		{"no port", Config{Listen: "127.0.0.1"}, "is not an address"},
		{"a test server for WhatsApp", Config{WhatsAppEndpoint: "127.0.0.1:7443", WhatsAppTrust: "f"}, ""},
		{"by name", Config{WhatsAppEndpoint: "localhost:7443", WhatsAppTrust: "f"}, ""},
		{"as a URL", Config{WhatsAppEndpoint: "https://[::1]:7443/", WhatsAppTrust: "f"}, ""},
		{"elsewhere", Config{WhatsAppEndpoint: "10.0.0.1:7443", WhatsAppTrust: "f"}, "is not on this machine"},
		{"everywhere", Config{WhatsAppEndpoint: "0.0.0.0:7443", WhatsAppTrust: "f"}, "is not on this machine"},
		{"at a name", Config{WhatsAppEndpoint: "https://web.whatsapp.com:443", WhatsAppTrust: "f"}, "is not on this machine"},
		{"at a name that looks like it", Config{WhatsAppEndpoint: "127.0.0.1.example.com:443", WhatsAppTrust: "f"}, "is not on this machine"},
		{"behind a user", Config{WhatsAppEndpoint: "https://127.0.0.1:1@example.com:443", WhatsAppTrust: "f"}, "is not an address"},
		{"without a port", Config{WhatsAppEndpoint: "127.0.0.1", WhatsAppTrust: "f"}, "is not an address"},
		{"without trust", Config{WhatsAppEndpoint: "127.0.0.1:7443"}, "needs both"},
		{"a public address", Config{PublicURL: "https://chat.example.com/"}, ""},
		{"a public address in the clear", Config{PublicURL: "http://10.0.0.1:8080"}, ""},
		{"a public name", Config{PublicURL: "chat.example.com"}, "must be a whole address"},
		{"a public name with its port", Config{PublicURL: "chat.example.com:443"}, "must be a whole address"},
		{"a public address of nothing", Config{PublicURL: "https://"}, "must be a whole address"},
		{"a public address without its port", Config{PublicURL: "https://chat.example.com:"}, "must be a whole address"},
		{"a public address of another kind", Config{PublicURL: "ftp://chat.example.com"}, "must be a whole address"},
		{"a public address that is none", Config{PublicURL: "https://chat example.com"}, "must be a whole address"},
		{"a public address with a user", Config{PublicURL: "https://ayu:secret@chat.example.com"}, "a scheme, a host and a port only"},
		{"a public address with a query", Config{PublicURL: "https://chat.example.com/?a=b"}, "a scheme, a host and a port only"},
		{"a public address with half a query", Config{PublicURL: "https://chat.example.com/?"}, "a scheme, a host and a port only"},
		{"a public address with a fragment", Config{PublicURL: "https://chat.example.com/#"}, "a scheme, a host and a port only"},
		{"a public address with a path", Config{PublicURL: "https://chat.example.com/parley/"}, "cannot have a path"},
		{"trust alone", Config{WhatsAppTrust: "f"}, "needs both"},
		{"a node", node("10.0.0.11:7276", "", false), ""},
		{"a node on this machine", node("", "", false), ""},
		{"a node by name", node(":7276", "https://node1:7276", false), ""},
		{"a node everywhere", node(":7276", "", false), "Other nodes cannot use"},
		{"a plain node", node(":7276", "http://node1:7276", false), "in plain text"},
		{"a plain node that is allowed", node(":7276", "http://node1:7276", true), ""},
		{"a plain node on this machine", node("127.0.0.1:7276", "http://localhost:7276", false), ""},
		{"a plain node that others reach", node(":7276", "http://localhost:7276", false), "in plain text"},
		{"a node that is both", node(":7276", "https://node1:7276", true), "Remove one of them"},
		{"no node", Config{NodeInsecure: true}, "Give its address with --database"},
	} {
		err := c.config.Check()
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if _, ok := errors.AsType[*ConfigError](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a ConfigError with %q", c.name, err, c.want)
		}
	}
}

// TestDevAllowsLoopback: and nothing but it, and serve allows nothing.
func TestDevAllowsLoopback(t *testing.T) {
	serve, err := Config{}.normal()
	if err != nil || len(serve.AllowPrivate)+len(serve.AllowPrivateCallers) != 0 {
		t.Errorf("serve allows %v and %v (%v)", serve.AllowPrivate, serve.AllowPrivateCallers, err)
	}
	dev, err := Config{Dev: true}.normal()
	if err != nil || !slices.Equal(dev.AllowPrivate, loopback) || !slices.Equal(dev.AllowPrivateCallers, loopback) {
		t.Errorf("dev allows %v and %v (%v)", dev.AllowPrivate, dev.AllowPrivateCallers, err)
	}
}

// TestOneProxyByDefault: several proxies, one behind the other, are trusted only if somebody names them.
func TestOneProxyByDefault(t *testing.T) {
	usual, err := Config{BehindProxy: true}.normal()
	if err != nil || !usual.oneProxy || !slices.Equal(usual.TrustedProxies, private) {
		t.Errorf("by default: %v, %v (%v)", usual.TrustedProxies, usual.oneProxy, err)
	}
	named, err := Config{BehindProxy: true, TrustedProxies: private[:1]}.normal()
	if err != nil || named.oneProxy || !slices.Equal(named.TrustedProxies, private[:1]) {
		t.Errorf("named: %v, %v (%v)", named.TrustedProxies, named.oneProxy, err)
	}
}
