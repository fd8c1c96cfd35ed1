package cluster_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/internal/network/whatsapp/whatsapptest"
)

// startWhatsApp starts three nodes and a network that speaks WhatsApp's protocol, and links the channels of a load. The network
// is in the test's process: it knows what each phone could read.
func startWhatsApp(t *testing.T) (*load, *whatsapptest.Server) {
	t.Helper()
	wa := whatsapptest.StartTest(t)
	trust, err := json.Marshal(wa.Trust())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "trust.json")
	if err := os.WriteFile(file, trust, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--whatsapp-endpoint", wa.Endpoint(), "--whatsapp-trust", file}
	c := startNodes(t, args...)
	c.balanced() // linking does not go on at another node
	var pairing sync.WaitGroup
	for i := range loadChannels {
		owner := wa.Phone(fmt.Sprintf("62812%07d", i), whatsapptest.Named(channelCode(i)))
		pairing.Go(func() { c.pair(channelCode(i), owner) })
		for n := range chatsEach {
			wa.Phone(contactNumber(i, n))
		}
	}
	pairing.Wait()
	if t.Failed() {
		t.FailNow()
	}
	l := newLoad(c)
	l.shown = func(_, number string, want int) (texts []string) {
		phone := wa.Phone(number)
		c.eventually("everything is shown", func() bool { return len(phone.Inbox()) >= want })
		for _, m := range phone.Inbox() {
			texts = append(texts, m.Text)
		}
		return texts
	}
	l.start()
	return l, wa
}

// pair makes a channel without a pace, and has its owner's phone scan the code.
func (c *nodes) pair(code string, owner *whatsapptest.Phone) {
	body := `{"code":"` + code + `","network":"whatsapp","settings":{"pace":"0s"}}`
	if status, answer, _, err := c.call(c.all[0], "POST", "/api/manage/channels", c.admin, "", body, ""); status != http.StatusCreated {
		c.t.Errorf("make %s: %d %s %v", code, status, answer, err)
		return
	}
	c.becomes(code, "SCAN_QR_CODE")
	c.eventually("pairing begins", func() bool {
		status, _, _, err := c.call(c.all[1], "POST", "/api/manage/channels/"+code+"/pair", c.admin, "", `{}`, "")
		return err == nil && status == http.StatusOK
	})
	var shown struct{ Data struct{ Code string } }
	c.eventually("a code is shown", func() bool {
		return c.get("/api/manage/channels/"+code+"/pairing", "", &shown) && shown.Data.Code != ""
	})
	if _, err := owner.Scan(c.t.Context(), shown.Data.Code); err != nil {
		c.t.Error(err)
		return
	}
	c.becomes(code, "WORKING")
}

func (c *nodes) becomes(code, status string) {
	c.eventually(code+" becomes "+status, func() bool {
		var is struct{ Data struct{ Status string } }
		return c.get("/api/manage/channels/"+code, "", &is) && is.Data.Status == status
	})
}

// TestWhatsAppNodes kills, stops and pauses nodes while their channels send over WhatsApp's protocol. PARLEY_NODE_KILLS is how
// often.
func TestWhatsAppNodes(t *testing.T) {
	t.Parallel()
	l, wa := startWhatsApp(t)
	l.progress()
	for range l.times("PARLEY_NODE_KILLS") {
		for i, n := range l.c.all {
			switch i {
			case 0:
				n.kill()
				l.progress()
				n.start()
			case 1:
				n.terminate()
				l.progress()
				n.start()
			case 2:
				n.signal(syscall.SIGSTOP)
				time.Sleep(10 * time.Second) // what the test is about: the others take over meanwhile
				n.signal(syscall.SIGCONT)
			}
			l.progress()
		}
	}
	l.judge()
	if bare := wa.Unencrypted(); len(bare) > 0 {
		t.Errorf("%d messages came without a ciphertext for their recipient", len(bare))
	}
	if dark := wa.Unreadable(); len(dark) > 0 {
		t.Errorf("%d messages could never be read, such as %s: %s", len(dark), dark[0].ID, dark[0].Deliveries[0].Why)
	}
}
