package main

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/internal/app"
	"parley/internal/callback"
	"parley/internal/confine"
)

// serverSettings are the flags of commands that run a server.
var serverSettings = []string{
	keyDatabase, keySecretKey, keyNodeListen, keyNodeURL, keyNodeInsecure,
	keyListen, keyPublicURL, keyAllowPrivate, keyCallers, keyBehindProxy, keyProxies, keyRate, keyTLSCert, keyTLSKey, keyLogLevel,
	keyLogFormat, keyMetricsOpen, keyMCPSend, keyEventLife, keyEventCap, keyOTPLife, keyMessageLife, keyReaders, keyDeliveries,
	keyConnections, keyDials,
	keyMedia, keyPerDay, keyInContact, keyInChannel,
	keyMinFree, keyFiles, keyFilesServer, keyFilesRegion,
	keyFilesAccess, keyFilesSecret, keyOTPContacts, keyOTPPrefix, keyKeepBackups, keyVersion, keyDeviceName,
	keyPlatform, keyEndpoint, keyTrust}

func (c *cli) serve() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway",
		Long: `Run the gateway until it gets a signal. It listens on this machine only. To listen on another address, give it
a certificate, or put a TLS proxy in front and pass --behind-proxy.`,
		Example: `  parley serve --data /var/lib/parley
  parley serve --data /var/lib/parley --listen 0.0.0.0:7275 --behind-proxy --public-url https://chat.example.com`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.appConfig()
			if err != nil {
				return err
			}
			return c.run(cmd.Context(), cfg)
		},
	}
	settingFlags(cmd.Flags(), serverSettings...)
	return cmd
}

// run runs a server. Its memory holds keys, which no other process of this user needs: ffmpeg is one.
func (c *cli) run(ctx context.Context, cfg app.Config) error {
	if err := confine.HideMemory(); err != nil {
		cfg.Log.Warn("other processes of this user can read the memory of this one", "error", err)
	}
	return app.Run(ctx, cfg)
}

func (c *cli) dir() app.Dir { return app.Dir(c.set.text(keyData)) }

func (c *cli) appConfig() (app.Config, error) {
	ranges, errRanges := c.set.prefixes(keyAllowPrivate)
	callers, errCallers := c.set.prefixes(keyCallers)
	proxies, errProxies := c.set.prefixes(keyProxies)
	rate, errRate := strconv.ParseFloat(c.set.text(keyRate), 64)
	if errRate != nil || rate < 0 || math.IsInf(rate, 0) || math.IsNaN(rate) {
		errRate = fail(exitUsage, "%s: requests_per_second must be a number, 0 or more", c.set.values[keyRate].origin)
	}
	events, most, errEvents := c.eventRetention()
	otps, errOTPs := c.set.duration(keyOTPLife, 24*time.Hour)
	messages, errMessages := c.messageRetention(events)
	media, errMedia := c.set.limit(keyMedia)
	contacts, errContacts := c.set.limit(keyOTPContacts)
	prefix, errPrefix := c.set.limit(keyOTPPrefix)
	backups, errBackups := c.set.limit(keyKeepBackups)
	var a app.Config
	errStorage := cmp.Or(c.readStorage(&a), c.readMachine(&a))
	log, level, errLog := c.logger()
	err := cmp.Or(errRanges, errCallers, errProxies, errRate, errEvents, errMessages, errOTPs, errMedia, errContacts, errPrefix, errBackups,
		errStorage, errLog)
	if err != nil {
		return app.Config{}, err
	}
	return app.Config{
		DataDir: c.dir(),
		Listen:  c.set.text(keyListen),

		Database:      c.set.text(keyDatabase),
		SecretKeyFile: c.set.text(keySecretKey),
		NodeListen:    c.set.text(keyNodeListen),
		NodeURL:       c.set.text(keyNodeURL),
		NodeInsecure:  c.set.on(keyNodeInsecure),

		PublicURL:           c.set.text(keyPublicURL),
		AllowPrivate:        ranges,
		AllowPrivateCallers: callers,
		BehindProxy:         c.set.on(keyBehindProxy),

		TrustedProxies:    proxies,
		EventLife:         events,
		EventCap:          most,
		OTPLife:           otps,
		MessageLife:       messages,
		RequestsPerSecond: rate,
		Storage:           a.Storage,
		MediaPerMinute:    int64(media) << 20,
		OTPContacts:       contacts,
		OTPPrefix:         prefix,
		KeepBackups:       backups,
		Readers:           a.Readers,
		Deliveries:        a.Deliveries,
		MaxConnections:    a.MaxConnections,
		Dials:             a.Dials,

		Media:            c.media(),
		WhatsAppEndpoint: c.set.text(keyEndpoint),
		WhatsAppTrust:    c.set.text(keyTrust),
		WhatsAppVersion:  c.set.text(keyVersion),

		WhatsAppDeviceName: c.set.text(keyDeviceName),
		WhatsAppPlatform:   c.set.text(keyPlatform),

		TLSCert:     c.set.text(keyTLSCert),
		TLSKey:      c.set.text(keyTLSKey),
		MetricsOpen: c.set.on(keyMetricsOpen),
		Version:     version,

		MCPAllowSend: c.set.on(keyMCPSend),

		SettingsFrom: c.settingsFrom(),
		Settings:     c.shownSettings(),
		Log:          log,
		LogLevel:     level,
	}, nil
}

// readStorage reads the limits of stored files.
func (c *cli) readStorage(a *app.Config) (err error) {
	l := &a.Storage
	for key, limit := range map[string]*int64{keyPerDay: &l.PerDay, keyInContact: &l.PerContact, keyInChannel: &l.PerChannel,
		keyMinFree: &l.MinFree} {
		mib, problem := c.set.limit(key)
		*limit, err = int64(mib)<<20, cmp.Or(err, problem)
	}
	return err
}

// readMachine reads the limits that depend on the machine.
func (c *cli) readMachine(a *app.Config) (err error) {
	for key, limit := range map[string]*int{keyReaders: &a.Readers, keyDeliveries: &a.Deliveries, keyConnections: &a.MaxConnections,
		keyDials: &a.Dials} {
		n, problem := c.set.limit(key)
		if n < 0 && problem == nil {
			problem = fail(exitUsage, "%s: %s must be at least 1", c.set.values[key].origin, key)
		}
		*limit, err = n, cmp.Or(err, problem)
	}
	return err
}

// media says where files of messages are stored.
func (c *cli) media() app.Media {
	return app.Media{
		Location: c.set.text(keyFiles), Endpoint: c.set.text(keyFilesServer), Region: c.set.text(keyFilesRegion),
		AccessKey: c.set.text(keyFilesAccess), SecretKey: c.set.text(keyFilesSecret),
	}
}

// minEventCap leaves room for the events that a webhook reads again after a restart.
const minEventCap = 100_000

func (c *cli) eventRetention() (time.Duration, int64, error) {
	events, err := c.set.duration(keyEventLife, 0)
	if err != nil {
		return 0, 0, err
	}
	if events < callback.MaxRetryPeriod {
		return 0, 0, fail(exitUsage, "%s: event_retention must be at least %dd, because deliveries are retried for nearly as long",
			c.set.values[keyEventLife].origin, callback.MaxRetryPeriod/(24*time.Hour))
	}
	most, err := c.set.number(keyEventCap)
	if err == nil && most < minEventCap {
		err = fail(exitUsage, "%s: event_cap must be at least %d", c.set.values[keyEventCap].origin, minEventCap)
	}
	return events, int64(most), err
}

// messageRetention is not shorter than that of events, which show their messages.
func (c *cli) messageRetention(events time.Duration) (time.Duration, error) {
	life, err := c.set.duration(keyMessageLife, 0)
	if err == nil && life > 0 && life < events {
		err = fail(exitUsage, "%s: message_retention must be 0 or at least event_retention, because events show their messages",
			c.set.values[keyMessageLife].origin)
	}
	return life, err
}

// logger writes to stderr: text to a terminal, otherwise JSON. Its level can be changed later.
func (c *cli) logger() (*slog.Logger, *slog.LevelVar, error) {
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(c.set.text(keyLogLevel))); err != nil {
		return nil, nil, fail(exitUsage, "%s: log_level must be debug, info, warn or error", c.set.values[keyLogLevel].origin)
	}
	if c.verbose {
		level.Set(slog.LevelDebug)
	}
	format := strings.ToLower(c.set.text(keyLogFormat))
	if format == "auto" {
		format = "json"
		if c.errTerminal {
			format = "text"
		}
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{Level: level})), level, nil
	case "json":
		return slog.New(slog.NewJSONHandler(c.err, &slog.HandlerOptions{Level: level})), level, nil
	}
	return nil, nil, fail(exitUsage, "%s: log_format must be text, json or auto", c.set.values[keyLogFormat].origin)
}

// warnings is the log of commands other than servers.
func (c *cli) warnings() *slog.Logger {
	to := c.err
	if c.quiet {
		to = io.Discard
	}
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (c *cli) dev() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a sandbox for development and tests",
		Long: `Run a gateway with simulated phones, for development and tests: nothing leaves this machine. It creates a channel
"demo" and tokens for it, in dev.env in the data directory. Data and tokens survive a restart. Requests may
name addresses of this machine. At a terminal it prints one line per message, and opens the console in a
browser.`,
		Example: `  parley dev
  parley dev --data /tmp/try --listen 127.0.0.1:7300`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// A terminal shows the banner and the messages. The log is only for warnings.
			if c.errTerminal && c.set.values[keyLogLevel].origin == "default" {
				c.set.values[keyLogLevel] = settingValue{"warn", "default of dev at a terminal"}
			}
			if c.set.values[keyMedia].origin == "default" { // tests fetch files from their own machine
				c.set.values[keyMedia] = settingValue{"0", "default of dev"}
			}
			cfg, err := c.appConfig()
			if err != nil {
				return err
			}
			cfg.Dev = true
			if c.errTerminal && !c.quiet {
				cfg.Screen, cfg.Program = c.err, os.Args[0]
				if !c.set.on(keyNoOpen) {
					cfg.Open = c.openBrowser
				}
			}
			return c.run(cmd.Context(), cfg)
		},
	}
	settingFlags(cmd.Flags(), serverSettings...)
	settingFlags(cmd.Flags(), keyNoOpen)
	return cmd
}
