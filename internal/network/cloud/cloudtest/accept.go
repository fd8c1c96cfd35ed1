package cloudtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// sent is the body of a message. Fields that Meta does not document are refused.
type sent struct {
	Product       string `json:"messaging_product"`
	RecipientType string `json:"recipient_type"`
	To            string `json:"to"`
	Recipient     string `json:"recipient"`
	Type          string `json:"type"`
	Opaque        string `json:"biz_opaque_callback_data"`
	Status        string `json:"status"`
	MessageID     string `json:"message_id"`
	Typing        *struct {
		Type string `json:"type"`
	} `json:"typing_indicator"`
	Context *struct {
		MessageID string `json:"message_id"`
	} `json:"context"`

	Text *struct {
		Body    string `json:"body"`
		Preview bool   `json:"preview_url"`
	} `json:"text"`
	Interactive *struct {
		Type string `json:"type"`
		Body struct {
			Text string `json:"text"`
		} `json:"body"`
		Action struct {
			Name string `json:"name"`
		} `json:"action"`
	} `json:"interactive"`
	Image    *sentFile `json:"image"`
	Video    *sentFile `json:"video"`
	Document *sentFile `json:"document"`
	Audio    *sentFile `json:"audio"`
	Sticker  *sentFile `json:"sticker"`
	Location *struct {
		Latitude  json.Number `json:"latitude"`
		Longitude json.Number `json:"longitude"`
		Name      string      `json:"name"`
		Address   string      `json:"address"`
	} `json:"location"`
	Contacts []struct {
		Name struct {
			Formatted string `json:"formatted_name"`
			First     string `json:"first_name"`
		} `json:"name"`
		Phones []struct {
			Phone  string `json:"phone"`
			Type   string `json:"type"`
			Number string `json:"wa_id"`
		} `json:"phones"`
	} `json:"contacts"`
	Reaction *struct {
		MessageID string `json:"message_id"`
		Emoji     string `json:"emoji"`
	} `json:"reaction"`
	Template *struct {
		Name     string `json:"name"`
		Language struct {
			Code string `json:"code"`
		} `json:"language"`
		Components []component `json:"components"`
	} `json:"template"`
}

type sentFile struct {
	ID       string `json:"id"`
	Caption  string `json:"caption"`
	Filename string `json:"filename"`
	Voice    bool   `json:"voice"`
}

type component struct {
	Type       string `json:"type"`
	SubType    string `json:"sub_type"`
	Index      string `json:"index"`
	Parameters []struct {
		Type    string    `json:"type"`
		Name    string    `json:"parameter_name"`
		Text    string    `json:"text"`
		Payload string    `json:"payload"`
		Image   *sentFile `json:"image"`
		Video   *sentFile `json:"video"`
		File    *sentFile `json:"document"`
	} `json:"parameters"`
}

var (
	phoneForm   = regexp.MustCompile(`^[1-9]\d{6,14}$`)
	userIDForm  = regexp.MustCompile(`^[A-Z]{2}\.(ENT\.)?[0-9A-Za-z]{1,128}$`)
	placeholder = regexp.MustCompile(`\{\{[a-z0-9_]+\}\}`)
)

// check returns what is wrong with a body.
func (n *Number) check(m *sent) error {
	objects := map[string]bool{"text": m.Text != nil, "image": m.Image != nil, "video": m.Video != nil, "document": m.Document != nil,
		"audio": m.Audio != nil, "sticker": m.Sticker != nil, "location": m.Location != nil, "contacts": m.Contacts != nil,
		"reaction": m.Reaction != nil, "template": m.Template != nil, "interactive": m.Interactive != nil}
	for kind, there := range objects {
		if there != (kind == m.Type) {
			return fmt.Errorf("the object %s does not fit the type %q", kind, m.Type)
		}
	}
	_, known := objects[m.Type]
	switch {
	case !known:
		return fmt.Errorf("type %q is not one of them", m.Type)
	case m.RecipientType != "individual", (m.To == "") == (m.Recipient == ""):
		return errors.New("there must be one recipient")
	case m.To != "" && !phoneForm.MatchString(m.To), m.Recipient != "" && !userIDForm.MatchString(m.Recipient):
		return errors.New("the recipient is no number and no user id")
	case len([]rune(m.Opaque)) > 512:
		return errors.New("the opaque data is too long")
	case m.Text != nil && (m.Text.Body == "" || len([]rune(m.Text.Body)) > 4096):
		return errors.New("the text is empty or too long")
	case m.Interactive != nil && (m.Interactive.Type != "request_contact_info" || m.Interactive.Action.Name != m.Interactive.Type ||
		m.Interactive.Body.Text == "" || len([]rune(m.Interactive.Body.Text)) > 1024):
		return errors.New("the interactive object is wrong")
	case m.Audio != nil && m.Audio.Caption != "", m.Sticker != nil && m.Sticker.Caption != "":
		return errors.New("this type has no caption")
	case m.Document == nil && slices.ContainsFunc([]*sentFile{m.Image, m.Video, m.Audio, m.Sticker}, func(f *sentFile) bool {
		return f != nil && f.Filename != ""
	}):
		return errors.New("only a document has a file name")
	}
	for _, f := range []*sentFile{m.Image, m.Video, m.Document, m.Audio, m.Sticker} {
		if f != nil && (n.s.file(f.ID) == nil || len([]rune(f.Caption)) > 1024) {
			return errors.New("there is no such file, or its caption is too long")
		}
	}
	for _, card := range m.Contacts {
		if card.Name.Formatted == "" || card.Name.First == "" {
			return errors.New("a contact has no name")
		}
		for _, phone := range card.Phones {
			if phone.Type != "HOME" && phone.Type != "WORK" {
				return errors.New("a number is of another type")
			}
		}
	}
	return nil
}

// checkTemplate refuses a template message like Meta does. hidden: the recipient hides the number.
func (n *Number) checkTemplate(m *sent) *apiError {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	t := n.s.templates[m.Template.Name+" "+m.Template.Language.Code]
	switch {
	case t == nil, t.Status == "PENDING", t.Status == "REJECTED":
		return refuse(132001, "Template name does not exist in the translation")
	case t.Status == "PAUSED":
		return refuse(132015, "Template is Paused")
	case t.Status == "DISABLED":
		return refuse(132016, "Template is Disabled")
	case t.Category == "AUTHENTICATION" && m.Recipient != "":
		return refuse(131062, "Business-scoped User ID (BSUID) recipients are not supported for this message.")
	}
	var components []struct{ Type, Text, Format string }
	json.Unmarshal(t.Components, &components)
	want, format := map[string]int{}, "text" // of the header
	for _, c := range components {
		want[c.Type] = len(placeholder.FindAllString(c.Text, -1))
		if c.Format != "" && c.Format != "TEXT" {
			format = strings.ToLower(c.Format)
		}
	}
	if t.Category == "AUTHENTICATION" {
		want["BODY"] = 1
	}
	got := map[string]int{}
	for _, c := range m.Template.Components {
		if c.Type == "body" {
			got["BODY"] += len(c.Parameters)
		}
		for _, p := range c.Parameters {
			file := map[string]*sentFile{"image": p.Image, "video": p.Video, "document": p.File}[p.Type]
			if c.Type == "header" && (p.Type != format || format != "text" && (file == nil || n.s.files[file.ID] == nil)) {
				return refuse(132012, "Format mismatch, expected "+strings.ToUpper(format))
			}
			if p.Type == "text" && (p.Text == "" || bytes.ContainsAny([]byte(p.Text), "\n\t") || bytes.Contains([]byte(p.Text), []byte("     "))) {
				return refuse(132018, "The parameters have an issue")
			}
		}
	}
	if got["BODY"] != want["BODY"] {
		return refuse(132000, fmt.Sprintf("body: number of localizable_params (%d) does not match the expected number of params (%d)",
			got["BODY"], want["BODY"]))
	}
	return nil
}

// accept handles a message, a read receipt or typing.
func (n *Number) accept(w http.ResponseWriter, hr *http.Request) {
	body, err := io.ReadAll(hr.Body)
	var m sent
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err == nil {
		err = decoder.Decode(&m)
	}
	if err == nil && m.Product != "whatsapp" {
		err = errors.New("messaging_product must be whatsapp")
	}
	if err == nil && m.Status != "" {
		n.see(w, &m)
		return
	}
	if err == nil {
		err = n.check(&m)
	}
	if err != nil {
		refuse(100, "Invalid parameter: "+err.Error()).write(w)
		return
	}
	if n.s.Latency > 0 {
		time.Sleep(n.s.Latency)
	}
	fault := n.fault()
	if refusal := n.limit(&m, fault); refusal != nil {
		refusal.write(w)
		return
	}
	if m.Type == "template" {
		if refusal := n.checkTemplate(&m); refusal != nil {
			refusal.write(w)
			return
		}
	}
	n.respond(w, hr, &m, fault)
}

func (n *Number) fault() (f Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.faults) > 0 {
		f, n.faults = n.faults[0], n.faults[1:]
	}
	return f
}

// limit refuses a message because of a fault, of the rate, or of its recipient.
func (n *Number) limit(m *sent, fault Fault) *apiError {
	n.mu.Lock()
	defer n.mu.Unlock()
	if fault.Code != 0 {
		e := refuse(fault.Code, "A fault")
		if fault.RetryAfter != "" {
			e.status, e.header = http.StatusTooManyRequests, http.Header{"Retry-After": {fault.RetryAfter}}
		}
		return e
	}
	rate := 80.0
	if n.Level == "HIGH" {
		rate = 1000
	}
	now := time.Now()
	n.tokens, n.refilled = min(rate, n.tokens+rate*now.Sub(n.refilled).Seconds()), now
	if n.tokens < 1 {
		n.limited++
		return refuse(130429, "Rate limit hit")
	}
	n.tokens--
	p := n.recipient(m)
	switch {
	case p == nil, p.absent:
		return refuse(131026, "Message undeliverable")
	case n.PairLimit && p.borrow(now):
		return refuse(131056, "(Business Account, Consumer Account) pair rate limit hit")
	}
	return nil
}

// respond accepts a message and responds, or loses the response.
func (n *Number) respond(w http.ResponseWriter, hr *http.Request, m *sent, fault Fault) {
	n.mu.Lock()
	p := n.recipient(m)
	id, target := "", m.Reaction
	n.s.mu.Lock()
	id = n.s.newID()
	if m.Opaque != "" {
		n.s.accepted[m.Opaque] = append(n.s.accepted[m.Opaque], id)
	}
	n.s.mu.Unlock()
	if target != nil {
		p.reactions[target.MessageID] = target.Emoji
	} else {
		failure := fault.FailLater
		if n.Window && m.Type != "template" && time.Since(p.wroteAt) > 24*time.Hour {
			failure = 131047
		}
		p.receive(Received{ID: id, sent: m}, failure)
	}
	number := p.Number
	n.mu.Unlock()
	if fault.StatusFirst {
		n.awaitReports(hr)
	}
	contact := map[string]any{"input": m.To}
	if m.To != "" {
		contact["wa_id"] = number
	}
	text := Encode(map[string]any{"messaging_product": "whatsapp", "contacts": []any{contact},
		"messages": []any{map[string]any{"id": id, "message_status": "accepted"}}})
	switch fault.Lost {
	case "timeout":
		select {
		case <-hr.Context().Done():
		case <-n.s.running.Done():
		}
		reset(w)
		return
	case "reset":
		reset(w)
		return
	case "5xx":
		(&apiError{status: 500, code: 2, text: "Service temporarily unavailable"}).write(w)
		return
	case "empty":
		w.WriteHeader(http.StatusBadGateway)
		return
	case "cut":
		text = text[:len(text)/2]
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}

// awaitReports waits until everything was reported.
func (n *Number) awaitReports(hr *http.Request) {
	for len(n.events) > 0 && hr.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// see handles a read receipt, with or without typing.
func (n *Number) see(w http.ResponseWriter, m *sent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.phones {
		if slices.Contains(p.sent, m.MessageID) && m.Status == "read" {
			p.seen[m.MessageID] = true
			p.typing = m.Typing != nil
			json.NewEncoder(w).Encode(success)
			return
		}
	}
	refuse(100, "Invalid parameter: there is no such message").write(w)
}
