package cloud

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"parley"
	"parley/internal/network"
)

// TestIdleChannels opens many channels and lets nothing happen: each has a little memory, and no goroutine or connection of its own.
func TestIdleChannels(t *testing.T) {
	const channels, most = 1000, 2 << 10
	w := newWorld(t)
	credentials := w.credentials[w.channel.ID]
	all := make([]parley.Channel, channels)
	for i := range all {
		all[i] = parley.Channel{ID: int64(1000 + i), Code: parley.ChannelCode(fmt.Sprint("idle", i)), Network: parley.Cloud}
		w.credentials[all[i].ID] = credentials
	}
	use := func() (heap uint64, goroutines int) {
		w.driver.config.Calls.CloseIdle()
		w.meta.CloseClients()
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	// The runtime keeps the descriptors of goroutines that ended. As many as check at once later are made here already.
	var ended sync.WaitGroup
	begin := make(chan struct{})
	for range channels {
		ended.Go(func() { <-begin })
	}
	close(begin)
	ended.Wait()
	heap, goroutines := use()
	sessions := make([]network.Session, channels)
	for i, c := range all {
		var err error
		sessions[i], err = w.driver.Open(t.Context(), c, func(context.Context, network.Event) error { return nil })
		w.must(err)
	}
	for _, s := range sessions {
		s := s.(*session)
		w.await(func() bool { s.mu.Lock(); defer s.mu.Unlock(); return !s.checked.IsZero() })
		s.running.Wait()
	}
	w.await(func() bool { _, now := use(); return now <= goroutines })
	after, _ := use()
	if each := (int64(after) - int64(heap)) / channels; each > most {
		t.Errorf("an idle channel takes %d bytes, more than %d", each, most)
	}
	for _, s := range sessions {
		w.must(s.Close())
	}
}
