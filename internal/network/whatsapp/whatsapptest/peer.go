package whatsapptest

import (
	"context"
	"fmt"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waWeb"
	"google.golang.org/protobuf/proto"
)

// sendPeer writes to one linked client of the same account.
func (p *Phone) sendPeer(ctx context.Context, d *device, m *waE2E.ProtocolMessage) error {
	plain, err := proto.Marshal(&waE2E.Message{ProtocolMessage: m})
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	enc, err := p.main.seal(ctx, d, plain)
	if err != nil {
		return err
	}
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.nextID("3A" + fmt.Sprintf("%08X", newRegistration()))
	l := &letter{id: id, kind: "text", chat: p.account.pn(0), from: p.main.device, peer: true, seals: map[*device][]node{d: {enc}}}
	l.entry = s.ledger.entry(id, p.number, p.number)
	l.entry.Peer, l.entry.taken = true, true
	l.entry.Stanzas, l.entry.Sealed = 1, 1
	s.post(l)
	return nil
}

// requested takes what a linked client asked of its own phone, and answers what the phone can answer. The
// caller holds the phone's lock.
func (p *Phone) requested(from *device, id string, m *waE2E.ProtocolMessage) {
	ctx := p.server.ctx
	asked := m.GetPeerDataOperationRequestMessage()
	switch {
	case m.GetType() == waE2E.ProtocolMessage_APP_STATE_SYNC_KEY_REQUEST:
		p.later(func() { _ = p.shareKeys(ctx, from) })
	case asked.GetPeerDataOperationRequestType() == waE2E.PeerDataOperationRequestType_PLACEHOLDER_MESSAGE_RESEND:
		p.later(func() { _ = p.tellAgain(ctx, from, id, asked) })
	}
}

// later does something that needs the phone's lock after it was given back.
func (p *Phone) later(f func()) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.server.spawn(f)
}

// tellAgain gives a linked client the content of messages that it did not get. What the phone does not know
// is left out.
func (p *Phone) tellAgain(ctx context.Context, to *device, id string, asked *waE2E.PeerDataOperationRequestMessage) error {
	answer := &waE2E.PeerDataOperationRequestResponseMessage{
		PeerDataOperationRequestType: asked.PeerDataOperationRequestType, StanzaID: &id,
	}
	for _, r := range asked.GetPlaceholderMessageResendRequest() {
		m, err := p.Await(ctx, ID(r.GetMessageKey().GetID()), On(0))
		if err != nil {
			return err
		}
		raw, err := proto.Marshal(&waWeb.WebMessageInfo{
			Key:     &waCommon.MessageKey{RemoteJID: proto.String(m.Chat.String()), FromMe: &m.FromMe, ID: &m.ID},
			Message: m.Raw, MessageTimestamp: proto.Uint64(uint64(m.At.Unix())),
		})
		if err != nil {
			return fmt.Errorf("encode message: %w", err)
		}
		answer.PeerDataOperationResult = append(answer.PeerDataOperationResult, &waE2E.PeerDataOperationRequestResponseMessage_PeerDataOperationResult{
			PlaceholderMessageResendResponse: &waE2E.PeerDataOperationRequestResponseMessage_PeerDataOperationResult_PlaceholderMessageResendResponse{WebMessageInfoBytes: raw},
		})
	}
	return p.sendPeer(ctx, to, &waE2E.ProtocolMessage{
		Type:                                    waE2E.ProtocolMessage_PEER_DATA_OPERATION_REQUEST_RESPONSE_MESSAGE.Enum(),
		PeerDataOperationRequestResponseMessage: answer,
	})
}
