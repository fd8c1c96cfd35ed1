package cloud

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley"
)

// These types are what Meta reports. Any field may be missing, and others may be there.
type (
	messagesValue struct {
		Contacts []reportedContact `json:"contacts"`
		Messages []reportedMessage `json:"messages"`
		Statuses []reportedStatus  `json:"statuses"`
		Errors   []graphError      `json:"errors"`
	}

	// usersValue says that Meta has other ids for users, because they have another number.
	usersValue struct {
		Updates []struct {
			Number string                             `json:"wa_id"` // the new one; empty: it is hidden
			UserID struct{ Previous, Current string } `json:"user_id"`
		} `json:"user_id_update"`
	}

	reportedContact struct {
		Number  string `json:"wa_id"`
		UserID  string `json:"user_id"`
		Profile struct{ Name, Username string }
	}

	reportedMessage struct {
		From       string    `json:"from"`
		FromUserID string    `json:"from_user_id"`
		Group      string    `json:"group_id"`
		ID         string    `json:"id"`
		Timestamp  looseText `json:"timestamp"`
		Type       string    `json:"type"`
		Text       struct{ Body string }
		Image      reportedFile
		Video      reportedFile
		Document   reportedFile
		Audio      reportedFile
		Sticker    reportedFile
		Location   reportedLocation
		Contacts   []reportedCard
		Reaction   struct {
			MessageID string `json:"message_id"`
			Emoji     string
		}
		Button      struct{ Text, Payload string }
		Interactive struct {
			ButtonReply struct{ ID, Title string } `json:"button_reply"`
			ListReply   struct{ ID, Title string } `json:"list_reply"`
			FormReply   struct {
				Body string
			} `json:"nfm_reply"`
		}
		Order  struct{ Text string }
		System struct{ Type, Body string }
		Edit   struct {
			Original string           `json:"original_message_id"`
			Message  *reportedMessage `json:"message"`
		}
		Revoke struct {
			Original string `json:"original_message_id"`
		}
		Context struct{ ID string }
	}

	reportedFile struct {
		ID       string `json:"id"`
		MIME     string `json:"mime_type"`
		SHA256   string `json:"sha256"`
		Caption  string `json:"caption"`
		Filename string `json:"filename"`
		Voice    bool   `json:"voice"`
		Animated bool   `json:"animated"`
	}

	reportedLocation struct {
		Latitude, Longitude looseText
		Name, Address       string
	}

	reportedCard struct {
		Name struct {
			Formatted string `json:"formatted_name"`
			First     string `json:"first_name"`
		}
		Phones []struct {
			Phone  string
			Number string `json:"wa_id"`
		}
	}

	reportedStatus struct {
		ID        string       `json:"id"`
		Status    string       `json:"status"`
		Timestamp looseText    `json:"timestamp"`
		Opaque    string       `json:"biz_opaque_callback_data"`
		Errors    []graphError `json:"errors"`
	}
)

// looseText is a text or a number, as it was written.
type looseText string

func (t *looseText) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, (*string)(t))
	}
	if string(data) != "null" {
		*t = looseText(data)
	}
	return nil
}

// at is a time in seconds since 1970. One that cannot be read is now.
func (t looseText) at(now time.Time) time.Time {
	seconds, err := strconv.ParseInt(string(t), 10, 64)
	if err != nil || seconds <= 0 {
		return now
	}
	return time.Unix(seconds, 0).UTC()
}

// inboundID is our id of a message that came. The same message has the same id whenever it comes.
func inboundID(remote string) parley.MessageID {
	return parley.MessageID(fmt.Sprintf("WA%X", sha256.Sum256([]byte(remote)))[:32])
}

// hiddenContact is the contact of somebody who hides the number: 0 and 19 digits, which no phone number has.
func hiddenContact(userID string) parley.ContactID {
	sum := sha256.Sum256([]byte(userID))
	return parley.NewContactID(fmt.Sprintf("0%019d", binary.BigEndian.Uint64(sum[:])%1e19))
}

var statuses = map[string]parley.Status{
	"sent": parley.Sent, "delivered": parley.Delivered, "read": parley.Read, "played": parley.Played, "failed": parley.Failed,
}

// content returns what a message says, and its file; nil: it has none. What we cannot show is a text that says so.
func (m *reportedMessage) content() (parley.Content, *reportedFile) {
	switch m.Type {
	case "text":
		return parley.Text{Body: m.Text.Body}, nil
	case "image":
		return parley.Image{Caption: m.Image.Caption, Media: m.Image.media()}, &m.Image
	case "video":
		return parley.Video{Caption: m.Video.Caption, Media: m.Video.media()}, &m.Video
	case "document":
		return parley.File{Caption: m.Document.Caption, Media: m.Document.media()}, &m.Document
	case "audio":
		return parley.Voice{Media: m.Audio.media()}, &m.Audio
	case "sticker":
		return parley.Sticker{Media: m.Sticker.media()}, &m.Sticker
	case "location":
		l := m.Location
		return parley.Location{Title: l.Name, Latitude: string(l.Latitude), Longitude: string(l.Longitude), Address: l.Address}, nil
	case "contacts":
		return m.cards(), nil
	case "button":
		return parley.Text{Body: m.Button.Text, Choice: &parley.Choice{Type: parley.ButtonChoice, ID: m.Button.Payload}}, nil
	case "interactive":
		i := m.Interactive
		choice := &parley.Choice{Type: parley.FormChoice}
		switch {
		case i.ButtonReply.ID != "":
			choice = &parley.Choice{Type: parley.ButtonChoice, ID: i.ButtonReply.ID}
		case i.ListReply.ID != "":
			choice = &parley.Choice{Type: parley.ListChoice, ID: i.ListReply.ID}
		}
		return parley.Text{Body: cmp.Or(i.ButtonReply.Title, i.ListReply.Title, i.FormReply.Body, "[interactive reply]"), Choice: choice}, nil
	case "order":
		return parley.Text{Body: cmp.Or(m.Order.Text, "[order]")}, nil
	case "request_welcome":
		return parley.Text{Body: "[opened the chat]"}, nil
	}
	return parley.Text{Body: "[a message that WhatsApp's official API does not pass on]"}, nil
}

func (f *reportedFile) media() parley.Media {
	return parley.Media{MIME: f.MIME, Filename: f.Filename, SHA256: readSum(f.SHA256), Animated: f.Animated}
}

func (m *reportedMessage) cards() parley.Contacts {
	var c parley.Contacts
	for _, card := range m.Contacts {
		var numbers []string
		for _, phone := range card.Phones {
			number := cmp.Or(phone.Number, strings.Map(onlyDigits, phone.Phone))
			if number != "" {
				numbers = append(numbers, number)
			}
		}
		c.Cards = append(c.Cards, parley.NewContactCard(cmp.Or(card.Name.Formatted, card.Name.First), numbers))
	}
	switch len(c.Cards) {
	case 0:
	case 1:
		c.Title = c.Cards[0].Name
	default:
		c.Title = fmt.Sprintf("%d contacts", len(c.Cards))
	}
	return c
}

func onlyDigits(r rune) rune {
	if r >= '0' && r <= '9' {
		return r
	}
	return -1
}
