package whatsapp

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"

	"parley"
)

type parsed struct {
	content parley.Content // nil: nothing to show
	replyTo parley.MessageID
	file    fileMessage // the file to fetch; nil: none

	mentioned []string // addresses of contacts that a text names
}

// parse reads an inbound message. Unsupported content becomes a text, so that it is visible.
func parse(m *waE2E.Message) parsed {
	switch {
	case m == nil:
		return parsed{}
	case m.Conversation != nil:
		return parsed{content: parley.Text{Body: stripNUL(m.GetConversation())}}
	case m.ExtendedTextMessage != nil:
		return parseText(m.ExtendedTextMessage)
	case m.ImageMessage != nil:
		return parseFile(m.ImageMessage)
	case m.VideoMessage != nil:
		return parseFile(m.VideoMessage)
	case m.PtvMessage != nil: // a short round video
		return parseFile(m.PtvMessage)
	case m.StickerMessage != nil:
		return parseFile(m.StickerMessage)
	case m.AudioMessage != nil:
		return parseFile(m.AudioMessage)
	case m.DocumentMessage != nil:
		return parseFile(m.DocumentMessage)
	case m.DocumentWithCaptionMessage != nil:
		return parseFile(m.DocumentWithCaptionMessage.GetMessage().GetDocumentMessage())
	case m.LocationMessage != nil:
		x := m.LocationMessage
		return parsed{content: newLocation(x.GetName(), x.GetAddress(), x),
			replyTo: quoted(x.GetContextInfo())}
	case m.LiveLocationMessage != nil:
		x := m.LiveLocationMessage
		return parsed{content: newLocation(x.GetCaption(), "", x),
			replyTo: quoted(x.GetContextInfo())}
	case m.ContactMessage != nil:
		x := m.ContactMessage
		return parseCards(x.GetDisplayName(), []*waE2E.ContactMessage{x}, x.GetContextInfo())
	case m.ContactsArrayMessage != nil:
		x := m.ContactsArrayMessage
		return parseCards(x.GetDisplayName(), x.GetContacts(), x.GetContextInfo())
	case findPoll(m) != nil:
		return parsePoll(findPoll(m))
	}
	return parseReply(m)
}

// parseReply reads choices in business messages, and names other content.
func parseReply(m *waE2E.Message) parsed {
	switch {
	case m.ButtonsResponseMessage != nil:
		x := m.ButtonsResponseMessage
		return choiceReply(x.GetSelectedDisplayText(), x.GetContextInfo(), parley.ButtonChoice, x.GetSelectedButtonID(), "")
	case m.ListResponseMessage != nil:
		x := m.ListResponseMessage
		return choiceReply(x.GetTitle(), x.GetContextInfo(), parley.ListChoice, x.GetSingleSelectReply().GetSelectedRowID(), "")
	case m.TemplateButtonReplyMessage != nil:
		x := m.TemplateButtonReplyMessage
		return choiceReply(x.GetSelectedDisplayText(), x.GetContextInfo(), parley.ButtonChoice, x.GetSelectedID(), "")
	case m.InteractiveResponseMessage != nil:
		x := m.InteractiveResponseMessage
		var given struct{ ID string } // without one it is a form, which has its own fields
		kind := parley.ButtonChoice
		if err := json.Unmarshal([]byte(x.GetNativeFlowResponseMessage().GetParamsJSON()), &given); err != nil || given.ID == "" {
			kind = parley.FormChoice
		}
		return choiceReply(x.GetBody().GetText(), x.GetContextInfo(), kind, given.ID, "")
	case m.EventMessage != nil:
		return textReply(m.EventMessage.GetName(), m.EventMessage.GetContextInfo())
	case m.GroupInviteMessage != nil:
		x := m.GroupInviteMessage
		return choiceReply(cmp.Or(x.GetCaption(), x.GetGroupName()), x.GetContextInfo(), parley.InviteChoice, x.GetInviteCode(), "")
	case m.ProductMessage != nil:
		return textReply(m.ProductMessage.GetProduct().GetTitle(), m.ProductMessage.GetContextInfo())
	case m.OrderMessage != nil:
		x := m.OrderMessage
		return choiceReply(cmp.Or(x.GetMessage(), x.GetOrderTitle()), x.GetContextInfo(), parley.OrderChoice, x.GetOrderID(), x.GetToken())
	case m.ButtonsMessage != nil:
		return textReply(m.ButtonsMessage.GetContentText(), m.ButtonsMessage.GetContextInfo())
	case m.ListMessage != nil:
		return textReply(m.ListMessage.GetDescription(), m.ListMessage.GetContextInfo())
	case m.TemplateMessage != nil:
		return textReply(m.TemplateMessage.GetHydratedTemplate().GetHydratedContentText(), m.TemplateMessage.GetContextInfo())
	case m.InteractiveMessage != nil:
		return textReply(m.InteractiveMessage.GetBody().GetText(), m.InteractiveMessage.GetContextInfo())
	}
	// Calls, pins, albums (whose pictures come one by one), keys: nothing that was said.
	return parsed{}
}

func textReply(text string, c *waE2E.ContextInfo) parsed {
	if text = stripNUL(text); text == "" {
		text = "(a message that cannot be shown here)"
	}
	return parsed{content: parley.Text{Body: text}, replyTo: quoted(c)}
}

// maxChoice is longer than the ids that businesses may choose.
const maxChoice = 1024

// choiceReply is textReply with what was chosen.
func choiceReply(text string, c *waE2E.ContextInfo, kind parley.ChoiceType, id, token string) parsed {
	p := textReply(text, c)
	said := p.content.(parley.Text)
	said.Choice = &parley.Choice{Type: kind, ID: shorten(stripNUL(id), maxChoice), Token: shorten(stripNUL(token), maxChoice)}
	p.content = said
	return p
}

func parseText(x *waE2E.ExtendedTextMessage) parsed {
	text := parley.Text{Body: stripNUL(x.GetText()), Forwarded: x.GetContextInfo().GetIsForwarded()}
	if url := x.GetMatchedText(); url != "" && x.GetTitle() != "" {
		text.Preview = &parley.Preview{URL: stripNUL(url), Title: stripNUL(x.GetTitle()), Description: stripNUL(x.GetDescription()),
			Thumbnail: limitThumbnail(x.GetJPEGThumbnail())}
	}
	return parsed{content: text, replyTo: quoted(x.GetContextInfo()), mentioned: x.GetContextInfo().GetMentionedJID()}
}

func parseFile(x fileMessage) parsed {
	media := parley.Media{MIME: x.GetMimetype(), Size: int64(x.GetFileLength()), SHA256: x.GetFileSHA256(),
		Forwarded: x.GetContextInfo().GetIsForwarded()}
	p := parsed{replyTo: quoted(x.GetContextInfo()), file: x}
	switch x := x.(type) {
	case *waE2E.ImageMessage:
		media.Thumbnail, media.Width, media.Height = limitThumbnail(x.GetJPEGThumbnail()), int(x.GetWidth()), int(x.GetHeight())
		p.content = parley.Image{Caption: stripNUL(x.GetCaption()), Media: media}
	case *waE2E.VideoMessage:
		media.Thumbnail, media.Seconds = limitThumbnail(x.GetJPEGThumbnail()), int(x.GetSeconds())
		media.Width, media.Height = int(x.GetWidth()), int(x.GetHeight())
		p.content = parley.Video{Caption: stripNUL(x.GetCaption()), Media: media}
	case *waE2E.StickerMessage:
		media.Width, media.Height, media.Animated = int(x.GetWidth()), int(x.GetHeight()), x.GetIsAnimated()
		p.content = parley.Sticker{Media: media}
	case *waE2E.AudioMessage:
		media.Seconds, media.Waveform = int(x.GetSeconds()), x.GetWaveform()
		p.content = parley.Voice{Media: media}
		if !x.GetPTT() { // music, not a voice note
			p.content = parley.File{Media: media}
		}
	case *waE2E.DocumentMessage:
		media.Thumbnail, media.Filename = limitThumbnail(x.GetJPEGThumbnail()), stripNUL(x.GetFileName())
		p.content = parley.File{Caption: stripNUL(x.GetCaption()), Media: media}
	}
	return p
}

type fileMessage interface {
	whatsmeow.DownloadableMessage
	GetFileLength() uint64
	GetMimetype() string
	GetContextInfo() *waE2E.ContextInfo
}

// maxThumbnail is larger than any thumbnail that a phone makes.
const maxThumbnail = 64 << 10

func limitThumbnail(thumbnail []byte) []byte {
	if len(thumbnail) > maxThumbnail {
		return nil
	}
	return thumbnail
}

func newLocation(title, address string, x interface {
	GetDegreesLatitude() float64
	GetDegreesLongitude() float64
	GetContextInfo() *waE2E.ContextInfo
}) parley.Location {
	degrees := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	return parley.Location{Title: stripNUL(title), Address: stripNUL(address), Latitude: degrees(x.GetDegreesLatitude()),
		Longitude: degrees(x.GetDegreesLongitude()), Forwarded: x.GetContextInfo().GetIsForwarded()}
}

// Bounds of contact cards that a stranger sends: they are repeated in every event of the message.
const (
	maxCards     = 257 // as many as a phone sends
	maxCardBytes = 256 << 10
)

// parseCards reads contact cards. Beyond the bounds only names are read.
func parseCards(title string, from []*waE2E.ContactMessage, c *waE2E.ContextInfo) parsed {
	cards := make([]parley.ContactCard, 0, min(len(from), maxCards))
	size := 0
	for _, x := range from[:min(len(from), maxCards)] {
		card := parley.ContactCard{Name: shorten(stripNUL(x.GetDisplayName()), maxCardName)}
		if size += len(x.GetVcard()); size <= maxCardBytes {
			card.VCard = stripNUL(x.GetVcard())
		}
		cards = append(cards, card)
	}
	return parsed{content: parley.Contacts{Title: stripNUL(title), Cards: cards, Forwarded: c.GetIsForwarded()}, replyTo: quoted(c)}
}

// findPoll returns the poll of any message version.
func findPoll(m *waE2E.Message) *waE2E.PollCreationMessage {
	for _, p := range []*waE2E.PollCreationMessage{m.GetPollCreationMessage(), m.GetPollCreationMessageV2(), m.GetPollCreationMessageV3(),
		m.GetPollCreationMessageV5()} {
		if p != nil {
			return p
		}
	}
	return nil
}

func parsePoll(x *waE2E.PollCreationMessage) parsed {
	poll := parley.Poll{Title: stripNUL(x.GetName()), Multiple: x.GetSelectableOptionsCount() != 1}
	for _, o := range x.GetOptions() {
		poll.Options = append(poll.Options, stripNUL(o.GetOptionName()))
	}
	return parsed{content: poll, replyTo: quoted(x.GetContextInfo())}
}

func quoted(c *waE2E.ContextInfo) parley.MessageID { return parley.MessageID(c.GetStanzaID()) }

const maxCardName = 255

// shorten cuts a text after a number of bytes.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// stripNUL removes bytes that databases cannot store in text.
func stripNUL(s string) string { return strings.ReplaceAll(s, "\x00", "") }
