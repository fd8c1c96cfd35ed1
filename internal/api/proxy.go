package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"

	"parley"
	"parley/internal/gateway"
	"parley/internal/network"
	"parley/internal/store"
)

// hiddenUser replaces the credentials of a proxy in responses.
const hiddenUser = "***"

// proxy is the setting of a channel's proxy in a request; zero: none.
type proxy struct {
	address string // as given
	shown   string // without credentials
	key     string // of the stored address, if it is a new one
	secret  bool   // it has credentials
	masked  bool   // it has had, as responses show it
}

// proxy reads the setting. The address that a response shows means the one that is stored.
func (r *request) proxy() (p proxy) {
	if !r.IsObject("settings") {
		return p
	}
	f, _ := r.Object("settings", false)
	const name = "proxy"
	p.address = f.OptionalText(name, 1, 2000)
	if p.address == "" {
		return p
	}
	u, err := url.Parse(p.address)
	if err != nil || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) || u.Hostname() == "" || !isPort(u.Port()) ||
		u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		f.Fail(name, "must be an address such as socks5://user:password@proxy.example.com:1080, with http, https or socks5.")
		return proxy{}
	}
	shown := &url.URL{Scheme: u.Scheme, Host: u.Host}
	p.shown, p.key = shown.String(), rand.Text()
	if u.User != nil {
		p.shown = shown.Scheme + "://" + hiddenUser + "@" + shown.Host
		p.masked = u.User.String() == url.User(hiddenUser).String()
		p.secret = !p.masked
	}
	return p
}

func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return text == "" || err == nil && n > 0 && n < 1<<16
}

// storeProxy stores the address of a channel's proxy encrypted, in the transaction that changes the channel.
func (s *server) storeProxy(ctx context.Context, p proxy) gateway.InChange {
	return func(tx *store.Tx, before, after parley.Channel) error {
		now := after.Settings
		switch {
		case now.ProxyKey == before.Settings.ProxyKey: // or none, as before
			return nil
		case now.Proxy != "" && !s.config.Gateway.Network(after.Network).Proxies:
			return parley.InvalidField("settings.proxy", "settings.proxy is for channels on WhatsApp. Others have none.")
		case p.masked:
			return parley.InvalidField("settings.proxy", "settings.proxy must have its credentials, because its address changes.")
		}
		c, err := tx.Channel(ctx, after.Code) // with its id
		if err != nil {
			return err
		}
		text, err := json.Marshal(network.Proxy{Key: now.ProxyKey, URL: p.address})
		if err != nil {
			return err
		}
		return s.config.Callbacks.Secrets.SetCredentialsIn(ctx, tx, c, text)
	}
}
