package app

import (
	"bufio"
	"bytes"
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
	// spareHeap is how much garbage may lie beside what is in use before it is collected. A small heap is collected
	// rarely, which saves a tenth of the processor's time; a large one is not allowed to become five times as large.
	spareHeap  = 64 << 20
	maxPercent = 400
	minPercent = 50

	memoryTick = 5 * time.Second
	// idleRate is how much may be allocated in a tick by a server that counts as idle, and idleGarbage how much must
	// have been allocated since memory was last returned for that to be worth the work.
	idleRate    = 2 << 20
	idleGarbage = 4 << 20
)

// limitMemory sets the soft memory limit of the process from that of its control group or of the machine. GOMEMLIMIT
// overrules it.
func limitMemory() {
	if _, set := os.LookupEnv("GOMEMLIMIT"); set {
		return
	}
	if limit := memoryLimit(os.DirFS("/")); limit > 0 {
		debug.SetMemoryLimit(limit / 10 * 8) // SQLite and the threads' stacks are not counted by Go
	}
}

// memoryLimit is how much memory the process may use, as the files of a Linux system say; 0: they do not say.
func memoryLimit(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	consider := func(text string) {
		if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil && n > 0 { // "max": none
			least = min(least, n)
		}
	}
	own := "."
	if text, err := fs.ReadFile(root, "proc/self/cgroup"); err == nil {
		for line := range strings.Lines(string(text)) {
			if group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/"); ok {
				own = path.Clean(group)
			}
		}
	}
	for group := own; ; group = path.Dir(group) { // the limit of a group holds for those below it
		if text, err := fs.ReadFile(root, path.Join("sys/fs/cgroup", group, "memory.max")); err == nil {
			consider(string(text))
		}
		if group == "." {
			break
		}
	}
	if text, err := fs.ReadFile(root, "sys/fs/cgroup/memory/memory.limit_in_bytes"); err == nil {
		consider(string(text))
	}
	if text, err := fs.ReadFile(root, "proc/meminfo"); err == nil {
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			if total, ok := strings.CutPrefix(lines.Text(), "MemTotal:"); ok {
				if kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(total), " kB"), 10, 64); err == nil {
					least = min(least, kib<<10)
				}
			}
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// gcPercent is how much garbage may lie beside a heap of this size, in percent of it.
func gcPercent(live uint64) int {
	if live == 0 {
		return maxPercent
	}
	return int(min(max(spareHeap*100/live, minPercent), maxPercent))
}

// memoryKeeper adapts the garbage collector to the heap, and returns memory to the system while the server is idle.
type memoryKeeper struct {
	percent  int
	setGC    func(percent int) int
	release  func() // collect, and return what is free
	lastSeen uint64 // bytes allocated, at the last tick
	lastDone uint64 // … when memory was last returned
}

// tick looks at the heap: how much is in use, and how much was ever allocated.
func (k *memoryKeeper) tick(live, allocated uint64) {
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

// keepMemorySmall ticks until ctx ends.
func keepMemorySmall(ctx context.Context) {
	k := &memoryKeeper{percent: maxPercent, setGC: debug.SetGCPercent, release: debug.FreeOSMemory}
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
