package crash_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/e2e/runs"
)

// TestWhatsAppOutage takes the network away for a while under a steady load: everything is accepted meanwhile,
// and everything arrives once afterwards.
//
// PARLEY_OUTAGE makes it longer: see "make kills" and "make torture".
func TestWhatsAppOutage(t *testing.T) {
	t.Parallel()
	outage := time.Second
	if text, ok := os.LookupEnv("PARLEY_OUTAGE"); ok {
		var err error
		if outage, err = time.ParseDuration(text); err != nil {
			t.Fatalf("PARLEY_OUTAGE: %v", err)
		}
	}
	const channels, contacts, rate = 4, 5, 20
	record := runs.Begin(t)
	w := startWhatsApp(t, channels, contacts)
	w.record = record
	shown := newCounts()
	for _, c := range w.chats {
		w.watch(c, shown, 0)
	}
	long := int(outage * rate / time.Second) // in requests
	total := 4 * long
	var slowest atomic.Int64 // in nanoseconds; others at the same moment may be as slow
	var requests sync.WaitGroup
	tick := time.Tick(time.Second / rate)
	for n := range total {
		switch n {
		case long:
			w.wa.Down()
		case 2 * long:
			w.wa.Up()
		}
		requests.Go(func() {
			c := w.chats[n%len(w.chats)]
			body := fmt.Sprintf(`{"contact_id":"%s@c.us","message":"m %d"}`, c.contact.Number(), n/len(w.chats))
			begun := time.Now()
			status, answer, err := w.call("POST", "/api/send-message/text", c.channel.code, body, "")
			if err != nil || status != http.StatusOK || !bytes.Contains(answer, []byte(`"success":true`)) {
				t.Errorf("request %d was refused: %d %s %v", n, status, answer, err)
			}
			if took := int64(time.Since(begun)); took > slowest.Load() {
				slowest.Store(took)
			}
		})
		<-tick
	}
	requests.Wait()
	if err := shown.await(total); err != nil {
		t.Errorf("not everything was shown: %v", err)
	}
	var phones runs.Comparison
	for i, c := range w.chats {
		phones.Compare(c.shown(), numbered("m", 0, (total-i+len(w.chats)-1)/len(w.chats), 1))
	}
	phones.Breaks = 0 // requests that are made at once have no order
	record.Messages = total
	record.Add(phones)
	if phones.Sum() > 0 {
		t.Errorf("on the phones: %s\n%s", phones, w.tail())
	}
	w.judgeSealing()
	t.Logf("%d requests in %s, %s of it without the network: all accepted and shown once; the slowest answer took %s",
		total, 4*outage, outage, time.Duration(slowest.Load()).Round(time.Millisecond))
}
