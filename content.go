package parley

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

type Kind string

const (
	KindText     Kind = "text"
	KindImage    Kind = "image"
	KindVideo    Kind = "video"
	KindFile     Kind = "file"
	KindVoice    Kind = "voice"
	KindSticker  Kind = "sticker"
	KindLocation Kind = "location"
	KindPoll     Kind = "poll"
	KindContact  Kind = "contact"
	KindTemplate Kind = "template"

	// Operations: not part of the history.
	KindReaction Kind = "reaction"
	KindEdit     Kind = "edit"
	KindSeen     Kind = "seen"
	KindDelete   Kind = "delete"
	KindStar     Kind = "star"
	KindArchive  Kind = "archive"
	KindReadChat Kind = "read"
	KindTimer    Kind = "disappearing"
)

var (
	// HistoryKinds are those of messages, in contrast to operations.
	HistoryKinds = []Kind{KindText, KindImage, KindVideo, KindFile, KindVoice, KindSticker, KindLocation, KindPoll, KindContact,
		KindTemplate}
	// MediaKinds are those of messages that can carry a file.
	MediaKinds = []Kind{KindImage, KindVideo, KindFile, KindVoice, KindSticker, KindTemplate}
	// Kinds lists every kind.
	Kinds = slices.Concat(HistoryKinds, []Kind{KindReaction, KindEdit, KindSeen, KindDelete, KindStar, KindArchive, KindReadChat,
		KindTimer})
)

func (k Kind) InHistory() bool { return slices.Contains(HistoryKinds, k) }

func (k Kind) IsMedia() bool { return slices.Contains(MediaKinds, k) }

// Content is what a message says. The implementations in this file are all there are.
type Content interface {
	Kind() Kind
	// Text is what history shows of it: the text, caption or title, or "".
	Text() string
}

// Text is a plain text message.
type Text struct {
	Body     string      `json:"-"`
	Preview  *Preview    `json:"preview,omitempty"`
	Mentions []ContactID `json:"mentions,omitempty"` // who is named in the body, as @ and the number
	// Forwarded: it is shown as forwarded. So are a file, places and cards with this field.
	Forwarded bool `json:"forwarded,omitempty"`
	// Choice is what the sender tapped, if the text is that of a button, a list, a form, an order or an invitation.
	Choice *Choice `json:"choice,omitempty"`
	// SentAs is the kind that the network got in its place; empty: a text.
	SentAs Kind `json:"sent_as,omitempty"`
	// AskNumber has the network ask a reader who hides the number to share it. Networks without such a button send the text alone.
	AskNumber bool `json:"ask_number,omitempty"`
	// Code is the one-time code in the body, for a network that sends codes in its own words; empty: none. It is never stored.
	Code string `json:"-"`
}

// Choice is what a contact tapped in a message of a business, or sent from its catalogue.
type Choice struct {
	Type  ChoiceType `json:"type"`
	ID    string     `json:"id"`              // that the business gave it; of an invitation, its code
	Token string     `json:"token,omitempty"` // with which the business reads an order
}

type ChoiceType string

const (
	ButtonChoice ChoiceType = "button"
	ListChoice   ChoiceType = "list"
	FormChoice   ChoiceType = "form"
	OrderChoice  ChoiceType = "order"
	InviteChoice ChoiceType = "invite"
)

// Secret is a text that only its recipient may read, such as a one-time code. History shows it with the secret part
// hidden. The whole text is encrypted, and erased once it need not be sent again.
type Secret struct {
	Shown     string `json:"-"`
	OTP       OTPID  `json:"otp"`              // what it carries
	Encrypted []byte `json:"sealed,omitempty"` // the whole text
}

// CodeSeparator separates a one-time code from its text in what [Secret] encrypts.
const CodeSeparator = "\x00"

// Preview is what is shown of the first link in a text.
type Preview struct {
	URL         string `json:"url"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Thumbnail   []byte `json:"thumbnail,omitempty"` // JPEG; empty: none
	Width       int    `json:"width,omitempty"`     // of the thumbnail
	Height      int    `json:"height,omitempty"`
}

// Media is a file that a message carries. The bytes of one that is sent are stored beside the database
// before the message is accepted; those of one that came in are fetched after its message was stored.
type Media struct {
	ID        string `json:"id,omitempty"` // the key that an inbound file gets once it is there
	Key       string `json:"key"`          // the name it is stored under; empty: it is not there
	Source    string `json:"source"`       // the address it was fetched from
	MIME      string `json:"mime"`         // by content, not by what the server said
	Filename  string `json:"filename,omitempty"`
	Size      int64  `json:"size"`
	SHA256    []byte `json:"sha256"`    // of the file as fetched
	MediaKey  []byte `json:"media_key"` // 32 random bytes under which a network may encrypt it
	Width     int    `json:"width,omitempty"`
	Height    int    `json:"height,omitempty"`
	Seconds   int    `json:"seconds,omitempty"`
	Waveform  []byte `json:"waveform,omitempty"`  // 64 values, 0 to 100
	Thumbnail []byte `json:"thumbnail,omitempty"` // JPEG
	Animated  bool   `json:"animated,omitempty"`  // of a sticker
	Forwarded bool   `json:"forwarded,omitempty"` // the message is shown as forwarded
	Failure   string `json:"failure,omitempty"`   // why it could not be fetched, in a sentence

	// FetchAt is when an inbound file is tried next; zero: it is not waiting to be fetched. It is read from
	// the store, which has it beside the message.
	FetchAt time.Time `json:"-"`
}

// MediaStatus says whether the bytes of a file are there.
type MediaStatus string

const (
	MediaPending MediaStatus = "pending" // it is being fetched
	MediaReady   MediaStatus = "ready"
	MediaFailed  MediaStatus = "failed" // it could not be fetched, and is not tried again
)

func (m *Media) Status() MediaStatus {
	switch {
	case m.Key != "":
		return MediaReady
	case !m.FetchAt.IsZero():
		return MediaPending
	}
	return MediaFailed
}

// IsZero reports whether nothing is known of the file, as after the message was erased.
func (m *Media) IsZero() bool {
	return m.ID == "" && m.Key == "" && m.MIME == "" && m.Filename == "" && m.Size == 0
}

type Image struct {
	Caption string `json:"-"`
	Media   Media  `json:"media"`
}

type Video struct {
	Caption string `json:"-"`
	Media   Media  `json:"media"`
}

type File struct {
	Caption string `json:"-"`
	Media   Media  `json:"media"`
}

// Voice is a voice note: ogg with opus.
type Voice struct {
	Media Media `json:"media"`
}

// Sticker is a picture without a caption or a frame: WebP, still or animated.
type Sticker struct {
	Media Media `json:"media"`
}

// Location is a point on the map. Coordinates stay as the caller wrote them.
type Location struct {
	Title     string `json:"-"`
	Latitude  string `json:"latitude"`
	Longitude string `json:"longitude"`
	Address   string `json:"address,omitempty"`
	Forwarded bool   `json:"forwarded,omitempty"`
}

type Poll struct {
	Title    string   `json:"-"`
	Options  []string `json:"options"`
	Multiple bool     `json:"multiple,omitempty"`
}

// Contacts are contact cards.
type Contacts struct {
	Title     string        `json:"-"` // the name of the contact, or how the sender names several
	Cards     []ContactCard `json:"cards"`
	Forwarded bool          `json:"forwarded,omitempty"`
}

type ContactCard struct {
	Name  string `json:"name"`
	VCard string `json:"vcard"`
}

// Template is a message whose text the network has approved. Parameters fill its gaps, by name or in order.
type Template struct {
	Body       string              `json:"-"` // with the gaps filled, as far as that is known
	Name       string              `json:"name"`
	Language   string              `json:"language"`
	Parameters []TemplateParameter `json:"parameters,omitempty"`
	Header     string              `json:"header,omitempty"` // the parameter of its title
	Media      *Media              `json:"media,omitempty"`  // the file in place of a title; nil: none
	Buttons    []TemplateButton    `json:"buttons,omitempty"`
}

type TemplateParameter struct {
	Name string `json:"name,omitempty"` // empty: by its position
	Text string `json:"text"`
}

// TemplateButton is the parameter of a button: the end of its address, or what it sends when it is tapped.
type TemplateButton struct {
	Index   int    `json:"index"`
	Text    string `json:"text,omitempty"`
	Payload string `json:"payload,omitempty"`
}

// TemplateInfo is a template as a network has it.
type TemplateInfo struct {
	Name     string `json:"name"`
	Language string `json:"language"`
	Category string `json:"category"` // UTILITY, MARKETING or AUTHENTICATION
	Status   string `json:"status"`   // PENDING, APPROVED, REJECTED, PAUSED or DISABLED
	Reason   string `json:"reason,omitempty"`
	Header   string `json:"header,omitempty"`
	Body     string `json:"body"`
	Footer   string `json:"footer,omitempty"`
}

var templateGap = regexp.MustCompile(`\{\{\s*([a-z0-9_]+)\s*\}\}`)

// Gaps lists the gaps of the text, each once.
func (t TemplateInfo) Gaps() (names []string) {
	for _, found := range templateGap.FindAllStringSubmatch(t.Body, -1) {
		if !slices.Contains(names, found[1]) {
			names = append(names, found[1])
		}
	}
	return names
}

// Fill returns the text with parameters in its gaps.
func (t TemplateInfo) Fill(parameters []TemplateParameter) string {
	return templateGap.ReplaceAllStringFunc(t.Body, func(gap string) string {
		name := templateGap.FindStringSubmatch(gap)[1]
		for i, p := range parameters {
			if p.Name == name || p.Name == "" && strconv.Itoa(i+1) == name {
				return p.Text
			}
		}
		return gap
	})
}

// vcardEscapes escapes a value of a vCard. Everything that a reader may take for the end of a line becomes a line break.
var vcardEscapes = strings.NewReplacer(`\`, `\\`, ";", `\;`, ",", `\,`, "\r\n", `\n`, "\n", `\n`, "\r", `\n`, "\v", `\n`, "\f", `\n`,
	"\u0085", `\n`, "\u2028", `\n`, "\u2029", `\n`)

// NewContactCard writes a card in the version of vCard that phones understand. Numbers are digits.
func NewContactCard(name string, numbers []string) ContactCard {
	escaped := vcardEscapes.Replace(name)
	lines := []string{"BEGIN:VCARD", "VERSION:3.0", "N:;" + escaped + ";;;", "FN:" + escaped}
	for _, number := range numbers {
		lines = append(lines, "TEL;type=CELL;waid="+number+":+"+number)
	}
	return ContactCard{Name: name, VCard: strings.Join(append(lines, "END:VCARD"), "\n")}
}

// Reaction sets an emoji on a message; an empty one removes it.
type Reaction struct {
	Emoji  string     `json:"-"`
	Target MessageRef `json:"target"`
	Author ContactID  `json:"author,omitempty"` // of the target, in a group
}

// Edit replaces the text of a message that the channel sent. Its own text is erased once it is confirmed: then the message
// has it.
type Edit struct {
	Body     string      `json:"-"`
	Target   MessageRef  `json:"target"`
	Mentions []ContactID `json:"mentions,omitempty"`
}

// Seen marks a message as read.
type Seen struct {
	Target MessageRef `json:"target"`
	Author ContactID  `json:"author,omitempty"` // of the target, in a group
}

// Delete deletes a message of the channel for everyone.
type Delete struct {
	Target MessageRef `json:"target"`
}

// Star stars a message, or removes the star.
type Star struct {
	Target  MessageRef `json:"target"`
	Author  ContactID  `json:"author,omitempty"` // of the target, in a group
	Starred bool       `json:"starred"`
}

// Archive puts a chat away, or brings it back.
type Archive struct {
	Archived bool `json:"archived"`
}

// ReadChat marks a chat as read, or as unread for the account's owner.
type ReadChat struct {
	Read bool   `json:"read"`
	Seen []Seen `json:"seen,omitempty"` // its messages that were not marked as read yet
}

// Timer sets after how many seconds new messages of a chat disappear; 0: they stay.
type Timer struct {
	Seconds int `json:"seconds"`
}

// Timers are those that networks have: none, a day, a week and 90 days.
var Timers = []int{0, 86400, 604800, 7776000}

func (Text) Kind() Kind     { return KindText }
func (Secret) Kind() Kind   { return KindText }
func (Image) Kind() Kind    { return KindImage }
func (Video) Kind() Kind    { return KindVideo }
func (File) Kind() Kind     { return KindFile }
func (Voice) Kind() Kind    { return KindVoice }
func (Sticker) Kind() Kind  { return KindSticker }
func (Location) Kind() Kind { return KindLocation }
func (Poll) Kind() Kind     { return KindPoll }
func (Contacts) Kind() Kind { return KindContact }
func (Template) Kind() Kind { return KindTemplate }
func (Reaction) Kind() Kind { return KindReaction }
func (Edit) Kind() Kind     { return KindEdit }
func (Seen) Kind() Kind     { return KindSeen }
func (Delete) Kind() Kind   { return KindDelete }
func (Star) Kind() Kind     { return KindStar }
func (Archive) Kind() Kind  { return KindArchive }
func (ReadChat) Kind() Kind { return KindReadChat }
func (Timer) Kind() Kind    { return KindTimer }

func (c Text) Text() string     { return c.Body }
func (c Secret) Text() string   { return c.Shown }
func (c Image) Text() string    { return c.Caption }
func (c Video) Text() string    { return c.Caption }
func (c File) Text() string     { return c.Caption }
func (Voice) Text() string      { return "" }
func (Sticker) Text() string    { return "" }
func (c Location) Text() string { return c.Title }
func (c Poll) Text() string     { return c.Title }
func (c Contacts) Text() string { return c.Title }
func (c Template) Text() string { return c.Body }
func (c Reaction) Text() string { return c.Emoji }
func (c Edit) Text() string     { return c.Body }
func (Seen) Text() string       { return "" }
func (Delete) Text() string     { return "" }
func (Star) Text() string       { return "" }
func (Archive) Text() string    { return "" }
func (ReadChat) Text() string   { return "" }
func (Timer) Text() string      { return "" }

// MediaIn returns the file that a content carries, or nil.
func MediaIn(c Content) *Media {
	switch c := c.(type) {
	case Image:
		return &c.Media
	case Video:
		return &c.Media
	case File:
		return &c.Media
	case Voice:
		return &c.Media
	case Sticker:
		return &c.Media
	case Template:
		if c.Media != nil {
			return new(*c.Media)
		}
	}
	return nil
}

// WithMedia returns a content that carries another file. One that carries none stays as it is.
func WithMedia(c Content, m Media) Content {
	switch c := c.(type) {
	case Image:
		c.Media = m
		return c
	case Video:
		c.Media = m
		return c
	case File:
		c.Media = m
		return c
	case Voice:
		c.Media = m
		return c
	case Sticker:
		c.Media = m
		return c
	case Template:
		if c.Media != nil {
			c.Media = &m
		}
		return c
	}
	return c
}

// WithText returns a content with another caption or title. One that has none stays as it is.
func WithText(c Content, text string) Content {
	switch c := c.(type) {
	case Image:
		c.Caption = text
		return c
	case Video:
		c.Caption = text
		return c
	case File:
		c.Caption = text
		return c
	case Location:
		c.Title = text
		return c
	case Poll:
		c.Title = text
		return c
	}
	return c
}

// AsForwarded returns a content as it is forwarded: with the mark, where it can have one, and without mentions.
func AsForwarded(c Content) Content {
	switch c := c.(type) {
	case Text:
		c.Forwarded, c.Mentions, c.Choice, c.SentAs, c.AskNumber = true, nil, nil, "", false
		return c
	case Location:
		c.Forwarded = true
		return c
	case Contacts:
		c.Forwarded = true
		return c
	}
	if m := MediaIn(c); m != nil {
		m.Forwarded = true
		return WithMedia(c, *m)
	}
	return c
}

func IsForwarded(c Content) bool {
	switch c := c.(type) {
	case Text:
		return c.Forwarded
	case Location:
		return c.Forwarded
	case Contacts:
		return c.Forwarded
	}
	m := MediaIn(c)
	return m != nil && m.Forwarded
}

// EditWindow is for how long after it was sent a text can be edited.
const EditWindow = 15 * time.Minute

// Edited returns a content with the text or caption of another one. It returns false if it has none that can be edited, or
// if the other one is of another kind; a caption may also be edited with a text.
func Edited(c, by Content) (Content, bool) {
	text, isText := by.(Text)
	switch c.(type) {
	case Text:
		return Text{Body: text.Body, Mentions: text.Mentions}, isText
	case Image, Video, File:
		return WithText(c, by.Text()), isText || by.Kind() == c.Kind()
	}
	return c, false
}

// EncodeContent returns what is stored of a content besides its kind and text: nil where that is all,
// as with a plain text.
func EncodeContent(c Content) ([]byte, error) {
	if t, ok := c.(Text); ok && t.Preview == nil && t.Mentions == nil && !t.Forwarded && t.Choice == nil && t.SentAs == "" && !t.AskNumber {
		return nil, nil // the common case costs nothing
	}
	return json.Marshal(c)
}

// DecodeSecret is [DecodeContent] for a [Secret]. What retention emptied is a text.
func DecodeSecret(text string, data []byte) (Content, error) {
	if len(data) == 0 {
		return Text{Body: text}, nil
	}
	return decode(data, Secret{Shown: text})
}

// DecodeContent makes a content again of its kind, its text and what EncodeContent returned. Data
// that retention emptied gives a content that is empty but for its kind.
func DecodeContent(kind Kind, text string, data []byte) (Content, error) {
	switch kind {
	case KindText:
		return decode(data, Text{Body: text})
	case KindImage:
		return decode(data, Image{Caption: text})
	case KindVideo:
		return decode(data, Video{Caption: text})
	case KindFile:
		return decode(data, File{Caption: text})
	case KindVoice:
		return decode(data, Voice{})
	case KindSticker:
		return decode(data, Sticker{})
	case KindLocation:
		return decode(data, Location{Title: text})
	case KindPoll:
		return decode(data, Poll{Title: text})
	case KindContact:
		return decode(data, Contacts{Title: text})
	case KindTemplate:
		return decode(data, Template{Body: text})
	case KindReaction:
		return decode(data, Reaction{Emoji: text})
	case KindEdit:
		return decode(data, Edit{Body: text})
	case KindSeen:
		return decode(data, Seen{})
	case KindDelete:
		return decode(data, Delete{})
	case KindStar:
		return decode(data, Star{})
	case KindArchive:
		return decode(data, Archive{})
	case KindReadChat:
		return decode(data, ReadChat{})
	case KindTimer:
		return decode(data, Timer{})
	}
	return nil, fmt.Errorf("unknown kind of message %q", kind)
}

func decode[C Content](data []byte, c C) (Content, error) {
	if len(data) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("decode %s: %w", c.Kind(), err)
	}
	return c, nil
}

// MediaFetch is the file of a stored inbound message that is still to be fetched from the network. There is
// one row for each; a file without a row and without a key has failed.
type MediaFetch struct {
	Seq       int64 // of the message
	Channel   ChannelCode
	Chat      ContactID
	Reference []byte // what the network's session needs to fetch it, encrypted
	Attempts  int
	NextAt    time.Time // not to be tried before
	CreatedAt time.Time
	Media     Media // what the sender says of the file; filled by [MediaFetchReader.MediaFetch] only
}

// MediaReferenceContext is what the encrypted reference of a file is bound to.
func MediaReferenceContext(channel ChannelCode) string { return "file of " + string(channel) }
