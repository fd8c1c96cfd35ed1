package api

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"

	"parley"
	"parley/internal/diagnostics"
	"parley/internal/doctor"
	"parley/internal/network"
	"parley/internal/wire"
)

// Program is the running program, for the management API.
type Program struct {
	Version   string
	StartedAt time.Time
	Mode      string // "dev" or "serve"
	DataDir   string
	// Settings are the current settings, without secrets.
	Settings []diagnostics.Setting
	// EventLife, OTPLife and MessageLife are the retention of events, of finished codes and links, and of messages; zero: for ever.
	EventLife, OTPLife, MessageLife time.Duration
	// DatabaseSize is in bytes.
	DatabaseSize func(ctx context.Context) (int64, error)
	// Doctor runs all checks.
	Doctor func(ctx context.Context) []doctor.Finding
	// Attention returns the current findings without long checks.
	Attention func(ctx context.Context) []doctor.Finding
	// Backup creates a backup in the data directory. LastBackup returns the newest; false: none.
	Backup     func(ctx context.Context) (Backup, error)
	LastBackup func() (Backup, bool)
	// WriteBackup writes a backup without storing it.
	WriteBackup func(ctx context.Context, w io.Writer) error
	// ClientDate is when the version of the WhatsApp client in use appeared; zero: unknown.
	ClientDate func() time.Time
	// RecentLog returns the last warnings and errors of the log, oldest first.
	RecentLog func() []string
	// LogLevel changes the level of the log; nil: not possible.
	LogLevel *slog.LevelVar
}

type Backup struct {
	Path  string
	Bytes int64
	At    time.Time
}

type serverData struct {
	Version          string         `json:"version"`
	StartedAt        string         `json:"started_at"`
	UpTime           string         `json:"up_time"`
	DatabaseBytes    int64          `json:"database_bytes"`
	DataDirFreeBytes int64          `json:"data_dir_free_bytes"`
	GoVersion        string         `json:"go_version"`
	Channels         int            `json:"channels"`
	DefaultChannel   *string        `json:"default_channel"` // of requests with a Global token that name none; null: they must
	Mode             string         `json:"mode"`
	Networks         []wire.Network `json:"networks"`
	FFmpeg           bool           `json:"ffmpeg"`
	LastBackup       *lastBackup    `json:"last_backup"`
	Retention        retentionTimes `json:"retention"`
	URL              string         `json:"url"`
	LocalURL         string         `json:"local_url"` // for this machine
	LogLevel         *logLevelData  `json:"log_level"`
	Cluster          bool           `json:"cluster"`
	WhatsAppClient   *string        `json:"whatsapp_client"` // when it was made; null: unknown
}

func newClient(v network.Versioned) *wire.NetworkClient {
	version, since := v.Version()
	return &wire.NetworkClient{Version: version, Since: wire.At(since)}
}

func (s *server) network(i network.Info) wire.Network {
	pairing := mapped(i.Pairing, func(m network.PairingMethod) string { return string(m) })
	credentials := mapped(i.Credentials, func(c network.Credential) wire.Credential {
		return wire.Credential{Name: c.Name, Kind: string(c.Kind), Choices: c.Choices}
	})
	row := wire.Network{Name: i.Name, Title: i.Title, Simulated: i.Simulated, Pairing: pairing, Credentials: credentials,
		Groups: i.Groups, Kinds: i.Kinds, Pace: toPace(i.LeastPace, i.MostPace)}
	if i.ReplyWindow > 0 {
		row.ReplyWindow = new(parley.Duration(i.ReplyWindow))
	}
	if v, err := s.config.Gateway.Versioned(i.Name); err == nil {
		row.Client = newClient(v)
	}
	return row
}

// changeNetwork sets the version of the client that the network sees.
func (s *server) changeNetwork(ctx context.Context, r *request) (any, error) {
	version := r.Text("version", 1, 40)
	if err := r.Err(); err != nil {
		return nil, err
	}
	v, err := s.config.Gateway.Versioned(parley.NetworkName(r.http.PathValue("network")))
	if err != nil {
		return nil, err
	}
	if err := v.SetVersion(ctx, version); err != nil {
		return nil, err
	}
	return ok("Version changed", newClient(v)), nil
}

func (s *server) networkNames() []string {
	return mapped(s.config.Gateway.Networks(), func(i network.Info) string { return string(i.Name) })
}

type lastBackup struct {
	At         string `json:"at"`
	backupData `json:",inline"`
}

type retentionTimes struct {
	Events   string `json:"events"`
	OTP      string `json:"otp"`
	Messages string `json:"messages"`
}

func (s *server) readServer(ctx context.Context, _ *request) (any, error) {
	p := s.config.Program
	size, err := p.DatabaseSize(ctx)
	if err != nil {
		return nil, err
	}
	data := serverData{
		Version: p.Version, StartedAt: parley.Stamp(p.StartedAt), UpTime: time.Since(p.StartedAt).Round(time.Second).String(),
		DatabaseBytes: size, DataDirFreeBytes: doctor.FreeDisk(p.DataDir), GoVersion: runtime.Version(),
		Channels: len(s.config.Gateway.List().Channels), Mode: p.Mode, URL: cmp.Or(s.config.PublicURL, s.config.URL), LocalURL: s.config.URL,
		Retention: retentionTimes{parley.Duration(p.EventLife).String(), parley.Duration(p.OTPLife).String(),
			parley.Duration(p.MessageLife).String()}, LogLevel: s.level.data(p.LogLevel),
		Networks: mapped(s.config.Gateway.Networks(), s.network), Cluster: s.isNode(), WhatsAppClient: stampOrNil(p.ClientDate()),
	}
	if c, err := s.onlyChannel(ctx); err == nil {
		data.DefaultChannel = textOrNil(c.Code)
	}
	_, err = exec.LookPath("ffmpeg")
	data.FFmpeg = err == nil
	if b, made := p.LastBackup(); made {
		data.LastBackup = &lastBackup{parley.Stamp(b.At), backupData{b.Path, b.Bytes}}
	}
	return ok("OK", data), nil
}

// maxFindings bounds the response. The worst come first.
const maxFindings = 500

func (s *server) askDoctor(ctx context.Context, _ *request) (any, error) {
	found := s.config.Program.Doctor(ctx)
	data := wire.Findings{}
	data.Problems, data.Warnings = doctor.CountLevels(found)
	doctor.Sort(found)
	data.Findings = mapped(found[:min(len(found), maxFindings)], func(f doctor.Finding) wire.Finding {
		return wire.Finding{Name: f.Check, Code: f.Code, Level: string(f.Level), Sentence: f.Found, Remedy: f.Remedy,
			Channel: wire.Text(f.Channel), Webhook: wire.Text(f.Webhook), Since: wire.At(f.Since)}
	})
	return ok("OK", data), nil
}

type backupData struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// makeBackup continues if the caller leaves. Only one backup runs at a time.
func (s *server) makeBackup(ctx context.Context, _ *request) (any, error) {
	if !s.backup.TryLock() {
		return nil, errBackupRuns
	}
	defer s.backup.Unlock()
	b, err := s.config.Program.Backup(context.WithoutCancel(ctx))
	return ok("Backup created. The file gives access to your accounts: store it safely.", backupData{b.Path, b.Bytes}), err
}

var errBackupRuns = &parley.Error{Code: parley.TooMany, RetryAfter: 10 * time.Second,
	Message: "Another backup is running. Try again when it is done."}

type logLevelData struct {
	Level string  `json:"level"`
	Until *string `json:"until"` // null: permanent
}

const maxLogMinutes = 24 * 60

func (s *server) changeLogLevel(_ context.Context, r *request) (any, error) {
	word := r.Choice("level", true, "debug", "info", "warn", "error")
	minutes := r.Whole("minutes", 15, 1, maxLogMinutes)
	if err := r.Err(); err != nil {
		return nil, err
	}
	if s.config.Program.LogLevel == nil {
		return nil, parley.Errorf(parley.BadRequest, "The log level of this server cannot be changed while it runs.")
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(word)); err != nil {
		return nil, err
	}
	s.level.set(s.config.Program.LogLevel, level, time.Duration(minutes)*time.Minute)
	s.config.Log.Warn("the log level was changed", "level", word, "minutes", minutes)
	return ok("Log level changed", s.level.data(s.config.Program.LogLevel)), nil
}

// data returns the current level; nil: it cannot be changed.
func (l *temporaryLevel) data(of *slog.LevelVar) *logLevelData {
	if of == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return &logLevelData{strings.ToLower(of.Level().String()), stampOrNil(l.until)}
}

type temporaryLevel struct {
	mu    sync.Mutex
	usual slog.Level // to restore
	until time.Time  // zero: not changed
	timer *time.Timer
}

func (l *temporaryLevel) set(of *slog.LevelVar, level slog.Level, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until.IsZero() {
		l.usual = of.Level()
	} else {
		l.timer.Stop()
	}
	of.Set(level)
	until := time.Now().Add(d)
	l.until = until
	l.timer = time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.until.Equal(until) { // else it was changed again
			of.Set(l.usual)
			l.until = time.Time{}
		}
	})
}

var typeTar = []string{"application/x-tar"}

var errNoBackup = parley.Errorf(parley.NotFound, "There is no backup on this server yet. Create one first.")

func (s *server) readBackup(context.Context, *request) (response, error) {
	b, made := s.config.Program.LastBackup()
	if !made {
		return response{}, errNoBackup
	}
	f, err := os.Open(b.Path)
	if errors.Is(err, fs.ErrNotExist) { // removed just now
		return response{}, errNoBackup
	}
	if err != nil {
		return response{}, fmt.Errorf("open the backup: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return response{}, fmt.Errorf("stat the backup: %w", err)
	}
	return tarResponse(f, info.Size(), filepath.Base(b.Path)), nil
}

func tarResponse(file io.ReadCloser, size int64, name string) response {
	return response{status: http.StatusOK, contentType: typeTar, file: file, size: size,
		header: []field{{"Content-Disposition", fmt.Sprintf("attachment; filename=%q", name)}, {"Content-Security-Policy", sandboxed}}}
}

// streamBackup streams a new backup without storing it. A failure aborts the connection, so that the caller notices.
func (s *server) streamBackup(ctx context.Context, _ *request) (response, error) {
	if !s.backup.TryLock() {
		return response{}, errBackupRuns
	}
	out, in := io.Pipe()
	go func() { // ends with the backup, or when the response is closed
		err := s.config.Program.WriteBackup(ctx, in)
		s.backup.Unlock() // first: a caller that has read to the end may ask again
		in.CloseWithError(err)
	}()
	buffered := bufio.NewReaderSize(out, 64<<10)
	if _, err := buffered.Peek(1); err != nil { // before the first byte, an error can still be returned
		out.Close()
		return response{}, err
	}
	name := time.Now().UTC().Format("parley-20060102T150405Z.tar")
	return tarResponse(struct {
		io.Reader
		io.Closer
	}{buffered, out}, sizeUnknown, name), nil
}

var typeZip = []string{"application/zip"}

const diagnosticsName = "parley-diagnostics-20060102T150405Z.zip"

func (s *server) readDiagnostics(ctx context.Context, _ *request) (response, error) {
	now := time.Now().UTC()
	packed, err := diagnostics.Zip(diagnostics.Collect(ctx, s.diagnosticsSource()), now)
	return response{status: http.StatusOK, contentType: typeZip, body: packed,
		header: []field{{"Content-Disposition", fmt.Sprintf("attachment; filename=%q", now.Format(diagnosticsName))}}}, err
}

type diagnosticsFile struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
	Text  string `json:"text"`
}

func (s *server) listDiagnostics(ctx context.Context, _ *request) (any, error) {
	row := func(f diagnostics.File) diagnosticsFile { return diagnosticsFile{f.Name, len(f.Text), f.Text} }
	return ok("OK", mapped(diagnostics.Collect(ctx, s.diagnosticsSource()), row)), nil
}

func (s *server) diagnosticsSource() diagnostics.Source {
	p := s.config.Program
	return diagnostics.Source{
		Version: p.Version, Mode: p.Mode, StartedAt: p.StartedAt, Settings: p.Settings, Doctor: p.Doctor, Channels: s.diagnosedChannels,
		Store: s.config.Store, Metrics: s.metricsText, Log: p.RecentLog,
	}
}

func (s *server) diagnosedChannels() []diagnostics.Channel {
	return mapped(s.config.Gateway.Channels(), func(c parley.Channel) diagnostics.Channel {
		one := diagnostics.Channel{Channel: c, Waiting: s.config.Gateway.QueueDepth(c.Code)}
		if e, known := s.config.Gateway.Evidence(c.Code); known {
			one.Evidence = &e
		}
		return one
	})
}

func (s *server) metricsText() (string, error) {
	families, err := s.config.Metrics.Gather()
	var text strings.Builder
	for _, f := range families {
		_, failed := expfmt.MetricFamilyToText(&text, f)
		err = errors.Join(err, failed)
	}
	return text.String(), err
}
