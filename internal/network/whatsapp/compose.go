package whatsapp

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network"
)

// compose makes the network's message of one of ours. Composed again, it means the same to the recipient.
func (l *line) compose(ctx context.Context, m *parley.Message, to types.JID) (*waE2E.Message, error) {
	quote := l.quote(ctx, m, to)
	switch c := m.Content.(type) {
	case parley.Text:
		return l.composeText(ctx, c, quote), nil
	case parley.Image, parley.Video, parley.File, parley.Voice:
		return l.composeFile(ctx, m.Content, quote)
	case parley.Location:
		return composeLocation(c, quote)
	case parley.Poll:
		secret, err := l.pollSecret(ctx, to, m.ID)
		if err != nil {
			return nil, err
		}
		l.s.polls.add(m.ID, c.Options)
		return composePoll(c, secret, quote), nil
	case parley.Reaction:
		sender := types.EmptyJID // our own
		if !c.Target.FromMe {
			sender = to
		}
		return l.client.BuildReaction(to, sender, types.MessageID(c.Target.ID), c.Emoji), nil
	case parley.Delete:
		return l.client.BuildRevoke(to, types.EmptyJID, types.MessageID(c.Target.ID)), nil
	}
	return nil, network.ErrUnsupported
}

// composeText makes a text, with what is shown of its first link.
func (l *line) composeText(ctx context.Context, c parley.Text, quote *waE2E.ContextInfo) *waE2E.Message {
	if c.Preview == nil && quote == nil {
		return &waE2E.Message{Conversation: new(c.Body)}
	}
	x := &waE2E.ExtendedTextMessage{Text: new(c.Body), ContextInfo: quote}
	if p := c.Preview; p != nil {
		x.MatchedText, x.Title, x.Description = new(p.URL), new(p.Title), new(p.Description)
		x.PreviewType = waE2E.ExtendedTextMessage_NONE.Enum()
		l.attachThumbnail(ctx, x, p)
	}
	return &waE2E.Message{ExtendedTextMessage: x}
}

// smallThumbnail is how wide a thumbnail may be to travel only inside the message; a wider one is shown
// large, for which phones fetch it.
const smallThumbnail = 200

// attachThumbnail puts the picture of a preview into a text. A failed upload costs the large picture only.
func (l *line) attachThumbnail(ctx context.Context, x *waE2E.ExtendedTextMessage, p *parley.Preview) {
	if len(p.Thumbnail) == 0 {
		return
	}
	x.JPEGThumbnail = p.Thumbnail
	if p.Width <= smallThumbnail {
		return
	}
	up, err := l.client.Upload(ctx, p.Thumbnail, whatsmeow.MediaLinkThumbnail)
	if err != nil {
		l.log.Warnf("upload the picture of a preview: %v", err)
		return
	}
	x.ThumbnailDirectPath, x.ThumbnailSHA256, x.ThumbnailEncSHA256 = &up.DirectPath, up.FileSHA256, up.FileEncSHA256
	x.MediaKey, x.MediaKeyTimestamp = up.MediaKey, new(time.Now().Unix())
	x.ThumbnailWidth, x.ThumbnailHeight = new(uint32(p.Width)), new(uint32(p.Height))
}

// composeFile uploads a file and makes the message that points at it.
func (l *line) composeFile(ctx context.Context, c parley.Content, quote *waE2E.ContextInfo) (*waE2E.Message, error) {
	media := parley.MediaOf(c)
	up, err := l.upload(ctx, media, mediaType(c))
	if err != nil {
		return nil, err
	}
	now := new(time.Now().Unix())
	switch c := c.(type) {
	case parley.Image:
		return &waE2E.Message{ImageMessage: &waE2E.ImageMessage{
			Caption: words(c.Caption), Mimetype: &media.MIME, Width: size(media.Width), Height: size(media.Height), JPEGThumbnail: media.Thumbnail,
			URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, MediaKeyTimestamp: now,
			FileSHA256: up.FileSHA256, FileEncSHA256: up.FileEncSHA256, FileLength: &up.FileLength, ContextInfo: quote,
		}}, nil
	case parley.Video:
		return &waE2E.Message{VideoMessage: &waE2E.VideoMessage{
			Caption: words(c.Caption), Mimetype: &media.MIME, Width: size(media.Width), Height: size(media.Height), Seconds: size(media.Seconds), JPEGThumbnail: media.Thumbnail,
			URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, MediaKeyTimestamp: now,
			FileSHA256: up.FileSHA256, FileEncSHA256: up.FileEncSHA256, FileLength: &up.FileLength, ContextInfo: quote,
		}}, nil
	case parley.Voice:
		return &waE2E.Message{AudioMessage: &waE2E.AudioMessage{
			Mimetype: &media.MIME, PTT: new(true), Seconds: new(uint32(media.Seconds)), Waveform: media.Waveform,
			URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, MediaKeyTimestamp: now,
			FileSHA256: up.FileSHA256, FileEncSHA256: up.FileEncSHA256, FileLength: &up.FileLength, ContextInfo: quote,
		}}, nil
	}
	caption := c.Text()
	doc := &waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{
		Caption: words(caption), Mimetype: &media.MIME, FileName: new(media.Filename), Title: new(media.Filename), JPEGThumbnail: media.Thumbnail,
		URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, MediaKeyTimestamp: now,
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
		DegreesLatitude: &latitude, DegreesLongitude: &longitude, Name: words(c.Title), ContextInfo: quote,
	}}, nil
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

// pollSecret is what votes in a poll are encrypted under. A poll that is sent again must have the one that
// its recipient may know already.
func (l *line) pollSecret(ctx context.Context, to types.JID, id parley.MessageID) ([]byte, error) {
	secret, _, err := l.secrets.GetMessageSecret(ctx, to, l.lid, types.MessageID(id))
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

// words and size leave out what is empty.
func words(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func size(n int) *uint32 {
	if n <= 0 {
		return nil
	}
	return new(uint32(n))
}
