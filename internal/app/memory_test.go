package app

import (
	"testing"
	"testing/fstest"
)

func TestMemoryLimit(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"another system": {fstest.MapFS{}, 0},
		"a machine":      {fstest.MapFS{"proc/meminfo": file("MemTotal:        2048 kB\nMemFree:  1 kB\n")}, 2 << 20},
		"a container":    {fstest.MapFS{"proc/meminfo": file("MemTotal: 2048 kB\n"), "sys/fs/cgroup/memory.max": file("1048576\n")}, 1 << 20},
		"no limit":       {fstest.MapFS{"proc/meminfo": file("MemTotal: 2048 kB\n"), "sys/fs/cgroup/memory.max": file("max\n")}, 2 << 20},
		"a service": {fstest.MapFS{"proc/self/cgroup": file("0::/system.slice/parley.service\n"), "proc/meminfo": file("MemTotal: 2048 kB\n"),
			"sys/fs/cgroup/system.slice/parley.service/memory.max": file("max\n"), "sys/fs/cgroup/system.slice/memory.max": file("524288\n")},
			1 << 19},
		"an older system": {fstest.MapFS{"sys/fs/cgroup/memory/memory.limit_in_bytes": file("1048576\n")}, 1 << 20},
	} {
		if got := memoryLimit(c.files); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestGCPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 8 << 20: 400, 16 << 20: 400, 32 << 20: 200, 64 << 20: 100, 1 << 30: 50} {
		if got := gcPercent(live); got != want {
			t.Errorf("%d MiB in use: %d %%, want %d", live>>20, got, want)
		}
	}
}

// TestMemoryIsReturnedWhenIdle: after a burst memory is returned once, not while it goes on, and not again for nothing.
func TestMemoryIsReturnedWhenIdle(t *testing.T) {
	released := 0
	var idle idleMemory
	for step, c := range []struct {
		allocated uint64
		want      int
	}{
		{100 << 20, 0}, {300 << 20, 0}, // busy
		{301 << 20, 1},                 // idle
		{302 << 20, 1}, {303 << 20, 1}, // little happened since
		{305 << 20, 1}, {306 << 20, 2},
	} {
		if idle.mustReturn(c.allocated) {
			released++
		}
		if released != c.want {
			t.Fatalf("step %d: released %d times, want %d", step, released, c.want)
		}
	}
}
