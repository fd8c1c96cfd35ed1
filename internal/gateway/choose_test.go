package gateway_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/gateway"
	"parley/internal/network"
	"parley/internal/store"
)

// TestChoices: beside a channel on a real network, in whatever state, no sandbox channel is ever chosen.
func TestChoices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.wantChoices("demo")
		b.accept(ayu, "the sandbox talked to the contact last")
		if _, err := b.g.CreateChannel(t.Context(), parley.Channel{Code: "toko", Network: parley.WhatsApp}); err != nil {
			t.Fatal(err)
		}
		for _, status := range parley.ChannelStatuses {
			if status == parley.ChannelStopped {
				if _, err := b.g.StopChannel(t.Context(), "toko"); err != nil {
					t.Fatal(err)
				}
			} else {
				if _, err := b.g.StartChannel(t.Context(), "toko"); err != nil {
					t.Fatal(err)
				}
				b.driver.session("toko").tell(network.State{Status: status})
			}
			b.wantChoices("toko")
			if code, err := b.g.PickForPool(t.Context(), ayu); code == "demo" || (err == nil) != (status == parley.ChannelWorking) {
				t.Errorf("%s: picked %q, %v", status, code, err)
			}
		}
		b.g.UpdateChannel(t.Context(), "toko", func(c *parley.Channel) { c.Settings.AllowOnly = []parley.ContactID{"6281@c.us"} })
		b.driver.session("toko").tell(network.State{Status: parley.ChannelWorking})
		if code, err := b.g.PickForPool(t.Context(), ayu); parley.ToCode(err) != parley.Forbidden {
			t.Errorf("not on the allow-list: %q, %v", code, err)
		}
	})
}

// TestChoicesAfterGoLive: the archive of the sandbox messages is never chosen, nor are other sandbox channels.
func TestChoicesAfterGoLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.accept(ayu, "hello")
		if _, err := b.g.CreateChannel(t.Context(), parley.Channel{Code: "ci", Network: parley.Sandbox}); err != nil {
			t.Fatal(err)
		}
		b.wantChoices("ci", "demo")
		if _, err := b.g.GoLive(t.Context(), "demo", parley.WhatsApp, nil); err != nil {
			t.Fatal(err)
		}
		b.wantChoices("demo")
		if _, err := b.g.DeleteChannel(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}
		b.wantChoices("ci")
	})
}

// TestChoicesAreComplete: nothing is chosen before all channels are known, nor while a channel on a real network is
// only in the store, where another node put it.
func TestChoicesAreComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		starting := b.unstarted(nil)
		if got, err := starting.Choices(t.Context()); parley.ToCode(err) != parley.Unavailable {
			t.Errorf("before the channels are known: %v, %v", got, err)
		}
		b.tx(func(tx *store.Tx) error {
			return tx.AddChannel(t.Context(), parley.Channel{Code: "toko", Network: parley.WhatsApp})
		})
		if got, err := b.g.Choices(t.Context()); parley.ToCode(err) != parley.Unavailable {
			t.Errorf("while the live channel is only stored: %v, %v", got, err)
		}
	})
}

// TestChoicesOnAnotherNode: a live channel counts wherever it is served.
func TestChoicesOnAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.tx(func(tx *store.Tx) error {
			return tx.AddChannel(t.Context(), parley.Channel{Code: "toko", Network: parley.WhatsApp})
		})
		node := &bench{t: t, g: b.unstarted(ownsOnly("demo"))}
		node.refresh()
		node.wantChoices("toko")
	})
}

// TestChannelMovesDuringRefresh: a channel whose shard moves away while the channels are read is known nevertheless. Who created it at that
// moment got an error.
func TestChannelMovesDuringRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for owned := range 4 {
			g := b.unstarted(&ownsFor{owned})
			if err := g.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, ok := g.Channel("demo"); !ok {
				t.Errorf("the channel is unknown if it moves after %d questions", owned)
			}
		}
	})
}

// ownsFor is a node that serves every channel until it was asked so often.
type ownsFor struct{ asked int }

func (o *ownsFor) Owns(string) bool { o.asked--; return o.asked >= 0 }
func (*ownsFor) Leads() bool        { return false }
func (*ownsFor) MaySend() bool      { return true }

// unstarted is another gateway on the same store.
func (b *bench) unstarted(c gateway.Cluster) *gateway.Gateway {
	config := b.config
	config.Cluster, config.Metrics, config.Offline = c, prometheus.NewRegistry(), true
	return gateway.New(config)
}

// ownsOnly is a node that serves one channel.
type ownsOnly string

func (o ownsOnly) Owns(key string) bool { return key == string(o) }
func (ownsOnly) Leads() bool            { return false }
func (ownsOnly) MaySend() bool          { return true }

func (b *bench) wantChoices(want ...parley.ChannelCode) {
	b.t.Helper()
	choices, err := b.g.Choices(b.t.Context())
	if err != nil || len(choices) != len(want) {
		b.t.Fatalf("choices %v, %v; want %v", choices, err, want)
	}
	for i, c := range choices {
		if c.Code != want[i] {
			b.t.Errorf("choice %s, want %s", c.Code, want[i])
		}
	}
}

// TestListOfSandboxes: the list has the channels on a simulated network, without the archives of those that went live.
func TestListOfSandboxes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.tx(func(tx *store.Tx) error {
			archive := parley.Channel{Code: "toko-sandbox", Network: parley.Sandbox, Settings: parley.ChannelSettings{ArchiveOf: "toko"}}
			return errors.Join(tx.AddChannel(t.Context(), parley.Channel{Code: "toko", Network: parley.WhatsApp}),
				tx.AddChannel(t.Context(), archive))
		})
		g := b.unstarted(nil)
		if err := g.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		list := g.List()
		if !slices.Equal(list.Simulated, []parley.ChannelCode{"demo"}) || len(list.Live) != 1 || len(list.Channels) != 3 {
			t.Errorf("simulated %v, live %v, of %d", list.Simulated, list.Live, len(list.Channels))
		}
	})
}
