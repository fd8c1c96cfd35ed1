package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/postgrestest"
)

func TestRestartLosesNothing(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "sandbox.db")
	n := openNetwork(t, path)
	refuseAll := func(_ context.Context, e network.Event) error {
		if _, ok := e.(network.State); ok {
			return nil
		}
		return context.DeadlineExceeded
	}
	s, err := n.Open(ctx, parley.Channel{Code: "test"}, refuseAll)
	must(t, err)
	m := text(ayu, "hi")
	if err := s.Send(ctx, []*parley.Message{m, m})[1]; err != nil {
		t.Fatal(err)
	}
	said, err := n.SendAs(ctx, "test", budi, Outgoing{Content: withFile(parley.Image{Caption: "look"}, "not really a picture")})
	must(t, err)
	must(t, n.AddFault(ctx, "test", Fault{Fault: FaultRefuse, Times: 3}))
	_, err = n.UpdatePhone(ctx, "test", budi, PhonePatch{Name: new("Budi B."), LIDOnly: new(true)})
	must(t, err)
	number := readNumber(t, n, "test")
	cursor, err := n.Cursor(ctx, "test")
	must(t, err)
	must(t, n.Close())

	n = openNetwork(t, path)
	events := make(chan network.Event, 100)
	s, err = n.Open(ctx, parley.Channel{Code: "test"}, func(_ context.Context, e network.Event) error { events <- e; return nil })
	must(t, err)
	defer s.Close()
	var receipt *network.Receipt
	var message *network.Message
	for receipt == nil || message == nil {
		switch e := (<-events).(type) {
		case network.Receipt:
			receipt = &e
		case network.Message:
			message = &e
		}
	}
	if !slices.Equal(receipt.IDs, []parley.MessageID{m.ID}) || message.ID != said.ID.ID {
		t.Errorf("there came %+v and %+v", receipt, message)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	must(t, err)
	defer file.Close()
	must(t, s.Fetch(ctx, message.File, file))
	if data, err := os.ReadFile(file.Name()); err != nil || string(data) != "not really a picture" {
		t.Errorf("its file is %q (%v)", data, err)
	}
	page, err := n.Messages(ctx, "test", ayu, Query{})
	if err != nil || len(page.Messages) != 1 || page.Messages[0].Copies != 2 {
		t.Errorf("the phone shows %+v (%v)", page, err)
	}
	if again := readNumber(t, n, "test"); again != number {
		t.Errorf("the number is %s, was %s", again, number)
	}
	if faults, err := n.Faults(ctx, "test"); err != nil || len(faults) != 1 || faults[0].Times != 3 {
		t.Errorf("the faults are %+v (%v)", faults, err)
	}
	if p, err := n.Phone(ctx, "test", budi); err != nil || p.Name != "Budi B." || !p.LIDOnly {
		t.Errorf("the phone is %+v (%v)", p, err)
	}
	if _, err := n.SendAs(ctx, "test", ayu, Outgoing{Content: parley.Text{Body: "later"}}); err != nil {
		t.Error(err)
	}
	if later := chatAfter(t, n, ayu, cursor); len(later) != 1 {
		t.Errorf("after the cursor there is %+v, want what was sent later", later)
	}
}

// TestKilledProcessLosesNothing kills another process that sends. It compares the confirmed messages with those in the
// database.
func TestKilledProcessLosesNothing(t *testing.T) {
	const variable = "PARLEY_SANDBOX_SEND_TO"
	if path := os.Getenv(variable); path != "" {
		sendForEver(t, path)
		return
	}
	path := postgrestest.Path(t, filepath.Join(t.TempDir(), "sandbox.db"))
	sender := exec.Command(os.Args[0], "-test.run=^TestKilledProcessLosesNothing$")
	sender.Env = append(os.Environ(), variable+"="+path)
	out, err := sender.StdoutPipe()
	must(t, err)
	must(t, sender.Start())
	confirmed := map[parley.MessageID]string{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if number, id, ok := strings.Cut(lines.Text(), " "); ok {
			confirmed[parley.MessageID(id)] = number
		}
		if len(confirmed) == 500 {
			must(t, sender.Process.Kill())
		}
	}
	sender.Wait() // it was killed
	if len(confirmed) < 500 {
		t.Fatalf("only %d were confirmed", len(confirmed))
	}

	n := openNetwork(t, path)
	recorded := map[parley.MessageID]bool{}
	for caller := range killCallers {
		number := killNumber(caller)
		page, err := n.Messages(t.Context(), "test", number, Query{Limit: 1 << 20})
		must(t, err)
		for i, m := range page.Messages {
			if recorded[m.ID.ID] || m.Copies != 1 {
				t.Errorf("%s is there twice", m.ID)
			}
			if want := fmt.Sprint("message ", i); m.Body != want {
				t.Errorf("the phone shows %q, want %q", m.Body, want)
			}
			recorded[m.ID.ID] = true
		}
	}
	for id := range confirmed {
		if !recorded[id] {
			t.Errorf("%s was confirmed and is lost", id)
		}
	}
}

const killCallers = 8

func killNumber(caller int) string { return fmt.Sprintf("62811000%04d", caller) }

// sendForEver sends from several goroutines and prints what was confirmed, until the process is killed.
func sendForEver(t *testing.T, path string) {
	n, err := Open(t.Context(), path, nil, slog.New(slog.DiscardHandler))
	must(t, err)
	s, err := n.Open(t.Context(), parley.Channel{Code: "test"}, func(context.Context, network.Event) error { return nil })
	must(t, err)
	end := time.Now().Add(time.Minute) // if it is not killed
	var group sync.WaitGroup
	for caller := range killCallers {
		group.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				m := text(killNumber(caller), fmt.Sprint("message ", i))
				if err := s.Send(t.Context(), []*parley.Message{m})[0]; err != nil {
					t.Error(err)
					return
				}
				fmt.Println(m.Chat.Number(), m.ID)
			}
		})
	}
	group.Wait()
}

// TestBacklogComesFirst: what arrives before the backlog was found is reported after it, else the receipts of the backlog
// would be skipped.
func TestBacklogComesFirst(t *testing.T) {
	var j job
	j.add(delivery{arrival: arrival{seq: 2}})
	j.require(receiptWork)
	if len(j.arrivals) != 0 {
		t.Errorf("reported before the backlog: %+v", j.arrivals)
	}
	j.add(delivery{arrival: arrival{seq: 3}})
	if len(j.arrivals) != 0 {
		t.Errorf("reported before the backlog: %+v", j.arrivals)
	}
}
