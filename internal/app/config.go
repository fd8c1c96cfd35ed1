package app

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"parley/internal/diagnostics"
	"parley/internal/doctor"
)

// DefaultListen is where the server listens unless told: loopback, and a port (PARL on a keypad)
// that the programs of its users do not use already.
const DefaultListen = "127.0.0.1:7275"

// Config says how to run the gateway.
type Config struct {
	// DataDir holds everything that is kept. It is made if it is missing.
	DataDir Dir
	// Listen is the address to listen on; empty: DefaultListen. Port 0 takes a free one.
	Listen string
	// PublicURL is the address at which everybody reaches the server: links lead there; empty: nobody said
	// it, and those made on this machine are good on this machine only.
	PublicURL string
	// AllowPrivate lists the private addresses that messages may point at; empty: none.
	AllowPrivate []netip.Prefix
	// BehindProxy says that something in front does TLS, so that any address may be listened on.
	BehindProxy bool
	// TrustedProxies are those whose word on a caller's address is believed; empty: with BehindProxy
	// all on private addresses, else none.
	TrustedProxies []netip.Prefix
	// RequestsPerSecond is how many requests a token may make; zero: any number.
	RequestsPerSecond float64
	// MediaPerMinute is how many bytes of files may be fetched for a token in a minute; zero: 200 MiB,
	// below zero: any number.
	MediaPerMinute int64
	// OTPContacts is to how many new contacts a channel may send one-time codes in an hour, OTPPrefix to how
	// many whose numbers share all but their last 4 digits; zero: 60 and 10, and any number on the sandbox;
	// below zero: any number.
	OTPContacts, OTPPrefix int
	// TLSCert and TLSKey are files; empty: plain HTTP.
	TLSCert, TLSKey string
	// MetricsOpen answers /metrics to everybody; false: to this machine and to admin tokens.
	MetricsOpen bool
	// EventLife is how long events are kept, OTPLife how long codes and links are after they ended. EventCap is how many
	// events the log may have because some are still needed. Zero: the defaults of the packages that keep them.
	EventLife, OTPLife time.Duration
	EventCap           int64
	// WhatsAppEndpoint is the address of a server on this machine that stands in for WhatsApp, and
	// WhatsAppTrust the file that says what to know it by; empty: the real network.
	WhatsAppEndpoint, WhatsAppTrust string
	// Dev makes a sandbox to try things on: a demo channel, tokens for it, loopback allowed.
	Dev bool
	// Version is what the program calls itself.
	Version string
	// SettingsFrom says where the settings came from; nil: nobody knows.
	SettingsFrom *doctor.Settings
	// Settings are those in force, as they may be shown to whoever helps; none: nobody knows them.
	Settings []diagnostics.Setting
	// Log takes what operators should know; nil: nothing is logged. LogLevel is what its level can be
	// changed by while the server runs; nil: it cannot be.
	Log      *slog.Logger
	LogLevel *slog.LevelVar
	// Screen is the terminal of a person who watches in Dev; nil: nobody does. Text and numbers of
	// messages go nowhere else.
	Screen io.Writer
	// Open shows a link to the person who watches in Dev, in a browser, and reports whether it could; nil:
	// no browser is to be opened.
	Open func(link string) bool
	// limits bounds the steps of stopping; nil: the usual ones. For tests.
	limits *stopLimits
	// opened is called with the server before it answers requests; nil: nobody is. For tests.
	opened func(*server)
	// OnReady is called with the server's address once it is ready; nil: nobody is told.
	OnReady func(url string)
}

// Reach is from where a server with this configuration can be reached.
func (c Config) Reach() doctor.Reach {
	return doctor.Reach{Listen: c.Listen, TLS: c.TLSCert != "", BehindProxy: c.BehindProxy}
}

// mode is how the server was started, in a word.
func (c Config) mode() string {
	if c.Dev {
		return "dev"
	}
	return "serve"
}

// ConfigError says what is wrong with a Config.
type ConfigError struct{ Sentence string }

func (e *ConfigError) Error() string { return e.Sentence }

func configErrorf(format string, args ...any) error {
	return &ConfigError{fmt.Sprintf(format, args...)}
}

// Check says what is wrong with the configuration, if anything is.
func (c Config) Check() error {
	_, err := c.normal()
	return err
}

// normal fills in the defaults and refuses what must not run.
func (c Config) normal() (Config, error) {
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Dev {
		c.AllowPrivate = append(c.AllowPrivate[:len(c.AllowPrivate):len(c.AllowPrivate)], loopback...)
	}
	if c.BehindProxy && len(c.TrustedProxies) == 0 {
		c.TrustedProxies = private
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return c, configErrorf("%q is not an address to listen on. Give host and port, for example %s.", c.Listen, DefaultListen)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return c, configErrorf("TLS needs both a certificate and its key: --tls-cert and --tls-key.")
	}
	if !isLoopback(host) && c.TLSCert == "" && !c.BehindProxy {
		return c, configErrorf("Everybody who can reach this port could use your WhatsApp. Say --behind-proxy if a proxy does TLS, or give " +
			"--tls-cert.")
	}
	if c.PublicURL, err = PublicURL(c.PublicURL); err != nil {
		return c, err
	}
	c.WhatsAppEndpoint, err = standIn(c.WhatsAppEndpoint, c.WhatsAppTrust)
	return c, err
}

var (
	loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

	// private is where proxies are: on this machine or in its own network.
	private = append([]netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fc00::/7"),
	}, loopback...)
)

// isLoopback reports whether a host to listen on is this machine alone. Names other than localhost
// may resolve to anything.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
