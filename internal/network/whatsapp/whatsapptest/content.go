package whatsapptest

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/gcmutil"
	"go.mau.fi/whatsmeow/util/hkdfutil"
	"google.golang.org/protobuf/proto"
)

// Vote votes in a poll that the phone received; no options withdraw the vote.
func (p *Phone) Vote(ctx context.Context, pollID string, options ...string) (string, error) {
	m, err := p.message(pollID)
	if err != nil {
		return "", err
	}
	secret := m.Raw.GetMessageContextInfo().GetMessageSecret()
	if poll(m.Raw) == nil || len(secret) == 0 {
		return "", errors.New("that message is no poll")
	}
	plain, err := proto.Marshal(&waE2E.PollVoteMessage{SelectedOptions: whatsmeow.HashPollOptions(options)})
	if err != nil {
		return "", fmt.Errorf("encode vote: %w", err)
	}
	p.server.mu.Lock()
	voter := p.account.publicJID(0) // the address under which readers of the vote see its author, which is part of the key
	p.server.mu.Unlock()
	author := m.author
	if voter.Server == types.DefaultUserServer {
		author = p.numberOf(author)
	}
	key, extra := voteKey(secret, pollID, author, voter)
	iv := random(12)
	sealed, err := gcmutil.Encrypt(key, iv, plain, extra)
	if err != nil {
		return "", fmt.Errorf("encrypt vote: %w", err)
	}
	name := p.key(m)
	if !m.FromMe {
		name.RemoteJID = proto.String(author.String())
	}
	return p.sendTo(ctx, m.Chat, &waE2E.Message{PollUpdateMessage: &waE2E.PollUpdateMessage{
		PollCreationMessageKey: name, SenderTimestampMS: proto.Int64(unix() * 1000),
		Vote: &waE2E.PollEncValue{EncPayload: sealed, EncIV: iv},
	}})
}

func (p *Phone) numberOf(lid types.JID) types.JID {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	if a := p.server.find(lid); a != nil {
		return a.pnJID(0)
	}
	return lid
}

// voteKey derives the key of a vote from the secret of its poll.
func voteKey(secret []byte, pollID string, author, voter types.JID) (key, extra []byte) {
	info := pollID + author.String() + voter.String() + string(whatsmeow.EncSecretPollVote)
	return hkdfutil.SHA256(secret, nil, []byte(info), 32), []byte(pollID + "\x00" + voter.String())
}

func toKind(m *waE2E.Message) Kind {
	switch {
	case m.Conversation != nil, m.GetExtendedTextMessage() != nil:
		return KindText
	case m.GetImageMessage() != nil:
		return KindImage
	case m.GetVideoMessage() != nil:
		return KindVideo
	case m.GetAudioMessage() != nil:
		return KindAudio
	case m.GetDocumentMessage() != nil, m.GetDocumentWithCaptionMessage() != nil:
		return KindDocument
	case m.GetStickerMessage() != nil:
		return KindSticker
	case m.GetLocationMessage() != nil:
		return KindLocation
	case poll(m) != nil:
		return KindPoll
	case m.GetPollUpdateMessage() != nil:
		return KindVote
	case m.GetReactionMessage() != nil:
		return KindReaction
	case m.GetProtocolMessage().GetType() == waE2E.ProtocolMessage_REVOKE && m.GetProtocolMessage().GetKey() != nil:
		return KindDelete
	case edit(m) != nil:
		return KindEdit
	case m.GetProtocolMessage().GetType() == waE2E.ProtocolMessage_EPHEMERAL_SETTING:
		return KindTimer
	}
	return KindOther
}

func poll(m *waE2E.Message) *waE2E.PollCreationMessage {
	for _, p := range []*waE2E.PollCreationMessage{m.GetPollCreationMessage(), m.GetPollCreationMessageV2(), m.GetPollCreationMessageV3()} {
		if p != nil {
			return p
		}
	}
	return nil
}

func edit(m *waE2E.Message) *waE2E.ProtocolMessage {
	for _, p := range []*waE2E.ProtocolMessage{m.GetProtocolMessage(), m.GetEditedMessage().GetMessage().GetProtocolMessage()} {
		if p.GetType() == waE2E.ProtocolMessage_MESSAGE_EDIT {
			return p
		}
	}
	return nil
}

// describe returns the text of a message and the message that it is about.
func describe(m *waE2E.Message) (text, target string) {
	switch toKind(m) {
	case KindText:
		return cmp.Or(m.GetConversation(), m.GetExtendedTextMessage().GetText()), ""
	case KindImage:
		return m.GetImageMessage().GetCaption(), ""
	case KindVideo:
		return m.GetVideoMessage().GetCaption(), ""
	case KindDocument:
		captioned := m.GetDocumentWithCaptionMessage().GetMessage()
		return cmp.Or(m.GetDocumentMessage().GetCaption(), captioned.GetDocumentMessage().GetCaption()), ""
	case KindLocation:
		return m.GetLocationMessage().GetName(), ""
	case KindPoll:
		return poll(m).GetName(), ""
	case KindVote:
		return "", m.GetPollUpdateMessage().GetPollCreationMessageKey().GetID()
	case KindReaction:
		return m.GetReactionMessage().GetText(), m.GetReactionMessage().GetKey().GetID()
	case KindDelete:
		return "", m.GetProtocolMessage().GetKey().GetID()
	case KindEdit:
		text, _ := describe(edit(m).GetEditedMessage())
		return text, edit(m).GetKey().GetID()
	}
	return "", ""
}

// stanzaKind is the type attribute under which a message travels.
func stanzaKind(k Kind) string {
	switch k {
	case KindReaction:
		return "reaction"
	case KindPoll, KindVote:
		return "poll"
	case KindImage, KindVideo, KindAudio, KindDocument, KindSticker:
		return "media"
	}
	return "text"
}
