package whatsapptest

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"time"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waHistorySync"
	"go.mau.fi/whatsmeow/proto/waWeb"
	"google.golang.org/protobuf/proto"
)

func (p *Phone) sendPeer(ctx context.Context, d *device, m *waE2E.ProtocolMessage) error {
	plain, err := proto.Marshal(&waE2E.Message{ProtocolMessage: m})
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	enc, err := p.main.encrypt(ctx, d, plain)
	if err != nil {
		return err
	}
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.nextID("3A" + fmt.Sprintf("%08X", newRegistration()))
	out := &outgoing{id: id, kind: "text", chat: p.account.pnJID(0), from: p.main.device, peer: true,
		ciphertexts: map[*device][]node{d: {enc}}}
	out.trace = s.traces.get(id, p.number, p.number)
	out.trace.Peer, out.trace.accepted = true, true
	out.trace.Stanzas, out.trace.Ciphertexts = 1, 1
	s.deliverAll(out)
	return nil
}

// handlePeerRequest handles a request of a linked client to its phone, on a goroutine: the caller holds the phone's lock.
func (p *Phone) handlePeerRequest(from *device, m *waE2E.ProtocolMessage) {
	if m.GetType() != waE2E.ProtocolMessage_APP_STATE_SYNC_KEY_REQUEST {
		return
	}
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.server.spawn(func() { _ = p.shareKeys(p.server.ctx, from) })
}

// shareState sends a newly linked client the keys of the settings, with the owner's name, and the history.
func (p *Phone) shareState(d *device) {
	ctx := p.server.ctx
	p.view.Lock()
	silent, history := p.silent, p.history
	p.view.Unlock()
	if silent {
		return
	}
	p.mu.Lock()
	st := p.settings()
	if st.versions[string(appstate.WAPatchCriticalBlock)].version == 0 {
		// A client that is notified before it has the keys would request them. A missing name is visible: the client
		// cannot come online.
		_ = p.change(ctx, appstate.BuildSettingPushName(p.account.name), false)
	}
	p.mu.Unlock()
	_ = p.shareKeys(ctx, d)
	if len(history) > 0 {
		_ = p.sendHistory(ctx, d, history)
	}
}

func (p *Phone) shareKeys(ctx context.Context, d *device) error {
	p.mu.Lock()
	st := p.settings()
	share := &waE2E.AppStateSyncKey{
		KeyID: &waE2E.AppStateSyncKeyId{KeyID: st.keyID},
		KeyData: &waE2E.AppStateSyncKeyData{
			KeyData: st.key.Data, Timestamp: &st.key.Timestamp,
			Fingerprint: &waE2E.AppStateSyncKeyFingerprint{RawID: proto.Uint32(1), CurrentIndex: proto.Uint32(0)},
		},
	}
	p.mu.Unlock()
	return p.sendPeer(ctx, d, &waE2E.ProtocolMessage{
		Type:                 waE2E.ProtocolMessage_APP_STATE_SYNC_KEY_SHARE.Enum(),
		AppStateSyncKeyShare: &waE2E.AppStateSyncKeyShare{Keys: []*waE2E.AppStateSyncKey{share}},
	})
}

// Conversation is a chat of before a client was linked.
type Conversation struct {
	With     *Phone
	Messages []Past // oldest first
}

type Past struct {
	ID     string
	FromMe bool
	Text   string
	At     time.Time
}

// WithHistory sets the history that the phone sends to newly linked clients.
func WithHistory(chats ...Conversation) Option { return func(p *Phone) { p.history = chats } }

func (l *Link) SendHistory(ctx context.Context, chats ...Conversation) error {
	return l.phone.sendHistory(ctx, l.device, chats)
}

func (p *Phone) sendHistory(ctx context.Context, d *device, chats []Conversation) error {
	packed, err := p.pack(chats)
	if err != nil {
		return err
	}
	return p.sendPeer(ctx, d, &waE2E.ProtocolMessage{
		Type: waE2E.ProtocolMessage_HISTORY_SYNC_NOTIFICATION.Enum(),
		HistorySyncNotification: &waE2E.HistorySyncNotification{
			SyncType: waE2E.HistorySyncType_INITIAL_BOOTSTRAP.Enum(), ChunkOrder: proto.Uint32(1),
			InitialHistBootstrapInlinePayload: packed,
		},
	})
}

func (p *Phone) pack(chats []Conversation) ([]byte, error) {
	h := &waHistorySync.HistorySync{
		SyncType: waHistorySync.HistorySync_INITIAL_BOOTSTRAP.Enum(), ChunkOrder: proto.Uint32(1), Progress: proto.Uint32(100),
	}
	for _, c := range chats {
		h.Conversations = append(h.Conversations, p.conversation(c))
		h.PhoneNumberToLidMappings = append(h.PhoneNumberToLidMappings, &waHistorySync.PhoneNumberToLIDMapping{
			PnJID: proto.String(c.With.JID().String()), LidJID: proto.String(c.With.LID().String()),
		})
	}
	raw, err := proto.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode history: %w", err)
	}
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, err = w.Write(raw)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("pack history: %w", err)
	}
	return packed.Bytes(), nil
}

func (p *Phone) conversation(c Conversation) *waHistorySync.Conversation {
	chat := c.With.account.lidJID(0).String()
	out := &waHistorySync.Conversation{ID: &chat, Name: proto.String(c.With.account.name)}
	for i, m := range c.Messages {
		out.Messages = append(out.Messages, &waHistorySync.HistorySyncMsg{
			MsgOrderID: proto.Uint64(uint64(i)),
			Message: &waWeb.WebMessageInfo{
				Key:              &waCommon.MessageKey{RemoteJID: &chat, FromMe: proto.Bool(m.FromMe), ID: proto.String(m.ID)},
				Message:          &waE2E.Message{Conversation: proto.String(m.Text)},
				MessageTimestamp: proto.Uint64(uint64(m.At.Unix())),
			},
		})
	}
	return out
}
