package whatsapp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mau.fi/libsignal/keys/prekey"
	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"

	"parley/internal/network"
	"parley/internal/network/whatsapp/keystore"
)

// whatsmeow's SendMessage blocks all other sends until the network confirms a message: one message per round trip, and
// a message that waits for keys blocks all. This file does the same with whatsmeow's own parts, but holds a lock only
// while it encrypts with known keys and writes to the socket. The gateway guarantees at most one message per chat at a
// time.

// errNothingEncrypted is why a message was not sent: without a ciphertext for the recipient, the network would confirm a
// message that nobody can read.
var errNothingEncrypted = errors.New("nothing could be encrypted for the recipient")

type outgoing struct {
	to, number types.JID // the LID, and the number if known
	id         types.MessageID
	raw        *waE2E.Message
	plain, own []byte // for the recipient; for our own devices, with the recipient's address
	hasWritten bool   // the recipient has written to this account

	stanza, ciphertext waBinary.Attrs
}

// prepare encodes a message and stores what later retries and votes need.
func (conn *connection) prepare(ctx context.Context, to types.JID, id types.MessageID, raw *waE2E.Message) (*outgoing, error) {
	p := &outgoing{to: to, id: id, raw: raw}
	var err error
	if p.number, err = conn.client.Store.LIDs.GetPNForLID(ctx, to); err != nil {
		return nil, err
	}
	conn.addSecret(raw, to, id)
	if p.plain, err = proto.Marshal(raw); err != nil {
		return nil, fmt.Errorf("encode a message: %w", err)
	}
	p.own, err = proto.Marshal(&waE2E.Message{
		DeviceSentMessage:  &waE2E.DeviceSentMessage{DestinationJID: new(to.String()), Message: raw},
		MessageContextInfo: raw.MessageContextInfo,
	})
	if err != nil {
		return nil, fmt.Errorf("encode a message for our own devices: %w", err)
	}
	p.stanza, p.ciphertext = stanzaAttrs(raw)
	p.stanza["id"], p.stanza["to"] = id, to
	if err := conn.inner().AddRecentMessage(ctx, to, id, raw, nil); err != nil {
		return nil, err
	}
	return p, conn.storePollSecret(ctx, to, id, raw)
}

// addSecret gives a message the secret that its reporting token is made with, as every message of WhatsApp Web has one. It follows from
// the id, so that a message that is made again has it too, and nothing has to be stored.
func (conn *connection) addSecret(raw *waE2E.Message, to types.JID, id types.MessageID) {
	if !conn.inner().ShouldIncludeReportingToken(raw) || raw.GetMessageContextInfo().GetMessageSecret() != nil {
		return
	}
	if raw.MessageContextInfo == nil {
		raw.MessageContextInfo = &waE2E.MessageContextInfo{}
	}
	hash := hmac.New(sha256.New, conn.client.Store.IdentityKey.Priv[:])
	fmt.Fprintf(hash, "message secret %s %s", to, id)
	raw.MessageContextInfo.MessageSecret = hash.Sum(nil)
}

// reportingToken lets the recipient prove to the network what was sent, without that the network can read it.
func (conn *connection) reportingToken(raw *waE2E.Message, plain []byte, own, to types.JID, id types.MessageID) []waBinary.Node {
	if !conn.inner().ShouldIncludeReportingToken(raw) {
		return nil
	}
	return []waBinary.Node{conn.inner().GetMessageReportingToken(plain, raw, own, to, id)}
}

// storePollSecret stores what the votes of a poll are encrypted with.
func (conn *connection) storePollSecret(ctx context.Context, to types.JID, id types.MessageID, raw *waE2E.Message) error {
	if raw.PollCreationMessage == nil {
		return nil
	}
	return conn.secrets.PutMessageSecret(ctx, to, conn.lid, id, raw.GetMessageContextInfo().GetMessageSecret())
}

// transmit sends a message and waits for its confirmation. After an error that is not of the class Unknown and not a
// refusal, the network has nothing of it.
func (conn *connection) transmit(ctx context.Context, to types.JID, id types.MessageID, raw *waE2E.Message) error {
	p, err := conn.prepare(ctx, to, id, raw)
	if err != nil {
		return err
	}
	all, complete, err := conn.resolveAll(ctx, p)
	if err != nil {
		return err
	}
	ack := conn.acks.expect(id)
	defer conn.acks.remove(id)
	reached, err := conn.encryptAndSend(ctx, p, all, false)
	if err != nil {
		return err
	}
	timer := time.NewTimer(conn.s.d.ackTimeout)
	defer timer.Stop()
	select {
	case node, ok := <-ack:
		if ok {
			return conn.handleAck(p, node, all.devices, reached, complete)
		}
		err = &whatsmeow.DisconnectedError{Action: "message send"}
	case <-timer.C:
		err = whatsmeow.ErrMessageTimedOut
	case <-ctx.Done():
		err = ctx.Err()
	}
	return network.OutcomeUnknown(fmt.Errorf("send: %w", err))
}

// resolveAll returns the devices to encrypt for. complete is false if our own devices were not resolved in time.
func (conn *connection) resolveAll(ctx context.Context, p *outgoing) (all recipients, complete bool, err error) {
	own, known := conn.cachedOwnDevices(ctx)
	var pending *pendingQuery[recipients]
	if !known {
		pending = conn.resolveOwn()
	}
	all, err = conn.resolve(ctx, p.to, p.number)
	if err != nil || p.to.ToNonAD() == conn.lid.ToNonAD() {
		return all, true, err
	}
	if pending != nil {
		if own, known = awaitOwn(ctx, pending); !known {
			return all, false, ctx.Err()
		}
	}
	return all.merge(own), true, nil
}

// encryptAndSend encrypts a message and writes it to the socket. It returns the devices that it is encrypted for.
func (conn *connection) encryptAndSend(ctx context.Context, p *outgoing, all recipients, isRest bool) ([]types.JID, error) {
	conn.sending.Lock()
	defer conn.sending.Unlock()
	in := conn.inner()
	ciphertexts, reached, err := conn.encrypt(ctx, p, all, isRest)
	if err != nil {
		return nil, err
	}
	if isRest {
		return reached, conn.sendEach(ctx, p, ciphertexts)
	}
	attrs := maps.Clone(p.stanza)
	if !p.number.IsEmpty() {
		attrs["peer_recipient_pn"] = p.number
	}
	content := messageContent(in.GetMessageContent, waBinary.Node{Tag: "participants", Content: ciphertexts}, p.raw, attrs,
		startsSession(ciphertexts))
	content = append(content, conn.reportingToken(p.raw, p.plain, conn.lid, p.to, p.id)...)
	if token := conn.privacyToken(ctx, p.to); token != nil {
		content = append(content, *token)
	}
	if err := in.SendNode(ctx, waBinary.Node{Tag: "message", Attrs: attrs, Content: content}); err != nil {
		return nil, conn.writeFailed(ctx, err)
	}
	conn.issuePrivacyToken(p.to)
	return reached, nil
}

// sendEach sends a message to single devices, because it has been to the others. The stanzas are like those of a retry.
func (conn *connection) sendEach(ctx context.Context, p *outgoing, ciphertexts []waBinary.Node) error {
	for _, one := range ciphertexts {
		device, _ := one.Attrs["jid"].(types.JID)
		attrs := maps.Clone(p.stanza)
		attrs["to"], attrs["t"], attrs["device_fanout"] = device, time.Now().Unix(), false
		if conn.isOwn(device) {
			attrs["recipient"] = p.to
		}
		content := messageContent(conn.inner().GetMessageContent, one.GetChildByTag("enc"), p.raw, attrs, startsSession([]waBinary.Node{one}))
		if err := conn.inner().SendNode(ctx, waBinary.Node{Tag: "message", Attrs: attrs, Content: content}); err != nil {
			return conn.writeFailed(ctx, err)
		}
	}
	return nil
}

// writeFailed handles an error of the socket. The network ignores half a frame, so it has nothing of the message. Only
// a cancelled write may still go out.
func (conn *connection) writeFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return network.OutcomeUnknown(fmt.Errorf("send: %w", err))
	}
	if conn.isBroken(err) {
		conn.lost()
	}
	return err
}

// encrypt encrypts a message for devices and stores their sessions. It never queries the network: a device without keys
// is left out. It returns the ciphertexts and their devices. Unless the message has been to the recipient before, one of
// them must be the recipient's.
func (conn *connection) encrypt(ctx context.Context, p *outgoing, all recipients, isRest bool) ([]waBinary.Node, []types.JID, error) {
	var addresses []string
	for _, device := range all.devices {
		if !conn.isThisDevice(device) {
			addresses = append(addresses, device.SignalAddress().String())
		}
	}
	existing, cached, err := conn.client.Store.WithCachedSessions(ctx, addresses)
	if err != nil {
		return nil, nil, err
	}
	var ciphertexts []waBinary.Node
	var reached []types.JID
	for _, device := range all.devices {
		if conn.isThisDevice(device) {
			continue
		}
		plain := p.plain
		if conn.isOwn(device) && p.to.ToNonAD() != conn.lid.ToNonAD() {
			plain = p.own
		}
		ciphertext, err := conn.encryptFor(cached, plain, device, device, all.bundles[device], p.ciphertext, existing)
		if err != nil {
			if ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
			if _, unstored := errors.AsType[*keystore.Error](err); unstored {
				return nil, nil, err // the device would never get the message
			}
			conn.log.Warnf("encrypt for %s: %v", device, err)
			continue
		}
		ciphertexts, reached = append(ciphertexts, *ciphertext), append(reached, device)
		if device.User == p.to.User && !startsSession(ciphertexts[len(ciphertexts)-1:]) {
			p.hasWritten = true
		}
	}
	if !isRest && !slices.ContainsFunc(reached, func(device types.JID) bool { return device.User == p.to.User }) {
		return nil, nil, errNothingEncrypted
	}
	return ciphertexts, reached, conn.client.Store.PutCachedSessions(cached)
}

// encryptFor encrypts a message for a device, in the session with it if there is one, otherwise in a new session.
func (conn *connection) encryptFor(ctx context.Context, plain []byte, wire, device types.JID, bundle *prekey.Bundle, attrs waBinary.Attrs,
	existing map[string]bool) (*waBinary.Node, error) {
	address := device.SignalAddress()
	if !existing[address.String()] {
		to, _, err := conn.inner().EncryptMessageForDeviceAndWrap(ctx, plain, wire, device, bundle, attrs, existing)
		return to, err
	}
	ciphertext, starts, err := keystore.Encrypt(ctx, conn.client.Store, address, pad(plain))
	if err != nil {
		return nil, err
	}
	enc := waBinary.Attrs{"v": "2", "type": "msg"}
	if starts {
		enc["type"] = "pkmsg"
	}
	maps.Copy(enc, attrs)
	return &waBinary.Node{Tag: "to", Attrs: waBinary.Attrs{"jid": wire}, Content: []waBinary.Node{
		{Tag: "enc", Attrs: enc, Content: ciphertext},
	}}, nil
}

// startsSession reports whether a ciphertext starts a session; the reader then needs our identity.
func startsSession(ciphertexts []waBinary.Node) bool {
	return slices.ContainsFunc(ciphertexts, func(to waBinary.Node) bool {
		enc := to.GetChildByTag("enc")
		return enc.Attrs["type"] == "pkmsg"
	})
}

// messageContent calls whatsmeow's GetMessageContent with a zero last parameter, whose type has no public name. That
// one is for bots and groups.
func messageContent[X any](content func(waBinary.Node, *waE2E.Message, waBinary.Attrs, bool, X) []waBinary.Node,
	base waBinary.Node, raw *waE2E.Message, attrs waBinary.Attrs, identity bool) []waBinary.Node {
	var none X
	return content(base, raw, attrs, identity, none)
}

// privacyToken proves to the network that the recipient accepts messages from this account; nil: no token.
func (conn *connection) privacyToken(ctx context.Context, to types.JID) *waBinary.Node {
	token, err := conn.inner().EnsureTCToken(ctx, to)
	if err != nil {
		conn.log.Warnf("read a privacy token: %v", err) // whether it matters the network says
	}
	if len(token) > 0 {
		return &waBinary.Node{Tag: "tctoken", Content: token}
	}
	if token = conn.inner().GenerateCsToken(ctx, to); len(token) > 0 {
		return &waBinary.Node{Tag: "cstoken", Content: token}
	}
	return nil
}

const tokenWeek = 7 * 24 * 60 * 60 // seconds

// issuePrivacyToken allows a contact to write to this account. It is sent once a week.
func (conn *connection) issuePrivacyToken(to types.JID) {
	now := time.Now()
	week := now.Unix() / tokenWeek
	given := conn.inner().GetTCTokenSenderTS(to) // which is stored, if the contact gave us a token too
	if last, _ := conn.s.tokens.get(to); last >= week || !given.IsZero() && given.Unix()/tokenWeek >= week {
		return
	}
	conn.s.tokens.put(to, week, maxDeviceLists)
	conn.goBackground(func() {
		var panicked error
		defer conn.s.recoverPanic(&panicked)
		if conn.inner().IssuePrivacyTokenAndSave(to, now); !conn.inner().GetTCTokenSenderTS(to).Equal(now) {
			conn.s.tokens.remove(to) // it failed
		}
	})
}

// maxRefreshes is how often in an hour the devices of a chat are asked for again because the network names others than we do. Some
// hashes never match, and in a large group every query is about all of its members.
const maxRefreshes = 2

// handleAck reads the network's confirmation. Its hash names the devices that the network knows. Devices that the
// message did not reach get it now.
func (conn *connection) handleAck(p *outgoing, node *waBinary.Node, listed, reached []types.JID, complete bool) error {
	attrs := node.AttrGetter()
	conn.s.clock.improve(attrs.OptionalUnixTime("t"))
	if code := attrs.OptionalInt("error"); code != 0 {
		if code == codeStale {
			conn.s.devices.invalidate(p.to, p.number, conn.lid, conn.jid)
		}
		return conn.refusalError(code, p.hasWritten)
	}
	hash := attrs.OptionalString("phash")
	if complete && hash != "" && hash != devicesHash(listed) && conn.s.refreshes.allows(p.to, maxRefreshes) {
		conn.s.devices.invalidate(p.to, p.number, conn.lid, conn.jid)
		complete = false
	}
	if !complete {
		conn.goBackground(func() { conn.sendToMissedDevices(p, reached) })
	}
	return nil
}

// sendToMissedDevices sends a message to the devices of its recipient, and of the account, that it has not reached.
func (conn *connection) sendToMissedDevices(p *outgoing, reached []types.JID) {
	var err error
	defer conn.s.recoverPanic(&err)
	them, err := conn.resolve(conn.ctx, p.to, p.number)
	if err == nil {
		var ours recipients
		ours, err = conn.resolve(conn.ctx, conn.lid, conn.jid)
		them = them.merge(ours)
	}
	them.devices = slices.DeleteFunc(them.devices, func(d types.JID) bool { return conn.isThisDevice(d) || slices.Contains(reached, d) })
	if len(them.devices) > 0 {
		ctx, done := conn.s.d.keys.SendContext(conn.ctx)
		defer done()
		_, err = conn.encryptAndSend(ctx, p, them, true)
	}
	if err != nil {
		conn.log.Warnf("send %s to devices that it has not reached: %v", p.id, err)
	}
}

// devicesHash is how the network names a list of devices.
func devicesHash(devices []types.JID) string {
	var names []string
	for _, jid := range devices {
		names = append(names, jid.ADString())
	}
	slices.Sort(names)
	hash := sha256.Sum256([]byte(strings.Join(names, "")))
	return "2:" + base64.RawStdEncoding.EncodeToString(hash[:6])
}

// waiters are messages that wait for something from the network, such as a confirmation. whatsmeow's own list would hold
// unconfirmed ones until the connection ends.
type waiters[T any] struct {
	mu      sync.Mutex
	waiting map[types.MessageID]chan T
	closed  bool // the connection has ended: nothing will come
}

// expect returns the channel for what a message waits for. It is closed if the connection ends first.
func (w *waiters[T]) expect(id types.MessageID) <-chan T {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := make(chan T, 1)
	if w.closed {
		close(c)
		return c
	}
	if w.waiting == nil {
		w.waiting = map[types.MessageID]chan T{}
	}
	w.waiting[id] = c
	return c
}

func (w *waiters[T]) remove(id types.MessageID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, id)
}

// deliver passes on what came. It is dropped if nothing waits for it.
func (w *waiters[T]) deliver(id types.MessageID, v T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.waiting[id]; c != nil {
		delete(w.waiting, id)
		c <- v
	}
}

func (w *waiters[T]) closeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, c := range w.waiting {
		close(c)
	}
	w.waiting = nil
}
