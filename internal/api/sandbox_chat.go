package api

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/media"
	"parley/internal/network/sandbox"
	"parley/internal/wire"
)

type phoneChat struct {
	Channel   parley.ChannelCode `json:"channel"`
	Name      string             `json:"name"`
	Number    string             `json:"number"`
	ContactID parley.ContactID   `json:"contact_id"`
	Last      bubble             `json:"last"`
	Unread    int                `json:"unread"`
	Typing    bool               `json:"typing"`
	Timestamp string             `json:"timestamp"`
}

type bubble struct {
	FromPhone bool                 `json:"from_phone"`
	ContactID *string              `json:"contact_id"` // who wrote it in a group; null: this phone or the channel
	GroupID   *string              `json:"group_id"`
	MessageID string               `json:"message_id"`
	ID        parley.MessageID     `json:"id"`
	Type      parley.Kind          `json:"type"`
	Body      string               `json:"body"`
	Codes     []string             `json:"codes"`
	Links     []string             `json:"links"`
	Preview   *bubblePreview       `json:"preview"`
	Media     *bubbleFile          `json:"media"`
	Location  *wire.Location       `json:"location"`
	Contacts  []parley.ContactCard `json:"contacts"`
	Poll      *wire.Poll           `json:"poll"`
	Votes     []string             `json:"votes"` // the phone's votes in a poll
	Reactions []string             `json:"reactions"`
	ReplyTo   *string              `json:"reply_to"`
	Deleted   bool                 `json:"deleted"`
	Status    parley.Status        `json:"status"`
	Timestamp string               `json:"timestamp"`
	EditedAt  *string              `json:"edited_at"`
	Copies    int                  `json:"copies"`
}

type bubblePreview struct {
	URL         string `json:"url"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Thumbnail   []byte `json:"thumbnail"` // JPEG, in base64; empty: none
}

type bubbleFile struct {
	MIMEType string `json:"mimetype"`
	Filename string `json:"filename"`
	Bytes    int64  `json:"bytes"`
	Width    int    `json:"width"`
	Height   int    `json:"height"`
	Seconds  int    `json:"seconds"`
	Waveform []int  `json:"waveform"` // 64 values from 0 to 100; empty: not a voice message
}

func toBubble(m sandbox.Message) bubble {
	b := bubble{
		FromPhone: m.FromPhone(), GroupID: textOrNil(m.ID.Chat.Group()), MessageID: m.ID.String(), ID: m.ID.ID, Type: m.Kind, Body: m.Body,
		Codes: m.Codes, Links: m.Links, Votes: m.Votes, Reactions: m.Reactions,
		ReplyTo: textOrNil(m.ReplyTo), Deleted: m.Status == parley.Deleted, Status: m.Status,
		Timestamp: parley.Stamp(m.At), EditedAt: stampOrNil(m.EditedAt), Copies: m.Copies,
	}
	if !m.ID.FromMe && !b.FromPhone {
		b.ContactID = textOrNil(m.Author)
	}
	if b.Deleted {
		return b
	}
	if f := m.Media; f != nil {
		levels := mapped(f.Waveform, func(level byte) int { return int(level) })
		b.Media = &bubbleFile{f.MIME, f.Filename, f.Size, f.Width, f.Height, f.Seconds, levels}
	}
	switch c := m.Content.(type) {
	case parley.Text:
		if p := c.Preview; p != nil {
			b.Preview = &bubblePreview{p.URL, p.Title, p.Description, p.Thumbnail}
		}
	case parley.Location:
		b.Location = &wire.Location{Latitude: c.Latitude, Longitude: c.Longitude, Title: c.Title, Address: c.Address}
	case parley.Contacts:
		b.Contacts = c.Cards
	case parley.Poll:
		votes := map[string]int{}
		for _, name := range m.Votes {
			votes[name] = 1
		}
		b.Poll = wire.NewPoll(c, votes)
	}
	return b
}

func (s *server) phoneChats(ctx context.Context, r *request) (any, error) {
	chats, err := s.config.Sandbox.Chats(ctx, r.channel.Code, r.number())
	return ok("OK", mapped(chats, func(c sandbox.Chat) phoneChat {
		return phoneChat{
			Channel: r.channel.Code, Name: r.channel.Name, Number: c.Number, ContactID: parley.NewContactID(c.Number),
			Last: toBubble(*c.Last), Unread: c.Unread, Typing: c.TypingUntil.After(time.Now()), Timestamp: parley.Stamp(c.Last.At),
		}
	})), err
}

func (s *server) phoneChat(ctx context.Context, r *request) (any, error) {
	cursor, limit := sandbox.Cursor(r.OptionalText("cursor", 1, 100)), int(r.Whole("limit", 50, 1, maxFound))
	group := optionalGroup(r.Form)
	if err := r.Err(); err != nil {
		return nil, err
	}
	page, err := s.config.Sandbox.Chat(ctx, r.channel.Code, r.number(), group, cursor, limit)
	return envelope{Success: true, Message: "OK", Data: mapped(page.Messages, toBubble),
		Meta: cursorMeta{textOrNil(page.Next)}}, err
}

// phoneFile serves a file on a phone. One that the phone sent is in the library for a day; later only the channel has it.
func (s *server) phoneFile(ctx context.Context, r *request) (response, error) {
	code, number := r.channel.Code, r.number()
	m, err := s.config.Sandbox.Message(ctx, code, number, r.http.PathValue("message_id"))
	if err != nil {
		return response{}, notFoundAs(err, parley.Errorf(parley.NotFound, "This message does not exist on this phone."))
	}
	if m.Media == nil {
		return response{}, errNoFile
	}
	if a, err := s.downloadFile(ctx, m.Media); err != errNoFile || m.ID.FromMe {
		return a, err
	}
	stored, err := s.config.Store.Message(ctx, code, m.ID)
	if err != nil {
		return response{}, notFoundAs(err, errNoFile)
	}
	return s.downloadFile(ctx, parley.MediaIn(stored.Content))
}

// sendPicked sends a file that is part of the request, as if picked on the phone.
func (s *server) sendPicked(ctx context.Context, r *request, kind string, file form.Form) (any, error) {
	replyTo, caption, group := r.ReplyTo(), caption(r.Form), optionalGroup(r.Form)
	data, name := base64Of(file, "data"), file.OptionalText("filename", 0, 255)
	if file.Has("url") {
		file.Fail("url", "must not be sent together with data. Send one of them.")
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if kind == "voice" {
		return s.sendRecorded(ctx, r, data, name, sandbox.Outgoing{ReplyTo: string(replyTo), Group: group})
	}
	m, err := s.config.Media.Store(ctx, r.channel.Code, data, name)
	if err != nil {
		return nil, err
	}
	content := picked(file, kind, m, caption)
	if err := r.Err(); err != nil {
		s.removeFile(ctx, m)
		return nil, err
	}
	return s.say(ctx, r, sandbox.Outgoing{Content: content, ReplyTo: string(replyTo), Group: group})
}

// sendRecorded sends a voice note. Browsers record in other formats; phones send ogg with opus, so it is converted.
func (s *server) sendRecorded(ctx context.Context, r *request, data []byte, name string, what sandbox.Outgoing) (any, error) {
	m, err := s.config.Media.Recorded(ctx, r.channel.Code, data, name)
	if e, ok := errors.AsType[*media.Error](err); ok {
		r.Note("file.data", e.Sentence)
		return nil, r.Err()
	}
	if err != nil {
		return nil, err
	}
	what.Content = parley.Voice{Media: m}
	return s.say(ctx, r, what)
}

// picked returns the content of a file. Nothing is converted.
func picked(f form.Form, kind string, m parley.Media, caption string) parley.Content {
	wants := func(begin, sentence string) {
		if !strings.HasPrefix(m.MIME, begin) {
			f.Fail("data", "%s", sentence)
		}
	}
	switch kind {
	case "image":
		wants("image/", "must be an image.")
		return parley.Image{Media: m, Caption: caption}
	case "video":
		wants("video/", "must be a video.")
		return parley.Video{Media: m, Caption: caption}
	case "sticker":
		wants("image/webp", "must be a WebP image.")
		return parley.Sticker{Media: m}
	}
	return parley.File{Media: m, Caption: caption}
}

func base64Of(f form.Form, name string) []byte {
	data, err := base64.StdEncoding.DecodeString(f.Text(name, 1, maxBody))
	if err != nil {
		f.Fail(name, "must be the bytes of the file in base64.")
	}
	return data
}
