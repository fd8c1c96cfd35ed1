package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/network"
)

// Network describes a network. Of one that this program does not have, only the name is known.
func (g *Gateway) Network(name parley.NetworkName) network.Info {
	if driver := g.Drivers[name]; driver != nil {
		return driver.Info()
	}
	return network.Info{Name: name, Title: string(name)}
}

// Networks describes the networks of this program: simulated ones first, then by name.
func (g *Gateway) Networks() []network.Info {
	var list []network.Info
	for _, driver := range g.Drivers {
		list = append(list, driver.Info())
	}
	slices.SortFunc(list, func(a, b network.Info) int {
		switch {
		case a.Simulated && !b.Simulated:
			return -1
		case b.Simulated && !a.Simulated:
			return 1
		}
		return strings.Compare(string(a.Name), string(b.Name))
	})
	return list
}

// Versioned returns the driver of a network that refuses old clients.
func (g *Gateway) Versioned(name parley.NetworkName) (network.Versioned, error) {
	driver, there := g.Drivers[name]
	if !there {
		return nil, parley.Errorf(parley.NotFound, "There is no network %s.", name)
	}
	if versioned, ok := driver.(network.Versioned); ok {
		return versioned, nil
	}
	return nil, parley.Errorf(parley.NotSupported, "%s has no versions of clients.", driver.Info().Title)
}

// ExamineAccount lists what a channel's network finds wrong with its account. Only the node that serves a channel knows all of it.
func (g *Gateway) ExamineAccount(c parley.Channel) []parley.AccountProblem {
	if examiner, ok := g.Drivers[c.Network].(network.Examiner); ok && c.Runs() {
		return examiner.Examine(c)
	}
	return nil
}

// CheckProxy reports whether the proxy of a channel connects to its network; nil also if it has none.
func (g *Gateway) CheckProxy(ctx context.Context, c parley.Channel) error {
	if proxied, ok := g.Drivers[c.Network].(network.Proxied); ok && c.Runs() {
		return proxied.CheckProxy(ctx, c)
	}
	return nil
}

func (g *Gateway) isSimulated(c parley.Channel) bool { return g.Network(c.Network).Simulated }

// Groups returns the live connection of a channel whose network has groups, for requests that are not queued. So do
// GroupAdmin, Directory, Typist and Blocker for what they are named after.
func (g *Gateway) Groups(code parley.ChannelCode) (network.Groups, error) {
	return liveAs[network.Groups](g, code, "groups")
}

func (g *Gateway) GroupAdmin(code parley.ChannelCode) (network.GroupAdmin, error) {
	return liveAs[network.GroupAdmin](g, code, "administrating groups")
}

func (g *Gateway) Directory(code parley.ChannelCode) (network.Directory, error) {
	return liveAs[network.Directory](g, code, "looking up contacts")
}

func (g *Gateway) Typist(code parley.ChannelCode) (network.Typist, error) {
	return liveAs[network.Typist](g, code, "typing")
}

func (g *Gateway) Blocker(code parley.ChannelCode) (network.Blocker, error) {
	return liveAs[network.Blocker](g, code, "blocking contacts")
}

func (g *Gateway) Templates(code parley.ChannelCode) (network.Templates, error) {
	return liveAs[network.Templates](g, code, "templates")
}

// LookUpNumber asks a channel's network for its spelling of a contact's number. The session reports it as [network.Alias]. A
// network without a directory has one spelling.
func (g *Gateway) LookUpNumber(ctx context.Context, code parley.ChannelCode, c parley.ContactID) error {
	directory, err := g.Directory(code)
	if err == nil {
		_, _, err = directory.CheckNumber(ctx, c.Number())
	}
	if parley.ToCode(err) == parley.NotSupported {
		return nil
	}
	return err
}

// liveAs returns a channel's live connection with what only some networks can do.
func liveAs[T any](g *Gateway, code parley.ChannelCode, what string) (T, error) {
	var none T
	a, err := g.account(code)
	if err != nil {
		return none, err
	}
	c := a.snapshot()
	if err := c.Usable(); err != nil {
		return none, err
	}
	s := a.liveSession()
	if s == nil {
		return none, &parley.Error{Code: parley.Unavailable, RetryAfter: 2 * time.Second,
			Message: fmt.Sprintf("Channel %s is connecting. Try again in a moment.", code)}
	}
	return sessionAs[T](g, c, s, what)
}

// openAs returns a channel's session, connected or not, with what only some networks can do.
func openAs[T any](g *Gateway, code parley.ChannelCode, what string) (T, error) {
	var none T
	a, err := g.account(code)
	if err != nil {
		return none, err
	}
	a.mu.RLock()
	c, s := a.channel, a.session
	a.mu.RUnlock()
	if s == nil {
		return none, parley.Errorf(parley.ChannelNotReady, "Channel %s is %s. Start it with: parley channel start %s",
			code, c.State.Status, code)
	}
	return sessionAs[T](g, c, s, what)
}

func sessionAs[T any](g *Gateway, c parley.Channel, s network.Session, what string) (T, error) {
	t, ok := s.(T)
	if !ok {
		return t, g.unsupported(c, what)
	}
	return t, nil
}

// checkDraft rejects what the channel's network cannot send.
func (g *Gateway) checkDraft(c parley.Channel, d *Draft) error {
	info := g.Network(c.Network)
	switch kind := d.Content.Kind(); {
	case !info.CanSend(kind) && kind.InHistory():
		return g.unsupported(c, fmt.Sprintf("messages of type %s", kind))
	case !info.CanSend(kind):
		return g.unsupported(c, fmt.Sprintf("the operation %s", kind))
	case d.To.IsGroup() && !info.Groups:
		return g.unsupported(c, "groups")
	}
	return nil
}

func (g *Gateway) unsupported(c parley.Channel, what string) error {
	return parley.Errorf(parley.NotSupported, "Channel %s is on %s, which does not support %s.", c.Code, g.Network(c.Network).Title, what)
}
