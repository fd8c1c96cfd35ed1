package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"parley"
	"parley/internal/network"
)

// BenchmarkSend measures what a message costs when it comes alone or in bursts to a number of phones, from as many callers
// at once as the session finds useful. The receipts that follow are part of it.
func BenchmarkSend(b *testing.B) {
	for _, phones := range []int{64, 5000} {
		for _, burst := range []int{1, 32, 256} {
			b.Run(fmt.Sprintf("phones=%d/burst=%d", phones, burst), func(b *testing.B) {
				_, s := benchNetwork(b)
				b.ReportAllocs()
				before := cpu()
				sendBursts(b, s, b.N, phones, burst)
				b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

func benchNetwork(b *testing.B) (*Network, network.Session) {
	n, err := Open(b.Context(), filepath.Join(b.TempDir(), "sandbox.db"), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { n.Close() })
	s, err := n.Open(b.Context(), parley.Channel{Code: "bench"}, func(context.Context, network.Event) error { return nil })
	if err != nil {
		b.Fatal(err)
	}
	return n, s
}

// sendBursts sends a number of messages to phones, of which each caller has its own.
func sendBursts(b *testing.B, s network.Session, count, phones, burst int) {
	var group sync.WaitGroup
	for caller := range maxCalls {
		group.Go(func() {
			var chats []parley.ContactID
			for i := caller; i < phones; i += maxCalls {
				chats = append(chats, parley.NewContactID(fmt.Sprintf("62812%08d", i)))
			}
			sent := 0
			for left := count / maxCalls; left > 0; left -= burst {
				ms := make([]*parley.Message, min(burst, left))
				for i := range ms {
					ms[i] = &parley.Message{Chat: chats[sent%len(chats)], ID: network.RandomID("3EB0"), FromMe: true,
						Content: parley.Text{Body: "Halo, kode Anda 482913"}}
					sent++
				}
				for _, err := range s.Send(b.Context(), ms) {
					if err != nil {
						b.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
}

// cpu is the processor time that this process used.
func cpu() int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
