package app

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp"
)

// realNetwork opens the driver of WhatsApp when the first channel needs it: a server with sandbox channels
// alone pays neither the time nor the memory nor the file.
type realNetwork struct {
	config whatsapp.Config

	mu     sync.Mutex
	driver *whatsapp.Driver // nil: nobody needed it yet
	closed bool
}

var (
	_ network.Driver  = (*realNetwork)(nil)
	_ network.Witness = (*realNetwork)(nil)
)

// Open starts a channel's session.
func (n *realNetwork) Open(ctx context.Context, channel parley.Channel, sink network.Sink) (network.Session, error) {
	driver, err := n.open(ctx)
	if err != nil {
		return nil, err
	}
	return driver.Open(ctx, channel, sink)
}

// DeleteChannel removes the keys of a channel's device, where there are any.
func (n *realNetwork) DeleteChannel(ctx context.Context, code parley.ChannelCode) error {
	if n.opened() == nil {
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

// Evidence returns what an open channel last saw.
func (n *realNetwork) Evidence(code parley.ChannelCode) (network.Evidence, bool) {
	driver := n.opened()
	if driver == nil {
		return network.Evidence{}, false
	}
	return driver.Evidence(code)
}

// Close closes the driver, if it was ever opened.
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

// open opens the driver. One that could not be opened is tried again by the next caller.
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
		n.config.Log.Warn("another server stands in for WhatsApp: nothing reaches a real phone", "endpoint", n.config.Endpoint)
	}
	return driver, nil
}

// newRealNetwork makes the network of a server's WhatsApp channels.
func (s *server) newRealNetwork(files func(key string) (*os.File, error), log *slog.Logger) (*realNetwork, error) {
	c := whatsapp.Config{
		Path:    s.cfg.DataDir.WhatsApp(),
		Log:     log,
		Media:   files,
		TempDir: s.media.TempDir(),
		MessageForRetry: func(ctx context.Context, code parley.ChannelCode, chat parley.ContactID, id parley.MessageID) (*parley.Message, error) {
			return s.gateway.MessageForRetry(ctx, code, chat, id)
		},
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

// standIn checks the address of a server that stands in for WhatsApp, given as an address or a URL, and
// returns its host and port. It must be on this machine: the keys of accounts go there.
func standIn(address, trust string) (string, error) {
	if address == "" && trust == "" {
		return "", nil
	}
	if address == "" || trust == "" {
		return "", configErrorf("A server that stands in for WhatsApp needs both its address and what to know it by: --whatsapp-endpoint " +
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
	if !isLoopback(host) {
		return "", configErrorf("--whatsapp-endpoint: %s is not on this machine. Only a loopback address may stand in for WhatsApp, because "+
			"the keys of your accounts go there.", address)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// ReachWhatsApp looks whether WhatsApp can be reached from this machine. The error says why not.
func (c Config) ReachWhatsApp(ctx context.Context) error {
	endpoint, err := standIn(c.WhatsAppEndpoint, c.WhatsAppTrust)
	if err != nil {
		return err
	}
	return whatsapp.CheckReachable(ctx, endpoint)
}
