package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"syscall"
	"testing"

	"parley"
	"parley/internal/network"
)

// BenchmarkSend measures what a message costs when 64 callers send at once, each one message to a
// chat of its own, and when the same comes in bursts. The receipts that follow are part of it.
func BenchmarkSend(b *testing.B) {
	for _, burst := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("burst=%d", burst), func(b *testing.B) { benchmarkSend(b, burst) })
	}
}

func benchmarkSend(b *testing.B, burst int) {
	n, err := Open(b.Context(), filepath.Join(b.TempDir(), "sandbox.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer n.Close()
	s, err := n.Open(b.Context(), parley.Channel{Code: "bench"}, func(context.Context, network.Event) error { return nil })
	if err != nil {
		b.Fatal(err)
	}
	const callers = 64
	work := make(chan int)
	done := make(chan error, callers)
	for caller := range callers {
		go func() {
			var failed error
			for count := range work {
				if err := sendMany(b.Context(), s, caller, count); err != nil {
					failed = err
				}
			}
			done <- failed
		}()
	}
	b.ReportAllocs()
	before := cpu()
	for left := b.N; left > 0; left -= burst {
		work <- min(burst, left)
	}
	close(work)
	for range callers {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
}

func sendMany(ctx context.Context, s network.Session, caller, count int) error {
	ms := make([]*parley.Message, count)
	for i := range ms {
		chat := parley.ContactOf(fmt.Sprintf("62812%04d%04d", caller, i))
		ms[i] = &parley.Message{Chat: chat, ID: parley.NewMessageID(), FromMe: true, Content: parley.Text{Body: "Halo, kode Anda 482913"}}
	}
	for _, err := range s.Send(ctx, ms) {
		if err != nil {
			return err
		}
	}
	return nil
}

// cpu is the processor time that this process used.
func cpu() int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
