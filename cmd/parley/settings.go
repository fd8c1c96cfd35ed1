package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley"
	"parley/internal/app"
	"parley/internal/diagnostics"
)

// setting is one configurable value. The key "tls_cert" is the flag --tls-cert, the variable PARLEY_TLS_CERT, the file
// that PARLEY_TLS_CERT_FILE names, and tls_cert in parley.toml; the first of these wins.
type setting struct {
	key      string
	kind     settingKind
	fallback string
	about    string
	secret   bool
	fromFile bool // the flag ends with -file and names a file with the value, so that the value is not on the command line
	hidden   bool // not in the help: only for tests
}

type settingKind int

const (
	oneText settingKind = iota
	onOff
	oneNumber
	manyTexts // joined by commas in the environment
)

const (
	keyData         = "data"
	keyConfig       = "config"
	keyDatabase     = "database"
	keySecretKey    = "secret_key_file"
	keyNodeListen   = "node_listen"
	keyNodeURL      = "node_url"
	keyNodeInsecure = "node_insecure"
	keyListen       = "listen"
	keyPublicURL    = "public_url"
	keyAllowPrivate = "allow_private"
	keyCallers      = "allow_private_callers"
	keyBehindProxy  = "behind_proxy"
	keyProxies      = "trusted_proxies"
	keyRate         = "requests_per_second"
	keyMedia        = "media_mib_per_minute"
	keyPerDay       = "media_mib_per_day"
	keyInContact    = "inbound_mib_per_contact"
	keyInChannel    = "inbound_mib_per_channel"
	keyMinFree      = "media_min_free_mib"
	keyFiles        = "media"
	keyFilesServer  = "media_endpoint"
	keyFilesRegion  = "media_region"
	keyFilesAccess  = "media_access_key"
	keyFilesSecret  = "media_secret_key"
	keyOTPContacts  = "otp_contacts_per_hour"
	keyOTPPrefix    = "otp_prefix_per_hour"
	keyTLSCert      = "tls_cert"
	keyTLSKey       = "tls_key"
	keyLogLevel     = "log_level"
	keyLogFormat    = "log_format"
	keyMetricsOpen  = "metrics_open"
	keyMCPSend      = "mcp_allow_send"
	keyEventLife    = "event_retention"
	keyEventCap     = "event_cap"
	keyOTPLife      = "otp_retention"
	keyMessageLife  = "message_retention"
	keyReaders      = "database_readers"
	keyDeliveries   = "deliveries_at_once"
	keyConnections  = "max_connections"
	keyDials        = "whatsapp_dials"
	keyEndpoint     = "whatsapp_endpoint"
	keyTrust        = "whatsapp_trust"
	keyVersion      = "whatsapp_version"
	keyDeviceName   = "whatsapp_device_name"
	keyPlatform     = "whatsapp_platform"
	keyKeepBackups  = "keep_backups"
	keyNoOpen       = "no_open"
	keyURL          = "url"
	keyToken        = "token"
	keyAdminToken   = "admin_token"
	keyProfile      = "profile"
)

// settingTable lists every setting; nothing else is read from flags, environment or file.
var settingTable = []setting{
	{key: keyData, fallback: "./.parley", about: "the data directory"},
	{key: keyConfig, about: "the configuration file (default: parley.toml in the data directory)"},
	{key: keyDatabase, about: "the address of a PostgreSQL database, which several nodes may share: " +
		"postgres://user@host/name?sslmode=verify-full (default: a file in the data directory)", secret: true},
	{key: keySecretKey, about: "the file with the key that all nodes share (default: secret.key in the data directory)"},
	{key: keyNodeListen, about: "the address for requests from other nodes: 10.0.0.11:7276 (default: only on this machine)"},
	{key: keyNodeURL, about: "how other nodes reach this one: https://node1.internal:7276 (default: from --node-listen)"},
	{key: keyNodeInsecure, kind: onOff, fallback: "false", about: "nodes call each other over plain http, because something else encrypts " +
		"their network"},
	{key: keyListen, fallback: "127.0.0.1:7275", about: "the address to listen on"},
	{key: keyPublicURL, about: "the server's public address, for links: https://chat.example.com"},
	{key: keyAllowPrivate, kind: manyTexts,
		about: "a range of private addresses that webhooks, alerts and proxies of channels may reach; may be repeated"},
	{key: keyCallers, kind: manyTexts, about: "a range of private addresses that any token may name: file.url, audioUrl, previews and " +
		"callbacks of login links; may be repeated"},
	{key: keyBehindProxy, kind: onOff, fallback: "false", about: "a proxy in front does TLS; any listen address is allowed"},
	{key: keyProxies, kind: manyTexts, about: "a range of addresses of proxies whose X-Forwarded-For is trusted, also one behind the other; " +
		"may be repeated (default with --behind-proxy: one proxy, on a private address)"},
	{key: keyRate, kind: oneNumber, fallback: "0", about: "maximum requests per second of a token (0: unlimited)"},
	{key: keyMedia, kind: oneNumber, fallback: "200", about: "maximum MiB of files fetched per minute for a token (0: unlimited)"},
	{key: keyPerDay, kind: oneNumber, fallback: "10240", about: "maximum MiB of files that a channel stores within 24 hours " +
		"(0: unlimited)"},
	{key: keyInContact, kind: oneNumber, fallback: "100", about: "maximum MiB of files received within 24 hours from a contact " +
		"to which the channel has never written (0: unlimited)"},
	{key: keyInChannel, kind: oneNumber, fallback: "1024", about: "the same for all such contacts of a channel together (0: unlimited)"},
	{key: keyMinFree, kind: oneNumber, fallback: "1024", about: "store no file while the disk has fewer MiB free (0: no limit; " +
		"not for a bucket)"},
	{key: keyFiles, about: "where files of messages are stored: a directory, or s3://bucket/prefix " +
		"(default: media in the data directory)"},
	{key: keyFilesServer, about: "the address of the S3 server: https://s3.example.com (default: Amazon's)"},
	{key: keyFilesRegion, fallback: "us-east-1", about: "the region of the S3 server"},
	{key: keyFilesAccess, about: "the access key for the bucket", secret: true, fromFile: true},
	{key: keyFilesSecret, about: "the secret key for the bucket", secret: true, fromFile: true},
	{key: keyOTPContacts, kind: oneNumber, fallback: "60", about: "maximum new contacts per hour to whom a channel may send codes " +
		"(0: unlimited; a sandbox channel is unlimited unless this is set)"},
	{key: keyOTPPrefix, kind: oneNumber, fallback: "10", about: "maximum new contacts per hour, with numbers that share all but their " +
		"last 4 digits, " +
		"to whom a channel may send codes (0: unlimited; a sandbox channel is unlimited unless this is set)"},
	{key: keyTLSCert, about: "the certificate file, to serve TLS"},
	{key: keyTLSKey, about: "the certificate's key file"},
	{key: keyLogLevel, fallback: "info", about: "debug, info, warn or error"},
	{key: keyLogFormat, fallback: "auto", about: "text, json or auto: text on a terminal"},
	{key: keyMetricsOpen, kind: onOff, fallback: "false", about: "serve /metrics to everyone, not only to this machine and admin tokens"},
	{key: keyMCPSend, kind: onOff, fallback: "false", about: "let language models that connect to /mcp send messages, not only read"},
	{key: keyEventLife, fallback: "720h", about: "how long events are stored, at least 4d; " +
		"longer while an enabled webhook or a waiting delivery needs them"},
	{key: keyEventCap, kind: oneNumber, fallback: "10000000", about: "maximum events in the log " +
		"while some are needed after their retention; then the oldest are removed"},
	{key: keyOTPLife, fallback: "24h", about: "how long finished one-time codes and login links are stored"},
	{key: keyMessageLife, fallback: "0", about: "how long messages are stored, with their chats, events and files, at least as long as " +
		"events (0: for ever); a channel may erase their texts earlier"},
	{key: keyReaders, kind: oneNumber, fallback: "4", about: "connections for reading the database; on PostgreSQL a node has 15 more"},
	{key: keyDeliveries, kind: oneNumber, fallback: "64", about: "concurrent attempts at webhooks and callbacks"},
	{key: keyConnections, kind: oneNumber, fallback: "10000", about: "maximum client connections; " +
		"fewer by default if the process may open few files"},
	{key: keyDials, kind: oneNumber, fallback: "8", about: "connections to WhatsApp made at the same time"},
	{key: keyKeepBackups, kind: oneNumber, fallback: "3", about: "how many of its own backups the server keeps in its data directory " +
		"(0: all)"},
	{key: keyVersion, fallback: "auto", about: "the version of WhatsApp Web that the server presents: 2.3000.1045649367, built-in, " +
		"or auto (built-in, and the current one of web.whatsapp.com once WhatsApp refuses that)"},
	{key: keyDeviceName, fallback: "Parley", about: "the name of paired channels in the phone's list of linked devices"},
	{key: keyPlatform, fallback: "desktop", about: "what these devices are in that list: desktop, chrome, firefox, edge, safari, …"},
	{key: keyEndpoint, about: "the address of a test server for WhatsApp's protocol on this machine", hidden: true},
	{key: keyTrust, about: "file with the test server's public key", hidden: true},
	{key: keyNoOpen, kind: onOff, fallback: "false", about: "do not open a browser"},
	{key: keyURL, about: "the server's address without /api (default: the server that runs on the data directory)"},
	{key: keyToken, about: "the token for the server (default: the one in dev.env, or a temporary one, " +
		"if the data directory is accessible)", secret: true},
	{key: keyAdminToken, about: "the admin token for the server (default: the one in dev.env, or a temporary one, " +
		"if the data directory is accessible)", secret: true},
	{key: keyProfile, about: "the login to use: see parley login (default: the last one, if no server or data directory is named)"},
}

func (s setting) flag() string {
	name := strings.ReplaceAll(s.key, "_", "-")
	if s.fromFile {
		name += "-file"
	}
	return name
}

func (s setting) variable() string { return "PARLEY_" + strings.ToUpper(s.key) }

// settings are the values with their origins.
type settings struct {
	values map[string]settingValue
	found  string // the configuration file, if nobody named it or its directory: anybody may have put it into the current folder
}

type settingValue struct {
	text   string // a list is joined by commas
	origin string
}

func (s *settings) text(key string) string { return s.values[key].text }

func (s *settings) on(key string) bool {
	on, _ := strconv.ParseBool(s.values[key].text) // checked by loadSettings
	return on
}

func (s *settings) list(key string) []string {
	if s.values[key].text == "" {
		return nil
	}
	return strings.Split(s.values[key].text, ",")
}

// prefixes parses a list of address ranges; a single address is a range of one.
func (s *settings) prefixes(key string) ([]netip.Prefix, error) {
	var ranges []netip.Prefix
	for _, text := range s.list(key) {
		text = strings.TrimSpace(text)
		if addr, err := netip.ParseAddr(text); err == nil {
			ranges = append(ranges, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		r, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fail(exitUsage, "%s: %q is not a range of addresses such as 10.0.0.0/8", s.values[key].origin, text)
		}
		ranges = append(ranges, r.Masked())
	}
	return ranges, nil
}

func (s *settings) number(key string) (int, error) {
	n, err := strconv.ParseInt(s.text(key), 10, 32)
	if err != nil || n < 0 {
		return 0, fail(exitUsage, "%s: %s must be a whole number, 0 or more", s.values[key].origin, key)
	}
	return int(n), nil
}

// limit parses a limit of the server: zero is its default, below zero unlimited.
func (s *settings) limit(key string) (int, error) {
	n, err := s.number(key)
	switch {
	case n == 0:
		return -1, err
	case s.values[key].origin == "default":
		return 0, err
	}
	return n, err
}

func (s *settings) duration(key string, least time.Duration) (time.Duration, error) {
	d, err := parley.ParseDuration(s.text(key))
	if err != nil || time.Duration(d) < least {
		return 0, fail(exitUsage, "%s: %s must be a time of at least %s, such as 48h or 30d", s.values[key].origin, key, parley.Duration(least))
	}
	return time.Duration(d), nil
}

// loadSettings determines every setting: flag, environment, file named by the environment, configuration file, default.
func loadSettings(flags *pflag.FlagSet, env func(string) (string, bool)) (*settings, error) {
	s := &settings{values: map[string]settingValue{}}
	for _, known := range settingTable {
		value, err := fromFlagOrEnv(known, flags, env)
		if err != nil {
			return nil, err
		}
		if value == nil {
			value = &settingValue{known.fallback, "default"}
		}
		s.values[known.key] = *value
	}
	if err := s.addFile(); err != nil {
		return s, err // the others are enough for the doctor
	}
	for _, known := range settingTable {
		v := s.values[known.key]
		if _, err := strconv.ParseBool(v.text); known.kind == onOff && err != nil {
			return nil, fail(exitUsage, "%s: %s must be true or false, not %q", v.origin, known.key, v.text)
		}
	}
	return s, nil
}

// fromFlagOrEnv finds a setting's value on the command line or in the environment. It may return nil.
func fromFlagOrEnv(known setting, flags *pflag.FlagSet, env func(string) (string, bool)) (*settingValue, error) {
	if f := flags.Lookup(known.flag()); f != nil && f.Changed {
		text := f.Value.String()
		if many, ok := f.Value.(pflag.SliceValue); ok {
			text = strings.Join(many.GetSlice(), ",")
		}
		if known.fromFile {
			return fromFile(text, "--"+known.flag())
		}
		return &settingValue{text, "--" + known.flag()}, nil
	}
	if text, ok := env(known.variable()); ok && text != "" {
		return &settingValue{text, known.variable()}, nil
	}
	if path, ok := env(known.variable() + "_FILE"); ok && path != "" {
		return fromFile(path, known.variable()+"_FILE")
	}
	return nil, nil
}

// fromFile reads a value from a file that origin names.
func fromFile(path, origin string) (*settingValue, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fail(exitUsage, "%s: %w", origin, err)
	}
	return &settingValue{strings.TrimSpace(string(data)), origin}, nil
}

// ownerName names the user that a directory belongs to.
func ownerName(dir string) string {
	info, err := os.Stat(dir)
	if err != nil {
		return "root" // of a directory above it
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "unknown"
	}
	id := strconv.FormatUint(uint64(stat.Uid), 10)
	if owner, err := user.LookupId(id); err == nil {
		return owner.Username
	}
	return "#" + id // as sudo writes it
}

// addFile sets from the configuration file what is still at its default. Only a file named by --config must exist.
func (s *settings) addFile() error {
	path := s.text(keyConfig)
	asked := path != ""
	if !asked {
		path = filepath.Join(s.text(keyData), "parley.toml")
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !asked {
		return nil
	}
	switch dir := s.text(keyData); {
	case err == nil:
	case errors.Is(err, fs.ErrPermission) && !asked:
		owner := ownerName(dir)
		return fail(exitUsage, "%s belongs to user %s. Run this as that user: sudo -u %s parley …", dir, owner, owner)
	case errors.Is(err, syscall.ENOTDIR) && !asked:
		return fail(exitUsage, "%s is a file. --data names the directory of the data", dir)
	default:
		return fail(exitUsage, "configuration: %w", err)
	}
	if !asked && s.values[keyData].origin == "default" {
		s.found = path
	}
	var file map[string]any
	if _, err := toml.Decode(string(data), &file); err != nil {
		return fail(exitUsage, "%s: %w", path, err)
	}
	for key, raw := range file {
		known, ok := findSetting(key)
		if !ok {
			return fail(exitUsage, "%s: there is no setting %q.%s", path, key, didYouMean(key, settingKeys()))
		}
		text, err := toText(known, raw)
		if err != nil {
			return fail(exitUsage, "%s: %s %w", path, key, err)
		}
		if s.values[key].origin == "default" {
			s.values[key] = settingValue{text, path}
		}
	}
	return nil
}

// toText converts a value of the configuration file to text, if it is of the setting's kind.
func toText(known setting, raw any) (string, error) {
	switch v := raw.(type) {
	case string:
		if known.kind == oneText {
			return v, nil
		}
	case bool:
		if known.kind == onOff {
			return strconv.FormatBool(v), nil
		}
	case int64, float64:
		if known.kind == oneNumber {
			return fmt.Sprint(v), nil
		}
	case []any:
		if known.kind == manyTexts {
			texts := make([]string, len(v))
			for i, element := range v {
				text, ok := element.(string)
				if !ok {
					return "", errors.New("must be a list of texts")
				}
				texts[i] = text
			}
			return strings.Join(texts, ","), nil
		}
	}
	return "", fmt.Errorf("must be %s", map[settingKind]string{
		oneText: "a text", onOff: "true or false", oneNumber: "a number", manyTexts: "a list of texts",
	}[known.kind])
}

func findSetting(key string) (setting, bool) {
	for _, known := range settingTable {
		if known.key == key {
			return known, true
		}
	}
	return setting{}, false
}

func settingKeys() []string {
	keys := make([]string, len(settingTable))
	for i, known := range settingTable {
		keys[i] = known.key
	}
	return keys
}

// settingFlags adds the flags of settings to a command. loadSettings reads their values.
func settingFlags(flags *pflag.FlagSet, keys ...string) {
	for _, key := range keys {
		known, _ := findSetting(key)
		about := known.about
		if known.fromFile {
			about = "a file with " + about
		}
		if known.fallback != "" && known.kind != onOff {
			about += " (default " + known.fallback + ")"
		}
		switch known.kind {
		case onOff:
			flags.Bool(known.flag(), false, about)
		case oneNumber:
			flags.Var(new(numberFlag), known.flag(), about)
		case manyTexts:
			flags.StringSlice(known.flag(), nil, about)
		default:
			flags.String(known.flag(), "", about)
		}
		if known.hidden {
			flags.MarkHidden(known.flag())
		}
	}
}

// hiddenFlags adds flags that work and are not in a command's help.
func hiddenFlags(flags *pflag.FlagSet, keys ...string) {
	settingFlags(flags, keys...)
	for _, key := range keys {
		known, _ := findSetting(key)
		flags.MarkHidden(known.flag())
	}
}

// numberFlag is shown as a number in the help. loadSettings checks the value.
type numberFlag string

func (n *numberFlag) String() string        { return string(*n) }
func (n *numberFlag) Set(text string) error { *n = numberFlag(text); return nil }
func (n *numberFlag) Type() string          { return "number" }

func (c *cli) config() *cobra.Command {
	return newGroup("config", "Show the configuration", `  parley config show
  parley config show --json --data /var/lib/parley`,
		c.configShow())
}

func (c *cli) configShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show every setting, its value and its origin",
		Long: `Show every setting, its value and its origin.

A setting is taken from the first of: the flag, PARLEY_NAME, the file that PARLEY_NAME_FILE names,
the configuration file, the default. Secrets are masked, and so is the password of a database.`,
		Example: `  parley config show
  PARLEY_LISTEN=127.0.0.1:8000 parley config show --json`,
		RunE: func(*cobra.Command, []string) error {
			if c.json {
				return c.printJSON(c.shownSettings())
			}
			fmt.Fprintln(c.out, newTable(c, "setting,value,from", c.shownSettings(), func(s *diagnostics.Setting) []any {
				return []any{s.Key, s.Value, s.Origin}
			}))
			return nil
		},
	}
	c.outputFlag(cmd)
	hiddenFlags(cmd.Flags(), serverSettings...)
	return cmd
}

// shownSettings are the settings with secrets masked.
func (c *cli) shownSettings() []diagnostics.Setting {
	shown := make([]diagnostics.Setting, len(settingTable))
	for i, known := range settingTable {
		v := c.set.values[known.key]
		switch {
		case v.text == "":
		case known.key == keyDatabase:
			v.text = app.ShownDatabase(v.text)
		case known.secret:
			v.text = "********"
		}
		shown[i] = diagnostics.Setting{Key: known.key, Value: v.text, Origin: v.origin}
	}
	return shown
}
