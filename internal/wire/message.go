package wire

import (
	"encoding/hex"
	"strconv"

	"parley"
)

// Message is a message, in histories, searches and events. What it does not have is left out.
type Message struct {
	Channel     parley.ChannelCode   `json:"channel,omitempty"`    // not in events, which have it themselves
	ContactID   parley.ContactID     `json:"contact_id,omitempty"` // in a group who wrote it, if the channel did not
	ContactName string               `json:"contact_name"`         // empty: not known
	GroupID     parley.GroupID       `json:"group_id,omitempty"`
	GroupName   *string              `json:"group_name,omitempty"` // of one with a GroupID; empty: not known
	MessageID   string               `json:"message_id"`
	ID          parley.MessageID     `json:"id"`
	Type        parley.Kind          `json:"type"`
	FromMe      string               `json:"from_me"` // "true" or "false"
	Outgoing    bool                 `json:"outgoing"`
	Source      string               `json:"source,omitempty"` // "phone": its owner wrote it on another device
	IsMedia     bool                 `json:"is_media"`
	Body        string               `json:"body"`
	Status      string               `json:"status"`
	Reactions   []string             `json:"reactions"`
	Timestamp   Time                 `json:"timestamp"`
	EditedAt    Time                 `json:"edited_at,omitzero"`
	ReplyTo     parley.MessageID     `json:"reply_to,omitempty"`
	Mentions    []parley.ContactID   `json:"mentions,omitempty"`
	Forwarded   bool                 `json:"forwarded,omitzero"`
	Choice      *parley.Choice       `json:"choice,omitempty"`
	SentAs      parley.Kind          `json:"sent_as,omitempty"` // what the network got in place of a text
	Quoted      *Quoted              `json:"quoted,omitempty"`
	Media       *Media               `json:"media,omitempty"`
	Location    *Location            `json:"location,omitempty"`
	Contacts    []parley.ContactCard `json:"contacts,omitempty"`
	Poll        *Poll                `json:"poll,omitempty"`
	Error       *Failure             `json:"error,omitempty"`
	Waiting     *Waiting             `json:"waiting,omitempty"` // not in events
	// PossibleDuplicate says that the network may have it twice. Copies is how often, once the network confirmed more than one.
	PossibleDuplicate bool `json:"possible_duplicate,omitzero"`
	Copies            int  `json:"copies,omitzero"`

	// Only in lists of messages and where one is read.
	UpdatedAt Time   `json:"updated_at,omitzero"` // when Status last changed
	RequestID string `json:"request_id,omitempty"`
	OTP       bool   `json:"otp,omitzero"` // it carries a one-time code
}

// Quoted is the message that a message replies to.
type Quoted struct {
	ID   parley.MessageID `json:"id"`
	Body string           `json:"body"` // empty: it has no text, or it is not stored
}

// Location is a place. Degrees are strings, as in requests.
type Location struct {
	Latitude  string `json:"latitude"`
	Longitude string `json:"longitude"`
	Title     string `json:"title"`
	Address   string `json:"address"`
}

// Media is the file that a message carries, as callers see it. While it is pending, all but the id is
// what its sender says of it.
type Media struct {
	ID       parley.MediaID     `json:"id"`
	URL      string             `json:"url"` // where to fetch it
	MIMEType string             `json:"mimetype"`
	Size     int64              `json:"size"` // in bytes
	Filename string             `json:"filename,omitempty"`
	Width    int                `json:"width,omitzero"`
	Height   int                `json:"height,omitzero"`
	Duration int                `json:"duration,omitzero"` // in seconds
	SHA256   string             `json:"sha256,omitempty"`  // in hex
	Status   parley.MediaStatus `json:"status"`
	Reason   string             `json:"reason,omitempty"` // why it failed
}

// newMedia describes the file of a message; nil: it carries none, or nothing is known of it any more.
func newMedia(msg *parley.Message, linkTo parley.MediaLink) *Media {
	m := parley.MediaIn(msg.Content)
	if m == nil || m.IsZero() {
		return nil
	}
	id := parley.NewMediaID(msg)
	rec := &Media{
		ID: id, URL: linkTo(id), MIMEType: m.MIME, Size: m.Size, Filename: m.Filename, Width: m.Width, Height: m.Height,
		Duration: m.Seconds, SHA256: hex.EncodeToString(m.SHA256), Status: m.Status(),
	}
	if rec.Status == parley.MediaFailed {
		rec.Reason = m.Failure
	}
	if msg.Content.Kind() == parley.KindVoice && m.Source != "" { // its hash is of the file before it was converted
		rec.SHA256 = ""
	}
	return rec
}

// Failure says why a message was not sent.
type Failure struct {
	Code    parley.FailureCode `json:"code"`
	Message string             `json:"message"`
	Until   Time               `json:"until,omitzero"` // until when the reason holds, where that is known
}

// Waiting is why a message has not been sent yet.
type Waiting struct {
	Reason parley.WaitingReason `json:"reason"`
	Until  *string              `json:"until"` // null: unknown
}

func NewWaiting(w *parley.Waiting) *Waiting {
	if w == nil {
		return nil
	}
	shown := &Waiting{Reason: w.Reason}
	if !w.Until.IsZero() {
		shown.Until = new(parley.Stamp(w.Until))
	}
	return shown
}

func (f *Failure) String() string { return string(f.Code) + ": " + f.Message }

// Poll is a question with its answers.
type Poll struct {
	Title    string       `json:"title"`
	Options  []PollOption `json:"options"`
	Multiple bool         `json:"multiple"` // several may be chosen
}

type PollOption struct {
	Name  string `json:"name"`
	Votes int    `json:"votes"`
}

// NewMessage shows a message, with links to its file and the names of those it is about. What was deleted says nothing any more.
func NewMessage(m *parley.Message, linkTo parley.MediaLink, names Names) Message {
	v := Message{
		ContactID: m.Author,
		GroupID:   m.Chat.Group(),
		MessageID: m.Ref().String(),
		ID:        m.ID,
		Type:      m.Content.Kind(),
		FromMe:    strconv.FormatBool(m.FromMe),
		Outgoing:  m.FromMe,
		IsMedia:   parley.MediaIn(m.Content) != nil,
		Body:      m.Content.Text(),
		Status:    m.Status.String(),
		Reactions: m.Reactions,
		Timestamp: Time{m.CreatedAt},
		EditedAt:  Time{m.EditedAt},
		ReplyTo:   m.ReplyTo,
		Media:     newMedia(m, linkTo),
		Forwarded: parley.IsForwarded(m.Content),
	}
	if m.SentOnPhone() {
		v.Source = "phone"
	}
	if v.PossibleDuplicate = m.Copies > 0; m.Copies > 1 {
		v.Copies = m.Copies
	}
	if v.Reactions == nil {
		v.Reactions = []string{}
	}
	if v.GroupID != "" {
		name := names.find(m.Channel, m.Chat)
		v.GroupName = &name
	} else {
		v.ContactID = m.Chat
	}
	v.ContactName = names.find(m.Channel, v.ContactID)
	if m.ReplyTo != "" {
		v.Quoted = &Quoted{m.ReplyTo, m.QuotedBody}
	}
	switch c := m.Content.(type) {
	case parley.Location:
		if c.Latitude != "" { // else it was erased
			v.Location = &Location{c.Latitude, c.Longitude, c.Title, c.Address}
		}
	case parley.Contacts:
		v.Contacts = c.Cards
	case parley.Text:
		v.Mentions, v.Choice, v.SentAs = c.Mentions, c.Choice, c.SentAs
	case parley.Poll:
		v.Poll = NewPoll(c, m.Votes)
	}
	if m.Status == parley.Deleted {
		v.HideContent()
	}
	if f := m.Failure; f != nil {
		v.Error = &Failure{f.Code, f.Message, Time{f.Until}}
	}
	return v
}

// NewPoll shows a poll with its votes by option; nil: it was erased.
func NewPoll(c parley.Poll, votes map[string]int) *Poll {
	if len(c.Options) == 0 {
		return nil
	}
	p := &Poll{Title: c.Title, Multiple: c.Multiple}
	for _, name := range c.Options {
		p.Options = append(p.Options, PollOption{name, votes[name]})
	}
	return p
}

// HideContent removes everything that the message says.
func (v *Message) HideContent() {
	v.Body, v.Quoted, v.Media, v.Location, v.Contacts, v.Mentions, v.Poll, v.Choice = "", nil, nil, nil, nil, nil, nil, nil
}
