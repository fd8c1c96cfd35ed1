package cloudtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Number is a business number. Its exported fields may be changed before it is used.
type Number struct {
	ID, Digits, Name string
	Status, Quality  string
	PIN              string // with which it is registered; empty: any
	Level            string // STANDARD or HIGH
	Limit            string // of contacts to write to first in a day
	PairLimit        bool   // one message per 6 s to a phone, after 45
	Window           bool   // texts only to phones that wrote in the last 24 hours
	// Address is what is called; nil: the one that was set by the API.
	Address func() string

	s           *Server
	webhook     string
	verifyToken string
	events      chan event

	mu       sync.Mutex
	phones   map[string]*Phone
	faults   []Fault
	statuses StatusMode
	held     []event
	tokens   float64
	refilled time.Time
	calls    int // with a wrong response
	limited  int // messages that exceeded the rate
}

// StatusMode says how statuses are reported.
type StatusMode int

const (
	StatusesNormal    StatusMode = iota
	StatusesWithheld             // they wait for ReleaseStatuses
	StatusesShuffled             // each twice; they wait too, and are released in any order
	StatusesAnonymous            // failures come without opaque data
)

// Fault is what happens to one message.
type Fault struct {
	// Code is the error that is responded; 0: the message is accepted.
	Code       int
	RetryAfter string
	// Lost is how the response of an accepted message is lost: "timeout", "reset", "5xx", "empty" (a 5xx without a body) or "cut".
	Lost string
	// StatusFirst has the statuses come before the response.
	StatusFirst bool
	// FailLater is the error of the status that follows; 0: it is delivered.
	FailLater int
}

type event struct {
	field string
	value map[string]any
}

// AddNumber adds a number with its own calls.
func (s *Server) AddNumber(digits string) *Number {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &Number{ID: s.digits(), Digits: digits, Name: "Toko Budi", Status: "CONNECTED", Quality: "GREEN", Level: "STANDARD",
		Limit: "TIER_2K", s: s,
		events: make(chan event, 1_000_000), phones: map[string]*Phone{}, tokens: 80, refilled: time.Now()}
	s.numbers[n.ID] = n
	s.calling.Go(n.report)
	return n
}

// Set changes what the server says of the number.
func (n *Number) Set(change func(*Number)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

// Next has faults happen to the next messages, one each.
func (n *Number) Next(faults ...Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = append(n.faults, faults...)
}

// SetStatuses changes how statuses are reported from now on.
func (n *Number) SetStatuses(mode StatusMode) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.statuses = mode
}

// ReleaseStatuses reports the statuses that were withheld, and later ones at once.
func (n *Number) ReleaseStatuses() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.statuses == StatusesShuffled {
		rand.Shuffle(len(n.held), func(i, j int) { n.held[i], n.held[j] = n.held[j], n.held[i] })
	}
	n.statuses = StatusesNormal
	for _, e := range n.held {
		n.events <- e
	}
	n.held = nil
}

// Report calls the address of the number with a change of any field.
func (n *Number) Report(field string, value map[string]any) { n.events <- event{field, value} }

// Refusals is how many calls did not get 200.
func (n *Number) Refusals() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls
}

// Limited is how many messages were refused because they exceeded the rate.
func (n *Number) Limited() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.limited
}

// report calls the address until the server is closed.
func (n *Number) report() {
	for {
		select {
		case <-n.s.running.Done():
			return
		case e := <-n.events:
			batch := []event{e}
			for len(n.events) > 0 && len(batch) < maxBatch {
				batch = append(batch, <-n.events)
			}
			for !n.call(batch) {
				select {
				case <-n.s.running.Done():
					return
				case <-time.After(n.s.RetryPause):
				}
			}
		}
	}
}

// maxBatch is how many events one call has at most.
const maxBatch = 100

func (n *Number) call(batch []event) bool {
	n.mu.Lock()
	address := n.webhook
	n.mu.Unlock()
	if n.Address != nil {
		address = n.Address()
	}
	whole := n.Body(batch[0].field, batch[0].value)
	for _, e := range batch[1:] {
		whole["entry"] = append(whole["entry"].([]any), n.Body(e.field, e.value)["entry"].([]any)...)
	}
	body := Encode(whole)
	req, err := http.NewRequestWithContext(n.s.running, "POST", address, bytes.NewReader(body))
	if err != nil {
		return false
	}
	n.s.mu.Lock()
	req.Header.Set("X-Hub-Signature-256", "sha256="+Sign(n.s.AppSecret, body))
	n.s.mu.Unlock()
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	ok := err == nil && resp.StatusCode == http.StatusOK
	if !ok {
		n.mu.Lock()
		n.calls++
		n.mu.Unlock()
	}
	return ok
}

// Body is a call about the number.
func (n *Number) Body(field string, value map[string]any) map[string]any {
	metadata := map[string]string{"display_phone_number": n.Digits, "phone_number_id": n.ID}
	whole := map[string]any{"messaging_product": "whatsapp", "metadata": metadata}
	for key, v := range value {
		whole[key] = v
	}
	return map[string]any{"object": "whatsapp_business_account", "entry": []any{map[string]any{"id": BusinessID,
		"changes": []any{map[string]any{"field": field, "value": whole}}}}}
}

// Encode writes JSON as Meta signs it: characters above U+007F are escaped.
func Encode(v any) []byte {
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	encoder.Encode(v)
	var escaped bytes.Buffer
	for _, r := range strings.TrimSpace(plain.String()) {
		if r < 0x80 {
			escaped.WriteRune(r)
			continue
		}
		for _, unit := range utf16(r) {
			fmt.Fprintf(&escaped, `\u%04x`, unit)
		}
	}
	return escaped.Bytes()
}

func utf16(r rune) []rune {
	if r < 0x10000 {
		return []rune{r}
	}
	r -= 0x10000
	return []rune{0xd800 + r>>10, 0xdc00 + r&0x3ff}
}

func (n *Number) serve(at string, hr *http.Request) (any, *apiError) {
	switch at {
	case "GET ":
		n.mu.Lock()
		defer n.mu.Unlock()
		return map[string]any{"id": n.ID, "display_phone_number": "+" + n.Digits[:2] + " " + n.Digits[2:], "verified_name": n.Name,
			"status": n.Status, "quality_rating": n.Quality, "throughput": map[string]string{"level": n.Level}, "platform_type": "CLOUD_API",
			"name_status": "APPROVED", "whatsapp_business_manager_messaging_limit": n.Limit,
			"webhook_configuration": map[string]string{"phone_number": n.webhook}}, nil
	case "POST ":
		return n.configure(hr)
	case "POST register":
		n.mu.Lock()
		defer n.mu.Unlock()
		var asked struct {
			Product string `json:"messaging_product"`
			PIN     string `json:"pin"`
		}
		if json.NewDecoder(hr.Body).Decode(&asked) != nil || asked.Product != "whatsapp" || len(asked.PIN) != 6 {
			return nil, refuse(100, "Invalid parameter")
		}
		if n.PIN != "" && n.PIN != asked.PIN {
			return nil, refuse(133005, "Two step verification PIN Mismatch")
		}
		n.Status = "CONNECTED"
		return success, nil
	case "POST media":
		return n.upload(hr)
	}
	return nil, refuse(100, "Unsupported request.")
}

// configure sets the address of the number, after it has passed the handshake.
func (n *Number) configure(hr *http.Request) (any, *apiError) {
	var asked struct {
		Webhook struct {
			Address string `json:"override_callback_uri"`
			Token   string `json:"verify_token"`
		} `json:"webhook_configuration"`
	}
	if err := json.NewDecoder(hr.Body).Decode(&asked); err != nil {
		return nil, refuse(100, err.Error())
	}
	if asked.Webhook.Address != "" {
		if refusal := shakeHands(asked.Webhook.Address, asked.Webhook.Token); refusal != nil {
			return nil, refusal
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.webhook, n.verifyToken = asked.Webhook.Address, asked.Webhook.Token
	return success, nil
}

// shakeHands checks that an address knows its token.
func shakeHands(address, token string) *apiError {
	query := url.Values{"hub.mode": {"subscribe"}, "hub.challenge": {"1158201444"}, "hub.verify_token": {token}}
	resp, err := http.Get(address + "?" + query.Encode())
	if err != nil {
		return refuse(2200, "Callback verification failed: "+err.Error())
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || string(text) != "1158201444" {
		return refuse(2200, "Callback verification failed with the response "+strconv.Itoa(resp.StatusCode))
	}
	return nil
}

func (n *Number) upload(hr *http.Request) (any, *apiError) {
	if err := hr.ParseMultipartForm(1 << 20); err != nil {
		return nil, refuse(100, err.Error())
	}
	part, header, err := hr.FormFile("file")
	if err != nil || hr.FormValue("messaging_product") != "whatsapp" || hr.FormValue("type") == "" {
		return nil, refuse(100, "The form lacks a field.")
	}
	if header.Header.Get("Content-Type") != hr.FormValue("type") {
		return nil, refuse(131053, "The file has another type than the form says.")
	}
	data, err := io.ReadAll(part)
	if err != nil {
		return nil, refuse(100, err.Error())
	}
	return map[string]string{"id": n.s.AddFile(data, hr.FormValue("type"))}, nil
}

// AddFile adds a file that messages can name, and returns its id.
func (s *Server) AddFile(data []byte, mime string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.digits()
	s.files[id] = &file{data: data, mime: mime, secret: s.digits()}
	return id
}

// SpoilFile has the address of a file lead elsewhere, or its announced hash be wrong if that is empty.
func (s *Server) SpoilFile(id, redirect string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[id].redirect, s.files[id].wrongSum = redirect, redirect == ""
}

func (s *Server) file(id string) *file {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[id]
}

// File returns the bytes and the type of a file.
func (s *Server) File(id string) ([]byte, string) {
	f := s.file(id)
	if f == nil {
		return nil, ""
	}
	return f.data, f.mime
}

func (s *Server) describeFile(id string) any {
	f := s.file(id)
	sum := sha256.Sum256(f.data)
	return map[string]any{"messaging_product": "whatsapp", "url": s.URL + "/files/" + f.secret, "mime_type": f.mime,
		"sha256": base64.StdEncoding.EncodeToString(sum[:]), "file_size": len(f.data), "id": id}
}

func (s *Server) serveFile(w http.ResponseWriter, hr *http.Request, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if f.secret != secret {
			continue
		}
		switch {
		case f.redirect != "":
			http.Redirect(w, hr, f.redirect, http.StatusFound)
		case f.wrongSum:
			w.Write(append(f.data, '!'))
		default:
			w.Write(f.data)
		}
		return
	}
	w.WriteHeader(http.StatusNotFound)
}
