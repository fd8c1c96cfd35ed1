package whatsapp

import (
	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
)

// The attributes of a message's stanza follow from its kind, as in whatsmeow's own sends. A test compares the two for each
// kind that compose makes.

func stanzaType(m *waE2E.Message) string {
	switch {
	case m.ReactionMessage != nil:
		return "reaction"
	case m.PollCreationMessage != nil:
		return "poll"
	case toMediaType(m) != "":
		return "media"
	}
	return "text"
}

// toMediaType returns "" for a message without a file or preview.
func toMediaType(m *waE2E.Message) string {
	switch {
	case m.ExtendedTextMessage != nil && m.ExtendedTextMessage.Title != nil:
		return "url"
	case m.ImageMessage != nil:
		return "image"
	case m.DocumentMessage != nil, m.DocumentWithCaptionMessage != nil:
		return "document"
	case m.AudioMessage != nil:
		return "ptt"
	case m.VideoMessage != nil:
		return "video"
	case m.StickerMessage != nil:
		return "sticker"
	case m.ContactMessage != nil:
		return "vcard"
	case m.ContactsArrayMessage != nil:
		return "contact_array"
	}
	return ""
}

// editAttribute says how a message changes an earlier one; empty: it does not.
func editAttribute(m *waE2E.Message) types.EditAttribute {
	if m.EditedMessage != nil {
		return types.EditAttributeMessageEdit
	}
	if m.ReactionMessage != nil && m.ReactionMessage.GetText() == whatsmeow.RemoveReactionText ||
		m.ProtocolMessage.GetKey() != nil {
		return types.EditAttributeSenderRevoke // a deletion is the only protocol message about another that is composed
	}
	return types.EditAttributeEmpty
}

func stanzaAttrs(m *waE2E.Message) (stanza, ciphertext waBinary.Attrs) {
	stanza, ciphertext = waBinary.Attrs{"type": stanzaType(m)}, waBinary.Attrs{}
	if kind := toMediaType(m); kind != "" {
		ciphertext["mediatype"] = kind
	}
	edit := editAttribute(m)
	if edit != types.EditAttributeEmpty {
		stanza["edit"] = string(edit)
	}
	if edit != types.EditAttributeEmpty || m.ReactionMessage != nil {
		ciphertext["decrypt-fail"] = string(events.DecryptFailHide)
	}
	return stanza, ciphertext
}
