package whatsapptest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/gcmutil"
	"go.mau.fi/whatsmeow/util/hkdfutil"
	"google.golang.org/protobuf/proto"
)

// SendPoll asks a question.
func (p *Phone) SendPoll(ctx context.Context, to Chat, title string, options ...string) (string, error) {
	var all []*waE2E.PollCreationMessage_Option
	for _, o := range options {
		all = append(all, &waE2E.PollCreationMessage_Option{OptionName: proto.String(o)})
	}
	return p.SendMessage(ctx, to, &waE2E.Message{
		PollCreationMessage: &waE2E.PollCreationMessage{Name: &title, Options: all, SelectableOptionsCount: proto.Uint32(0)},
		MessageContextInfo:  &waE2E.MessageContextInfo{MessageSecret: random(32)},
	})
}

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
	voter := p.voter(m.Chat)
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
	if name.Participant != nil || author != m.author {
		name.Participant = proto.String(author.String())
	}
	if m.Chat.Server != types.GroupServer {
		name.Participant = nil
		if !m.FromMe {
			name.RemoteJID = proto.String(author.String())
		}
	}
	return p.sendTo(ctx, m.Chat, &waE2E.Message{PollUpdateMessage: &waE2E.PollUpdateMessage{
		PollCreationMessageKey: name, SenderTimestampMS: proto.Int64(unix() * 1000),
		Vote: &waE2E.PollEncValue{EncPayload: sealed, EncIV: iv},
	}})
}

// OpenVote reads the options that somebody chose in a poll that this phone sent.
func (p *Phone) OpenVote(vote Message) ([]string, error) {
	m, err := p.known(vote.Target)
	if err != nil {
		return nil, err
	}
	enc := vote.Raw.GetPollUpdateMessage().GetVote()
	for _, form := range [][2]types.JID{{p.LID(), vote.author}, {p.JID(), p.numberOf(vote.author)}} {
		key, extra := voteKey(m.Raw.GetMessageContextInfo().GetMessageSecret(), vote.Target, form[0], form[1])
		plain, err := gcmutil.Decrypt(key, enc.GetEncIV(), enc.GetEncPayload(), extra)
		if err != nil {
			continue
		}
		var chosen waE2E.PollVoteMessage
		if err := proto.Unmarshal(plain, &chosen); err != nil {
			return nil, fmt.Errorf("read vote: %w", err)
		}
		return optionNames(poll(m.Raw), chosen.GetSelectedOptions()), nil
	}
	return nil, errors.New("the vote cannot be read")
}

func optionNames(p *waE2E.PollCreationMessage, hashes [][]byte) []string {
	var names []string
	for _, o := range p.GetOptions() {
		hash := whatsmeow.HashPollOptions([]string{o.GetOptionName()})[0]
		if slices.ContainsFunc(hashes, func(h []byte) bool { return slices.Equal(h, hash) }) {
			names = append(names, o.GetOptionName())
		}
	}
	return names
}

// voter is the address under which the readers of a vote see its author, which is part of its key.
func (p *Phone) voter(chat types.JID) types.JID {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	if g := p.server.groups[chat.User]; g != nil && chat.Server == types.GroupServer {
		return g.address(p.account, 0)
	}
	return p.account.public(0)
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
