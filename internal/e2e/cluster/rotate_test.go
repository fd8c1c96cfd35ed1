package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNodesRotateSecret replaces the secret key of nodes under load, one step after the other. Every message is accepted, sent and
// announced once, with the tokens and the webhook of the time before.
func TestNodesRotateSecret(t *testing.T) {
	t.Parallel()
	c := startNodes(t)
	var codes []string
	for i := range loadChannels {
		codes = append(codes, channelCode(i))
	}
	c.createChannels(codes...)
	key := func(n *node) string {
		text, err := os.ReadFile(filepath.Join(n.data, "secret.key"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	old := key(c.all[0])
	l := newLoad(c)
	l.shown = l.arrived
	l.start()
	l.progress()
	for i, step := range []string{"--prepare", "--activate", "--retire"} {
		out := c.all[0].command("secret", "rotate", step, "--database", c.all[0].address)
		if lines := strings.Count(key(c.all[0]), "\n"); lines != []int{2, 2, 1}[i] || !strings.Contains(out, "restart the nodes one by one") {
			t.Fatalf("%s: %d lines; it says %s", step, lines, out)
		}
		l.progress() // with the files of the step before
		for _, n := range c.all {
			c.shareKey(n)
			n.terminate()
			l.progress()
			n.start()
			l.progress()
		}
	}
	if strings.Contains(key(c.all[2]), strings.TrimSpace(old)) {
		t.Error("the old key is still in the file")
	}
	l.judge()
	if out := c.all[1].command("audit", "list", "--action", "secret.rotate"); !strings.Contains(out, "secret.rotate") {
		t.Errorf("audit log: %s", out)
	}
}
