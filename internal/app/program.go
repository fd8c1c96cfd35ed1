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

// program is what the management API may read from the server and call on it.
func (s *server) program() api.Program {
	return api.Program{
		Version:      s.cfg.Version,
		StartedAt:    s.started,
		Mode:         s.cfg.mode(),
		DataDir:      string(s.cfg.DataDir),
		Settings:     s.cfg.Settings,
		EventLife:    cmp.Or(s.cfg.EventLife, gateway.DefaultEventRetention),
		OTPLife:      s.otp.Retention,
		DatabaseSize: s.data.Store.Size,
		Doctor:       s.examine,
		Backup:       s.backup,
		LastBackup:   s.cfg.DataDir.lastBackup,
		WriteBackup:  s.writeBackup,
		RecentLog:    s.recent.Lines,
		LogLevel:     s.cfg.LogLevel,
	}
}

// examineFor limits the check for damage within a request. A large database takes longer, and was checked at the start.
const examineFor = 10 * time.Second

// examine runs the checks of the doctor on this server.
func (s *server) examine(ctx context.Context) []doctor.Finding {
	var findings []doctor.Finding
	if s.cfg.SettingsFrom != nil {
		findings = append(findings, s.cfg.SettingsFrom.Look())
	}
	findings = append(findings, doctor.Directory(string(s.cfg.DataDir))...)
	findings = append(findings, s.cfg.examineData(ctx, s.data, s.gateway.Channels(), true)...)
	findings = append(findings, s.cfg.examineMedia(ctx, s.media)...)
	if ahead, known := s.gateway.ClockAhead(); known {
		findings = append(findings, doctor.Clock(ahead))
	}
	findings = append(findings, s.examineNodes(ctx)...)
	findings = append(findings, s.examineReady(ctx), s.reach().Look())
	findings = append(findings, doctor.Links(s.cfg.PublicURL, s.cfg.BehindProxy)...)
	return append(findings, doctor.FFmpeg(ctx))
}

// examineData checks the database, and the channels and webhooks in it.
func (c Config) examineData(ctx context.Context, data *Data, channels []parley.Channel, running bool) []doctor.Finding {
	var findings []doctor.Finding
	if c.Database == "" { // else examineNodes checks it
		findings = append(findings, examineDatabase(ctx, data))
	}
	findings = append(findings, doctor.Channels(channels, running)...)
	findings = append(findings, doctor.Simulated(channels, c.Dev)...)
	findings = append(findings, doctor.WhatsApp(channels, c.Version, time.Now())...)
	findings = append(findings, doctor.WhatsAppReach(ctx, channels, c.ReachWhatsApp)...)
	attacks, err := doctor.Attacks(ctx, data.Store, channels, time.Now())
	for _, a := range attacks {
		findings = append(findings, a.Finding)
	}
	if err != nil {
		findings = append(findings, doctor.Broken(err))
	}
	webhooks, err := doctor.Webhooks(ctx, data.Store)
	findings = append(findings, webhooks...)
	if err != nil {
		findings = append(findings, doctor.Broken(err))
	}
	return findings
}

// ExamineOffline checks a data directory without a server. It changes nothing; a database of another version is only
// reported.
func ExamineOffline(ctx context.Context, cfg Config) ([]doctor.Finding, error) {
	if cfg.Database != "" {
		return cfg.examineCluster(ctx)
	}
	dir := cfg.DataDir
	lock, err := dir.acquire("parley doctor", cfg.Log)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := dir.checkVersion(ctx); err != nil {
		return nil, err
	}
	data, err := OpenData(ctx, dir, cfg.Log)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	channels, err := data.Store.Channels(ctx)
	if err != nil {
		return nil, dir.explain(err)
	}
	cfg.Dev = dir.IsDev()
	return append(cfg.examineData(ctx, data, channels, false), cfg.examineMediaOffline(ctx, data)...), nil
}

func (s *server) reach() doctor.Reach {
	r := s.cfg.Reach()
	r.Listen = s.listener.Addr().String() // with the real port
	r.UntrustedProxy = s.untrustedProxy.Load()
	return r
}

func (s *server) examineReady(ctx context.Context) doctor.Finding {
	ctx, cancel := context.WithTimeout(ctx, writableFor)
	defer cancel()
	if err := s.checkReady(ctx); err != nil {
		return doctor.NotReady(s.url, doctor.Reason(err))
	}
	return doctor.Ready(s.url, os.Getpid())
}

// writableFor limits a test write within a request.
const writableFor = 2 * time.Second

func examineDatabase(ctx context.Context, data *Data) doctor.Finding {
	check, cancel := context.WithTimeout(ctx, examineFor)
	defer cancel()
	err := data.Dir.explain(data.Store.Check(check))
	err = errors.Join(check.Err(), err)
	checked := err == nil
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil
	}
	size, sizeErr := data.Store.Size(ctx)
	if err := cmp.Or(err, sizeErr); err != nil {
		return doctor.Broken(err)
	}
	write, cancel := context.WithTimeout(ctx, writableFor)
	defer cancel()
	return doctor.Database(data.Dir.Database(), size, checked, data.Store.Writable(write))
}
