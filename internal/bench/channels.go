package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"parley/internal/postgrestest"
)

const (
	fewChannels    = 100
	createdAtOnce  = 4
	timedCreations = 90
	timedCalls     = 400             // at a time, five times: the median counts
	restFor        = 5 * time.Second // what a start left to do
)

// callCosts is the CPU of one call each, by its name.
type callCosts map[string]time.Duration

var manyCalls = []string{"overview", "list of 50", "PATCH", "chats"}

// measureManyChannels measures what 10,000 running sandbox channels cost, and compares calls with those at a hundred.
func measureManyChannels(ctx context.Context, o options, t *table) error {
	return inTempDir(func(data string) error {
		if err := compareManyChannels(ctx, o, t, data); err != nil {
			return err
		}
		p, err := startServe(ctx, o, data, "")
		if err != nil {
			return err
		}
		defer p.stop()
		t.add("10,000 channels, start to ready", fmt.Sprintf("%.1f s", p.took.Seconds()), "<= 3 s", p.took <= 3*time.Second)
		share, rss, err := idleShare(p)
		if err != nil {
			return err
		}
		t.add("10,000 channels, idle CPU", fmt.Sprintf("%.1f %% of a core", 100*share), "<= 3 %", share <= 0.03)
		t.add("10,000 channels, memory (RSS)", fmt.Sprintf("%.0f MB", float64(rss)/mb), "<= 250 MB", rss <= 250*mb)
		return nil
	})
}

func compareManyChannels(ctx context.Context, o options, t *table, data string) error {
	return withServeIn(ctx, o, data, "", func(p *process) error {
		creating, calling, err := manyChannelCosts(p, o.channels)
		if err != nil {
			return err
		}
		addManyChannels(t, fmt.Sprintf("%d channels", o.channels), creating, calling)
		return nil
	})
}

func addManyChannels(t *table, name string, creating [2]time.Duration, calling [2]callCosts) {
	add := func(what string, few, many time.Duration) {
		ratio := float64(many) / float64(few)
		t.add(name+", CPU of "+what, fmt.Sprintf("%.2f times that with %d (%.2f of %.2f ms)", ratio, fewChannels, ms(many), ms(few)),
			"<= 1.5", ratio <= 1.5)
	}
	add("a creation", creating[0], creating[1])
	for _, call := range manyCalls {
		add(call, calling[0][call], calling[1][call])
	}
}

// manyChannelCosts creates channels and returns the CPU of a creation and of the calls, with few channels and with all.
func manyChannelCosts(p *process, channels int) (creating [2]time.Duration, calling [2]callCosts, err error) {
	steps := []int{fewChannels - timedCreations, fewChannels, channels - timedCreations, channels}
	from := 0
	for i, to := range steps {
		cpu, err := createMany(p, from, to)
		if err != nil {
			return creating, calling, err
		}
		from = to
		if i%2 == 0 {
			continue
		}
		creating[i/2] = cpu / timedCreations
		if calling[i/2], err = costOfCalls(p); err != nil {
			return creating, calling, err
		}
	}
	return creating, calling, nil
}

// createMany creates channels and returns the CPU that the server needed.
func createMany(p *process, from, to int) (time.Duration, error) {
	requests := make([][]byte, 0, to-from)
	for i := from; i < to; i++ {
		requests = append(requests, post("/api/manage/channels", p.admin, fmt.Sprintf(`{"code":"c%05d","network":"sandbox"}`, i)))
	}
	p.awaitIdle()
	before := p.cpu()
	_, err := driveOnce(p.addr, createdAtOnce, requests, `"success":true`, nil)
	p.awaitIdle()
	return p.cpu() - before, err
}

func costOfCalls(p *process) (callCosts, error) {
	patch := "PATCH /api/manage/channels/c00007 HTTP/1.1"
	body := post("/api/manage/channels/c00007", p.admin, `{"name":"Shop"}`)
	requests := map[string][]byte{
		"overview": get("/api/manage/overview", p.admin), "list of 50": get("/api/manage/channels", p.admin),
		"PATCH": append([]byte(patch), body[strings.Index(string(body), "\r\n"):]...), "chats": get("/api/manage/chats", p.admin),
	}
	costs := callCosts{}
	for _, name := range manyCalls {
		repeated := make([][]byte, timedCalls)
		for i := range repeated {
			repeated[i] = requests[name]
		}
		if _, err := driveOnce(p.addr, 1, repeated[:3], `"success":true`, nil); err != nil { // the warm-up
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var all []float64
		for range 5 {
			p.awaitIdle()
			before := p.cpu()
			if _, err := driveOnce(p.addr, 1, repeated, `"success":true`, nil); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			all = append(all, float64(p.cpu()-before))
		}
		costs[name] = time.Duration(median(all)) / timedCalls
	}
	return costs, nil
}

// idleShare is the share of a core that processes with nothing to do use, and the memory of the first.
func idleShare(all ...*process) (share float64, rss int64, err error) {
	time.Sleep(restFor)
	before, began := time.Duration(0), time.Now()
	for _, p := range all {
		before += p.cpu()
	}
	time.Sleep(idleNodesFor)
	after := time.Duration(0)
	for _, p := range all {
		after += p.cpu()
	}
	rss, err = all[0].rss()
	return (after - before).Seconds() / time.Since(began).Seconds(), rss, err
}

// measureManyOnNodes measures the same on three nodes, PostgreSQL included.
func measureManyOnNodes(ctx context.Context, o options, t *table) error {
	return withNodes(ctx, o, func(c *nodes) error {
		first := c.all[0].process
		creating, calling, err := manyChannelCosts(first, o.channels)
		if err != nil {
			return err
		}
		addManyChannels(t, fmt.Sprintf("three nodes, %d channels", o.channels), creating, calling)
		postgres := postgresCPU(c.server)
		share, rss, err := idleShare(c.all[0].process, c.all[1].process, c.all[2].process)
		if err != nil {
			return err
		}
		own := (postgresCPU(c.server) - postgres).Seconds() / (restFor + idleNodesFor).Seconds()
		t.add("three nodes, 10,000 channels, idle CPU with PostgreSQL",
			fmt.Sprintf("%.1f %% of a core (PostgreSQL %.1f %%)", 100*(share+own), 100*own), "<= 5 %", share+own <= 0.05)
		t.note("three nodes, 10,000 channels, memory (RSS) of a node", fmt.Sprintf("%.0f MB", float64(rss)/mb))
		return nil
	})
}

// postgresCPU is the CPU time of all processes of a server, those that have ended included.
func postgresCPU(server *postgrestest.Server) time.Duration {
	master, ticks := strconv.Itoa(server.PID()), 0
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		times := fields[11:13]
		if filepath.Base(filepath.Dir(path)) == master {
			times = fields[11:15] // with those of its children that have ended
		} else if fields[1] != master {
			continue
		}
		for _, n := range times {
			more, _ := strconv.Atoi(n)
			ticks += more
		}
	}
	return time.Duration(ticks) * (time.Second / 100)
}
