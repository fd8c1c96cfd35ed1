package cluster_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// wrongClock builds the program with a package time whose clock is ahead by as many seconds as TEST_CLOCK_SHIFT says. Only the
// wall clock is: the monotonic one stays. Nothing like that is in the program itself, and Go programs read the clock without
// libc, which faketime changes.
func wrongClock(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const reads = "\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(text), reads) != 1 {
		t.Skipf("the package time of %s reads the clock in another way", runtime.Version())
	}
	changed := strings.Replace(string(text), reads, reads+"\tsec += testShift\n", 1)
	changed = strings.Replace(changed, "import (\n", "import (\n\t\"syscall\"\n", 1) + `
var testShift = func() (shift int64) {
	text, _ := syscall.Getenv("TEST_CLOCK_SHIFT")
	for i := range len(text) {
		if text[i] != '-' {
			shift = shift*10 + int64(text[i]-'0')
		}
	}
	if len(text) > 0 && text[0] == '-' {
		return -shift
	}
	return shift
}()
`
	dir := t.TempDir()
	replaced, overlay, built := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "parley")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replaced}})
	if err == nil {
		err = os.WriteFile(replaced, []byte(changed), 0o600)
	}
	if err == nil {
		err = os.WriteFile(overlay, list, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-overlay", overlay, "-o", built, "parley/cmd/parley").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return built
}

// TestNodeWithWrongClock starts a node again under load whose clock is an hour ahead, then an hour behind. It is not ready and
// says why. Nothing is lost or sent twice, because clocks do not decide who serves a channel.
func TestNodeWithWrongClock(t *testing.T) {
	t.Parallel()
	if os.Getenv("PARLEY_NODE_CLOCK") == "" {
		t.Skip("PARLEY_NODE_CLOCK is not set: it builds everything once more, and make torture runs it")
	}
	wrong := wrongClock(t)
	c := startNodes(t)
	l := startLoad(t, c)
	l.progress()
	n := c.all[0]
	for _, shift := range []int{3600, -3600} {
		n.terminate()
		n.program, n.env = wrong, fmt.Sprint("TEST_CLOCK_SHIFT=", shift)
		n.run()
		c.eventually("the node says that its clock is wrong", func() bool {
			resp, err := c.client.Get("http://" + n.addr + "/readyz")
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			return err == nil && resp.StatusCode == http.StatusServiceUnavailable &&
				strings.Contains(string(body), "clock of this machine is 1h0m0s off")
		})
		out, _ := exec.Command(program, "doctor", "--data", n.data).CombinedOutput() // it fails: there is a problem
		if !strings.Contains(string(out), "The node is not ready because of it") {
			t.Errorf("doctor: %s", out)
		}
		l.progress()
	}
	n.terminate()
	n.program, n.env = "", ""
	n.start()
	l.progress()
	l.judge()
}
