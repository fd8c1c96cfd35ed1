package app

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/network/cloud"
	"parley/internal/safehttp"
)

const (
	cloudTimeout     = 20 * time.Second // Meta responds within a second
	cloudFileTimeout = 10 * time.Minute // for 100 MB
	cloudConnections = 256
)

var plainVersion = regexp.MustCompile(`^\d+\.\d+\.\d+`)

// newCloud makes the driver of WhatsApp's official API. It needs nothing while no channel uses it.
func (s *server) newCloud(credentials network.Credentials) *cloud.Driver {
	c := cloud.Config{
		Store:       s.data.Store,
		Credentials: credentials,
		Calls: s.callerAddresses.Client(safehttp.Options{Timeout: cloudTimeout, HeaderTimeout: cloudTimeout,
			Connections: cloudConnections}),
		Files: s.callerAddresses.Client(safehttp.Options{Timeout: cloudFileTimeout, HeaderTimeout: time.Minute,
			MaxBody: cloud.MaxDownload + 1}),
		Media: s.openFile,
		Settings: func(code parley.ChannelCode) parley.ChannelSettings {
			channel, _ := s.gateway.Channel(code)
			return channel.Settings
		},
		Address: func(c parley.Channel) string {
			if s.cfg.PublicURL == "" {
				return ""
			}
			return strings.TrimRight(s.cfg.PublicURL, "/") + "/network/" + string(c.Network) + "/" + string(c.Code)
		},
		Version:   cmp.Or(plainVersion.FindString(s.cfg.Version), "0.0.0"),
		AllowHTTP: len(s.cfg.AllowPrivateCallers) > 0,
		Log:       s.log,
		Metrics:   s.metrics,
	}
	if s.node != nil {
		c.MaySend = s.node.MaySend
	}
	return cloud.New(c)
}
