package whatsapp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.mau.fi/libsignal/groups"
	"go.mau.fi/libsignal/groups/state/record"
	groupstore "go.mau.fi/libsignal/groups/state/store"
	"go.mau.fi/libsignal/keys/prekey"
	"go.mau.fi/libsignal/protocol"
	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/keystore"
)

// A message to a group is encrypted once, with the sender key of this device, which every device of the group has. whatsmeow
// encrypts that key for every device with every message. Here a device gets it once: the keystore has a list of its holders.
// When a holder is gone, because it left the group or was unlinked, the key is renewed. A device that has no key after all
// asks for the message again, and gets the key with it.

const (
	maxGroups    = 512 // whose members are cached
	maxGroupSent = 256 // messages to groups that are cached for retries
)

// groupInfos caches the members of groups. An entry starts as a pending query that all its readers share.
type groupInfos struct {
	mu    sync.Mutex
	byJID map[types.JID]*pendingQuery[*types.GroupInfo]
}

func (c *groupInfos) find(group types.JID) (q *pendingQuery[*types.GroupInfo], isNew bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.byJID[group]; q != nil {
		return q, false
	}
	if c.byJID == nil || len(c.byJID) >= maxGroups {
		c.byJID = map[types.JID]*pendingQuery[*types.GroupInfo]{}
	}
	q = &pendingQuery[*types.GroupInfo]{ready: make(chan struct{})}
	c.byJID[group] = q
	return q, true
}

// invalidate removes an entry. A pending query still serves its waiters, but nobody after them.
func (c *groupInfos) invalidate(group types.JID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byJID, group)
}

// groupInfo returns a group with its members. The network is queried once, until the members change.
func (conn *connection) groupInfo(ctx context.Context, group types.JID) (*types.GroupInfo, error) {
	q, isNew := conn.s.groups.find(group)
	if isNew {
		query := func() {
			q.value, q.err = queryWithRetry(conn.ctx, conn, func(ctx context.Context) (*types.GroupInfo, error) {
				return conn.client.GetGroupInfo(ctx, group)
			})
			if q.err != nil {
				conn.s.groups.invalidate(group)
			}
			close(q.ready)
		}
		if !conn.goBackground(query) {
			q.err = errConnectionEnded
			conn.s.groups.invalidate(group)
			close(q.ready)
		}
	}
	g, err := q.await(ctx)
	if errors.Is(err, whatsmeow.ErrGroupNotFound) || errors.Is(err, whatsmeow.ErrNotInGroup) {
		return nil, network.ErrNotInGroup
	}
	return g, err
}

// groupDevice is a device of a group: how the group names it, and how its session is named.
type groupDevice struct{ wire, session types.JID }

// groupDevices lists the devices of all members of a group. Devices that are not cached are queried together.
func (conn *connection) groupDevices(ctx context.Context, g *types.GroupInfo) ([]groupDevice, error) {
	var missing []types.JID
	lids := make([]types.JID, len(g.Participants))
	for i, p := range g.Participants {
		lids[i] = conn.sessionJID(ctx, p)
		if conn.s.devices.known(lids[i]) == nil {
			missing = append(missing, lids[i])
		}
	}
	fresh, err := conn.queryManyDevices(ctx, missing)
	if err != nil {
		return nil, err
	}
	var all []groupDevice
	for i, p := range g.Participants {
		devices := fresh[lids[i]]
		if list := conn.s.devices.known(lids[i]); list != nil {
			devices = list.value
		}
		for _, d := range devices {
			if d.Server == types.HostedServer || d.Server == types.HostedLIDServer { // they are not part of groups
				continue
			}
			wire := d
			if p.JID.Server != d.Server {
				wire = types.JID{User: p.JID.User, Server: p.JID.Server, Device: d.Device}
			}
			all = append(all, groupDevice{wire, d})
		}
	}
	return all, nil
}

// sessionJID is the address of a member whose sessions are used: the LID, if it is known.
func (conn *connection) sessionJID(ctx context.Context, p types.GroupParticipant) types.JID {
	if !p.LID.IsEmpty() {
		return p.LID.ToNonAD()
	}
	if lid, err := conn.client.Store.LIDs.GetLIDForPN(ctx, p.JID.ToNonAD()); err == nil && !lid.IsEmpty() {
		return lid.ToNonAD()
	}
	return p.JID.ToNonAD()
}

// queryManyDevices queries the devices of several contacts with one request, and caches them.
func (conn *connection) queryManyDevices(ctx context.Context, jids []types.JID) (map[types.JID][]types.JID, error) {
	if len(jids) == 0 {
		return nil, nil
	}
	changes := conn.s.devices.changed()
	found, err := queryWithRetry(ctx, conn, func(ctx context.Context) (map[types.JID][]types.JID, error) {
		query := []waBinary.Node{{Tag: "devices", Attrs: waBinary.Attrs{"version": "2"}}}
		list, err := conn.inner().Usync(ctx, jids, "query", "message", query)
		if err != nil {
			return nil, fmt.Errorf("ask for devices: %w", err)
		}
		found := map[types.JID][]types.JID{}
		for _, user := range list.GetChildrenByTag("user") {
			if jid, ok := user.Attrs["jid"].(types.JID); ok {
				found[jid.ToNonAD()] = append(found[jid.ToNonAD()], readDevices(jid, user)...)
			}
		}
		return found, nil
	})
	if err == nil {
		conn.s.devices.putAll(found, changes)
	}
	return found, err
}

// keyHolders are the devices that have the current sender key of this device in a group.
type keyHolders struct {
	key     uint32 // its id
	devices map[string]bool
}

func parseHolders(text []byte) keyHolders {
	lines := strings.Split(string(text), "\n")
	id, _ := strconv.ParseUint(lines[0], 10, 32)
	h := keyHolders{uint32(id), make(map[string]bool, len(lines))}
	for _, device := range lines[1:] {
		h.devices[device] = true
	}
	return h
}

func (h keyHolders) text() []byte {
	var b strings.Builder
	b.WriteString(strconv.FormatUint(uint64(h.key), 10))
	for device := range h.devices {
		b.WriteString("\n" + device)
	}
	return []byte(b.String())
}

// removeHolders notes that contacts lost their keys, because they installed the app again: they get the sender keys of their groups with
// the next message.
func (conn *connection) removeHolders(ctx context.Context, contacts []types.JID) error {
	all, err := conn.groupKeys.AllKeyHolders(ctx)
	if err != nil {
		return err
	}
	for group, text := range all {
		holders := parseHolders(text)
		before := len(holders.devices)
		maps.DeleteFunc(holders.devices, func(device string, _ bool) bool {
			jid, err := types.ParseJID(device)
			return err == nil && slices.Contains(contacts, jid.ToNonAD())
		})
		if len(holders.devices) < before {
			if err := conn.groupKeys.PutKeyHolders(ctx, group, holders.text()); err != nil {
				return err
			}
		}
	}
	return nil
}

// groupMessage is a message to a group before it is encrypted.
type groupMessage struct {
	group   types.JID
	id      types.MessageID
	raw     *waE2E.Message
	byLID   bool // the group names its members by LID
	devices []groupDevice
	changes int // of the devices of any contact, before these were looked up

	name     *protocol.SenderKeyName
	key      *protocol.SenderKeyDistributionMessage
	holders  keyHolders
	lacking  []groupDevice // devices that do not have the key
	bundles  map[types.JID]*prekey.Bundle
	newKeyOf []types.JID // devices that got the key with this message
}

// transmitToGroup sends a message to a group and waits for its confirmation. Its errors are those of transmit.
func (conn *connection) transmitToGroup(ctx context.Context, group types.JID, id types.MessageID, raw *waE2E.Message) error {
	m, err := conn.prepareForGroup(ctx, group, id, raw)
	if err != nil {
		return err
	}
	ack := conn.acks.expect(id)
	defer conn.acks.remove(id)
	if err := conn.encryptForGroup(ctx, m); err != nil {
		return err
	}
	timer := time.NewTimer(conn.s.d.ackTimeout)
	defer timer.Stop()
	select {
	case node, ok := <-ack:
		if ok {
			return conn.handleGroupAck(ctx, m, node)
		}
		err = &whatsmeow.DisconnectedError{Action: "message send"}
	case <-timer.C:
		err = whatsmeow.ErrMessageTimedOut
	case <-ctx.Done():
		err = ctx.Err()
	}
	return network.OutcomeUnknown(fmt.Errorf("send: %w", err))
}

// prepareForGroup finds the devices of the group, and those that need the sender key. All queries are here, before any lock.
func (conn *connection) prepareForGroup(
	ctx context.Context, group types.JID, id types.MessageID, raw *waE2E.Message,
) (*groupMessage, error) {
	g, err := conn.groupInfo(ctx, group)
	if err != nil {
		return nil, err
	}
	m := &groupMessage{group: group, id: id, raw: raw, byLID: g.AddressingMode == types.AddressingModeLID, changes: conn.s.devices.changed(),
		name: protocol.NewSenderKeyName(group.String(), conn.lid.SignalAddress())}
	if m.devices, err = conn.groupDevices(ctx, g); err != nil {
		return nil, err
	}
	text, err := conn.groupKeys.KeyHolders(ctx, group.String())
	if err != nil {
		return nil, err
	}
	m.holders = parseHolders(text)
	keys := groupstore.SenderKey(conn.client.Store)
	if m.holderIsGone() {
		keys = renewedKeys{keys}
	}
	if m.key, err = groups.NewGroupSessionBuilder(keys, store.SignalProtobufSerializer).Create(ctx, m.name); err != nil {
		return nil, fmt.Errorf("sender key of a group: %w", err)
	}
	if m.key.ID() != m.holders.key {
		m.holders = keyHolders{m.key.ID(), map[string]bool{}}
	}
	var sessions []types.JID
	for _, d := range m.devices {
		if !conn.isThisDevice(d.session) && !m.holders.devices[d.session.ADString()] {
			m.lacking = append(m.lacking, d)
			sessions = append(sessions, d.session)
		}
	}
	if m.bundles, err = conn.keysFor(ctx, sessions); err != nil {
		return nil, err
	}
	conn.addSecret(raw, group, id)
	conn.s.groupSent.put(id, raw, maxGroupSent)
	return m, conn.storePollSecret(ctx, group, id, raw)
}

// holderIsGone reports whether a device has the key that is not in the group any more.
func (m *groupMessage) holderIsGone() bool {
	present := make(map[string]bool, len(m.devices))
	for _, d := range m.devices {
		present[d.session.ADString()] = true
	}
	for device := range m.holders.devices {
		if !present[device] {
			return true
		}
	}
	return false
}

// renewedKeys hides the present key, so that a new one is made and stored in its place.
type renewedKeys struct{ groupstore.SenderKey }

func (renewedKeys) LoadSenderKey(context.Context, *protocol.SenderKeyName) (*record.SenderKey, error) {
	s := store.SignalProtobufSerializer
	return record.NewSenderKey(s.SenderKeyRecord, s.SenderKeyState), nil
}

// encryptForGroup encrypts a message, and the sender key for the devices that lack it, and writes both to the socket.
func (conn *connection) encryptForGroup(ctx context.Context, m *groupMessage) error {
	plain, err := proto.Marshal(m.raw)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	conn.sending.Lock()
	defer conn.sending.Unlock()
	builder := groups.NewGroupSessionBuilder(conn.client.Store, store.SignalProtobufSerializer)
	sealed, err := groups.NewGroupCipher(builder, m.name, conn.client.Store).Encrypt(ctx, pad(plain))
	if err != nil {
		return fmt.Errorf("encrypt for a group: %w", err)
	}
	attrs, of := stanzaAttrs(m.raw)
	keys, err := conn.encryptKey(ctx, m, maps.Clone(of))
	if err != nil {
		return err
	}
	if !conn.isReadable(m) {
		return errNothingEncrypted
	}
	attrs["id"], attrs["to"] = m.id, m.group
	if m.byLID {
		attrs["addressing_mode"] = string(types.AddressingModeLID)
	}
	wire := make([]types.JID, len(m.devices))
	for i, d := range m.devices {
		wire[i] = d.wire
	}
	attrs["phash"] = devicesHash(wire)
	content := messageContent(conn.inner().GetMessageContent, waBinary.Node{Tag: "participants", Content: keys}, m.raw, attrs,
		startsSession(keys))
	if len(keys) == 0 {
		content = content[1:]
	}
	shared := waBinary.Node{Tag: "enc", Attrs: waBinary.Attrs{"v": "2", "type": "skmsg"}, Content: sealed.SignedSerialize()}
	for name, value := range of { // also who has no key must not see a placeholder for a reaction
		shared.Attrs[name] = value
	}
	own := conn.jid
	if m.byLID {
		own = conn.lid
	}
	content = append(append(content, shared), conn.reportingToken(m.raw, plain, own, m.group, m.id)...)
	if err := conn.inner().SendNode(ctx, waBinary.Node{Tag: "message", Attrs: attrs, Content: content}); err != nil {
		return conn.writeFailed(ctx, err)
	}
	return nil
}

// isReadable reports whether another member has the sender key, or there is no other.
func (conn *connection) isReadable(m *groupMessage) bool {
	alone := true
	for _, d := range m.devices {
		if conn.isOwn(d.session) {
			continue
		}
		if m.holders.devices[d.session.ADString()] || slices.Contains(m.newKeyOf, d.session) {
			return true
		}
		alone = false
	}
	return alone
}

// encryptKey encrypts the sender key for the devices that lack it. A device whose keys are missing is left out: it asks for
// the message again.
func (conn *connection) encryptKey(ctx context.Context, m *groupMessage, of waBinary.Attrs) ([]waBinary.Node, error) {
	if len(m.lacking) == 0 {
		return nil, nil
	}
	delete(of, "mediatype") // it is on the message only
	plain, err := proto.Marshal(&waE2E.Message{SenderKeyDistributionMessage: &waE2E.SenderKeyDistributionMessage{
		GroupID: new(m.group.String()), AxolotlSenderKeyDistributionMessage: m.key.Serialize(),
	}})
	if err != nil {
		return nil, fmt.Errorf("encode a sender key: %w", err)
	}
	addresses := make([]string, len(m.lacking))
	for i, d := range m.lacking {
		addresses[i] = d.session.SignalAddress().String()
	}
	existing, cached, err := conn.client.Store.WithCachedSessions(ctx, addresses)
	if err != nil {
		return nil, err
	}
	var keys []waBinary.Node
	for _, d := range m.lacking {
		key, err := conn.encryptFor(cached, plain, d.wire, d.session, m.bundles[d.session], of, existing)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if _, unstored := errors.AsType[*keystore.Error](err); unstored {
				return nil, err
			}
			conn.log.Warnf("encrypt a sender key for %s: %v", d.session, err)
			continue
		}
		keys, m.newKeyOf = append(keys, *key), append(m.newKeyOf, d.session)
	}
	return keys, conn.client.Store.PutCachedSessions(cached)
}

// handleGroupAck reads the network's confirmation, and stores who has the sender key now.
func (conn *connection) handleGroupAck(ctx context.Context, m *groupMessage, node *waBinary.Node) error {
	attrs := node.AttrGetter()
	conn.s.clock.improve(attrs.OptionalUnixTime("t"))
	code, hash := attrs.OptionalInt("error"), attrs.OptionalString("phash")
	wire := make([]types.JID, len(m.devices))
	for i, d := range m.devices {
		wire[i] = d.wire
	}
	changed := conn.s.devices.changed() != m.changes
	if code == codeStale || hash != "" && hash != devicesHash(wire) && conn.s.refreshes.allows(m.group, maxRefreshes) {
		// The network knows other devices or members.
		conn.s.groups.invalidate(m.group)
		for _, d := range m.devices {
			conn.s.devices.invalidate(d.session)
		}
	}
	switch code {
	case 0:
	case codeForbidden, codeNotFound:
		conn.s.groups.invalidate(m.group)
		if g, err := conn.groupInfo(ctx, m.group); err == nil && g.IsAnnounce && !conn.isAdmin(g) {
			return errOnlyAdmins
		}
		return network.ErrNotInGroup
	default:
		return conn.refusalError(code, false)
	}
	if len(m.newKeyOf) == 0 || changed { // a holder may have lost its keys meanwhile
		return nil
	}
	for _, device := range m.newKeyOf {
		m.holders.devices[device.ADString()] = true
	}
	if err := conn.groupKeys.PutKeyHolders(ctx, m.group.String(), m.holders.text()); err != nil {
		conn.log.Warnf("store who has the key of a group: %v", err) // they get it again with the next message
	}
	return nil
}

var errOnlyAdmins = network.Refuse(parley.Refused, "In this group only admins may write, and this account is none.")

func (conn *connection) isAdmin(g *types.GroupInfo) bool {
	return slices.ContainsFunc(g.Participants, func(p types.GroupParticipant) bool { return p.IsAdmin && conn.isOwn(p.JID) })
}

// pad adds 1 to 15 bytes, each with the length of the padding.
func pad(plain []byte) []byte {
	var b [1]byte
	rand.Read(b[:]) // never fails
	size := max(int(b[0]&15), 1)
	return append(slices.Clone(plain), slices.Repeat([]byte{byte(size)}, size)...)
}
