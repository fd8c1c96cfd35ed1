package crash_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/internal/network/cloud/cloudtest"
)

// cloudWorld is the program as a process of its own, with channels on the official network. Meta is in the test's process: it outlives
// the program, and knows what it accepted.
type cloudWorld struct {
	*testServer
	t       *testing.T
	meta    *cloudtest.Server
	numbers []*cloudtest.Number
}

// cloudContacts is how many contacts a channel has. A message that may have left holds back only its own chat.
const cloudContacts = 100

func startCloud(t *testing.T, channels int) *cloudWorld {
	t.Helper()
	w := &cloudWorld{t: t, meta: cloudtest.Start(), testServer: startServer(t)}
	t.Cleanup(w.meta.Close)
	w.meta.Latency = 20 * time.Millisecond // so that a kill meets some on their way
	for i := range channels {
		n, code := w.meta.AddNumber(fmt.Sprint(6281100000000+i)), fmt.Sprint("cloud", i)
		n.Address = func() string { return "http://" + w.addr + "/network/cloud/" + code }
		w.numbers = append(w.numbers, n)
		body, _ := json.Marshal(map[string]any{"code": code, "network": "cloud", "settings": map[string]any{
			"cloud": map[string]string{"unknown_wait": "10s"}}, "cloud": map[string]string{"phone_number_id": n.ID,
			"waba_id": cloudtest.BusinessID, "access_token": w.meta.Token, "app_secret": w.meta.AppSecret, "graph_url": w.meta.URL}})
		status, answer, err := w.call("POST", "/api/manage/channels", "", string(body), "", "Authorization", "Bearer "+w.admin)
		if err != nil || status != http.StatusCreated {
			t.Fatalf("create a channel: %d %s %v", status, answer, err)
		}
		w.awaitChannel(t, code)
	}
	return w
}

func cloudContact(channel, n int) string {
	return fmt.Sprintf("62813%04d%03d", channel, n%cloudContacts)
}

// run has clients send messages over all channels, and phones write, while the program is killed. It returns how many messages were sent.
func (w *cloudWorld) run(kills, messages int) (total, wrote int) {
	each := (messages + len(w.numbers) - 1) / len(w.numbers)
	total = each * len(w.numbers)
	var clients sync.WaitGroup
	for i := range w.numbers {
		clients.Go(func() {
			for n := range each {
				body := fmt.Sprintf(`{"contact_id":"%s@c.us","message":"m %d","linkPreview":false}`, cloudContact(i, n), n)
				key := fmt.Sprintf("k-%d-%d", i, n)
				if w.insist(w.t, "/api/send-message/text", fmt.Sprint("cloud", i), body, key, "Prefer", "respond-async") == nil {
					return
				}
			}
		})
	}
	for k := range kills {
		w.await(fmt.Sprintf("kill %d of %d", k+1, kills), func() bool {
			accepted, _ := w.meta.Accepted()
			return accepted >= total*(k+1)/(kills+1)
		})
		for i, n := range w.numbers {
			n.Phone(cloudContact(i, k)).Text(fmt.Sprintf("in %d %d", i, k))
			wrote++
		}
		w.kill(w.t)
		w.start(w.t)
	}
	clients.Wait()
	return total, wrote
}

func (w *cloudWorld) await(what string, holds func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(waitLimit); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) || w.t.Failed() {
			accepted, copies := w.meta.Accepted()
			w.t.Fatalf("%s: not so; Meta accepted %d, of which %d again", what, accepted, copies)
		}
	}
}

// cloudMessage is a message as the program describes it.
type cloudMessage struct {
	Body, Status string
	FromMe       string `json:"from_me"`
	Possible     bool   `json:"possible_duplicate"`
	Copies       int
}

// stored lists the messages of a channel.
func (w *cloudWorld) stored(channel int) (all []cloudMessage) {
	w.t.Helper()
	for path := "/api/messages?limit=100"; ; {
		status, answer, err := w.call("GET", path, fmt.Sprint("cloud", channel), "", "")
		var page struct {
			Data []cloudMessage
			Meta struct {
				Next string `json:"next_cursor"`
			}
		}
		if err == nil && status == http.StatusOK {
			err = json.Unmarshal(answer, &page)
		}
		if err != nil || status != http.StatusOK {
			w.t.Fatalf("list messages: %d %s %v", status, answer, err)
		}
		all = append(all, page.Data...)
		if page.Meta.Next == "" {
			return all
		}
		path = "/api/messages?limit=100&cursor=" + page.Meta.Next
	}
}

// judge compares what the program says with what Meta accepted and what the phones show and wrote. It returns how many copies were
// reported, and how many messages were possibly copied.
func (w *cloudWorld) judge(total, wrote int) (copies, possible int) {
	w.t.Helper()
	sent, received := 0, 0
	for i, n := range w.numbers {
		w.await("every message is delivered", func() bool {
			return !slices.ContainsFunc(w.stored(i), func(m cloudMessage) bool { return m.FromMe == "true" && m.Status != "DELIVERED" })
		})
		for _, m := range w.stored(i) {
			if m.FromMe == "false" {
				received++
				continue
			}
			sent++
			if m.Copies > 1 {
				copies += m.Copies - 1
			}
			if m.Possible {
				possible++
			}
		}
		for contact := range cloudContacts {
			var want, got []string
			for k := contact; k < total/len(w.numbers); k += cloudContacts {
				want = append(want, fmt.Sprintf("m %d", k))
			}
			for _, m := range n.Phone(cloudContact(i, contact)).Shows() {
				if !slices.Contains(got, m.Text.Body) {
					got = append(got, m.Text.Body)
				}
			}
			if !slices.Equal(got, want) {
				w.t.Errorf("phone %s shows %v, want %v", cloudContact(i, contact), got, want)
			}
		}
	}
	if sent != total || received != wrote {
		w.t.Errorf("%d of %d messages are stored, and %d of %d that phones wrote", sent, total, received, wrote)
	}
	return copies, possible
}

// TestKillLoopCloud ends the program with SIGKILL again and again while it sends on the official network. Meta says how often it
// accepted each message: with its statuses coming, every one once.
//
// PARLEY_CLOUD_KILLS and PARLEY_CLOUD_MESSAGES make it longer: see "make kills" and "make torture".
func TestKillLoopCloud(t *testing.T) {
	t.Parallel() // it waits more than it works
	kills := number(t, "PARLEY_CLOUD_KILLS", 6)
	w := startCloud(t, 5)
	total, wrote := w.run(kills, number(t, "PARLEY_CLOUD_MESSAGES", 600))
	reported, possible := w.judge(total, wrote)
	accepted, doubled := w.meta.Accepted()
	if accepted != total || doubled != 0 || reported != 0 {
		t.Errorf("Meta accepted %d of %d messages, %d of them again; %d are reported", accepted, total, doubled, reported)
	}
	t.Logf("%d messages and %d that came in, %d kills: lost 0, doubled 0, %d waited for a status in vain; slowest recovery %s", total, wrote,
		kills, possible, w.slowest)
}

// TestKillLoopCloudSilent is the same with no status coming until the end: what was on its way at a kill is sent again, and every copy
// that Meta has is reported.
func TestKillLoopCloudSilent(t *testing.T) {
	t.Parallel()
	kills := max(1, number(t, "PARLEY_CLOUD_KILLS", 6)/3)
	w := startCloud(t, 5)
	for _, n := range w.numbers {
		n.SetStatuses(cloudtest.StatusesWithheld)
	}
	total, wrote := w.run(kills, number(t, "PARLEY_CLOUD_MESSAGES", 600))
	w.await("every message left", func() bool { accepted, doubled := w.meta.Accepted(); return accepted-doubled == total })
	for i := range w.numbers {
		w.await("nothing waits", func() bool {
			return !slices.ContainsFunc(w.stored(i), func(m cloudMessage) bool { return m.Status == "PENDING" })
		})
	}
	for _, n := range w.numbers {
		n.ReleaseStatuses()
	}
	var reported, possible int
	w.await("every copy is reported", func() bool {
		_, doubled := w.meta.Accepted()
		reported, possible = w.judge(total, wrote)
		return reported == doubled && possible >= doubled
	})
	if _, doubled := w.meta.Accepted(); doubled == 0 {
		t.Error("no message was doubled: nothing was tried")
	}
	t.Logf("%d messages, %d kills: %d were sent again, of which Meta had %d", total, kills, possible, reported)
}
