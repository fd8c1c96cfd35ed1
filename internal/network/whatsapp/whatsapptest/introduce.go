package whatsapptest

import (
	"context"
	"fmt"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"
)

// introduce tells a newly linked client what a real phone tells it: the keys of the settings, with the
// owner's name among them, and the history.
func (p *Phone) introduce(d *device) {
	ctx := p.server.ctx
	p.view.Lock()
	silent, history := p.plainNew, p.history
	p.view.Unlock()
	if silent {
		return
	}
	p.mu.Lock()
	st := p.settings()
	if st.known.versions[string(appstate.WAPatchCriticalBlock)].version == 0 {
		// A client that is told of a change before it has the keys would ask for them. Without a name it cannot
		// come online, which nobody overlooks.
		_ = p.change(ctx, appstate.BuildSettingPushName(p.account.name), false)
	}
	p.mu.Unlock()
	_ = p.shareKeys(ctx, d)
	if len(history) > 0 {
		_ = p.sendHistory(ctx, d, history)
	}
}

// shareKeys gives a linked client the keys of the settings.
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

// certify keeps the signed identity of a simulated companion, with its own signature.
func (s *Server) certify(m *simulated, signed *waAdv.ADVSignedDeviceIdentity) error {
	signed.DeviceSignature = sign(m.store.own().identity, deviceMessage(signed, m.store.own().identity.Pub[:]))
	adv, err := proto.Marshal(signed)
	if err != nil {
		return fmt.Errorf("encode device identity: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m.device.adv = adv
	return nil
}
