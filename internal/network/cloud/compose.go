package cloud

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/network"
)

// envelope is the body of a message. It becomes JSON.
type envelope map[string]any

// compose makes the body of a message. It uploads the file of one that has a file.
func (s *session) compose(ctx context.Context, a account, m *parley.Message) (envelope, error) {
	e, err := s.content(ctx, a, m)
	if err != nil {
		return nil, err
	}
	e["biz_opaque_callback_data"] = opaque(s.channel.ID, m.ID)
	if m.ReplyTo != "" {
		quoted, err := s.known(ctx, m.ReplyTo)
		if err != nil {
			return nil, err
		}
		if quoted.Remote != "" { // else Meta does not know it
			e["context"] = map[string]string{"message_id": quoted.Remote}
		}
	}
	return e, s.address(ctx, e, m.Chat)
}

// opaque is what Meta reports back with every status of a message. Every app of the account can read it.
func opaque(channel int64, id parley.MessageID) string { return fmt.Sprintf("p1 %d %s", channel, id) }

// readOpaque returns the message of a channel that opaque data names; empty: none.
func readOpaque(channel int64, text string) parley.MessageID {
	id, ok := strings.CutPrefix(text, fmt.Sprintf("p1 %d ", channel))
	if !ok {
		return ""
	}
	return parley.MessageID(id)
}

// address adds the recipient: a number, or the id of somebody who hides it.
func (s *session) address(ctx context.Context, e envelope, to parley.ContactID) error {
	e["messaging_product"], e["recipient_type"] = "whatsapp", "individual"
	if to.CanExist() {
		e["to"] = to.Number()
		return nil
	}
	known, err := s.d.config.Store.RemoteContact(ctx, s.channel.Code, to)
	if errors.Is(err, parley.ErrNotFound) || err == nil && known.UserID == "" {
		return network.ErrImpossibleNumber
	}
	e["recipient"] = known.UserID
	return err
}

// content makes the part of a body that depends on its kind.
func (s *session) content(ctx context.Context, a account, m *parley.Message) (envelope, error) {
	switch c := m.Content.(type) {
	case parley.Text:
		return s.text(ctx, a, m, c)
	case parley.Image:
		return s.file(ctx, a, "image", c.Media, envelope{"caption": c.Caption})
	case parley.Video:
		return s.file(ctx, a, "video", c.Media, envelope{"caption": c.Caption})
	case parley.File:
		return s.file(ctx, a, "document", c.Media, envelope{"caption": c.Caption, "filename": c.Media.Filename})
	case parley.Voice:
		return s.file(ctx, a, "audio", c.Media, envelope{"voice": true})
	case parley.Sticker:
		return s.file(ctx, a, "sticker", c.Media, envelope{})
	case parley.Location:
		return location(c)
	case parley.Contacts:
		return contacts(c), nil
	case parley.Template:
		return s.template(ctx, a, c)
	}
	return nil, network.ErrUnsupported
}

const maxText = 4096

// text makes a text. A one-time code goes as a template. Outside the reply window any text does, if the channel has one for that.
func (s *session) text(ctx context.Context, a account, m *parley.Message, c parley.Text) (envelope, error) {
	settings := s.settings()
	if c.Code != "" {
		return codeTemplate(settings, c.Code), nil
	}
	if len([]rune(c.Body)) > maxText {
		return nil, network.Refuse(parley.Refused, "The text is longer than the 4096 characters that WhatsApp's official API accepts.")
	}
	open, err := s.windowOpen(ctx, a, m.Chat)
	if err != nil {
		return nil, err
	}
	if !open {
		if settings.OutsideWindow == nil {
			return nil, network.Refuse(parley.OutsideWindow, rules[131047].sentence)
		}
		return fallbackTemplate(*settings.OutsideWindow, c.Body), nil
	}
	if c.AskNumber && len([]rune(c.Body)) <= maxQuestion {
		return envelope{"type": "interactive", "interactive": map[string]any{"type": askNumber, "body": map[string]string{"text": c.Body},
			"action": map[string]string{"name": askNumber}}}, nil
	}
	return envelope{"type": "text", "text": map[string]any{"body": c.Body, "preview_url": c.Preview != nil}}, nil
}

// askNumber is a text with a button that sends the reader's own number as a card. maxQuestion is how long its text may be.
const (
	askNumber   = "request_contact_info"
	maxQuestion = 1024
)

// spelledTwice are country codes whose numbers WhatsApp may spell in another way than the caller: what came from such a number may
// have come under the other spelling.
var spelledTwice = regexp.MustCompile(`^(52|54|55)`)

// windowOpen reports whether a contact may get more than templates now. Where we cannot know, Meta decides: before Meta reported
// messages to us for as long as the window, and for numbers with two spellings.
func (s *session) windowOpen(ctx context.Context, a account, to parley.ContactID) (bool, error) {
	now := time.Now()
	if a.HeardSince.IsZero() || now.Sub(a.HeardSince) < Info.ReplyWindow {
		return true, nil
	}
	c, err := s.d.config.Store.RemoteContact(ctx, s.channel.Code, to)
	if err != nil && !errors.Is(err, parley.ErrNotFound) {
		return false, err
	}
	return c.InboundAt.IsZero() && spelledTwice.MatchString(to.Number()) || now.Sub(c.InboundAt) < Info.ReplyWindow, nil
}

// fallbackTemplate puts a text into the only parameter of a template.
func fallbackTemplate(t parley.TemplateName, body string) envelope {
	lines := strings.Split(strings.TrimSpace(body), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	text := []rune(strings.Join(lines, " / "))
	if len(text) > maxParameter {
		text = append(text[:maxParameter-1], '…')
	}
	return templateBody(t, envelope{"type": "body", "parameters": []any{textParameter(string(text))}})
}

const maxParameter = 1024

func textParameter(text string) envelope { return envelope{"type": "text", "text": text} }

func templateBody(t parley.TemplateName, components ...envelope) envelope {
	template := envelope{"name": t.Name, "language": map[string]string{"code": t.Language}}
	if len(components) > 0 {
		template["components"] = components
	}
	return envelope{"type": "template", "template": template}
}

// CodesTemplate is the template of one-time codes that Parley creates.
var CodesTemplate = parley.TemplateName{Name: "parley_code", Language: "en_US"}

// codeTemplate makes an authentication template: the code is in its text and in its button.
func codeTemplate(settings parley.CloudSettings, code string) envelope {
	t := CodesTemplate
	if settings.Codes != nil {
		t = *settings.Codes
	}
	return templateBody(t, envelope{"type": "body", "parameters": []any{textParameter(code)}},
		envelope{"type": "button", "sub_type": "url", "index": "0", "parameters": []any{textParameter(code)}})
}

// template makes a message from a template. Its header is a text or a file.
func (s *session) template(ctx context.Context, a account, c parley.Template) (envelope, error) {
	var components []envelope
	if c.Media != nil {
		kind := headerKind(c.Media.MIME)
		fields := envelope{}
		if kind == "document" {
			fields.add("filename", c.Media.Filename)
		}
		header, err := s.file(ctx, a, kind, *c.Media, fields)
		if err != nil {
			return nil, err
		}
		components = append(components, envelope{"type": "header", "parameters": []any{header}})
	} else if c.Header != "" {
		components = append(components, envelope{"type": "header", "parameters": []any{textParameter(c.Header)}})
	}
	if len(c.Parameters) > 0 {
		parameters := make([]any, len(c.Parameters))
		for i, p := range c.Parameters {
			parameter := textParameter(p.Text)
			parameter.add("parameter_name", p.Name)
			parameters[i] = parameter
		}
		components = append(components, envelope{"type": "body", "parameters": parameters})
	}
	for _, b := range c.Buttons {
		kind, parameter := "url", textParameter(b.Text)
		if b.Payload != "" {
			kind, parameter = "quick_reply", envelope{"type": "payload", "payload": b.Payload}
		}
		components = append(components, envelope{"type": "button", "sub_type": kind, "index": strconv.Itoa(b.Index),
			"parameters": []any{parameter}})
	}
	return templateBody(parley.TemplateName{Name: c.Name, Language: c.Language}, components...), nil
}

// headerKind is Meta's name of the header of a template that has a file.
func headerKind(mime string) string {
	for _, kind := range []string{"image", "video"} {
		if strings.HasPrefix(mime, kind+"/") {
			return kind
		}
	}
	return "document"
}

func location(c parley.Location) (envelope, error) {
	latitude, err := strconv.ParseFloat(c.Latitude, 64)
	longitude, err2 := strconv.ParseFloat(c.Longitude, 64)
	if errors.Join(err, err2) != nil {
		return nil, network.Refuse(parley.Refused, "The coordinates are not numbers.")
	}
	point := envelope{"latitude": latitude, "longitude": longitude}
	point.add("name", c.Title)
	point.add("address", c.Address)
	return envelope{"type": "location", "location": point}, nil
}

// add adds a text that is not empty.
func (e envelope) add(key, text string) {
	if text != "" {
		e[key] = text
	}
}

var (
	cardNumber = regexp.MustCompile(`(?mi)^TEL([^:\n]*):\s*([+\d][\d .()/-]*)`)
	cardWAID   = regexp.MustCompile(`(?i)waid=(\d+)`)
)

// contacts makes contact cards. Meta takes no vCards, so the numbers are read from them.
func contacts(c parley.Contacts) envelope {
	cards := make([]envelope, len(c.Cards))
	for i, card := range c.Cards {
		phones := []envelope{}
		for _, found := range cardNumber.FindAllStringSubmatch(card.VCard, -1) {
			phone := envelope{"phone": strings.TrimSpace(found[2]), "type": "HOME"}
			if id := cardWAID.FindStringSubmatch(found[1]); id != nil {
				phone["wa_id"] = id[1]
			}
			phones = append(phones, phone)
		}
		cards[i] = envelope{"name": envelope{"formatted_name": card.Name, "first_name": card.Name}, "phones": phones}
	}
	return envelope{"type": "contacts", "contacts": cards}
}

// file makes a message with a file, which it uploads unless Meta has it.
func (s *session) file(ctx context.Context, a account, kind string, file parley.Media, fields envelope) (envelope, error) {
	id, err := s.upload(ctx, a, kind, file)
	if err != nil {
		return nil, err
	}
	fields["id"] = id
	for key, value := range fields {
		if value == "" {
			delete(fields, key)
		}
	}
	return envelope{"type": kind, kind: fields}, nil
}
