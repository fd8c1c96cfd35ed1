package whatsapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.mau.fi/libsignal/keys/prekey"
	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// A message is encrypted for each device of its recipient and of the account. whatsmeow queries devices and keys while
// it holds a lock that every other send needs. Here they are queried before any lock is acquired, so a query without a
// response delays the messages of one contact only.

const (
	// deviceQueryTimeout is how long a send waits for the devices or the keys of a contact.
	deviceQueryTimeout = 15 * time.Second
	// queryRetryAfter is when a query is sent a second time, in case its response was lost.
	queryRetryAfter = 5 * time.Second
	// maxDeviceLists is how many contacts' devices are cached. Beyond that the cache starts over.
	maxDeviceLists = 8192
)

// deviceLists caches the devices of contacts. An entry starts as a pending query that all its readers share.
type deviceLists struct {
	mu      sync.Mutex
	byJID   map[types.JID]*deviceList // under the LID and the number alike
	changes int                       // how often something was invalidated
}

type deviceList struct {
	jids []types.JID
	pendingQuery[[]types.JID]
}

// find returns the entry of a contact, and whether the caller has to fill it.
func (c *deviceLists) find(names ...types.JID) (list *deviceList, isNew bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if list := c.byJID[names[0]]; list != nil {
		return list, false
	}
	if c.byJID == nil || len(c.byJID) >= 2*maxDeviceLists {
		c.byJID = map[types.JID]*deviceList{}
	}
	list = &deviceList{pendingQuery: pendingQuery[[]types.JID]{ready: make(chan struct{})}}
	for _, name := range names {
		if !name.IsEmpty() {
			list.jids = append(list.jids, name)
			c.byJID[name] = list
		}
	}
	return list, true
}

// known returns an entry whose query has finished, or nil.
func (c *deviceLists) known(name types.JID) *deviceList {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.byJID[name]
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
	list.value, list.err = devices, err
	if err != nil {
		c.mu.Lock()
		c.remove(list)
		c.mu.Unlock()
	}
	close(list.ready)
}

// invalidate removes entries. A pending query still serves its waiters but nobody after them: its response may predate
// the change.
func (c *deviceLists) invalidate(names ...types.JID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	for _, name := range names {
		if list := c.byJID[name.ToNonAD()]; list != nil {
			c.remove(list)
		}
	}
}

// changed returns how often something was invalidated, for putAll.
func (c *deviceLists) changed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes
}

// putAll adds the devices of contacts that have no entry, unless something changed since the query started.
func (c *deviceLists) putAll(devices map[types.JID][]types.JID, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes != changes {
		return
	}
	if c.byJID == nil || len(c.byJID)+len(devices) >= 2*maxDeviceLists {
		c.byJID = map[types.JID]*deviceList{}
	}
	done := make(chan struct{})
	close(done)
	for jid, list := range devices {
		if c.byJID[jid] == nil && len(list) > 0 {
			c.byJID[jid] = &deviceList{jids: []types.JID{jid}, pendingQuery: pendingQuery[[]types.JID]{ready: done, value: list}}
		}
	}
}

func (c *deviceLists) remove(list *deviceList) {
	for _, name := range list.jids {
		if c.byJID[name] == list {
			delete(c.byJID, name)
		}
	}
}

// startDeviceQuery returns the entry of a contact and starts the query if there is no entry.
func (conn *connection) startDeviceQuery(lid, number types.JID) *deviceList {
	lid, number = lid.ToNonAD(), number.ToNonAD()
	list, isNew := conn.s.devices.find(lid, number)
	if isNew && !conn.goBackground(func() {
		devices, err := conn.queryDevices(lid)
		conn.s.devices.fill(list, devices, err)
	}) {
		conn.s.devices.fill(list, nil, errConnectionEnded)
	}
	return list
}

func (conn *connection) contactDevices(ctx context.Context, lid, number types.JID) ([]types.JID, error) {
	for tries := 1; ; tries++ {
		devices, err := conn.startDeviceQuery(lid, number).await(ctx)
		if err == nil || tries > 1 || isOverLimit(err) || ctx.Err() != nil || conn.ctx.Err() != nil {
			return devices, err
		} // the query may have been one of the connection before
	}
}

var errConnectionEnded = errors.New("the connection has ended")

func (conn *connection) queryDevices(lid types.JID) ([]types.JID, error) {
	return queryWithRetry(conn.ctx, conn, func(ctx context.Context) ([]types.JID, error) {
		query := []waBinary.Node{{Tag: "devices", Attrs: waBinary.Attrs{"version": "2"}}}
		list, err := conn.inner().Usync(ctx, []types.JID{lid}, "query", "message", query)
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
			return nil, errNothingEncrypted // no device to encrypt for
		}
		return devices, nil
	})
}

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
			jid.Server = map[string]string{types.HiddenUserServer: types.HostedLIDServer,
				types.DefaultUserServer: types.HostedServer}[of.Server]
		}
		devices = append(devices, jid)
	}
	return devices
}

// queryWithRetry sends a query, and once more if the response is late. The first response wins.
func queryWithRetry[A any](ctx context.Context, conn *connection, ask func(context.Context) (A, error)) (A, error) {
	ctx, cancel := context.WithTimeout(ctx, conn.s.d.queryTimeout)
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
			defer conn.s.recoverPanic(&a.err)
			a.value, a.err = ask(ctx)
		}()
	}
	start()
	late := time.NewTimer(conn.s.d.queryRetryAfter)
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

func (r recipients) merge(others recipients) recipients {
	all := recipients{slices.Concat(r.devices, others.devices), map[types.JID]*prekey.Bundle{}}
	maps.Copy(all.bundles, r.bundles)
	maps.Copy(all.bundles, others.bundles)
	return all
}

// resolve returns the devices of a contact, with the keys to start missing sessions.
func (conn *connection) resolve(ctx context.Context, lid, number types.JID) (recipients, error) {
	devices, err := conn.contactDevices(ctx, lid, number)
	if err != nil {
		return recipients{}, err
	}
	bundles, err := conn.keysFor(ctx, devices)
	return recipients{devices, bundles}, err
}

// keysFor returns the keys to start the missing sessions. They are asked for once: every request uses up one key of each device.
func (conn *connection) keysFor(ctx context.Context, devices []types.JID) (map[types.JID]*prekey.Bundle, error) {
	missing, err := conn.withoutSession(ctx, devices)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, conn.s.d.queryTimeout)
	defer cancel()
	before := conn.overLimit.Load()
	bundles := conn.inner().FetchPreKeysNoError(ctx, missing)
	switch {
	case bundles != nil:
		return bundles, nil
	case conn.overLimit.Load() != before: // whatsmeow only logs what the network answered
		return nil, whatsmeow.ErrIQRateOverLimit
	}
	return nil, cmp.Or(ctx.Err(), errNoKeysGiven)
}

// errNoKeysGiven is why a message is not sent now: devices that have no session and no keys could not read it.
var errNoKeysGiven = errors.New("WhatsApp did not give the keys of the recipient's devices")

// withoutSession returns the devices that there is no session with, without this one.
func (conn *connection) withoutSession(ctx context.Context, devices []types.JID) ([]types.JID, error) {
	var missing []types.JID
	for _, device := range devices {
		if conn.isThisDevice(device) {
			continue
		}
		has, err := conn.client.Store.ContainsSession(ctx, device.SignalAddress())
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
func (conn *connection) resolveOwn() *pendingQuery[recipients] {
	return conn.ownDevices.join(conn, func() (recipients, error) { return conn.resolve(conn.ctx, conn.lid, conn.jid) })
}

// cachedOwnDevices returns the account's own devices if no query is needed.
func (conn *connection) cachedOwnDevices(ctx context.Context) (recipients, bool) {
	list := conn.s.devices.known(conn.lid.ToNonAD())
	if list == nil {
		return recipients{}, false
	}
	missing, err := conn.withoutSession(ctx, list.value)
	return recipients{devices: list.value}, err == nil && len(missing) == 0
}

func awaitOwn(ctx context.Context, own *pendingQuery[recipients]) (recipients, bool) {
	ctx, cancel := context.WithTimeout(ctx, ownGrace)
	defer cancel()
	r, err := own.await(ctx)
	return r, err == nil
}

func (conn *connection) isThisDevice(device types.JID) bool {
	return device == conn.jid || device == conn.lid
}

// onDeviceNotification drops cached devices that changed, and notes who has new keys.
func (conn *connection) onDeviceNotification(ctx context.Context, node *waBinary.Node) {
	changed := []types.JID{node.AttrGetter().OptionalJIDOrEmpty("from"), node.AttrGetter().OptionalJIDOrEmpty("lid")}
	switch node.Attrs["type"] {
	case "devices", "encrypt":
	case "account_sync":
		if _, ok := node.GetOptionalChildByTag("devices"); !ok {
			return
		}
		changed = append(changed, conn.jid, conn.lid)
	default:
		return
	}
	for _, jid := range slices.Clone(changed) {
		other, err := conn.client.Store.GetAltJID(ctx, jid.ToNonAD())
		if err != nil {
			conn.log.Warnf("look up whose devices changed: %v", err)
		}
		changed = append(changed, other)
	}
	conn.s.devices.invalidate(changed...)
	if _, again := node.GetOptionalChildByTag("identity"); again && node.Attrs["type"] == "encrypt" {
		if err := conn.removeHolders(ctx, changed); err != nil {
			conn.log.Warnf("note that a contact has new keys: %v", err)
		}
	}
}

// pendingQuery is a question under way for which several wait.
type pendingQuery[T any] struct {
	ready chan struct{} // closed when the query has finished
	value T
	err   error
}

func (f *pendingQuery[T]) await(ctx context.Context) (T, error) {
	select {
	case <-f.ready:
		return f.value, f.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// sharedQuery sends one query for all callers that need its result at the same time.
type sharedQuery[T any] struct {
	mu      sync.Mutex
	current *pendingQuery[T]
}

// join returns the pending query, or starts it on a connection.
func (s *sharedQuery[T]) join(conn *connection, ask func() (T, error)) *pendingQuery[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		return s.current
	}
	f := &pendingQuery[T]{ready: make(chan struct{}), err: errConnectionEnded}
	started := conn.goBackground(func() {
		defer close(f.ready)
		defer func() {
			s.mu.Lock()
			s.current = nil
			s.mu.Unlock()
		}()
		defer conn.s.recoverPanic(&f.err)
		f.value, f.err = ask()
	})
	if !started {
		close(f.ready)
		return f
	}
	s.current = f
	return f
}
