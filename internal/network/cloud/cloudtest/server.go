// Package cloudtest is Meta's Graph API on loopback, with phones behind it, for tests of the official network. It is strict about
// requests, records every message that it accepted by the sender's own id, and fails in the ways that Meta does, on request.
//
// It calls the address of a number with what happened since the last call, until the response is 200.
package cloudtest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Server is the API with one app. Its fields may be changed before it is used.
type Server struct {
	URL         string // the graph_url of channels
	AppSecret   string
	Token       string
	TokenScopes []string
	TokenEnds   time.Time     // zero: never
	Latency     time.Duration // of accepting a message
	RetryPause  time.Duration // between two calls with the same event

	http    *httptest.Server
	running context.Context
	end     func()
	calling sync.WaitGroup

	mu        sync.Mutex
	lastID    int
	numbers   map[string]*Number
	files     map[string]*file
	templates map[string]*Template // by name and language
	accepted  map[string][]string  // the ids of accepted messages by their opaque data
	callback  string               // the address of the app
}

// Template is a message template of the account.
type Template struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Language   string          `json:"language"`
	Status     string          `json:"status"`
	Category   string          `json:"category"`
	Format     string          `json:"parameter_format"`
	Components json.RawMessage `json:"components"`
}

type file struct {
	data     []byte
	mime     string
	secret   string // of the address that serves it
	redirect string // where that address leads; empty: it serves the file
	wrongSum bool
}

// The ids of the app and of its business account.
const (
	AppID      = "670001112223334"
	BusinessID = "102290129340398"
)

// Start starts a server.
func Start() *Server {
	s := &Server{AppSecret: "the app secret", Token: "EAAtoken",
		TokenScopes: []string{"whatsapp_business_messaging", "whatsapp_business_management"},
		RetryPause:  5 * time.Millisecond, numbers: map[string]*Number{}, files: map[string]*file{}, templates: map[string]*Template{},
		accepted: map[string][]string{}}
	s.running, s.end = context.WithCancel(context.Background())
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL
	return s
}

func (s *Server) Close() {
	s.end()
	s.calling.Wait()
	s.http.CloseClientConnections()
	s.http.Close()
}

// CloseClients closes the connections of clients.
func (s *Server) CloseClients() { s.http.CloseClientConnections() }

// Copies returns how often a message was accepted, by its opaque data.
func (s *Server) Copies(opaque string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.accepted[opaque])
}

// Accepted returns how many messages were accepted, and how many of them were copies of another one.
func (s *Server) Accepted() (messages, copies int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ids := range s.accepted {
		messages += len(ids)
		copies += len(ids) - 1
	}
	return messages, copies
}

// SetTemplate adds a template or changes its status.
func (s *Server) SetTemplate(t Template) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := t.Name + " " + t.Language
	if old := s.templates[key]; old != nil && t.Components == nil {
		old.Status = t.Status
		return
	}
	if t.ID == "" {
		t.ID = s.digits()
	}
	s.templates[key] = &t
}

func (s *Server) digits() string {
	s.lastID++
	return fmt.Sprint(100_000_000_000_000 + s.lastID)
}

// newID is an id of a message in Meta's form. Every tenth one is as long as they get.
func (s *Server) newID() string {
	s.lastID++
	size := 36
	if s.lastID%10 == 0 {
		size = 160
	}
	sum := sha256.Sum256(fmt.Append(nil, s.lastID))
	return "wamid." + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(sum[:]), 5)[:size]))
}

// apiError is an error in the form of the API.
type apiError struct {
	status, code, subcode int
	text                  string
	header                http.Header
}

func refuse(code int, text string) *apiError {
	return &apiError{status: http.StatusBadRequest, code: code, text: text}
}

func (e *apiError) write(w http.ResponseWriter) {
	for key, values := range e.header {
		w.Header()[key] = values
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"message": fmt.Sprintf("(#%d) %s", e.code, e.text), "type": "OAuthException", "code": e.code, "error_subcode": e.subcode,
		"error_data": map[string]any{"messaging_product": "whatsapp", "details": e.text}, "fbtrace_id": "AtraceID",
	}})
}

var userAgent = regexp.MustCompile(`^[^/\s]+/\d+\.\d+\.\d+`)

func (s *Server) authenticate(hr *http.Request) *apiError {
	if !userAgent.MatchString(hr.UserAgent()) {
		return &apiError{status: 422, code: 100, text: "The User-Agent must be a name and a version."}
	}
	token, _ := strings.CutPrefix(hr.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	own := AppID + "|" + s.AppSecret // the app's own token
	if hr.URL.Query().Has("access_token") || token != s.Token && token != own || !s.TokenEnds.IsZero() && time.Now().After(s.TokenEnds) {
		return &apiError{status: 401, code: 190, text: "Invalid OAuth access token."}
	}
	if proof := hr.URL.Query().Get("appsecret_proof"); proof != "" && proof != Sign(s.AppSecret, []byte(token)) {
		return refuse(100, "Invalid appsecret_proof provided in the API argument")
	}
	return nil
}

// Sign is the hexadecimal HMAC-SHA256 of data.
func Sign(secret string, data []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(data)
	return hex.EncodeToString(mac.Sum(nil))
}

// SetToken changes the access token that is accepted.
func (s *Server) SetToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Token = token
}

func (s *Server) serve(w http.ResponseWriter, hr *http.Request) {
	if refusal := s.authenticate(hr); refusal != nil {
		refusal.write(w)
		return
	}
	path, ok := strings.CutPrefix(hr.URL.Path, "/v25.0/")
	if secret, isFile := strings.CutPrefix(hr.URL.Path, "/files/"); isFile {
		s.serveFile(w, hr, secret)
		return
	}
	if !ok {
		refuse(2500, "Unknown path components: "+hr.URL.Path).write(w)
		return
	}
	object, edge, _ := strings.Cut(path, "/")
	s.mu.Lock()
	number := s.numbers[object]
	s.mu.Unlock()
	var result any
	var refusal *apiError
	switch at := hr.Method + " " + edge; {
	case object == "app" && at == "GET ":
		result = map[string]string{"id": AppID, "name": "App"}
	case object == "debug_token" && at == "GET ":
		result = s.debugToken(hr.URL.Query().Get("input_token"))
	case object == AppID && at == "POST subscriptions":
		result, refusal = s.subscribe(hr)
	case object == BusinessID:
		result, refusal = s.serveBusiness(at, hr)
	case number != nil && at == "POST messages":
		number.accept(w, hr)
		return
	case number != nil:
		result, refusal = number.serve(at, hr)
	case at == "GET " && s.file(object) != nil:
		result = s.describeFile(object)
	default:
		refusal = refuse(100, "Unsupported request. Object with ID '"+object+"' does not exist")
		refusal.subcode = 33
	}
	if refusal != nil {
		refusal.write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(result)
}

// subscribe sets the address of the app, after it has passed the handshake. Only the app itself may.
func (s *Server) subscribe(hr *http.Request) (any, *apiError) {
	query := hr.URL.Query()
	if !strings.HasPrefix(hr.Header.Get("Authorization"), "Bearer "+AppID+"|") || query.Get("object") != "whatsapp_business_account" ||
		!strings.Contains(query.Get("fields"), "message_template_status_update") {
		return nil, refuse(100, "Invalid parameter")
	}
	if refusal := shakeHands(query.Get("callback_url"), query.Get("verify_token")); refusal != nil {
		return nil, refusal
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callback = query.Get("callback_url")
	return success, nil
}

// Callback is the address of the app.
func (s *Server) Callback() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.callback
}

var success = map[string]bool{"success": true}

func (s *Server) debugToken(token string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	expires := int64(0)
	if !s.TokenEnds.IsZero() {
		expires = s.TokenEnds.Unix()
	}
	return map[string]any{"data": map[string]any{"app_id": AppID, "type": "SYSTEM_USER", "is_valid": token == s.Token, "expires_at": expires,
		"scopes": s.TokenScopes}}
}

func (s *Server) serveBusiness(at string, hr *http.Request) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch at {
	case "POST subscribed_apps":
		return success, nil
	case "GET subscribed_apps":
		return map[string]any{"data": []any{map[string]any{"whatsapp_business_api_data": map[string]string{"id": AppID}}}}, nil
	case "GET message_templates":
		data := []*Template{}
		for _, t := range s.templates {
			if name := hr.URL.Query().Get("name"); name == "" || name == t.Name {
				data = append(data, t)
			}
		}
		return map[string]any{"data": data, "paging": map[string]any{}}, nil
	case "POST message_templates", "POST upsert_message_templates":
		return s.createTemplates(hr)
	case "DELETE message_templates":
		found := false
		for key, t := range s.templates {
			if t.Name == hr.URL.Query().Get("name") {
				found = true
				delete(s.templates, key)
			}
		}
		if !found {
			return nil, refuse(100, "The template does not exist.")
		}
		return success, nil
	}
	return nil, refuse(100, "Unsupported request.")
}

var templateName = regexp.MustCompile(`^[a-z0-9_]{1,512}$`)

func (s *Server) createTemplates(hr *http.Request) (any, *apiError) {
	var asked struct {
		Name, Language, Category string
		Languages                []string
		Format                   string          `json:"parameter_format"`
		TTL                      int             `json:"message_send_ttl_seconds"`
		Components               json.RawMessage `json:"components"`
	}
	decoder := json.NewDecoder(hr.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		return nil, refuse(100, err.Error())
	}
	if !templateName.MatchString(asked.Name) || len(asked.Components) == 0 {
		return nil, refuse(100, "Invalid parameter")
	}
	upsert := strings.HasSuffix(hr.URL.Path, "upsert_message_templates")
	if !upsert {
		asked.Languages = []string{asked.Language}
	}
	var made []*Template
	for _, language := range asked.Languages {
		key := asked.Name + " " + language
		if s.templates[key] != nil && !upsert {
			return nil, refuse(100, "Content in this language already exists")
		}
		t := &Template{ID: s.digits(), Name: asked.Name, Language: language, Status: "PENDING", Category: asked.Category, Format: asked.Format,
			Components: asked.Components}
		if asked.Category == "AUTHENTICATION" {
			t.Status = "APPROVED"
		}
		s.templates[key] = t
		made = append(made, t)
	}
	if upsert {
		return map[string]any{"data": made}, nil
	}
	return map[string]string{"id": made[0].ID, "status": made[0].Status, "category": made[0].Category}, nil
}

// reset breaks the connection of a request.
func reset(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}
