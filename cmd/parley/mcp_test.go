package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/internal/parleytest"
)

// startMCP runs parley mcp with the SDK's own client at its pipes.
func startMCP(t *testing.T, args ...string) *mcp.ClientSession {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	stdin, toServer := io.Pipe()
	fromServer, stdout := io.Pipe()
	var complaints bytes.Buffer
	c := &cli{in: stdin, out: stdout, err: &complaints, getenv: func(string) (string, bool) { return "", false }, size: terminalSize}
	ended := make(chan exitCode, 1)
	go func() { ended <- run(context.WithoutCancel(t.Context()), c, append([]string{"mcp"}, args...)) }() // it ends with its input
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		toServer.Close()
		if code := <-ended; code != exitDone {
			t.Errorf("it exited with %d: %s", code, complaints.String())
		}
	})
	return session
}

func mcpTools(t *testing.T, s *mcp.ClientSession) (names []string) {
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

// callMCP returns the text of a tool's result, or of its error.
func callMCP(ctx context.Context, t *testing.T, s *mcp.ClientSession, name string, args map[string]any) string {
	t.Helper()
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	return r.Content[0].(*mcp.TextContent).Text
}

// TestMCP serves the SDK's client over pipes: read-only, allowed to send, with an admin token, and on a development server.
func TestMCP(t *testing.T) {
	e := parleytest.Start(t)
	reading := []string{"channel_health", "find_contacts", "list_chats", "read_chat", "search_messages", "wait_for_reply"}
	sending := slices.Insert(slices.Clone(reading), 5, "send_message")
	t.Run("read-only", func(t *testing.T) {
		s := startMCP(t, "--url", e.URL, "--token", e.Token, "--allow-send=false")
		if got := mcpTools(t, s); !slices.Equal(got, reading) {
			t.Errorf("the tools are %q, want %q", got, reading)
		}
		if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "send_message"}); err == nil {
			t.Error("it sends")
		}
	})
	t.Run("on the sandbox", func(t *testing.T) { // as with a profile: the data directory is not known
		if got := mcpTools(t, startMCP(t, "--url", e.URL, "--token", e.Token)); !slices.Equal(got, sending) {
			t.Errorf("the tools are %q, want %q", got, sending)
		}
	})
	t.Run("sending", func(t *testing.T) {
		s := startMCP(t, "--url", e.URL, "--token", e.Token, "--allow-send")
		if got := mcpTools(t, s); !slices.Equal(got, sending) {
			t.Errorf("the tools are %q, want %q", got, sending)
		}
		got := callMCP(t.Context(), t, s, "send_message", map[string]any{"contact": "99912345673", "text": "apa kabar?"})
		if !strings.Contains(got, `"status":"SENT"`) {
			t.Errorf("sent: %s", got)
		}
		id := strings.Split(got, `"`)[3]
		got = callMCP(t.Context(), t, s, "wait_for_reply", map[string]any{"contact": "99912345673", "after": id, "seconds": 45})
		if !strings.Contains(got, "You wrote: apa kabar?") {
			t.Errorf("the reply: %s", got)
		}
	})
	t.Run("admin", func(t *testing.T) {
		s := startMCP(t, "--url", e.URL, "--admin-token", e.Admin)
		if got := mcpTools(t, s); !slices.Equal(got, reading) {
			t.Errorf("the tools are %q", got)
		}
		if got := callMCP(t.Context(), t, s, "channel_health", nil); !strings.Contains(got, `"code":"demo"`) {
			t.Errorf("the health: %s", got)
		}
	})
	t.Run("development", func(t *testing.T) {
		s := startMCP(t, "--data", string(e.Data))
		if got := mcpTools(t, s); !slices.Equal(got, sending) {
			t.Errorf("the tools are %q, want %q", got, sending)
		}
	})
	c := &cli{in: os.Stdin, out: io.Discard, err: io.Discard, getenv: func(string) (string, bool) { return "", false }, size: terminalSize}
	if code := run(t.Context(), c, []string{"mcp", "--url", e.URL, "--admin-token", e.Admin, "--allow-send"}); code != exitUsage {
		t.Errorf("an admin token that sends: exit code %d", code)
	}
}
