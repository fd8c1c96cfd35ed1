package cluster_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/internal/cluster"
	"parley/internal/postgrestest"
)

// notices counts the notices of alerts by their type and channel.
type notices struct {
	mu    sync.Mutex
	count map[string]int
}

func (n *notices) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var notice struct{ Type, Channel string }
	if json.NewDecoder(r.Body).Decode(&notice) != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.count[notice.Type+" "+notice.Channel]++
}

func (n *notices) of(kind, channel string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.count[kind+" "+channel]
}

// inShard returns codes of channels of one shard.
func inShard(shard, n int) (codes []string) {
	for i := 0; len(codes) < n; i++ {
		if code := fmt.Sprintf("s%d-%d", shard, i); cluster.ToShard(code) == shard {
			codes = append(codes, code)
		}
	}
	return codes
}

// must makes a request at any node until one answers.
func (c *nodes) must(method, path, body string) {
	c.t.Helper()
	i := 0
	c.eventually(method+" "+path, func() bool {
		i++
		status, _, _, err := c.call(c.all[i%len(c.all)], method, path, c.admin, "", body, "")
		return err == nil && status < 300
	})
}

// leader returns the node that owns the first shard.
func (c *nodes) leader(server *postgrestest.Server, schema string) *node {
	c.t.Helper()
	id, err := server.Query("SELECT node FROM " + schema + ".shard WHERE id = 0")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, n := range c.all {
		_, answer, _, err := c.call(n, http.MethodGet, "/api/manage/nodes", c.admin, "", "", "")
		if err != nil {
			c.t.Fatal(err)
		}
		var list struct {
			Data []struct {
				ID   string
				Self bool
			}
		}
		if err := json.Unmarshal(answer, &list); err != nil {
			c.t.Fatal(err)
		}
		for _, row := range list.Data {
			if row.Self && row.ID == id {
				return n
			}
		}
	}
	c.t.Fatalf("no node has the id %s", id)
	return nil
}

// TestAlertsOfNodes: a cause gives one alert and one notice, whichever node serves the channel, and also after the leading node was
// killed. A node checks all its channels together: once it notified of a marker, a channel of the same shard, it checked the others.
func TestAlertsOfNodes(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	address := server.Schema(t)
	c := startNodesOn(t, address)
	got := &notices{count: map[string]int{}}
	receiver := httptest.NewServer(got)
	defer receiver.Close()
	shards := []int{0, 40, 80, 120}
	channels := map[int][]string{} // each shard has the one that is watched, and two markers
	for _, shard := range shards {
		channels[shard] = inShard(shard, 3)
	}
	c.createChannels(slices.Concat(slices.Collect(maps.Values(channels))...)...)
	c.balanced()
	c.must(http.MethodPost, "/api/manage/alerts", `{"kind":"channel_logged_out","url":"`+receiver.URL+`"}`)
	logOut := func(i int) {
		t.Helper()
		for _, shard := range shards {
			c.must(http.MethodPost, "/api/manage/channels/"+channels[shard][i]+"/logout", "")
		}
		for _, shard := range shards {
			c.eventually("a notice of "+channels[shard][i], func() bool { return got.of("alert.raised", channels[shard][i]) > 0 })
		}
	}
	logOut(0)
	logOut(1)
	_, schema, _ := strings.Cut(address, "search_path=")
	c.leader(server, schema).kill()
	logOut(2)
	for _, shard := range shards {
		for _, code := range channels[shard] {
			if raised, resolved := got.of("alert.raised", code), got.of("alert.resolved", code); raised != 1 || resolved != 0 {
				t.Errorf("channel %s of shard %d: raised %d times, resolved %d times", code, shard, raised, resolved)
			}
		}
	}
	var list struct{ Meta struct{ Total int } }
	if c.get("/api/manage/alerts", "", &list); list.Meta.Total != 3*len(shards) {
		t.Errorf("%d alerts of %d causes", list.Meta.Total, 3*len(shards))
	}
}

// TestRequestLogOfNodes: every node shows all requests of a channel, whichever node got them and whichever serves the channel.
func TestRequestLogOfNodes(t *testing.T) {
	t.Parallel()
	c := startNodes(t)
	codes := []string{"log1", "log2", "log3"}
	c.createChannels(codes...)
	c.balanced()
	for _, code := range codes {
		for i, n := range c.all {
			for name, body := range map[string]string{"sent": `{"contact_id":"99912345673@c.us","message":"halo"}`, "refused": `{}`} {
				c.eventually(name+" through a node", func() bool {
					status, _, _, err := c.call(n, http.MethodPost, "/api/send-message/text", c.global, code, body, fmt.Sprint(name, i))
					return err == nil && status != http.StatusServiceUnavailable
				})
			}
		}
		for _, n := range c.all {
			var text string
			c.eventually("the request log of "+code, func() bool {
				status, answer, _, err := c.call(n, http.MethodGet, "/api/manage/channels/"+code+"/requests?path=text", c.admin, "", "", "")
				text = string(answer)
				return err == nil && status == http.StatusOK
			})
			for i := range c.all {
				for _, name := range []string{"sent", "refused"} {
					if key := fmt.Sprintf(`"idempotency_key":"%s%d"`, name, i); strings.Count(text, key) != 1 {
						t.Errorf("channel %s at %s: %s is there %d times", code, n.addr, key, strings.Count(text, key))
					}
				}
			}
		}
	}
}
