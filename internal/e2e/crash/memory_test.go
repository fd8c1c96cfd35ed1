package crash_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"parley/internal/e2e/runs"
)

// TestMemoryOfPhones has many simulated phones send the largest file at once. The server stays small: it holds no file in memory.
func TestMemoryOfPhones(t *testing.T) {
	const phones, size, most = 32, 100 << 20, 300 // the last in MiB
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc here")
	}
	if len(buildFlags) > 0 {
		t.Skip("the race detector takes memory of its own")
	}
	s := startServer(t, "--inbound-mib-per-contact", "200", "--inbound-mib-per-channel", "10000")
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+s.addr+"/api/media", io.LimitReader(zeros{}, size))
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = size
	req.Header = http.Header{"Authorization": {"Bearer " + s.token}, "X-Channel": {"demo"}, "Content-Type": {"application/octet-stream"}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var uploaded struct{ Data struct{ ID string } }
	if err := json.NewDecoder(resp.Body).Decode(&uploaded); err != nil || uploaded.Data.ID == "" {
		t.Fatalf("upload: %d %v", resp.StatusCode, err)
	}

	number := func(phone int) string { return fmt.Sprintf("62814%07d", phone) }
	var wg sync.WaitGroup
	for phone := range phones {
		wg.Go(func() {
			body := fmt.Sprintf(`{"type":"file","file":{"url":%q}}`, uploaded.Data.ID)
			s.insist(t, "/api/sandbox/phones/"+number(phone)+"/send", "demo", body, fmt.Sprint("phone-", phone))
		})
	}
	wg.Wait()
	for phone := range phones {
		s.awaitFile(t, number(phone))
	}
	used := runs.Memory(s.cmd.Process.Pid, "VmHWM")
	t.Logf("the server used up to %d MiB", used)
	if used == 0 || used > most {
		t.Errorf("the server used up to %d MiB, more than %d", used, most)
	}
}

// awaitFile waits until the channel has the file that a phone sent.
func (s *testServer) awaitFile(t *testing.T, number string) {
	t.Helper()
	deadline := time.After(waitLimit)
	for tick := time.Tick(20 * time.Millisecond); ; {
		status, answer, err := s.call("GET", "/api/chat/detail?contact_id="+number+"@c.us", "demo", "", "")
		var page struct {
			Data []struct{ Media struct{ Status string } }
		}
		if err == nil && status == http.StatusOK && json.Unmarshal(answer, &page) == nil && len(page.Data) == 1 {
			switch page.Data[0].Media.Status {
			case "ready":
				return
			case "failed":
				t.Fatalf("the file of %s failed: %s", number, answer)
			}
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("no file of %s after %s: %d %s %v", number, waitLimit, status, answer, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
