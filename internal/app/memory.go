package app

import (
	"context"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"parley/internal/wait"
)

const (
	// spareHeap is how much garbage may exist beside the live heap. A small heap is collected rarely, which saves a
	// tenth of the CPU time; a large one must not become five times as large.
	spareHeap  = 64 << 20
	maxPercent = 400
	minPercent = 50

	memoryTick = 5 * time.Second
	// idleRate is the most that an idle server allocates in a tick. idleGarbage is how much must have been allocated
	// since memory was last returned, to be worth the work.
	idleRate    = 2 << 20
	idleGarbage = 4 << 20
)

// limitMemory sets the soft memory limit of the process to that of its control group or machine. GOMEMLIMIT overrides
// it.
func limitMemory() {
	if _, set := os.LookupEnv("GOMEMLIMIT"); set {
		return
	}
	if limit := memoryLimit(os.DirFS("/")); limit > 0 {
		debug.SetMemoryLimit(limit / 10 * 8) // Go does not count SQLite and thread stacks
	}
}

// memoryLimit is the memory limit in the files of a Linux system; 0: unknown.
func memoryLimit(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	consider := func(text string) {
		if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil && n > 0 { // "max": unlimited
			least = min(least, n)
		}
	}
	read := func(name string) string {
		text, _ := fs.ReadFile(root, name) // a missing file is no limit
		return string(text)
	}
	own := "."
	for line := range strings.Lines(read("proc/self/cgroup")) {
		if group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/"); ok {
			own = path.Clean(group)
		}
	}
	for group := own; ; group = path.Dir(group) { // a group's limit includes the groups below it
		consider(read(path.Join("sys/fs/cgroup", group, "memory.max")))
		if group == "." {
			break
		}
	}
	consider(read("sys/fs/cgroup/memory/memory.limit_in_bytes"))
	for line := range strings.Lines(read("proc/meminfo")) {
		if total, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			if kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(total), " kB"), 10, 64); err == nil {
				least = min(least, kib<<10)
			}
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// gcPercent is the allowed garbage for a heap of this size, in percent.
func gcPercent(live uint64) int {
	return int(min(max(spareHeap*100/max(live, 1), minPercent), maxPercent))
}

// idleMemory says when to return memory to the system, by the bytes ever allocated.
type idleMemory struct{ lastSeen, lastReturned uint64 }

func (m *idleMemory) mustReturn(allocated uint64) bool {
	idle := allocated-m.lastSeen < idleRate
	m.lastSeen = allocated
	if !idle || allocated-m.lastReturned < idleGarbage {
		return false
	}
	m.lastReturned = allocated
	return true
}

// tuneMemory adapts the garbage collector to the heap, and returns memory to the system while the server is idle. GOGC overrides
// the first.
func tuneMemory(ctx context.Context) {
	_, fixed := os.LookupEnv("GOGC")
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	var idle idleMemory
	for more := true; more; more = wait.Sleep(ctx, memoryTick) {
		metrics.Read(samples)
		if !fixed {
			debug.SetGCPercent(gcPercent(samples[0].Value.Uint64()))
		}
		if idle.mustReturn(samples[1].Value.Uint64()) {
			debug.FreeOSMemory()
		}
	}
}
