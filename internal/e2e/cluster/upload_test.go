package cluster_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestUploadOnAnotherNode uploads a file at each node and sends it through each other one, on channels that any node serves.
// What the phone got can be read at every node.
func TestUploadOnAnotherNode(t *testing.T) {
	t.Parallel()
	c := startNodes(t)
	channels := []string{"files1", "files2", "files3"}
	c.createChannels(channels...)
	c.balanced()
	const number = "6281234567890"
	notes := strings.Repeat("Milk, bread. ", 10_000)
	for _, channel := range channels {
		for i, at := range c.all {
			var up struct {
				Data struct{ ID string }
			}
			answered(c, at, http.MethodPost, "/api/media", channel, notes, &up)
			other := c.all[(i+1)%len(c.all)]
			var sent struct {
				Data struct {
					Status string
					ID     string `json:"message_id"`
				}
			}
			answered(c, other, http.MethodPost, "/api/send-message/file", channel,
				`{"contact_id":"`+number+`@c.us","file":{"url":"`+up.Data.ID+`"}}`, &sent)
			if sent.Data.Status != "SENT" {
				t.Errorf("%s, uploaded at node %d: %+v", channel, i, sent)
			}
			for _, n := range c.all {
				status, got, _, err := c.call(n, http.MethodGet, "/api/sandbox/phones/"+number+"/media/"+sent.Data.ID, c.global, channel, "", "")
				if err != nil || status != http.StatusOK || string(got) != notes {
					t.Errorf("%s, uploaded at node %d: %d, %d bytes, %v", channel, i, status, len(got), err)
				}
			}
		}
	}
}

// answered calls a node until it knows the channel, and reads the answer.
func answered(c *nodes, n *node, method, path, channel, body string, into any) {
	c.t.Helper()
	var status int
	var answer []byte
	c.eventually(path+" is answered", func() bool {
		var err error
		status, answer, _, err = c.call(n, method, path, c.global, channel, body, "")
		return err == nil && status != http.StatusBadRequest && status != http.StatusServiceUnavailable
	})
	if err := json.Unmarshal(answer, into); status != http.StatusOK || err != nil {
		c.t.Fatalf("%s: %d %s %v", path, status, answer, err)
	}
}
