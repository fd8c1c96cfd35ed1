package api

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

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
