package gateway

import (
	"maps"
	"slices"

	"parley"
	"parley/internal/network"
)

// List is all channels at one moment, with what is counted of them. It is shared: nobody may change it. It is made again only after
// a change, so that a request costs the same with any number of channels.
type List struct {
	Channels []parley.Channel // by code
	Statuses map[parley.ChannelStatus]int
	Networks map[parley.NetworkName]int
	Labels   map[string]int
	Unwell   []parley.Channel // those that should run and do not work, by code
	Live     []parley.Channel // those on a real network, by code
	// Simulated are those on a simulated network, without archives, by code.
	Simulated []parley.ChannelCode
	Observed  []parley.Channel // those whose network tells what it observes, by code
	Choices   []parley.Channel // those of [Gateway.Choices]

	version int64
}

// noteChange makes the next List a new one. Call it after a change.
func (g *Gateway) noteChange() { g.version.Add(1) }

// List lists the channels with their current state. Those of other nodes have their stored state.
func (g *Gateway) List() *List {
	version := g.version.Load() // before the channels are read: a later change counts as one
	if l := g.list.Load(); l != nil && l.version == version {
		return l
	}
	l := &List{version: version, Statuses: map[parley.ChannelStatus]int{}, Networks: map[parley.NetworkName]int{}, Labels: map[string]int{}}
	g.mu.RLock()
	codes := slices.Collect(maps.Keys(g.accounts))
	for code := range g.others {
		if g.accounts[code] == nil {
			codes = append(codes, code)
		}
	}
	slices.Sort(codes)
	l.Channels = make([]parley.Channel, len(codes))
	for i, code := range codes {
		if a := g.accounts[code]; a != nil {
			l.Channels[i] = a.snapshot()
		} else {
			l.Channels[i] = g.others[code]
		}
	}
	g.mu.RUnlock()
	for i := range l.Channels {
		c := &l.Channels[i]
		l.Statuses[c.State.Status]++
		l.Networks[c.Network]++
		for _, word := range c.Labels {
			l.Labels[word]++
		}
		if c.Enabled && c.State.Status != parley.ChannelWorking {
			l.Unwell = append(l.Unwell, *c)
		}
		if !g.isSimulated(*c) {
			l.Live = append(l.Live, *c)
		} else if c.Settings.ArchiveOf == "" {
			l.Simulated = append(l.Simulated, c.Code)
		}
		if _, ok := g.Drivers[c.Network].(network.Witness); ok {
			l.Observed = append(l.Observed, *c)
		}
	}
	isArchive := func(c parley.Channel) bool { return c.Settings.ArchiveOf != "" }
	for _, some := range [][]parley.Channel{l.Channels, l.Live} { // the live ones if there are any
		if slices.ContainsFunc(some, isArchive) {
			some = slices.DeleteFunc(slices.Clone(some), isArchive)
		}
		if len(some) > 0 {
			l.Choices = some
		}
	}
	g.list.Store(l)
	return l
}

// Channels lists the channels, by code. The caller may change the slice.
func (g *Gateway) Channels() []parley.Channel { return slices.Clone(g.List().Channels) }
