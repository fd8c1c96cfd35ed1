package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.mau.fi/libsignal/keys/prekey"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// A message is encrypted for each device of its recipient, and of the account. Which devices there are, and the
// keys of those that we never wrote to, only the network knows. whatsmeow asks for both while it holds a lock
// that every other send needs. Here they are asked for before any lock is taken: what is not answered delays
// the messages of one contact.

const (
	// queryTimeout is how long a send waits for the devices or the keys of a contact.
	queryTimeout = 15 * time.Second
	// askAgainAfter is after how long such a question is asked a second time: its answer may be lost.
	askAgainAfter = 5 * time.Second
	// mostDeviceLists is how many contacts' devices are cached. Beyond that the cache starts over.
	mostDeviceLists = 8192
)

// deviceLists caches the devices of contacts. An entry is first a query under way, for which all wait who
// need it.
type deviceLists struct {
	mu     sync.Mutex
	byName map[types.JID]*deviceList // under the LID and the number alike
}

type deviceList struct {
	names []types.JID
	ready chan struct{} // closed when the query has ended
	// Set before ready is closed.
	devices []types.JID
	err     error
}

// find returns the entry of a contact, and whether the caller has to fill it.
func (c *deviceLists) find(names ...types.JID) (list *deviceList, isNew bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if list := c.byName[names[0]]; list != nil {
		return list, false
	}
	if c.byName == nil || len(c.byName) >= 2*mostDeviceLists {
		c.byName = map[types.JID]*deviceList{}
	}
	list = &deviceList{ready: make(chan struct{})}
	for _, name := range names {
		if !name.IsEmpty() {
			list.names = append(list.names, name)
			c.byName[name] = list
		}
	}
	return list, true
}

// known returns the entry of a contact whose query has ended; nil: there is none.
func (c *deviceLists) known(name types.JID) *deviceList {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.byName[name]
	if list == nil {
		return nil
	}
	select {
	case <-list.ready:
		return list
	default:
		return nil
	}
}

// fill ends the query of an entry. One that failed is not cached.
func (c *deviceLists) fill(list *deviceList, devices []types.JID, err error) {
	list.devices, list.err = devices, err
	if err != nil {
		c.mu.Lock()
		c.remove(list)
		c.mu.Unlock()
	}
	close(list.ready)
}

// forget has the devices of contacts asked for again. A query that is under way serves those who wait for it
// and nobody after them: its answer may be from before the change.
func (c *deviceLists) forget(names ...types.JID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if list := c.byName[name.ToNonAD()]; list != nil {
			c.remove(list)
		}
	}
}

func (c *deviceLists) remove(list *deviceList) {
	for _, name := range list.names {
		if c.byName[name] == list {
			delete(c.byName, name)
		}
	}
}

// lookUp returns the entry of somebody's devices, and asks the network for them where they are not known.
func (l *line) lookUp(lid, number types.JID) *deviceList {
	lid, number = lid.ToNonAD(), number.ToNonAD()
	list, isNew := l.s.devices.find(lid, number)
	if isNew && !l.errand(func() {
		devices, err := l.askDevices(lid)
		l.s.devices.fill(list, devices, err)
	}) {
		l.s.devices.fill(list, nil, errLineEnded)
	}
	return list
}

// devicesOf returns the devices of somebody, by LID.
func (l *line) devicesOf(ctx context.Context, lid, number types.JID) ([]types.JID, error) {
	for tries := 1; ; tries++ {
		list := l.lookUp(lid, number)
		select {
		case <-list.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if list.err == nil || tries > 1 || l.ctx.Err() != nil {
			return list.devices, list.err
		} // the query may have been one of the connection before
	}
}

var errLineEnded = errors.New("the connection has ended")

// askDevices asks the network for the devices of somebody.
func (l *line) askDevices(lid types.JID) ([]types.JID, error) {
	return askTwice(l.ctx, l, func(ctx context.Context) ([]types.JID, error) {
		query := []waBinary.Node{{Tag: "devices", Attrs: waBinary.Attrs{"version": "2"}}}
		list, err := l.inner().Usync(ctx, []types.JID{lid}, "query", "message", query)
		if err != nil {
			return nil, fmt.Errorf("ask for devices: %w", err)
		}
		var devices []types.JID
		for _, user := range list.GetChildrenByTag("user") {
			if jid, ok := user.Attrs["jid"].(types.JID); ok && jid.ToNonAD() == lid {
				devices = append(devices, readDevices(jid, user)...)
			}
		}
		if len(devices) == 0 {
			return nil, errUnsealed // nobody to encrypt for
		}
		return devices, nil
	})
}

// readDevices reads a list of devices.
func readDevices(of types.JID, user waBinary.Node) []types.JID {
	list, _ := user.GetOptionalChildByTag("devices", "device-list")
	var devices []types.JID
	for _, device := range list.GetChildrenByTag("device") {
		attrs := device.AttrGetter()
		id, ok := attrs.GetUint64("id", true)
		if !ok || id > 0xffff {
			continue
		}
		jid := of
		jid.Device = uint16(id)
		if attrs.OptionalBool("is_hosted") {
			jid.Server = map[string]string{types.HiddenUserServer: types.HostedLIDServer, types.DefaultUserServer: types.HostedServer}[of.Server]
		}
		devices = append(devices, jid)
	}
	return devices
}

// askTwice asks a question, and once more when its answer is late. The first answer counts.
func askTwice[A any](ctx context.Context, l *line, ask func(context.Context) (A, error)) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	type answer struct {
		value A
		err   error
	}
	answers := make(chan answer, 2)
	start := func() {
		go func() { // it ends with the context
			var a answer
			defer func() { answers <- a }()
			defer l.s.contain(&a.err)
			a.value, a.err = ask(ctx)
		}()
	}
	start()
	late := time.NewTimer(l.s.d.askAgain)
	defer late.Stop()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-late.C:
		start()
	}
	a := <-answers
	return a.value, a.err
}

// recipients are the devices that a message is for, with the keys of those that we have no session with.
type recipients struct {
	devices []types.JID
	bundles map[types.JID]*prekey.Bundle
}

// with adds other recipients.
func (r recipients) with(others recipients) recipients {
	all := recipients{slices.Concat(r.devices, others.devices), map[types.JID]*prekey.Bundle{}}
	maps.Copy(all.bundles, r.bundles)
	maps.Copy(all.bundles, others.bundles)
	return all
}

// resolve finds out for which devices of somebody a message has to be encrypted, and with what.
func (l *line) resolve(ctx context.Context, lid, number types.JID) (recipients, error) {
	devices, err := l.devicesOf(ctx, lid, number)
	if err != nil {
		return recipients{}, err
	}
	bundles, err := l.keysFor(ctx, devices)
	return recipients{devices, bundles}, err
}

// keysFor fetches the keys of those devices that there is no session with.
func (l *line) keysFor(ctx context.Context, devices []types.JID) (map[types.JID]*prekey.Bundle, error) {
	missing, err := l.withoutSession(ctx, devices)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	return askTwice(ctx, l, func(ctx context.Context) (map[types.JID]*prekey.Bundle, error) {
		return l.inner().FetchPreKeysNoError(ctx, missing), ctx.Err()
	})
}

// withoutSession returns the devices that there is no session with, without this one.
func (l *line) withoutSession(ctx context.Context, devices []types.JID) ([]types.JID, error) {
	var missing []types.JID
	for _, device := range devices {
		if l.isThis(device) {
			continue
		}
		has, err := l.client.Store.ContainsSession(ctx, device.SignalAddress())
		if err != nil {
			return nil, err
		}
		if !has {
			missing = append(missing, device)
		}
	}
	return missing, nil
}

// ownGrace is how long a message whose recipient is resolved waits for the account's own devices to be. They
// get it later otherwise.
const ownGrace = time.Second

// resolveOwn begins to resolve the account's own devices, for all sends together.
func (l *line) resolveOwn() *flight[recipients] {
	return l.own.join(l, func() (recipients, error) { return l.resolve(l.ctx, l.lid, l.jid) })
}

// ownNow returns the account's own devices where nothing has to be asked for.
func (l *line) ownNow(ctx context.Context) (recipients, bool) {
	list := l.s.devices.known(l.lid.ToNonAD())
	if list == nil {
		return recipients{}, false
	}
	missing, err := l.withoutSession(ctx, list.devices)
	return recipients{devices: list.devices}, err == nil && len(missing) == 0
}

// awaitOwn waits for a while. It returns false where the devices are not resolved by then.
func awaitOwn(ctx context.Context, own *flight[recipients]) (recipients, bool) {
	ctx, cancel := context.WithTimeout(ctx, ownGrace)
	defer cancel()
	r, err := own.await(ctx)
	return r, err == nil
}

// isThis reports whether a device is the one that we are.
func (l *line) isThis(device types.JID) bool { return device == l.jid || device == l.lid }

// noticeDevices takes note of a notification by which the devices of somebody have changed.
func (l *line) noticeDevices(ctx context.Context, node *waBinary.Node) {
	changed := []types.JID{node.AttrGetter().OptionalJIDOrEmpty("from"), node.AttrGetter().OptionalJIDOrEmpty("lid")}
	switch node.Attrs["type"] {
	case "devices", "encrypt":
	case "account_sync":
		if _, ok := node.GetOptionalChildByTag("devices"); !ok {
			return
		}
		changed = append(changed, l.jid, l.lid)
	default:
		return
	}
	for _, jid := range slices.Clone(changed) {
		other, err := l.otherAddress(ctx, jid.ToNonAD())
		if err != nil {
			l.log.Warnf("look up whose devices changed: %v", err)
		}
		changed = append(changed, other)
	}
	l.s.devices.forget(changed...)
}

// otherAddress is the LID of a number, or the number of a LID; empty: it is not known.
func (l *line) otherAddress(ctx context.Context, jid types.JID) (types.JID, error) {
	switch jid.Server {
	case types.DefaultUserServer:
		return l.client.Store.LIDs.GetLIDForPN(ctx, jid)
	case types.HiddenUserServer:
		return l.client.Store.LIDs.GetPNForLID(ctx, jid)
	}
	return types.EmptyJID, nil
}
