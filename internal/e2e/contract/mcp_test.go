package contract_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/internal/parleytest"
)

// withToken sends a token, and other header fields, with every request.
type withToken struct{ header http.Header }

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range w.header {
		r.Header[name] = values
	}
	return http.DefaultTransport.RoundTrip(r)
}

// connectMCP connects the SDK's own client to a gateway.
func connectMCP(t *testing.T, e *parleytest.Env, token string, header ...string) *mcp.ClientSession {
	t.Helper()
	h := http.Header{"Authorization": {"Bearer " + token}}
	for pair := range slices.Chunk(header, 2) {
		h.Set(pair[0], pair[1])
	}
	transport := &mcp.StreamableClientTransport{Endpoint: e.URL + "/mcp", HTTPClient: &http.Client{Transport: withToken{h}}, MaxRetries: -1}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// callTool calls a tool and decodes its result. It returns the text of an error of the tool.
func callTool(t *testing.T, s *mcp.ClientSession, name string, args map[string]any, out any) string {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if r.IsError {
		return r.Content[0].(*mcp.TextContent).Text
	}
	raw, err := json.Marshal(r.StructuredContent)
	if err == nil && out != nil {
		err = json.Unmarshal(raw, out)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return ""
}

func toolNames(t *testing.T, s *mcp.ClientSession) (names []string) {
	t.Helper()
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

type foundByTool struct {
	Messages []struct {
		ID, Channel, Contact, Group, Text string
		Outgoing                          bool
	}
	Replies []struct{ Text, Contact, Group string }
	Cursor  string
}

type foundChats struct {
	Chats, Found []struct {
		Contact, Name string
		IsGroup       bool `json:"is_group"`
		Last          struct{ Text string }
	}
	Cursor string
}

// TestMCPSeesEverything reads files, places, polls and cards, finds people by name, and pages through long chats.
func TestMCPSeesEverything(t *testing.T) {
	e := parleytest.Start(t)
	const number = "6281500007301"
	token := e.CreateChannel("mcpsees")
	as := parleytest.As(token)
	e.Post("/api/sandbox/phones", `{"number":"`+number+`","name":"Ayu Lestari"}`, as).Expect(http.StatusOK)
	phone := e.PhoneFor(token, number)
	phone.Sends(`{"type":"location","latitude":"-6.2","longitude":"106.8","title":"Monas","address":"Jakarta"}`)
	phone.Sends(`{"type":"image","file":{"url":"data:image/png;base64,` + onePixel + `"},"caption":"lihat"}`)
	phone.Received("lihat")
	e.Post("/api/send-message/polling", `{"contact_id":"`+number+`@c.us","title":"Kapan?","options":["Senin","Selasa"],"limit":1}`, as).
		Expect(http.StatusOK)
	for name, token := range map[string]string{"channel": token, "admin": e.Admin} {
		t.Run(name, func(t *testing.T) {
			s := connectMCP(t, e, token)
			var found foundChats
			if wrong := callTool(t, s, "find_contacts", map[string]any{"name": "ayu l", "channel": "mcpsees"}, &found); wrong != "" ||
				len(found.Found) != 1 || found.Found[0].Contact != number+"@c.us" {
				t.Errorf("found %+v, %s", found.Found, wrong)
			}
			var chat struct {
				Messages []struct {
					Type  string
					File  *struct{ URI, Type, Status string }
					Place *struct{ Latitude, Title string }
					Poll  *struct{ Options []struct{ Name string } }
				}
				Cursor string
			}
			if wrong := callTool(t, s, "read_chat", map[string]any{"contact": number, "channel": "mcpsees"}, &chat); wrong != "" ||
				len(chat.Messages) != 3 || chat.Cursor != "" {
				t.Fatalf("the chat is %+v, %s", chat, wrong)
			}
			place, image, poll := chat.Messages[0].Place, chat.Messages[1].File, chat.Messages[2].Poll
			if place == nil || place.Title != "Monas" || image == nil || image.Type != "image/png" || poll == nil || len(poll.Options) != 2 {
				t.Fatalf("the chat is %+v", chat.Messages)
			}
			var r *mcp.ReadResourceResult
			var err error
			e.Eventually("the file is there", func() bool {
				r, err = s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: image.URI})
				return err == nil || !strings.Contains(err.Error(), "still downloading")
			})
			if err != nil || len(r.Contents) != 1 || r.Contents[0].MIMEType != "image/png" || len(r.Contents[0].Blob) == 0 {
				t.Errorf("%s is %+v, %v", image.URI, r, err)
			}
			if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: image.URI + "0"}); err == nil ||
				!strings.Contains(err.Error(), "Resource not found") {
				t.Errorf("a file of no message: %v", err)
			}
			if templates, err := s.ListResourceTemplates(t.Context(), nil); err != nil || len(templates.ResourceTemplates) != 1 {
				t.Errorf("the templates are %+v, %v", templates, err)
			}
			if wrong := callTool(t, s, "search_messages", map[string]any{"direction": "sideways"}, nil); !strings.Contains(wrong, "direction") {
				t.Errorf("a wrong direction: %q", wrong)
			}
			if wrong := callTool(t, s, "read_chat", map[string]any{"contact": number, "limit": 1000}, nil); !strings.Contains(wrong, "limit") {
				t.Errorf("a wrong limit: %q", wrong)
			}
			// A page at a time, and pages that are not too long.
			var ids []string
			for args := map[string]any{"contact": number, "channel": "mcpsees", "limit": 2}; ; {
				var page foundByTool
				if wrong := callTool(t, s, "read_chat", args, &page); wrong != "" {
					t.Fatal(wrong)
				}
				for _, m := range page.Messages {
					ids = append(ids, m.ID)
				}
				if page.Cursor == "" {
					break
				}
				args["cursor"] = page.Cursor
			}
			if slices.Sort(ids); len(slices.Compact(ids)) != 3 {
				t.Errorf("the pages have %q", ids)
			}
		})
	}
	s := connectMCP(t, e, token)
	long := strings.Repeat("panjang ", 500)
	for range 12 {
		e.Post("/api/send-message/text", `{"contact_id":"`+number+`@c.us","message":"`+long+`"}`, as).Expect(http.StatusOK)
	}
	for _, tool := range []string{"read_chat", "search_messages"} {
		var page foundByTool
		if callTool(t, s, tool, map[string]any{"contact": number, "limit": 100}, &page); len(page.Messages) != 7 || page.Cursor == "" {
			t.Errorf("%s has %d messages and the cursor %q", tool, len(page.Messages), page.Cursor)
		}
	}
}

// onePixel is a PNG.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// TestMCP uses every tool over HTTP, with each kind of token.
func TestMCP(t *testing.T) {
	e := parleytest.Start(t)
	const number = "6281500007001"
	token := e.CreateChannel("mcpshop")
	s := connectMCP(t, e, token)
	if got, want := toolNames(t, s), []string{"channel_health", "find_contacts", "list_chats", "read_chat", "search_messages",
		"send_message", "wait_for_reply"}; !slices.Equal(got, want) { // a development server: sending is on
		t.Errorf("the tools are %q, want %q", got, want)
	}
	var sent struct{ ID, Status string }
	args := map[string]any{"contact": "+62 815-0000-7001", "text": "Halo", "idempotency_key": "mcp-1"}
	if wrong := callTool(t, s, "send_message", args, &sent); wrong != "" || sent.Status != "SENT" {
		t.Fatalf("sent is %+v, %s", sent, wrong)
	}
	first := sent.ID
	if callTool(t, s, "send_message", args, &sent); sent.ID != first {
		t.Errorf("the same key sent %s and %s", first, sent.ID)
	}
	phone := e.PhoneFor(token, number)
	phone.Types("makasih")
	phone.Received("makasih")
	var found foundByTool
	if callTool(t, s, "wait_for_reply", map[string]any{"contact": number, "after": first, "seconds": 40}, &found); len(found.Replies) != 1 ||
		found.Replies[0].Text != "makasih" {
		t.Errorf("the reply that came before is %+v", found.Replies)
	}
	found = foundByTool{}
	if callTool(t, s, "read_chat", map[string]any{"contact": number}, &found); len(found.Messages) != 2 || !found.Messages[0].Outgoing ||
		found.Messages[1].Text != "makasih" {
		t.Errorf("the chat is %+v", found.Messages)
	}
	found = foundByTool{}
	if callTool(t, s, "search_messages", map[string]any{"text": "MAKA", "direction": "in"}, &found); len(found.Messages) != 1 {
		t.Errorf("found %+v", found.Messages)
	}
	var chats struct{ Total int }
	if callTool(t, s, "list_chats", nil, &chats); chats.Total != 1 {
		t.Errorf("there are %d chats", chats.Total)
	}
	var health struct {
		Channels []struct{ Code, Status, Network string }
	}
	if callTool(t, s, "channel_health", nil, &health); len(health.Channels) != 1 || health.Channels[0].Status != "WORKING" {
		t.Errorf("the health is %+v", health)
	}
	for name, args := range map[string]map[string]any{
		"is not a phone number": {"contact": "Ayu", "text": "x"},
		"only for channel":      {"contact": number, "text": "x", "channel": "demo"},
		"not_on_network":        {"contact": "99912345670", "text": "x"},
		"/properties/text":      {"contact": number, "text": ""},
		"are: channel, contact, idempotency_key, reply_to, text.": {"contact": number, "message": "x"},
		"find_contacts":         {"contact": "Budi", "text": "x"},
		"with its country code": {"contact": "0812-3456-7890", "text": "x"},
	} {
		if wrong := callTool(t, s, "send_message", args, nil); !strings.Contains(wrong, name) {
			t.Errorf("%v: %q, want %q", args, wrong, name)
		}
	}
	mcpWaits(t, e, s, phone, number)
	mcpTokens(t, e)
}

// TestMCPInGroups reads, searches, sends and waits in a group by its id.
func TestMCPInGroups(t *testing.T) {
	e := parleytest.Start(t)
	group, token := newGroup(e, "mcpgroup")
	s := connectMCP(t, e, token)
	var sent struct{ ID, Status string }
	if wrong := callTool(t, s, "send_message", map[string]any{"contact": group, "text": "Halo semua"}, &sent); wrong != "" ||
		sent.Status != "SENT" || !strings.HasPrefix(sent.ID, "true_"+group+"_") {
		t.Fatalf("sent is %+v, %s", sent, wrong)
	}
	var waiting sync.WaitGroup
	var found foundByTool
	waiting.Go(func() { callTool(t, s, "wait_for_reply", map[string]any{"contact": group, "seconds": 45}, &found) })
	e.Eventually("the tool listens", func() bool {
		return e.Get("/api/sandbox/listeners?type=message.received", parleytest.As(token)).Number("data.listeners") > 0
	})
	phone := e.PhoneFor(token, ayuNumber)
	phone.Types("to the channel alone")
	phone.Received("to the channel alone")
	phone.Sends(`{"type":"text","message":"halo juga","group_id":"` + group + `"}`)
	waiting.Wait()
	if len(found.Replies) != 1 || found.Replies[0].Text != "halo juga" || found.Replies[0].Group != group ||
		found.Replies[0].Contact != ayuNumber+"@c.us" {
		t.Errorf("the reply is %+v", found.Replies)
	}
	found = foundByTool{}
	if callTool(t, s, "wait_for_reply", map[string]any{"contact": group, "after": sent.ID, "seconds": 40}, &found); len(found.Replies) != 1 {
		t.Errorf("the reply that came before is %+v", found.Replies)
	}
	for _, s := range []*mcp.ClientSession{s, connectMCP(t, e, e.Admin)} {
		for tool, args := range map[string]map[string]any{
			"read_chat":       {"contact": group, "channel": "mcpgroup"},
			"search_messages": {"contact": group, "channel": "mcpgroup", "text": "halo"},
		} {
			found = foundByTool{}
			if wrong := callTool(t, s, tool, args, &found); wrong != "" || len(found.Messages) != 2 || found.Messages[0].Group != group {
				t.Errorf("%s: %+v, %s", tool, found.Messages, wrong)
			}
		}
	}
	var chats foundChats
	if callTool(t, s, "list_chats", nil, &chats); len(chats.Chats) != 2 || chats.Chats[0].Contact != group || !chats.Chats[0].IsGroup ||
		chats.Chats[0].Name == "" || chats.Chats[0].Last.Text != "halo juga" {
		t.Errorf("the chats are %+v", chats)
	}
	for _, s := range []*mcp.ClientSession{s, connectMCP(t, e, e.Admin)} {
		var found foundChats
		part := strings.ToUpper(chats.Chats[0].Name[1:])
		if callTool(t, s, "find_contacts", map[string]any{"name": part, "channel": "mcpgroup"}, &found); len(found.Found) != 1 ||
			found.Found[0].Contact != group {
			t.Errorf("%s is found as %+v", part, found.Found)
		}
	}
	for id, want := range map[string]string{"x@g.us": "is not the id of a group", "120363029999999999@g.us": "not in that group"} {
		if wrong := callTool(t, s, "send_message", map[string]any{"contact": id, "text": "x"}, nil); !strings.Contains(wrong, want) {
			t.Errorf("%s: %q, want %q", id, wrong, want)
		}
	}
}

// mcpWaits has a reply come while a tool waits for it, and none come at all.
func mcpWaits(t *testing.T, e *parleytest.Env, s *mcp.ClientSession, phone *parleytest.Phone, number string) {
	var waiting sync.WaitGroup
	var found foundByTool
	waiting.Go(func() { callTool(t, s, "wait_for_reply", map[string]any{"contact": number, "seconds": 45}, &found) })
	e.Eventually("the tool listens", func() bool {
		return e.Get("/api/sandbox/listeners?type=message.received", parleytest.As(e.Global), parleytest.With("X-Channel", "mcpshop")).
			Number("data.listeners") > 0
	})
	phone.Types("satu lagi")
	waiting.Wait()
	if len(found.Replies) != 1 || found.Replies[0].Text != "satu lagi" {
		t.Errorf("the reply is %+v", found.Replies)
	}
	var none struct {
		TimedOut bool `json:"timed_out"`
	}
	if callTool(t, s, "wait_for_reply", map[string]any{"contact": number, "seconds": 1}, &none); !none.TimedOut {
		t.Error("a reply came from nowhere")
	}
	// A caller that leaves ends the wait, and its stream.
	ctx, cancel := context.WithCancel(t.Context())
	waiting.Go(func() {
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "wait_for_reply", Arguments: map[string]any{"contact": number, "seconds": 45}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the call ended with %v", err)
		}
	})
	listeners := func() int {
		return e.Get("/api/sandbox/listeners?type=message.received", parleytest.As(e.Global), parleytest.With("X-Channel", "mcpshop")).
			Number("data.listeners")
	}
	e.Eventually("the tool listens again", func() bool { return listeners() > 0 })
	cancel()
	waiting.Wait()
	e.Eventually("nobody listens", func() bool { return listeners() == 0 })
}

// mcpTokens connects with a Global and an admin token.
func mcpTokens(t *testing.T, e *parleytest.Env) {
	global := connectMCP(t, e, e.Global)
	if wrong := callTool(t, global, "list_chats", nil, nil); !strings.Contains(wrong, "several channels") {
		t.Errorf("without a channel: %q", wrong)
	}
	if wrong := callTool(t, global, "list_chats", map[string]any{"channel": "mcpshop"}, nil); wrong != "" {
		t.Error(wrong)
	}
	if wrong := callTool(t, connectMCP(t, e, e.Global, "X-Channel", "mcpshop"), "list_chats", nil, nil); wrong != "" {
		t.Error(wrong)
	}
	admin := connectMCP(t, e, e.Admin)
	want := []string{"channel_health", "find_contacts", "list_chats", "read_chat", "search_messages", "wait_for_reply"}
	if got := toolNames(t, admin); !slices.Equal(got, want) {
		t.Errorf("an admin token has the tools %q, want %q", got, want)
	}
	var found foundByTool
	if callTool(t, admin, "search_messages", map[string]any{"text": "makasih", "channel": "mcpshop"}, &found); len(found.Messages) != 1 ||
		found.Messages[0].Channel != "mcpshop" {
		t.Errorf("an operator finds %+v", found.Messages)
	}
	var health struct{ Channels []struct{ Code string } }
	if callTool(t, admin, "channel_health", nil, &health); len(health.Channels) < 2 {
		t.Errorf("an operator sees %+v", health)
	}
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
	`"clientInfo":{"name":"test","version":"1"}}}`

// TestMCPRequests sends what is not of the protocol, or not allowed.
func TestMCPRequests(t *testing.T) {
	e := parleytest.Start(t)
	accept := parleytest.With("Accept", "application/json, text/event-stream")
	if id := e.Post("/mcp", initialize, accept).Expect(http.StatusOK).Header.Get("Mcp-Session-Id"); id != "" {
		t.Errorf("there is a session %s", id)
	}
	e.Post("/mcp", initialize, accept, parleytest.As("nonsense")).Expect(http.StatusUnauthorized)
	e.Post("/mcp", initialize, accept, parleytest.With("X-Channel", "other")).Expect(http.StatusForbidden)
	e.Post("/mcp", initialize, accept, parleytest.With("Origin", "https://evil.example")).Expect(http.StatusForbidden)
	e.Post("/mcp", initialize, accept, parleytest.With("Origin", e.URL)).Expect(http.StatusOK)
	e.Post("/mcp", initialize, accept, parleytest.With("Idempotency-Key", "k")).Expect(http.StatusOK)
	unknown := e.Post("/mcp", `{"jsonrpc":"2.0","id":"a7","method":"tasks/dance"}`, accept).Expect(http.StatusOK)
	if unknown.Number("error.code") != -32601 || unknown.Text("id") != "a7" {
		t.Errorf("an unknown method: %s", unknown.Body)
	}
	e.Post("/mcp", "["+initialize+"]", accept).Expect(http.StatusBadRequest)
	e.Post("/mcp", "nonsense", accept).Expect(http.StatusBadRequest)
	e.Post("/mcp", `{"x":"`+strings.Repeat("y", 1<<20)+`"}`, accept).Expect(http.StatusRequestEntityTooLarge)
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if allow := e.Call(method, "/mcp", "", accept).Expect(http.StatusMethodNotAllowed).Header.Get("Allow"); allow != "POST" {
			t.Errorf("%s: allowed is %q", method, allow)
		}
	}
	// A token may not hold more than a few requests open.
	var waiting sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer waiting.Wait()
	defer cancel()
	s := connectMCP(t, e, e.CreateChannel("mcpmany"))
	for i := range 16 {
		waiting.Go(func() {
			s.CallTool(ctx, &mcp.CallToolParams{Name: "wait_for_reply",
				Arguments: map[string]any{"contact": fmt.Sprintf("62815000072%02d", i), "seconds": 45}})
		})
	}
	e.Eventually("16 tools wait", func() bool {
		return e.Get("/api/sandbox/listeners?type=message.received", parleytest.As(e.Global), parleytest.With("X-Channel", "mcpmany")).
			Number("data.listeners") == 16
	})
	if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "list_chats"}); err == nil || !strings.Contains(err.Error(), "Too Many Requests") {
		t.Errorf("the 17th ended with %v", err)
	}
}
