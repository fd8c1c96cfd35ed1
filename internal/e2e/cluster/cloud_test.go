package cluster_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	"parley/internal/network/cloud/cloudtest"
)

// startCloud starts three nodes and Meta's API, and makes the channels of a load. Meta is in the test's process: it knows what it
// accepted, and calls any node.
func startCloud(t *testing.T) (*load, *cloudtest.Server, []*cloudtest.Number) {
	t.Helper()
	meta := cloudtest.Start()
	t.Cleanup(meta.Close)
	c := startNodes(t, "--allow-private-callers", "127.0.0.0/8")
	var numbers []*cloudtest.Number
	for i := range loadChannels {
		n := meta.AddNumber(fmt.Sprintf("62811%07d", i))
		n.Address = func() string { return "http://" + c.all[rand.N(len(c.all))].addr + "/network/cloud/" + channelCode(i) }
		numbers = append(numbers, n)
		body, _ := json.Marshal(map[string]any{"code": channelCode(i), "network": "cloud", "settings": map[string]any{
			"cloud": map[string]string{"unknown_wait": "10s"}}, "cloud": map[string]string{"phone_number_id": n.ID,
			"waba_id": cloudtest.BusinessID, "access_token": meta.Token, "app_secret": meta.AppSecret, "graph_url": meta.URL}})
		status, answer, _, err := c.call(c.all[i%len(c.all)], "POST", "/api/manage/channels", c.admin, "", string(body), "")
		if err != nil || status != http.StatusCreated {
			t.Fatalf("create a channel: %d %s %v", status, answer, err)
		}
	}
	for i := range loadChannels {
		c.becomes(channelCode(i), "WORKING")
	}
	l := newLoad(c)
	l.shown = func(channel, number string, want int) (texts []string) {
		var i int
		fmt.Sscanf(channel, "c%d", &i)
		phone := numbers[i].Phone(number)
		c.eventually("everything is shown", func() bool { return len(phone.Shows()) >= want })
		for _, m := range phone.Shows() {
			texts = append(texts, m.Text.Body)
		}
		return texts
	}
	l.start()
	return l, meta, numbers
}

// TestCloudNodes ends nodes with SIGKILL while their channels send and receive on the official network, whose calls reach any node.
// PARLEY_NODE_KILLS is how often.
func TestCloudNodes(t *testing.T) {
	t.Parallel()
	l, meta, numbers := startCloud(t)
	const writer = chatsEach // a contact that only writes
	var written []string
	write := func() {
		text := fmt.Sprint("in ", len(written))
		written = append(written, text)
		for i, n := range numbers {
			n.Phone(contactNumber(i, writer)).Text(text)
		}
	}
	l.progress()
	for range l.times("PARLEY_NODE_KILLS") {
		n := l.c.all[rand.N(len(l.c.all))]
		write()
		n.kill()
		write()
		l.progress() // also of its channels: another node took over
		n.start()
		l.progress()
	}
	l.judge()
	for i := range numbers {
		l.c.eventually("everything that was written is there", func() bool {
			return slices.Equal(l.history(channelCode(i), contactNumber(i, writer)), written)
		})
	}
	if accepted, copies := meta.Accepted(); copies > 0 {
		t.Errorf("Meta accepted %d messages, %d of them again", accepted, copies)
	}
}
