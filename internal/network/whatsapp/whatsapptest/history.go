package whatsapptest

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"time"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waHistorySync"
	"go.mau.fi/whatsmeow/proto/waWeb"
	"google.golang.org/protobuf/proto"
)

// Conversation is a chat of before a client was linked.
type Conversation struct {
	With     *Phone
	Messages []Past // oldest first
}

// Past is one message of it.
type Past struct {
	ID     string
	FromMe bool
	Text   string
	At     time.Time
}

// WithHistory gives the phone a past that it tells newly linked clients.
func WithHistory(chats ...Conversation) Option { return func(p *Phone) { p.history = chats } }

// SendHistory tells a linked client about chats of before it was linked.
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

// pack encodes and compresses a history.
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
	chat := c.With.account.hidden(0).String()
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
