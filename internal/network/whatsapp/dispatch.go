package whatsapp

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// whatsmeow's SendMessage keeps all others waiting until the network has confirmed a message: an account
// then sends one message per round trip, and one that waits for keys stops all. What it does for a message to one
// person is done here with the same parts. Nothing is held while the network is asked: only encrypting, with keys
// that are there, and writing to the socket are one at a time. That of one chat there is never more than one
// message under way is the gateway's part.

// parcel is a message on its way to somebody.
type parcel struct {
	to, number types.JID // the LID, and the number where it is known
	id         types.MessageID
	raw        *waE2E.Message
	plain, own []byte // for the recipient, and for our own devices, which are told whom it went to

	stanza, ciphertext waBinary.Attrs
}

// pack encodes a message, and stores what is needed of it when somebody asks for it again or votes.
func (l *line) pack(ctx context.Context, to types.JID, id types.MessageID, raw *waE2E.Message) (*parcel, error) {
	p := &parcel{to: to, id: id, raw: raw}
	var err error
	if p.number, err = l.client.Store.LIDs.GetPNForLID(ctx, to); err != nil {
		return nil, err
	}
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
	if err := l.inner().AddRecentMessage(ctx, to, id, raw, nil); err != nil {
		return nil, err
	}
	if secret := raw.GetMessageContextInfo().GetMessageSecret(); secret != nil { // the votes of a poll are under it
		return p, l.secrets.PutMessageSecret(ctx, to, l.lid, id, secret)
	}
	return p, nil
}

// transmit gives the network a message and waits until it confirms it.
func (l *line) transmit(ctx context.Context, to types.JID, id types.MessageID, raw *waE2E.Message) error {
	p, err := l.pack(ctx, to, id, raw)
	if err != nil {
		return err
	}
	all, complete, err := l.resolveAll(ctx, p)
	if err != nil {
		return err
	}
	ack := l.acks.expect(id)
	defer l.acks.forget(id)
	reached, err := l.dispatch(ctx, p, all, false)
	if err != nil {
		return err
	}
	timer := time.NewTimer(l.s.d.ackTimeout)
	defer timer.Stop()
	select {
	case node, ok := <-ack:
		if !ok {
			return &whatsmeow.DisconnectedError{Action: "message send"}
		}
		return l.confirmed(p, node, all.devices, reached, complete)
	case <-timer.C:
		return whatsmeow.ErrMessageTimedOut
	case <-ctx.Done():
		return ctx.Err()
	}
}

// resolveAll finds out for which devices a message has to be encrypted, and with what. It reports false where
// our own devices are not among them because that could not be found out in time.
func (l *line) resolveAll(ctx context.Context, p *parcel) (all recipients, complete bool, err error) {
	own, known := l.ownNow(ctx)
	var pending *flight[recipients]
	if !known {
		pending = l.resolveOwn()
	}
	all, err = l.resolve(ctx, p.to, p.number)
	if err != nil || p.to.ToNonAD() == l.lid.ToNonAD() {
		return all, true, err
	}
	if pending != nil {
		if own, known = awaitOwn(ctx, pending); !known {
			return all, false, ctx.Err()
		}
	}
	return all.with(own), true, nil
}

// dispatch encrypts a message and writes it to the socket. It returns the devices that it is encrypted for.
func (l *line) dispatch(ctx context.Context, p *parcel, all recipients, isRest bool) ([]types.JID, error) {
	l.sending.Lock()
	defer l.sending.Unlock()
	in := l.inner()
	ciphertexts, reached, err := l.encrypt(ctx, p, all)
	if err != nil {
		return nil, err
	}
	if watch := sealOf(ctx); watch != nil && !watch.isSealed() {
		return nil, watch.note(errUnsealed)
	}
	attrs := maps.Clone(p.stanza)
	if isRest { // for these devices only: it has been to the others
		attrs["device_fanout"] = "false"
	}
	if !p.number.IsEmpty() {
		attrs["peer_recipient_pn"] = p.number
	}
	content := withoutExtras(in.GetMessageContent, waBinary.Node{Tag: "participants", Content: ciphertexts}, p.raw, attrs, haveIdentity(ciphertexts))
	if token := l.token(ctx, p.to); token != nil {
		content = append(content, *token)
	}
	if err := in.SendNode(ctx, waBinary.Node{Tag: "message", Attrs: attrs, Content: content}); err != nil {
		return nil, l.unwritten(ctx, err)
	}
	l.introduce(p.to)
	return reached, nil
}

// unwritten takes note that a message could not be written to the socket. The network has nothing of it then:
// it does not read half a frame. Only where the writing was given up it may go on.
func (l *line) unwritten(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	if watch := sealOf(ctx); watch != nil {
		watch.broken(err)
	}
	if l.isBroken(err) {
		l.lost()
	}
	return err
}

// encrypt encrypts a message for devices, and stores the sessions as they are after that. It asks the network
// for nothing: a device whose keys are not there is left out. It returns the ciphertexts and for whom they are.
func (l *line) encrypt(ctx context.Context, p *parcel, all recipients) ([]waBinary.Node, []types.JID, error) {
	var addresses []string
	for _, device := range all.devices {
		if !l.isThis(device) {
			addresses = append(addresses, device.SignalAddress().String())
		}
	}
	existing, cached, err := l.client.Store.WithCachedSessions(ctx, addresses)
	if err != nil {
		return nil, nil, err
	}
	var ciphertexts []waBinary.Node
	var reached []types.JID
	for _, device := range all.devices {
		if l.isThis(device) {
			continue
		}
		plain, bundle := p.plain, all.bundles[device]
		if l.isOwn(device) && p.to.ToNonAD() != l.lid.ToNonAD() {
			plain = p.own
		}
		if existing[device.SignalAddress().String()] {
			bundle = nil
		}
		ciphertext, _, err := l.inner().EncryptMessageForDeviceAndWrap(cached, plain, device, device, bundle, p.ciphertext, existing)
		if err != nil {
			l.log.Warnf("encrypt for %s: %v", device, err)
			if ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
			continue
		}
		ciphertexts, reached = append(ciphertexts, *ciphertext), append(reached, device)
	}
	return ciphertexts, reached, l.client.Store.PutCachedSessions(cached)
}

// haveIdentity reports whether a ciphertext begins a session, so that its reader has to know who we are.
func haveIdentity(ciphertexts []waBinary.Node) bool {
	return slices.ContainsFunc(ciphertexts, func(to waBinary.Node) bool {
		enc := to.GetChildByTag("enc")
		return enc.Attrs["type"] == "pkmsg"
	})
}

// withoutExtras calls whatsmeow's GetMessageContent without what its last parameter, whose type has no public
// name, is for: bots and groups.
func withoutExtras[X any](content func(waBinary.Node, *waE2E.Message, waBinary.Attrs, bool, X) []waBinary.Node,
	base waBinary.Node, raw *waE2E.Message, attrs waBinary.Attrs, identity bool) []waBinary.Node {
	var none X
	return content(base, raw, attrs, identity, none)
}

// token is what shows the network that the recipient agreed to be written to; nil: we have nothing to show.
func (l *line) token(ctx context.Context, to types.JID) *waBinary.Node {
	token, err := l.inner().EnsureTCToken(ctx, to)
	if err != nil {
		l.log.Warnf("read a privacy token: %v", err) // whether it matters the network says
	}
	if len(token) > 0 {
		return &waBinary.Node{Tag: "tctoken", Content: token}
	}
	if token = l.inner().GenerateCsToken(ctx, to); len(token) > 0 {
		return &waBinary.Node{Tag: "cstoken", Content: token}
	}
	return nil
}

// tokenWeek is how long the network goes by one token that we gave to a contact.
const tokenWeek = 7 * 24 * 60 * 60 // seconds

// introduce gives a contact the token by which it may write to us, once a week.
func (l *line) introduce(to types.JID) {
	now := time.Now()
	if given := l.inner().GetTCTokenSenderTS(to); !given.IsZero() && now.Unix()/tokenWeek <= given.Unix()/tokenWeek {
		return
	}
	l.errand(func() {
		var panicked error
		defer l.s.contain(&panicked)
		l.inner().IssuePrivacyTokenAndSave(to, now)
	})
}

// confirmed reads the network's answer to a message. It names the devices that the network knows by a hash:
// where we know others, or left some out, those that the message did not reach get it now.
func (l *line) confirmed(p *parcel, node *waBinary.Node, listed, reached []types.JID, complete bool) error {
	attrs := node.AttrGetter()
	l.s.clock.heal(attrs.OptionalUnixTime("t"))
	if code := attrs.OptionalInt("error"); code != 0 {
		if code == codeStale {
			l.s.devices.forget(p.to, p.number, l.lid, l.jid)
		}
		return l.refused(code)
	}
	hash := attrs.OptionalString("phash")
	if isStale := complete && hash != "" && hash != devicesHash(listed); isStale {
		l.s.devices.forget(p.to, p.number, l.lid, l.jid)
		complete = false
	}
	if !complete {
		l.errand(func() { l.reachOthers(p, reached) })
	}
	return nil
}

// reachOthers sends a message to the devices of its recipient, and of the account, that it has not reached.
func (l *line) reachOthers(p *parcel, reached []types.JID) {
	var err error
	defer l.s.contain(&err)
	them, err := l.resolve(l.ctx, p.to, p.number)
	if err == nil {
		var ours recipients
		ours, err = l.resolve(l.ctx, l.lid, l.jid)
		them = them.with(ours)
	}
	them.devices = slices.DeleteFunc(them.devices, func(d types.JID) bool { return l.isThis(d) || slices.Contains(reached, d) })
	if len(them.devices) > 0 {
		ctx, done := l.s.d.db.keys.Sending(l.ctx)
		defer done()
		_, err = l.dispatch(ctx, p, them, true)
	}
	if err != nil {
		l.log.Warnf("send %s to devices that it has not reached: %v", p.id, err)
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
