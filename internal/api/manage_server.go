package api

import (
	"bufio"
	"bytes"
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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley"
	"parley/internal/diagnostics"
	"parley/internal/doctor"
)

// Program is what the management API tells of the program that runs, and has it do.
type Program struct {
	Version   string
	StartedAt time.Time
	Mode      string // "dev" or "serve"
	DataDir   string
	// Settings are those in force, as they may be shown; none: nobody knows them.
	Settings []diagnostics.Setting
	// EventLife is how long the event log is kept, OTPLife how long codes and links are after they ended.
	EventLife, OTPLife time.Duration
	// DatabaseSize tells how many bytes the database holds.
	DatabaseSize func(ctx context.Context) (int64, error)
	// Doctor looks for what is wrong.
	Doctor func(ctx context.Context) []doctor.Finding
	// Backup makes a backup in the data directory, LastBackup finds the newest that was made so; false:
	// there is none.
	Backup     func(ctx context.Context) (Backup, error)
	LastBackup func() (Backup, bool)
	// WriteBackup writes a backup and keeps none.
	WriteBackup func(ctx context.Context, w io.Writer) error
	// RecentLog returns the last warnings and errors of the log, oldest first.
	RecentLog func() []string
	// LogLevel is what the log's level can be changed by; nil: it cannot be.
	LogLevel *slog.LevelVar
}

// Backup is a file with everything in it.
type Backup struct {
	Path  string
	Bytes int64
	At    time.Time
}

// serverData is what is told of the program.
type serverData struct {
	Version          string         `json:"version"`
	StartedAt        string         `json:"started_at"`
	UpTime           string         `json:"up_time"`
	DatabaseBytes    int64          `json:"database_bytes"`
	DataDirFreeBytes int64          `json:"data_dir_free_bytes"`
	GoVersion        string         `json:"go_version"`
	Channels         int            `json:"channels"`
	Mode             string         `json:"mode"`
	Networks         []string       `json:"networks"`
	FFmpeg           bool           `json:"ffmpeg"`
	LastBackup       *lastBackup    `json:"last_backup"`
	Retention        retentionTimes `json:"retention"`
	URL              string         `json:"url"`
	LocalURL         string         `json:"local_url"` // at which this machine reaches it
	LogLevel         *logLevelData  `json:"log_level"`
}

type lastBackup struct {
	At    string `json:"at"`
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

type retentionTimes struct {
	Events string `json:"events"`
	OTP    string `json:"otp"`
}

func (s *server) readServer(ctx context.Context, _ *request) (envelope[serverData], error) {
	p := s.Program
	size, err := p.DatabaseSize(ctx)
	if err != nil {
		return envelope[serverData]{}, err
	}
	data := serverData{
		Version: p.Version, StartedAt: parley.Stamp(p.StartedAt), UpTime: time.Since(p.StartedAt).Round(time.Second).String(),
		DatabaseBytes: size, DataDirFreeBytes: doctor.FreeDisk(p.DataDir), GoVersion: runtime.Version(),
		Channels: len(s.Gateway.Channels()), Mode: p.Mode, URL: cmp.Or(s.PublicURL, s.URL), LocalURL: s.URL,
		Retention: retentionTimes{parley.Duration(p.EventLife).String(), parley.Duration(p.OTPLife).String()}, LogLevel: s.level.data(p.LogLevel),
	}
	for name := range s.Gateway.Drivers {
		data.Networks = append(data.Networks, string(name))
	}
	slices.Sort(data.Networks)
	if _, err := exec.LookPath("ffmpeg"); err == nil {
		data.FFmpeg = true
	}
	if b, made := p.LastBackup(); made {
		data.LastBackup = &lastBackup{parley.Stamp(b.At), b.Path, b.Bytes}
	}
	return ok("OK", data), nil
}

type doctorData struct {
	Findings []findingRow `json:"findings"`
}

type findingRow struct {
	Name     string       `json:"name"`
	Level    doctor.Level `json:"level"`
	Sentence string       `json:"sentence"`
	Remedy   string       `json:"remedy"`
}

// maxFindings bounds the answer where there are thousands of channels. The worst come first.
const maxFindings = 500

func (s *server) askDoctor(ctx context.Context, _ *request) (envelope[doctorData], error) {
	found := s.Program.Doctor(ctx)
	slices.SortStableFunc(found, func(a, b doctor.Finding) int { return badness(b.Level) - badness(a.Level) })
	rows := make([]findingRow, 0, len(found))
	for _, f := range found[:min(len(found), maxFindings)] {
		rows = append(rows, findingRow{f.Check, f.Level, f.Found, f.Remedy})
	}
	return ok("OK", doctorData{rows}), nil
}

func badness(l doctor.Level) int {
	return slices.Index([]doctor.Level{doctor.Fine, doctor.Warning, doctor.Problem}, l)
}

type backupData struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// makeBackup makes a backup, whether or not the caller waits for its end. One at a time: each reads
// everything.
func (s *server) makeBackup(ctx context.Context, _ *request) (envelope[backupData], error) {
	if !s.backup.TryLock() {
		return envelope[backupData]{}, errBackupRuns()
	}
	defer s.backup.Unlock()
	b, err := s.Program.Backup(context.WithoutCancel(ctx))
	return ok("Backup made. Whoever has the file has your accounts.", backupData{b.Path, b.Bytes}), err
}

func errBackupRuns() error {
	return &parley.Error{Code: parley.TooMany, RetryAfter: 10 * time.Second, Message: "A backup is being made already. Wait for its end."}
}

type logLevelData struct {
	Level string  `json:"level"`
	Until *string `json:"until"` // null: for good
}

const maxLogMinutes = 24 * 60

// changeLogLevel has the log say more, or less, for a while.
func (s *server) changeLogLevel(_ context.Context, r *request) (envelope[*logLevelData], error) {
	word := r.Choice("level", true, "debug", "info", "warn", "error")
	minutes := r.Whole("minutes", 15, 1, maxLogMinutes)
	if err := r.Err(); err != nil {
		return envelope[*logLevelData]{}, err
	}
	if s.Program.LogLevel == nil {
		return envelope[*logLevelData]{}, parley.Errorf(parley.BadRequest, "The log level of this server cannot be changed while it runs.")
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(word)); err != nil {
		return envelope[*logLevelData]{}, err
	}
	s.level.set(s.Program.LogLevel, level, time.Duration(minutes)*time.Minute)
	s.Log.Warn("the log level was changed", "level", word, "minutes", minutes)
	return ok("Log level changed", s.level.data(s.Program.LogLevel)), nil
}

// data tells how the level stands; nil: it cannot be changed.
func (l *levelFor) data(of *slog.LevelVar) *logLevelData {
	if of == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return &logLevelData{strings.ToLower(of.Level().String()), stampOrNil(l.until)}
}

// levelFor changes a log's level for a while.
type levelFor struct {
	mu    sync.Mutex
	usual slog.Level // what it goes back to
	until time.Time  // zero: it is as usual
	timer *time.Timer
}

func (l *levelFor) set(of *slog.LevelVar, level slog.Level, d time.Duration) {
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
		if l.until.Equal(until) { // else it was changed again meanwhile
			of.Set(l.usual)
			l.until = time.Time{}
		}
	})
}

var typeTar = []string{"application/x-tar"}

// errNoBackup is the answer where there is nothing to fetch.
var errNoBackup = parley.Errorf(parley.NotFound, "There is no backup on this server yet. Make one first.")

// readBackup answers with the newest backup, which is read as the caller takes it: it may be large.
func (s *server) readBackup(context.Context, *request) (answer, error) {
	b, made := s.Program.LastBackup()
	if !made {
		return answer{}, errNoBackup
	}
	f, err := os.Open(b.Path)
	if errors.Is(err, fs.ErrNotExist) { // somebody has just removed it
		return answer{}, errNoBackup
	}
	if err != nil {
		return answer{}, fmt.Errorf("open the backup: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return answer{}, fmt.Errorf("look at the backup: %w", err)
	}
	return answer{status: http.StatusOK, contentType: typeTar, file: f, size: info.Size(),
		header: []field{{"Content-Disposition", fmt.Sprintf("attachment; filename=%q", filepath.Base(b.Path))}, {"Content-Security-Policy", sandboxed}}}, nil
}

// streamBackup answers with a backup of this moment, which is made as the caller takes it and kept nowhere. One that
// fails on the way ends without the end that a complete answer has.
func (s *server) streamBackup(ctx context.Context, _ *request) (answer, error) {
	if !s.backup.TryLock() {
		return answer{}, errBackupRuns()
	}
	out, in := io.Pipe()
	go func() { // ends with the backup, or when the answer is closed
		defer s.backup.Unlock()
		in.CloseWithError(s.Program.WriteBackup(ctx, in))
	}()
	buffered := bufio.NewReaderSize(out, 64<<10)
	if _, err := buffered.Peek(1); err != nil { // an error before the first byte can still be told as one
		out.Close()
		return answer{}, err
	}
	name := time.Now().UTC().Format("parley-20060102T150405Z.tar")
	return answer{status: http.StatusOK, contentType: typeTar, file: &piped{buffered, out}, size: sizeUnknown,
		header: []field{{"Content-Disposition", fmt.Sprintf("attachment; filename=%q", name)}, {"Content-Security-Policy", sandboxed}}}, nil
}

// piped is a pipe that is read through a buffer.
type piped struct {
	io.Reader
	io.Closer
}

var typeZip = []string{"application/zip"}

// diagnosticsName is what a bundle is saved as.
const diagnosticsName = "parley-diagnostics-20060102T150405Z.zip"

// readDiagnostics answers with what somebody who helps needs to know, in one file.
func (s *server) readDiagnostics(ctx context.Context, _ *request) (answer, error) {
	now := time.Now().UTC()
	packed, err := diagnostics.Zip(diagnostics.Collect(ctx, s.diagnosed()), now)
	return answer{status: http.StatusOK, contentType: typeZip, body: packed,
		header: []field{{"Content-Disposition", fmt.Sprintf("attachment; filename=%q", now.Format(diagnosticsName))}}}, err
}

// diagnosticsFile is one file of the bundle, to be looked at before it is saved.
type diagnosticsFile struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
	Text  string `json:"text"`
}

func (s *server) listDiagnostics(ctx context.Context, _ *request) (envelope[[]diagnosticsFile], error) {
	files := diagnostics.Collect(ctx, s.diagnosed())
	rows := make([]diagnosticsFile, len(files))
	for i, f := range files {
		rows[i] = diagnosticsFile{f.Name, len(f.Text), f.Text}
	}
	return ok("OK", rows), nil
}

// diagnosed is where the bundle takes what it tells from.
func (s *server) diagnosed() diagnostics.Source {
	return diagnostics.Source{
		Version: s.Program.Version, Mode: s.Program.Mode, StartedAt: s.Program.StartedAt, Settings: s.Program.Settings,
		Doctor: s.Program.Doctor, Channels: s.diagnosedChannels, Store: s.Store, Metrics: s.metricsText, Log: s.Program.RecentLog,
	}
}

func (s *server) diagnosedChannels() []diagnostics.Channel {
	var all []diagnostics.Channel
	for _, c := range s.Gateway.Channels() {
		one := diagnostics.Channel{Channel: c, Waiting: s.Gateway.QueueDepth(c.Code)}
		if e, known := s.Gateway.Evidence(c.Code); known {
			one.Evidence = &e
		}
		all = append(all, one)
	}
	return all
}

// metricsText is what /metrics would answer.
func (s *server) metricsText() (string, error) {
	kept := &keptAnswer{header: http.Header{}, status: http.StatusOK}
	promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{DisableCompression: true}).ServeHTTP(kept, &http.Request{Header: http.Header{}})
	if kept.status != http.StatusOK {
		return "", fmt.Errorf("the figures are answered with %d", kept.status)
	}
	return kept.body.String(), nil
}

// keptAnswer is an answer that goes nowhere.
type keptAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (k *keptAnswer) Header() http.Header         { return k.header }
func (k *keptAnswer) WriteHeader(status int)      { k.status = status }
func (k *keptAnswer) Write(p []byte) (int, error) { return k.body.Write(p) }
