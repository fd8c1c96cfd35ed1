package cluster_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asGlobal sends a Global token for a channel with every request.
type asGlobal struct{ token, channel string }

func (a asGlobal) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+a.token)
	r.Header.Set("X-Channel", a.channel)
	return http.DefaultTransport.RoundTrip(r)
}

// TestModelsOnEveryNode has a model send and wait for the reply through every node, whichever serves the channel: the calls
// of its tools are forwarded.
func TestModelsOnEveryNode(t *testing.T) {
	t.Parallel()
	c := startNodes(t, "--mcp-allow-send")
	channels := []string{"models1", "models2", "models3"}
	c.createChannels(channels...)
	c.balanced()
	for _, channel := range channels {
		for _, n := range c.all {
			c.eventually("the node knows the channel", func() bool {
				status, _, _, err := c.call(n, http.MethodGet, "/api/channel/health", c.global, channel, "", "")
				return err == nil && status == http.StatusOK
			})
			transport := &mcp.StreamableClientTransport{Endpoint: "http://" + n.addr + "/mcp", MaxRetries: -1,
				HTTPClient: &http.Client{Transport: asGlobal{c.global, channel}}}
			s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
			if err != nil {
				t.Fatal(err)
			}
			sent := callOn(t, s, "send_message", map[string]any{"contact": "99912345673", "text": "halo " + channel})
			if !strings.Contains(sent, `"status":"SENT"`) {
				t.Errorf("%s through %s: sent is %s", channel, n.addr, sent)
			}
			id := strings.Split(sent, `"`)[3]
			reply := callOn(t, s, "wait_for_reply", map[string]any{"contact": "99912345673", "after": id, "seconds": 45})
			if !strings.Contains(reply, "You wrote: halo "+channel) {
				t.Errorf("%s through %s: the reply is %s", channel, n.addr, reply)
			}
			s.Close()
		}
	}
}

func callOn(t *testing.T, s *mcp.ClientSession, tool string, args map[string]any) string {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	return r.Content[0].(*mcp.TextContent).Text
}
