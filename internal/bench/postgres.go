package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"parley/internal/postgrestest"
)

// withPostgres runs a PostgreSQL on this machine, whose commits reach the disk, for as long as f runs.
func withPostgres(f func(*postgrestest.Server) error) error {
	server, err := postgrestest.New(postgrestest.Options{Fsync: true, Settings: []string{"shared_preload_libraries=pg_stat_statements"}})
	if err != nil {
		return err
	}
	defer server.Close()
	return f(server)
}

// withServe runs a gateway as an operator does, with a channel "demo", for as long as f runs. The database is a file if its
// address is empty.
func withServe(ctx context.Context, o options, database string, f func(*process) error, flags ...string) error {
	return inTempDir(func(data string) error { return withServeIn(ctx, o, data, database, f, flags...) })
}

// withServeIn is withServe in a new data directory, which it keeps.
func withServeIn(ctx context.Context, o options, data, database string, f func(*process) error, flags ...string) error {
	p, err := startServe(ctx, o, data, database, flags...)
	if err != nil {
		return err
	}
	defer p.stop()
	if _, err := parleyCommand(o, data, "channel", "create", "demo"); err != nil {
		return err
	}
	if err := p.tokens(o, data); err != nil {
		return err
	}
	if _, err := p.poll("/api/manage/channels/demo", works); err != nil {
		return err
	}
	return f(p)
}

func startServe(ctx context.Context, o options, data, database string, flags ...string) (*process, error) {
	if database != "" {
		flags = append(flags, "--database", database)
	}
	return startServer(ctx, o.parley, "serve", data, flags...)
}

// tokens creates tokens of the channel "demo" and of the management API.
func (p *process) tokens(o options, data string) (err error) {
	if p.admin, err = parleyCommand(o, data, "token", "create", "--kind", "admin", "--role", "owner", "--quiet"); err != nil {
		return err
	}
	p.token, err = parleyCommand(o, data, "token", "create", "--kind", "channel", "--channel", "demo", "--quiet")
	return err
}

// parleyCommand runs a command for the gateway of a data directory and returns what it printed.
func parleyCommand(o options, data string, args ...string) (string, error) {
	out, err := exec.Command(o.parley, append(args, "--data", data)...).Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%s %s: %w: %s", filepath.Base(o.parley), strings.Join(args, " "), err, e.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// measurePostgres compares durable sends of one node on PostgreSQL with those on a file, in turns. It does so again with a
// longer way to PostgreSQL.
func measurePostgres(ctx context.Context, o options, t *table) error {
	return withPostgres(func(server *postgrestest.Server) error {
		for _, schema := range []string{"near", "far"} {
			if err := server.Exec("CREATE SCHEMA " + schema); err != nil {
				return err
			}
		}
		proxy, farther, err := startDelay(ctx, server)
		if err != nil {
			return err
		}
		defer proxy.stop()
		return withServe(ctx, o, "", func(file *process) error {
			return withServe(ctx, o, server.Address()+"&search_path=near", func(near *process) error {
				return withServe(ctx, o, farther+"&search_path=far", func(far *process) error {
					if err := compareDatabases(o, t, server, file, near, far); err != nil {
						return err
					}
					return noteRoundTrips(t, server.Address(), farther)
				})
			})
		})
	})
}

// analyze has PostgreSQL gather statistics, as it does by itself a minute after tables have grown.
func analyze(server *postgrestest.Server) error { return server.Exec("ANALYZE") }

func compareDatabases(o options, t *table, server *postgrestest.Server, gateways ...*process) error {
	ratios, latencies := make([][]float64, len(gateways)), make([][]time.Duration, len(gateways))
	rates := make([][]float64, len(gateways))
	for round := range o.rounds + 1 { // the first one is the warm-up
		if round == 1 {
			if err := analyze(server); err != nil {
				return err
			}
		}
		var first float64
		for i, p := range gateways {
			sends := make([][]byte, o.connections)
			for n := range sends {
				sends[n] = sendText(fmt.Sprintf("62812000%05d", n), p.token)
			}
			l, err := drive(p.addr, o.connections, sends, `"SENT"`, o.slice)
			if err != nil {
				return err
			}
			if i == 0 {
				first = l.rate()
			}
			if round > 0 {
				ratios[i], latencies[i] = append(ratios[i], l.rate()/first), append(latencies[i], l.latencies...)
				rates[i] = append(rates[i], l.rate())
			}
		}
	}
	for i, g := range []struct {
		name  string
		bound float64
	}{{"a file", 0}, {"PostgreSQL on the same machine", 0.5}, {fmt.Sprintf("PostgreSQL, round trip + %.1f ms", ms(addedRoundTrip)), 0.4}} {
		name := "durable sends on " + g.name
		if i == 0 {
			t.note(name, fmt.Sprintf("%.0f/s", median(rates[i])))
		} else {
			ratio := median(ratios[i])
			t.add(name+", rate", fmt.Sprintf("%.2f of a file's (%.0f/s)", ratio, median(rates[i])),
				fmt.Sprintf(">= %.2f", g.bound), ratio >= g.bound)
		}
		t.note(name+", p50 / p99", fmt.Sprintf("%.1f / %.1f ms", ms(quantile(latencies[i], 0.5)), ms(quantile(latencies[i], 0.99))))
	}
	return nil
}

func noteRoundTrips(t *table, near, far string) error {
	first, err := postgrestest.RoundTrip(near)
	if err != nil {
		return err
	}
	second, err := postgrestest.RoundTrip(far)
	if err != nil {
		return err
	}
	t.note("round trip to PostgreSQL, p50, without and with the delay", fmt.Sprintf("%.2f / %.2f ms", ms(first), ms(second)))
	return nil
}
