package whatsapp

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/internal/network"
)

// TestStanzaLogLine names the lines of whatsmeow's client.go through which every stanza comes: the logger, and what it logs before
// anything handles the stanza. If an upgrade changes them, stanzaTap must follow.
func TestStanzaLogLine(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "go.mau.fi/whatsmeow").Output()
	must(t, err)
	file := filepath.Join(strings.TrimSpace(string(dir)), "client.go")
	source, err := os.ReadFile(file)
	must(t, err)
	rest := string(source)
	for _, line := range []string{
		`log.Sub("` + receiveLog + `"),`,
		`) handleFrame(`,
		`node, err := waBinary.Unmarshal(decompressed)`,
		`cli.recvLog.Debugf("%s", node)`,
		`cli.receiveResponse(ctx, node)`,
		`queue <- node`,
	} {
		_, after, found := strings.Cut(rest, line)
		if !found {
			t.Fatalf("%s has no %q after the line before it in this list", file, line)
		}
		rest = after
	}
}

// TestNoStanzaSeen logs in with a whatsmeow that logs stanzas elsewhere: the channel must fail instead of staying silent.
func TestNoStanzaSeen(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	must(t, s.Close())
	w.driver.receiveLog = "Renamed"
	_, in := w.start()
	if e := in.status(parley.ChannelFailed); !strings.Contains(e.Reason, "cannot read what WhatsApp sends") {
		t.Errorf("it is %+v", e)
	}
	for _, e := range in.all() {
		if state, ok := e.(network.State); ok && state.Status == parley.ChannelWorking {
			t.Errorf("it was %+v before it failed", state)
		}
	}
}
