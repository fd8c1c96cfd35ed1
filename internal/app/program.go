package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"parley"
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
		Settings:     s.cfg.Settings,
		EventLife:    cmp.Or(s.cfg.EventLife, gateway.DefaultEventLife),
		OTPLife:      s.otp.Retention,
		DatabaseSize: s.data.Store.Size,
		Doctor:       s.examine,
		Backup:       s.backup,
		LastBackup:   s.cfg.DataDir.lastBackup,
		RecentLog:    s.recent.Lines,
		LogLevel:     s.cfg.LogLevel,
	}
}

// examineFor is how long the database may be checked for damage while somebody waits: a large one takes
// longer, and was checked at the start.
const examineFor = 10 * time.Second

// examine makes the checks of the doctor on this server.
func (s *server) examine(ctx context.Context) []doctor.Finding {
	var findings []doctor.Finding
	if s.cfg.SettingsFrom != nil {
		findings = append(findings, s.cfg.SettingsFrom.Look())
	}
	findings = append(findings, doctor.Directory(string(s.cfg.DataDir))...)
	findings = append(findings, s.examineDatabase(ctx))
	channels := s.gateway.Channels()
	findings = append(findings, doctor.Channels(channels, true)...)
	findings = append(findings, doctor.Simulated(channels, s.cfg.Dev)...)
	findings = append(findings, doctor.WhatsApp(channels, s.cfg.Version, time.Now())...)
	findings = append(findings, doctor.WhatsAppReach(ctx, channels, s.cfg.ReachWhatsApp)...)
	if ahead, known := s.gateway.ClockAhead(); known {
		findings = append(findings, doctor.Clock(ahead))
	}
	attacks, err := doctor.Attacks(ctx, s.data.Store, channels, time.Now())
	for _, a := range attacks {
		findings = append(findings, a.Finding)
	}
	if err != nil {
		findings = append(findings, doctor.Broken(err))
	}
	webhooks, err := doctor.Webhooks(ctx, s.data.Store)
	findings = append(findings, webhooks...)
	if err != nil {
		findings = append(findings, doctor.Broken(err))
	}
	findings = append(findings, s.examineReady(ctx), s.reach().Look())
	findings = append(findings, doctor.Links(s.cfg.PublicURL, s.cfg.BehindProxy)...)
	return append(findings, doctor.FFmpeg(ctx))
}

// reach is who can reach this server.
func (s *server) reach() doctor.Reach {
	r := s.cfg.Reach()
	r.Listen = s.listener.Addr().String() // the port that it got
	r.UntrustedProxy = s.untrustedProxy.Load()
	return r
}

// examineReady says whether requests may come.
func (s *server) examineReady(ctx context.Context) doctor.Finding {
	ctx, cancel := context.WithTimeout(ctx, writableFor)
	defer cancel()
	err := s.checkReady(ctx)
	if err == nil {
		return doctor.Ready(s.url, os.Getpid())
	}
	reason := err.Error()
	if e, ok := errors.AsType[*parley.Error](err); ok {
		reason = e.Message
	}
	return doctor.NotReady(s.url, reason)
}

// writableFor is how long a write may take while somebody waits to hear whether it works.
const writableFor = 2 * time.Second

// writable says why nothing can be written to the database; nil: it can.
func (s *server) writable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writableFor)
	defer cancel()
	return s.data.Store.Writable(ctx)
}

func (s *server) examineDatabase(ctx context.Context) doctor.Finding {
	database := doctor.Database{Path: s.cfg.DataDir.Database(), Size: s.data.Store.Size, Writable: s.writable}
	database.Check = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, examineFor)
		defer cancel()
		err := CheckDatabase(ctx, s.data)
		return errors.Join(ctx.Err(), err)
	}
	f, err := database.Look(ctx)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		database.Check = nil
		f, err = database.Look(ctx)
	}
	if err != nil {
		return doctor.Broken(err)
	}
	return f
}
