package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"parley/internal/api"
	"parley/internal/doctor"
	"parley/internal/gateway"
)

// program is what the management API may know of the server and have it do.
func (s *server) program() api.Program {
	return api.Program{
		Version:      s.cfg.Version,
		StartedAt:    s.started,
		Mode:         s.cfg.mode(),
		DataDir:      string(s.cfg.DataDir),
		EventLife:    cmp.Or(s.cfg.EventLife, gateway.DefaultEventLife),
		OTPLife:      s.otp.Retention,
		DatabaseSize: s.data.Store.Size,
		Doctor:       s.examine,
		Backup:       s.backup,
		LastBackup:   s.cfg.DataDir.lastBackup,
		LogLevel:     s.cfg.LogLevel,
	}
}

// examineFor is how long the database may be checked for damage while somebody waits: a large one takes
// longer, and was checked at the start.
const examineFor = 10 * time.Second

// examine makes the checks of the doctor on this server.
func (s *server) examine(ctx context.Context) []doctor.Finding {
	var findings []doctor.Finding
	if s.cfg.SettingsFrom != "" {
		findings = append(findings, doctor.Finding{Check: "config", Level: doctor.Fine, Found: s.cfg.SettingsFrom})
	}
	findings = append(findings, doctor.Directory(string(s.cfg.DataDir))...)
	findings = append(findings, s.examineDatabase(ctx))
	channels := s.gateway.Channels()
	findings = append(findings, doctor.Channels(channels, true)...)
	findings = append(findings, doctor.WhatsApp(channels, time.Now())...)
	webhooks, err := doctor.Webhooks(ctx, s.data.Store)
	findings = append(findings, webhooks...)
	if err != nil {
		findings = append(findings, doctor.Finding{Check: "data", Level: doctor.Problem, Found: err.Error()})
	}
	return append(findings, doctor.Ready(s.url, os.Getpid()),
		doctor.Exposure(s.cfg.Listen, s.cfg.TLSCert != "", s.cfg.BehindProxy), doctor.FFmpeg(ctx))
}

func (s *server) examineDatabase(ctx context.Context) doctor.Finding {
	database := doctor.Database{Path: s.cfg.DataDir.Database(), Size: s.data.Store.Size, Check: func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, examineFor)
		defer cancel()
		err := CheckDatabase(ctx, s.data)
		return errors.Join(ctx.Err(), err)
	}}
	f, err := database.Look(ctx)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		database.Check = nil
		f, err = database.Look(ctx)
	}
	if err != nil {
		return doctor.Finding{Check: "data", Level: doctor.Problem, Found: err.Error()}
	}
	return f
}
