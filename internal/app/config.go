package app

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/internal/diagnostics"
	"parley/internal/doctor"
	"parley/internal/mcp"
	"parley/internal/network"
	"parley/internal/network/whatsapp"
	"parley/internal/store"
)

// DefaultListen is loopback with a port (PARL on a keypad) that other programs rarely use.
const DefaultListen = "127.0.0.1:7275"

// Config is the configuration of the gateway.
type Config struct {
	DataDir Dir // created if it is missing
	// Database is the address of a PostgreSQL database, which several nodes may share; empty: a file in the data directory.
	// All nodes have the same key file; empty: secret.key in the data directory. NodeListen is where requests of other nodes
	// arrive, and NodeURL is how they reach it; empty: on this machine only.
	Database, SecretKeyFile, NodeListen, NodeURL string
	NodeInsecure                                 bool // requests between nodes may cross a network without TLS

	Listen    string // empty: DefaultListen. Port 0 selects a free one
	PublicURL string // the server's public address, for links; empty: links work on this machine only
	// AllowPrivate are private addresses that webhooks and alerts may reach: operators set those. AllowPrivateCallers are
	// those that any token may name: files to send, links to preview, callbacks of login links.
	AllowPrivate, AllowPrivateCallers []netip.Prefix
	BehindProxy                       bool // a proxy does TLS, so any listen address is allowed
	// TrustedProxies are the proxies whose X-Forwarded-For is trusted, one behind the other; empty: with BehindProxy the peer,
	// if its address is private, and no proxy behind it; else none.
	TrustedProxies    []netip.Prefix
	RequestsPerSecond float64             // of a token; zero: unlimited
	Storage           store.StorageLimits // of files; zero: the default; below zero: unlimited
	MediaPerMinute    int64               // bytes fetched for a token; zero: 200 MiB; below zero: unlimited
	// OTPContacts limits the new contacts per hour to whom a channel sends codes. OTPPrefix limits those whose numbers
	// share all but their last 4 digits. Zero: 60 and 10, and unlimited on the sandbox; below zero: unlimited.
	OTPContacts, OTPPrefix int
	TLSCert, TLSKey        string // files; empty: plain HTTP
	MCPAllowSend           bool   // language models may send on every channel
	MetricsOpen            bool   // serve /metrics to everybody, not only to this machine and to admin tokens
	// EventLife and OTPLife are the retentions of events and of finished codes and links. EventCap limits the events
	// stored beyond their retention. Zero: the defaults of the packages.
	EventLife, OTPLife time.Duration
	MessageLife        time.Duration // of the rows of messages; zero: for ever
	EventCap           int64
	// KeepBackups is how many of its own backups the server keeps in the data directory; zero: 3; below zero: all.
	KeepBackups int
	// Limits that depend on the machine; zero: the defaults. Readers are the connections for reading the database, Deliveries the attempts
	// at webhooks at once, MaxConnections those of clients, and Dials the connections to WhatsApp that are being made.
	Readers, Deliveries, MaxConnections, Dials int
	// Media is where the files of messages are stored.
	Media Media
	// WhatsAppEndpoint is the address of a test server for WhatsApp's protocol on this machine, and WhatsAppTrust a file
	// with its public key; empty: the real network.
	WhatsAppEndpoint, WhatsAppTrust string
	// WhatsAppVersion is the version of WhatsApp Web that this program says it is: three numbers, "auto" or "built-in".
	WhatsAppVersion string
	// WhatsAppDeviceName and WhatsAppPlatform are what phones show in their list of linked devices.
	WhatsAppDeviceName, WhatsAppPlatform string

	Dev          bool                  // a sandbox for development: a demo channel, tokens for it, loopback allowed
	Version      string                // what the program calls itself
	Program      string                // how its user calls it, for the banner; empty: parley
	SettingsFrom *doctor.Settings      // counts the origins of the settings; nil: unknown
	Settings     []diagnostics.Setting // with secrets masked, for the support bundle
	Log          *slog.Logger          // for operators; nil: no log
	LogLevel     *slog.LevelVar        // changes the level of Log while the server runs; nil: it cannot change
	// Screen is the terminal of a development server; nil: none. Texts and numbers of messages are printed nowhere else.
	Screen  io.Writer
	Open    func(link string) bool // opens a link in a browser and reports whether it could; nil: no browser
	OnReady func(url string)       // called once the server is ready; may be nil

	oneProxy bool // set by normal: TrustedProxies is the default

	// For tests.
	limits   *stopLimits             // bounds the steps of stopping; nil: the usual ones
	freeDisk func(path string) int64 // nil: that of the disk
	opened   func(*server)           // called before the server serves requests; may be nil
	// network makes the driver of one more network; nil: there is none.
	network func(network.Credentials) network.Driver
}

// Reach is who can reach a server with this configuration.
func (c Config) Reach() doctor.Reach {
	return doctor.Reach{Listen: c.Listen, TLS: c.TLSCert != "", BehindProxy: c.BehindProxy}
}

func (c Config) mode() string {
	if c.Dev {
		return "dev"
	}
	return "serve"
}

// mcpSending is read-only, unless an operator allowed sending or nothing leaves this machine.
func (c Config) mcpSending() mcp.Sending {
	switch {
	case c.MCPAllowSend:
		return mcp.AllChannels
	case c.Dev:
		return mcp.SandboxOnly
	}
	return mcp.ReadOnly
}

// ConfigError is an error in a Config.
type ConfigError struct{ Sentence string }

func (e *ConfigError) Error() string { return e.Sentence }

func configErrorf(format string, args ...any) error {
	return &ConfigError{fmt.Sprintf(format, args...)}
}

func (c Config) Check() error {
	_, err := c.normal()
	return err
}

// normal sets the defaults and rejects what must not run.
func (c Config) normal() (Config, error) {
	c.Listen, c.Log = cmp.Or(c.Listen, DefaultListen), cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Dev {
		c.AllowPrivate = slices.Concat(c.AllowPrivate, loopback)
		c.AllowPrivateCallers = slices.Concat(c.AllowPrivateCallers, loopback)
	}
	if c.BehindProxy && len(c.TrustedProxies) == 0 {
		c.TrustedProxies, c.oneProxy = private, true
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return c, configErrorf("%q is not an address to listen on. Give host and port, for example %s.", c.Listen, DefaultListen)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return c, configErrorf("TLS needs both a certificate and its key: --tls-cert and --tls-key.")
	}
	if !doctor.IsLoopback(host) && c.TLSCert == "" && !c.BehindProxy {
		return c, configErrorf("--listen %s is not on this machine alone, and without TLS tokens and messages would travel in clear text. "+
			"Pass --behind-proxy if a proxy does TLS, or --tls-cert and --tls-key.", c.Listen)
	}
	if c.PublicURL, err = PublicURL(c.PublicURL); err != nil {
		return c, err
	}
	if err := c.checkNode(); err != nil {
		return c, err
	}
	if _, err := c.mediaConfig(); err != nil {
		return c, err
	}
	if err := whatsapp.CheckVersion(c.WhatsAppVersion); err != nil {
		return c, configErrorf("--whatsapp-version must be three numbers such as 2.3000.1045649367, auto or built-in.")
	}
	if err := whatsapp.CheckPlatform(c.WhatsAppPlatform); err != nil {
		return c, configErrorf("--whatsapp-platform must be desktop, chrome, firefox, edge, safari or another platform of WhatsApp.")
	}
	if utf8.RuneCountInString(c.WhatsAppDeviceName) > 50 {
		return c, configErrorf("--whatsapp-device-name must have at most 50 characters.")
	}
	c.WhatsAppEndpoint, err = testEndpoint(c.WhatsAppEndpoint, c.WhatsAppTrust)
	return c, err
}

var (
	loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

	// private are the usual addresses of proxies: this machine and its own network.
	private = append([]netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fc00::/7"),
	}, loopback...)
)

// PublicURL checks the public address and removes its final slash. It has no path: the console and links are at the root
// of a host.
func PublicURL(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", strings.HasSuffix(u.Host, ":"):
		return "", configErrorf("--public-url must be a whole address, such as https://chat.example.com.")
	case u.User != nil, u.RawQuery != "", u.ForceQuery, strings.Contains(text, "#"):
		return "", configErrorf("--public-url must be a scheme, a host and a port only, such as https://chat.example.com.")
	case strings.Trim(u.Path, "/") != "":
		return "", configErrorf("--public-url cannot have a path: the console and links are at the root of a host. Use a separate host, " +
			"such as https://chat.example.com.")
	}
	host := strings.ToLower(u.Host)
	host = strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme]) // browsers omit it too
	return u.Scheme + "://" + host, nil
}

// address is the base of links: the public address, else the one on this machine.
func (s *server) address() string { return cmp.Or(s.cfg.PublicURL, s.url) }
