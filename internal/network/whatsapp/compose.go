package whatsapp

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network"
)

// compose builds the network's message. Composing a message twice gives the recipient the same meaning.
func (conn *connection) compose(ctx context.Context, m *parley.Message, to types.JID) (*waE2E.Message, error) {
	quote := conn.quote(ctx, m, to)
	if parley.IsForwarded(m.Content) {
		if quote == nil {
			quote = &waE2E.ContextInfo{}
		}
		quote.IsForwarded, quote.ForwardingScore = new(true), new(uint32(1))
	}
	if m.Content.Kind().InHistory() {
		var err error
		if quote, err = conn.withTimer(ctx, to, quote); err != nil {
			return nil, err
		}
	}
	switch c := m.Content.(type) {
	case parley.Text:
		c, quote = conn.mention(ctx, to, c, quote)
		return conn.composeText(ctx, c, quote), nil
	case parley.Image, parley.Video, parley.File, parley.Voice, parley.Sticker:
		return conn.composeFile(ctx, m.Content, quote)
	case parley.Location:
		return composeLocation(c, quote)
	case parley.Contacts:
		return composeContacts(c, quote), nil
	case parley.Poll:
		secret, err := conn.pollSecret(ctx, to, m.ID)
		if err != nil {
			return nil, err
		}
		conn.s.polls.put(m.ID, c.Options, maxPolls)
		return composePoll(c, secret, quote), nil
	case parley.Reaction:
		sender := types.EmptyJID // our own
		switch {
		case c.Target.FromMe:
		case c.Author == "":
			sender = to
		default:
			var err error
			if sender, err = conn.findAddress(ctx, c.Author); err != nil {
				return nil, err
			}
		}
		return conn.client.BuildReaction(to, sender, types.MessageID(c.Target.ID), c.Emoji), nil
	case parley.Edit:
		return conn.composeEdit(ctx, m, c, to, quote)
	case parley.Delete:
		return conn.client.BuildRevoke(to, types.EmptyJID, types.MessageID(c.Target.ID)), nil
	case parley.Timer:
		return composeTimer(m, c), nil
	}
	return nil, network.ErrUnsupported
}

// composeEdit builds the edit of a text. If it was confirmed before, the text is that of its message now.
func (conn *connection) composeEdit(
	ctx context.Context, m *parley.Message, c parley.Edit, to types.JID, quote *waE2E.ContextInfo,
) (*waE2E.Message, error) {
	text := parley.Text{Body: c.Body, Mentions: c.Mentions}
	if text.Body == "" {
		target := conn.storedMessage(ctx, m.Chat, c.Target.ID)
		if target == nil {
			return nil, network.Refuse(parley.Refused, "The message to edit no longer exists.")
		}
		text.Body = target.Content.Text()
	}
	text, quote = conn.mention(ctx, to, text, quote)
	raw := conn.client.BuildEdit(to, types.MessageID(c.Target.ID), conn.composeText(ctx, text, quote))
	raw.GetEditedMessage().GetMessage().GetProtocolMessage().TimestampMS = new(m.CreatedAt.UnixMilli())
	return raw, nil
}

// mention names contacts in a text by the address that phones look for: as the group names its members, the LID if it is known.
func (conn *connection) mention(ctx context.Context, to types.JID, c parley.Text, quote *waE2E.ContextInfo) (
	parley.Text, *waE2E.ContextInfo,
) {
	if len(c.Mentions) == 0 {
		return c, quote
	}
	if quote == nil {
		quote = &waE2E.ContextInfo{}
	}
	byNumber := false
	if to.Server == types.GroupServer {
		g, err := conn.groupInfo(ctx, to) // an error ends the send later
		byNumber = err == nil && g.AddressingMode != types.AddressingModeLID
	}
	for _, id := range c.Mentions {
		jid, hidden := hiddenLID(id)
		if !hidden {
			jid = phoneJID(id)
			if lid, err := conn.client.Store.LIDs.GetLIDForPN(ctx, jid); err == nil && !lid.IsEmpty() && !byNumber {
				jid = lid.ToNonAD()
			}
		}
		quote.MentionedJID = append(quote.MentionedJID, jid.String())
		c.Body = replaceMention(c.Body, id.Number(), jid.User)
	}
	return c, quote
}

// replaceMention replaces @ and a number where no digit follows.
func replaceMention(body, from, to string) string {
	var b strings.Builder
	for {
		i := strings.Index(body, "@"+from)
		if i < 0 {
			b.WriteString(body)
			return b.String()
		}
		end := i + 1 + len(from)
		b.WriteString(body[:i])
		if end < len(body) && body[end] >= '0' && body[end] <= '9' {
			b.WriteString(body[i:end])
		} else {
			b.WriteString("@" + to)
		}
		body = body[end:]
	}
}

func (conn *connection) composeText(ctx context.Context, c parley.Text, quote *waE2E.ContextInfo) *waE2E.Message {
	if c.Preview == nil && quote == nil {
		return &waE2E.Message{Conversation: new(c.Body)}
	}
	x := &waE2E.ExtendedTextMessage{Text: new(c.Body), ContextInfo: quote}
	if p := c.Preview; p != nil {
		x.MatchedText, x.Title, x.Description = new(p.URL), new(p.Title), new(p.Description)
		x.PreviewType = waE2E.ExtendedTextMessage_NONE.Enum()
		conn.attachThumbnail(ctx, x, p)
	}
	return &waE2E.Message{ExtendedTextMessage: x}
}

// smallThumbnail is how wide a thumbnail may be to travel only inside the message; a wider one is shown
// large, for which phones fetch it.
const smallThumbnail = 200

// attachThumbnail puts the picture of a preview into a text. A failed upload costs the large picture only.
func (conn *connection) attachThumbnail(ctx context.Context, x *waE2E.ExtendedTextMessage, p *parley.Preview) {
	if len(p.Thumbnail) == 0 {
		return
	}
	x.JPEGThumbnail = p.Thumbnail
	if p.Width <= smallThumbnail {
		return
	}
	up, err := conn.client.Upload(ctx, p.Thumbnail, whatsmeow.MediaLinkThumbnail)
	if err != nil {
		conn.log.Warnf("upload the picture of a preview: %v", err)
		return
	}
	x.ThumbnailDirectPath, x.ThumbnailSHA256, x.ThumbnailEncSHA256 = &up.DirectPath, up.FileSHA256, up.FileEncSHA256
	x.MediaKey, x.MediaKeyTimestamp = up.MediaKey, new(time.Now().Unix())
	x.ThumbnailWidth, x.ThumbnailHeight = new(uint32(p.Width)), new(uint32(p.Height))
}

func (conn *connection) composeFile(ctx context.Context, c parley.Content, quote *waE2E.ContextInfo) (*waE2E.Message, error) {
	media := parley.MediaIn(c)
	up, err := conn.upload(ctx, media, mediaType(c))
	if err != nil {
		return nil, err
	}
	now := new(time.Now().Unix())
	switch c := c.(type) {
	case parley.Image:
		return &waE2E.Message{ImageMessage: &waE2E.ImageMessage{
			Caption: nonEmpty(c.Caption), Mimetype: &media.MIME, Width: nonZero(media.Width), Height: nonZero(media.Height),
			JPEGThumbnail: media.Thumbnail,
			URL:           &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, MediaKeyTimestamp: now,
			FileSHA256: up.FileSHA256, FileEncSHA256: up.FileEncSHA256, FileLength: &up.FileLength, ContextInfo: quote,
		}}, nil
	case parley.Video:
		return &waE2E.Message{VideoMessage: &waE2E.VideoMessage{
			Caption: nonEmpty(c.Caption), Mimetype: &media.MIME, Width: nonZero(media.Width), Height: nonZero(media.Height),
			Seconds: nonZero(media.Seconds), JPEGThumbnail: media.Thumbnail,
			URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, MediaKeyTimestamp: now,
			FileSHA256: up.FileSHA256, FileEncSHA256: up.FileEncSHA256, FileLength: &up.FileLength, ContextInfo: quote,
		}}, nil
	case parley.Voice:
		return &waE2E.Message{AudioMessage: &waE2E.AudioMessage{
			Mimetype: &media.MIME, PTT: new(true), Seconds: new(uint32(media.Seconds)), Waveform: media.Waveform,
			URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, MediaKeyTimestamp: now,
			FileSHA256: up.FileSHA256, FileEncSHA256: up.FileEncSHA256, FileLength: &up.FileLength, ContextInfo: quote,
		}}, nil
	case parley.Sticker:
		return &waE2E.Message{StickerMessage: &waE2E.StickerMessage{
			Mimetype: &media.MIME, Width: nonZero(media.Width), Height: nonZero(media.Height), IsAnimated: new(media.Animated),
			StickerSentTS: new(time.Now().UnixMilli()),
			URL:           &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, MediaKeyTimestamp: now,
			FileSHA256: up.FileSHA256, FileEncSHA256: up.FileEncSHA256, FileLength: &up.FileLength, ContextInfo: quote,
		}}, nil
	}
	caption := c.Text()
	doc := &waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{
		Caption: nonEmpty(caption), Mimetype: &media.MIME, FileName: new(media.Filename), Title: new(media.Filename),
		JPEGThumbnail: media.Thumbnail,
		URL:           &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, MediaKeyTimestamp: now,
		FileSHA256: up.FileSHA256, FileEncSHA256: up.FileEncSHA256, FileLength: &up.FileLength, ContextInfo: quote,
	}}
	if caption == "" {
		return doc, nil
	}
	return &waE2E.Message{DocumentWithCaptionMessage: &waE2E.FutureProofMessage{Message: doc}}, nil
}

func composeLocation(c parley.Location, quote *waE2E.ContextInfo) (*waE2E.Message, error) {
	latitude, err := strconv.ParseFloat(c.Latitude, 64)
	if err != nil {
		return nil, network.Refuse(parley.Refused, "The latitude is not a number.")
	}
	longitude, err := strconv.ParseFloat(c.Longitude, 64)
	if err != nil {
		return nil, network.Refuse(parley.Refused, "The longitude is not a number.")
	}
	return &waE2E.Message{LocationMessage: &waE2E.LocationMessage{
		DegreesLatitude: &latitude, DegreesLongitude: &longitude, Name: nonEmpty(c.Title), Address: nonEmpty(c.Address), ContextInfo: quote,
	}}, nil
}

func composeContacts(c parley.Contacts, quote *waE2E.ContextInfo) *waE2E.Message {
	all := make([]*waE2E.ContactMessage, len(c.Cards))
	for i, card := range c.Cards {
		all[i] = &waE2E.ContactMessage{DisplayName: new(card.Name), Vcard: new(card.VCard)}
	}
	if len(all) == 1 {
		all[0].ContextInfo = quote
		return &waE2E.Message{ContactMessage: all[0]}
	}
	return &waE2E.Message{ContactsArrayMessage: &waE2E.ContactsArrayMessage{DisplayName: new(c.Title), Contacts: all, ContextInfo: quote}}
}

func composePoll(c parley.Poll, secret []byte, quote *waE2E.ContextInfo) *waE2E.Message {
	x := &waE2E.PollCreationMessage{Name: new(c.Title), SelectableOptionsCount: new(uint32(1)), ContextInfo: quote}
	if c.Multiple {
		x.SelectableOptionsCount = new(uint32(0)) // as many as one likes
	}
	for _, o := range c.Options {
		x.Options = append(x.Options, &waE2E.PollCreationMessage_Option{OptionName: new(o)})
	}
	return &waE2E.Message{PollCreationMessage: x, MessageContextInfo: &waE2E.MessageContextInfo{MessageSecret: secret}}
}

// pollSecret returns the key for votes in a poll. A poll that is sent again must keep the secret that its recipient may
// already have.
func (conn *connection) pollSecret(ctx context.Context, to types.JID, id parley.MessageID) ([]byte, error) {
	secret, _, err := conn.secrets.GetMessageSecret(ctx, to, conn.lid, types.MessageID(id))
	if err != nil {
		return nil, fmt.Errorf("look up the secret of a poll: %w", err)
	}
	if len(secret) > 0 {
		return secret, nil
	}
	secret = make([]byte, 32)
	rand.Read(secret) // never fails
	return secret, nil
}

// nonEmpty and nonZero leave out zero values.
func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func nonZero(n int) *uint32 {
	if n <= 0 {
		return nil
	}
	return new(uint32(n))
}

// quote builds the quotation of a reply; nil: not a reply. If the gateway does not have the quoted message, the
// recipient's phone still finds it by id.
func (conn *connection) quote(ctx context.Context, m *parley.Message, to types.JID) *waE2E.ContextInfo {
	if m.ReplyTo == "" {
		return nil
	}
	quote := &waE2E.ContextInfo{StanzaID: new(string(m.ReplyTo)), Participant: new(to.String()),
		QuotedMessage: &waE2E.Message{Conversation: new("")}}
	quoted := conn.storedMessage(ctx, m.Chat, m.ReplyTo)
	if quoted == nil {
		if m.Chat.IsGroup() {
			quote.Participant = nil // who wrote it is not known
		}
		return quote
	}
	if quoted.FromMe {
		quote.Participant = new(conn.lid.ToNonAD().String())
	} else if quoted.Author != "" {
		author, err := conn.findAddress(ctx, quoted.Author)
		if err != nil {
			author = phoneJID(quoted.Author)
		}
		quote.Participant = new(author.ToNonAD().String())
	}
	quote.QuotedMessage = quotedContent(quoted.Content)
	return quote
}

// quotedContent is as much of a message as a quotation of it shows.
func quotedContent(c parley.Content) *waE2E.Message {
	switch c := c.(type) {
	case parley.Image:
		return &waE2E.Message{ImageMessage: &waE2E.ImageMessage{Caption: nonEmpty(c.Caption), Mimetype: &c.Media.MIME,
			JPEGThumbnail: c.Media.Thumbnail}}
	case parley.Video:
		return &waE2E.Message{VideoMessage: &waE2E.VideoMessage{Caption: nonEmpty(c.Caption), Mimetype: &c.Media.MIME,
			JPEGThumbnail: c.Media.Thumbnail}}
	case parley.File:
		return &waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{Caption: nonEmpty(c.Caption), Mimetype: &c.Media.MIME,
			FileName: &c.Media.Filename}}
	case parley.Voice:
		return &waE2E.Message{AudioMessage: &waE2E.AudioMessage{PTT: new(true), Mimetype: &c.Media.MIME,
			Seconds: new(uint32(c.Media.Seconds))}}
	case parley.Sticker:
		return &waE2E.Message{StickerMessage: &waE2E.StickerMessage{Mimetype: &c.Media.MIME, IsAnimated: new(c.Media.Animated)}}
	case parley.Location:
		m, err := composeLocation(c, nil)
		if err == nil {
			return m
		}
	case parley.Poll:
		return composePoll(c, nil, nil)
	case parley.Contacts:
		return composeContacts(c, nil)
	}
	return &waE2E.Message{Conversation: new(c.Text())}
}

// maxPolls is how many polls are cached. Older ones are read from the gateway.
const maxPolls = 512

func (conn *connection) pollOptions(chat parley.ContactID, id parley.MessageID) ([]string, bool) {
	if options, known := conn.s.polls.get(id); known {
		return options, true
	}
	m := conn.storedMessage(conn.ctx, chat, id)
	if m == nil {
		return nil, false
	}
	poll, ok := m.Content.(parley.Poll)
	return poll.Options, ok && len(poll.Options) > 0
}

// chosenOptions names the options whose hashes a vote has, in the order of the poll.
func chosenOptions(options []string, hashes [][]byte) []string {
	var names []string
	for i, hash := range whatsmeow.HashPollOptions(options) {
		if slices.ContainsFunc(hashes, func(h []byte) bool { return bytes.Equal(h, hash) }) {
			names = append(names, options[i])
		}
	}
	return names
}
