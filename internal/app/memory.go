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
	if live == 0 {
		return maxPercent
	}
	return int(min(max(spareHeap*100/live, minPercent), maxPercent))
}

// memoryTuner adapts the garbage collector to the heap, and returns memory to the system while the server is idle.
type memoryTuner struct {
	percent  int
	setGC    func(percent int) int
	release  func() // collect, and return what is free
	lastSeen uint64 // bytes allocated, at the last tick
	lastDone uint64 // … when memory was last returned
}

// tick gets the live heap and the bytes ever allocated.
func (k *memoryTuner) tick(live, allocated uint64) {
	if percent := gcPercent(live); k.setGC != nil && percent != k.percent {
		k.percent = percent
		k.setGC(percent)
	}
	idle := allocated-k.lastSeen < idleRate
	k.lastSeen = allocated
	if idle && allocated-k.lastDone >= idleGarbage {
		k.release()
		k.lastDone = allocated
	}
}

func tuneMemory(ctx context.Context) {
	k := &memoryTuner{percent: maxPercent, setGC: debug.SetGCPercent, release: debug.FreeOSMemory}
	if _, set := os.LookupEnv("GOGC"); set {
		k.setGC = nil
	} else {
		debug.SetGCPercent(maxPercent)
	}
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	for ticker := time.NewTicker(memoryTick); ; {
		select {
		case <-ctx.Done():
			ticker.Stop()
			return
		case <-ticker.C:
			metrics.Read(samples)
			k.tick(samples[0].Value.Uint64(), samples[1].Value.Uint64())
		}
	}
}
