package whatsapp

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
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
// then sends one message per round trip. What it does for a message to one person is done here with the same
// parts and in the same order, but only encrypting is one at a time. That of one chat there is never more
// than one message under way is the gateway's part.

// transmit gives the network a message and waits until it confirms it.
func (l *line) transmit(ctx context.Context, to types.JID, id types.MessageID, raw *waE2E.Message) error {
	number, err := l.s.d.db.keys.GetPNForLID(ctx, to)
	if err != nil {
		return err
	}
	plain, own, err := marshal(to, raw)
	if err != nil {
		return err
	}
	ack, devices, err := l.dispatch(ctx, to, number, id, raw, plain, own)
	if err != nil {
		return err
	}
	timer := time.NewTimer(l.s.d.ackTimeout)
	defer timer.Stop()
	select {
	case node := <-ack:
		return l.confirmed(to, node, devices)
	case <-timer.C:
		return whatsmeow.ErrMessageTimedOut
	case <-ctx.Done():
		return ctx.Err()
	}
}

// marshal encodes a message for the recipient, and for our own devices, which are told whom it went to.
func marshal(to types.JID, raw *waE2E.Message) (plain, own []byte, err error) {
	if plain, err = proto.Marshal(raw); err != nil {
		return nil, nil, fmt.Errorf("encode a message: %w", err)
	}
	own, err = proto.Marshal(&waE2E.Message{
		DeviceSentMessage:  &waE2E.DeviceSentMessage{DestinationJID: new(to.String()), Message: raw},
		MessageContextInfo: raw.MessageContextInfo,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("encode a message for our own devices: %w", err)
	}
	return plain, own, nil
}

// dispatch encrypts a message and writes it to the socket. It returns where the network's answer will come,
// and for which devices it is.
func (l *line) dispatch(ctx context.Context, to, number types.JID, id types.MessageID, raw *waE2E.Message, plain, own []byte) (<-chan *waBinary.Node, []types.JID, error) {
	l.sending.Lock()
	defer l.sending.Unlock()
	in := l.inner()
	if err := in.AddRecentMessage(ctx, to, id, raw, nil); err != nil {
		return nil, nil, err
	}
	if secret := raw.GetMessageContextInfo().GetMessageSecret(); secret != nil { // the votes of a poll are under it
		if err := l.secrets.PutMessageSecret(ctx, to, l.lid, id, secret); err != nil {
			return nil, nil, err
		}
	}
	node, devices, err := withoutExtras(in.PrepareMessageNode, ctx, to, id, raw, []types.JID{to, l.lid.ToNonAD()}, plain, own)
	if err != nil {
		return nil, nil, err
	}
	if watch := sealOf(ctx); watch != nil && !watch.isSealed() {
		return nil, nil, watch.note(errUnsealed)
	}
	if !number.IsEmpty() {
		node.Attrs["peer_recipient_pn"] = number
	}
	if token := l.token(ctx, to); token != nil {
		node.Content = append(node.GetChildren(), *token)
	}
	ack := in.WaitResponse(id) // what nobody waits for any more is dropped with the connection
	if err := in.SendNode(ctx, *node); err != nil {
		return nil, nil, err
	}
	l.introduce(to)
	return ack, devices, nil
}

// withoutExtras calls whatsmeow's PrepareMessageNode without what its last parameter, whose type has no public
// name, is for: bots and groups.
func withoutExtras[X any](prepare func(context.Context, types.JID, types.MessageID, *waE2E.Message, []types.JID, []byte, []byte, *whatsmeow.MessageDebugTimings, X) (*waBinary.Node, []types.JID, error),
	ctx context.Context, to types.JID, id types.MessageID, raw *waE2E.Message, people []types.JID, plain, own []byte) (*waBinary.Node, []types.JID, error) {
	var none X
	return prepare(ctx, to, id, raw, people, plain, own, new(whatsmeow.MessageDebugTimings), none)
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.errands.Go(func() {
			var panicked error
			defer l.s.contain(&panicked)
			l.inner().IssuePrivacyTokenAndSave(to, now)
		})
	}
}

// confirmed reads the network's answer to a message.
func (l *line) confirmed(to types.JID, node *waBinary.Node, devices []types.JID) error {
	if node == nil || node.Tag != "ack" { // the connection ended
		return &whatsmeow.DisconnectedError{Action: "message send", Node: node}
	}
	attrs := node.AttrGetter()
	l.s.clock.heal(attrs.OptionalUnixTime("t"))
	if hash := attrs.OptionalString("phash"); hash != "" && hash != devicesHash(devices) {
		l.forgetDevices(to)
	}
	if code := attrs.OptionalInt("error"); code != 0 {
		return fmt.Errorf("%w %d", whatsmeow.ErrServerReturnedError, code)
	}
	return nil
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

// forgetDevices has the devices of somebody asked for anew with the next message: the network knows others
// than we do. whatsmeow does so when it is told that they changed.
func (l *line) forgetDevices(of types.JID) {
	l.inner().HandleDeviceNotification(l.ctx, &waBinary.Node{Tag: "notification", Attrs: waBinary.Attrs{"from": of}, Content: []waBinary.Node{{Tag: "update"}}})
}
