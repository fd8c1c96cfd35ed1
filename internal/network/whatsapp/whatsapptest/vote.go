package whatsapptest

import (
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

// Vote chooses options of a poll that the phone showed; none takes the vote back.
func (p *Phone) Vote(ctx context.Context, pollID string, options ...string) (string, error) {
	m, err := p.known(pollID)
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
	voter := p.account.public(0) // the address under which readers of the vote see its author, which is part of the key
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
		return a.pn(0)
	}
	return lid
}

// voteKey derives the key of a vote from the secret of its poll.
func voteKey(secret []byte, pollID string, author, voter types.JID) (key, extra []byte) {
	info := pollID + author.String() + voter.String() + string(whatsmeow.EncSecretPollVote)
	return hkdfutil.SHA256(secret, nil, []byte(info), 32), []byte(pollID + "\x00" + voter.String())
}
