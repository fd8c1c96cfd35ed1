package app

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/internal/doctor"
	"parley/internal/network"
	"parley/internal/network/whatsapp"
	"parley/internal/store/sqldb"
)

// realNetwork opens the WhatsApp driver when the first channel needs it: a server with only sandbox channels pays no
// time, memory or file for it.
type realNetwork struct {
	config whatsapp.Config

	mu     sync.Mutex
	driver *whatsapp.Driver // nil: not needed yet
	closed bool
}

var (
	_ network.Driver    = (*realNetwork)(nil)
	_ network.Witness   = (*realNetwork)(nil)
	_ network.Versioned = (*realNetwork)(nil)
	_ network.Proxied   = (*realNetwork)(nil)
)

func (n *realNetwork) Info() network.Info { return whatsapp.Info }

func (n *realNetwork) NewID() parley.MessageID { return whatsapp.NewID() }

func (n *realNetwork) Open(ctx context.Context, channel parley.Channel, sink network.Sink) (network.Session, error) {
	driver, err := n.open(ctx)
	if err != nil {
		return nil, err
	}
	return driver.Open(ctx, channel, sink)
}

// DeleteChannel removes the keys of a channel's device, if there are any.
func (n *realNetwork) DeleteChannel(ctx context.Context, code parley.ChannelCode) error {
	if n.opened() == nil && !sqldb.IsPostgres(n.config.Path) {
		if _, err := os.Stat(n.config.Path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	driver, err := n.open(ctx)
	if err != nil {
		return err
	}
	return driver.DeleteChannel(ctx, code)
}

func (n *realNetwork) Evidence(code parley.ChannelCode) (network.Evidence, bool) {
	driver := n.opened()
	if driver == nil {
		return network.Evidence{}, false
	}
	return driver.Evidence(code)
}

// Version returns the version that this program says it is. It is not known before a channel needs it.
func (n *realNetwork) Version() (number string, since time.Time) {
	driver := n.opened()
	if driver == nil {
		return "", time.Time{}
	}
	return driver.Version()
}

func (n *realNetwork) SetVersion(ctx context.Context, version string) error {
	driver, err := n.open(ctx)
	if err != nil {
		return err
	}
	return driver.SetVersion(ctx, version)
}

func (n *realNetwork) CheckProxy(ctx context.Context, c parley.Channel) error {
	driver, err := n.open(ctx)
	if err != nil {
		return err
	}
	return driver.CheckProxy(ctx, c)
}

// clientDate is when the version of the client appeared, or was the current one; zero: unknown.
func (n *realNetwork) clientDate() time.Time {
	if _, since := n.Version(); !since.IsZero() {
		return since
	}
	return doctor.ClientDate()
}

func (n *realNetwork) Close() error {
	n.mu.Lock()
	n.closed = true
	driver := n.driver
	n.mu.Unlock()
	if driver == nil {
		return nil
	}
	return driver.Close()
}

func (n *realNetwork) opened() *whatsapp.Driver {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.driver
}

// open opens the driver. After a failure the next caller tries again.
func (n *realNetwork) open(ctx context.Context) (*whatsapp.Driver, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.driver != nil {
		return n.driver, nil
	}
	if n.closed {
		return nil, errors.New("whatsapp: the server is stopping")
	}
	driver, err := whatsapp.Open(context.WithoutCancel(ctx), n.config)
	if err != nil {
		return nil, err
	}
	n.driver = driver
	if n.config.Endpoint != "" {
		n.config.Log.Warn("a test server replaces WhatsApp: nothing reaches a real phone", "endpoint", n.config.Endpoint)
	}
	return driver, nil
}

func (s *server) newRealNetwork(log *slog.Logger) (*realNetwork, error) {
	c := whatsapp.Config{
		Path:    cmp.Or(s.cfg.Database, s.cfg.DataDir.WhatsApp()),
		Member:  s.member(),
		Dials:   s.cfg.Dials,
		Log:     log,
		Media:   s.openFile,
		TempDir: s.media.TempDir(),
		Version: s.cfg.WhatsAppVersion,

		DeviceName: s.cfg.WhatsAppDeviceName, Platform: s.cfg.WhatsAppPlatform,
		MessageForRetry: func(ctx context.Context, code parley.ChannelCode, chat parley.ContactID, id parley.MessageID) (*parley.Message, error) {
			return s.gateway.MessageForRetry(ctx, code, chat, id)
		},
	}
	if s.node != nil {
		c.MayConnect = s.node.MaySend
	}
	if s.cfg.WhatsAppEndpoint != "" {
		trust, err := whatsapp.ReadTrust(s.cfg.WhatsAppTrust)
		if err != nil {
			return nil, configErrorf("--whatsapp-trust: %v.", err)
		}
		c.Endpoint, c.Trust = s.cfg.WhatsAppEndpoint, trust
	}
	return &realNetwork{config: c}, nil
}

// testEndpoint checks the address or URL of a test server for WhatsApp's protocol, and returns its host and port. It
// must be on this machine: the keys of accounts go there.
func testEndpoint(address, trust string) (string, error) {
	if address == "" && trust == "" {
		return "", nil
	}
	if address == "" || trust == "" {
		return "", configErrorf("A test server for WhatsApp needs both its address and its public key: --whatsapp-endpoint " +
			"and --whatsapp-trust.")
	}
	if strings.Contains(address, "://") {
		u, err := url.Parse(address)
		if err != nil || u.Path != "" && u.Path != "/" || u.User != nil || u.RawQuery != "" {
			return "", configErrorf("--whatsapp-endpoint: %q is not an address such as 127.0.0.1:7443.", address)
		}
		address = u.Host
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return "", configErrorf("--whatsapp-endpoint: %q is not an address such as 127.0.0.1:7443.", address)
	}
	if !doctor.IsLoopback(host) {
		return "", configErrorf("--whatsapp-endpoint: %s is not on this machine. Only a loopback address is allowed, because "+
			"the keys of your accounts go there.", address)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

func (c Config) ReachWhatsApp(ctx context.Context) error {
	endpoint, err := testEndpoint(c.WhatsAppEndpoint, c.WhatsAppTrust)
	if err != nil {
		return err
	}
	return whatsapp.CheckReachable(ctx, endpoint)
}
