package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/postgrestest"
)

const (
	fewChannels   = 100
	createdAtOnce = 4
	firstTimed    = 10              // channels before the first creations that are timed
	lastTimed     = 900             // creations that are timed at the end: a single collection of garbage does not matter among them
	timedCalls    = 400             // at a time, ten times: more calls than there are between two collections
	restFor       = 5 * time.Second // what a start left to do
)

// costs are the CPU of one call each, by its name, and that of an empty call of another server at that time. The machine is quicker at one
// time than at another, and a minute is between few channels and many.
type costs struct {
	of   map[string]time.Duration
	echo time.Duration
}

const creation = "a creation"

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
		few, many, err := manyChannelCosts(ctx, p, o.channels)
		if err != nil {
			return err
		}
		addManyChannels(t, fmt.Sprintf("%d channels", o.channels), few, many)
		return nil
	})
}

func addManyChannels(t *table, name string, few, many costs) {
	speed := float64(few.echo) / float64(many.echo)
	for _, call := range append([]string{creation}, manyCalls...) {
		ratio := float64(many.of[call]) / float64(few.of[call]) * speed
		t.add(name+", CPU of "+call, fmt.Sprintf("%.2f times that with %d (%.2f of %.2f ms)", ratio, fewChannels,
			ms(many.of[call]), ms(few.of[call])), "<= 1.5", ratio <= 1.5)
	}
	t.note(name+", CPU of the echo at that time", fmt.Sprintf("%.2f times that with %d", 1/speed, fewChannels))
}

// manyChannelCosts creates channels and returns the costs of a creation and of the calls, with few channels and with all.
func manyChannelCosts(ctx context.Context, p *process, channels int) (few, many costs, err error) {
	echo, err := startRole(ctx, "echo")
	if err != nil {
		return few, many, err
	}
	defer echo.stop()
	from := 0
	create := func(to int) (time.Duration, error) {
		requests := make([][]byte, 0, to-from)
		for ; from < to; from++ {
			requests = append(requests, post("/api/manage/channels", p.admin, fmt.Sprintf(`{"code":"c%05d","network":"sandbox"}`, from)))
		}
		return cpuOf(p, createdAtOnce, requests, `"success":true`)
	}
	for _, step := range []struct {
		untimed, timed int
		costs          *costs
	}{{firstTimed, fewChannels, &few}, {channels - lastTimed, channels, &many}} {
		if _, err = create(step.untimed); err != nil {
			return few, many, err
		}
		created, err := create(step.timed)
		if err == nil {
			*step.costs, err = costOfCalls(p, echo)
		}
		if err != nil {
			return few, many, err
		}
		step.costs.of[creation] = created
	}
	return few, many, nil
}

// cpuOf is the CPU that a server needs for each of some requests.
func cpuOf(p *process, connections int, requests [][]byte, want string) (time.Duration, error) {
	p.awaitIdle()
	before := p.cpu()
	_, err := driveOnce(p.addr, connections, requests, want, nil)
	p.awaitIdle()
	return (p.cpu() - before) / time.Duration(len(requests)), err
}

func costOfCalls(p, echo *process) (costs, error) {
	patch := "PATCH /api/manage/channels/c00007 HTTP/1.1"
	body := post("/api/manage/channels/c00007", p.admin, `{"name":"Shop"}`)
	requests := map[string][]byte{
		"overview": get("/api/manage/overview", p.admin), "list of 50": get("/api/manage/channels", p.admin),
		"PATCH": append([]byte(patch), body[strings.Index(string(body), "\r\n"):]...), "chats": get("/api/manage/chats", p.admin),
	}
	c := costs{of: map[string]time.Duration{}}
	var echos []float64
	for _, name := range manyCalls {
		repeated := slices.Repeat([][]byte{requests[name]}, timedCalls)
		if _, err := driveOnce(p.addr, 1, repeated[:3], `"success":true`, nil); err != nil { // the warm-up
			return c, fmt.Errorf("%s: %w", name, err)
		}
		const times = 10
		for range times {
			cpu, err := cpuOf(p, 1, repeated, `"success":true`)
			if err != nil {
				return c, fmt.Errorf("%s: %w", name, err)
			}
			c.of[name] += cpu / times
			if cpu, err = cpuOf(echo, 1, slices.Repeat([][]byte{sendText("6281200000001", "")}, timedCalls), `"SENT"`); err != nil {
				return c, fmt.Errorf("echo: %w", err)
			}
			echos = append(echos, float64(cpu))
		}
	}
	c.echo = time.Duration(median(echos))
	return c, nil
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
		few, many, err := manyChannelCosts(ctx, first, o.channels)
		if err != nil {
			return err
		}
		addManyChannels(t, fmt.Sprintf("three nodes, %d channels", o.channels), few, many)
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
