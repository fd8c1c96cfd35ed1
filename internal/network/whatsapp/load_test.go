package whatsapp

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
)

// TestManyAccountsAtOnce sends on several accounts and in several chats at once, on one database: everything
// that is confirmed arrives, once, in order, and nothing left without a ciphertext.
func TestManyAccountsAtOnce(t *testing.T) {
	const accounts, chats, messages = 4, 3, 8
	w := newWorld(t)
	var phones []*whatsapptest.Phone
	for i := range chats {
		phones = append(phones, w.Phone(fmt.Sprintf("62899000000%02d", i)))
	}
	var sessions []network.Session
	for i := range accounts {
		in := newInbox(t)
		s, err := w.driver.Open(t.Context(), parley.Channel{Code: parley.ChannelCode(fmt.Sprint("c", i))}, in.sink)
		must(t, err)
		must(t, s.Pair(t.Context()))
		qr := expect(in, 0, func(p network.Pairing) bool { return p.Step == parley.QRStep })
		_, err = w.Phone(fmt.Sprintf("62811000000%02d", i)).Scan(within(t), qr.Code)
		must(t, err)
		in.status(parley.Working)
		sessions = append(sessions, s)
	}
	var sending sync.WaitGroup
	for i, s := range sessions {
		for _, phone := range phones {
			sending.Go(func() {
				for n := range messages {
					m := w.text(parley.ContactOf(phone.Number()), fmt.Sprintf("%d %d", i, n))
					if err := s.Send(context.Background(), []*parley.Message{m})[0]; err != nil {
						t.Errorf("account %d, message %d: %v", i, n, err)
					}
				}
			})
		}
	}
	sending.Wait()
	for _, phone := range phones {
		next := map[string]int{}
		for i := range accounts {
			phone.Expect(t, whatsapptest.Text(fmt.Sprintf("%d %d", i, messages-1)))
		}
		for _, m := range phone.Inbox() {
			if want := fmt.Sprintf("%s %d", m.Text[:1], next[m.From]); m.Text != want || m.Copies != 1 {
				t.Errorf("the phone shows %q, want %q (%d copies)", m.Text, want, m.Copies)
			}
			next[m.From]++
		}
	}
	w.sealedAll()
	if all := w.Unreadable(); len(all) != 0 {
		t.Errorf("nobody could read %+v", all)
	}
}

// BenchmarkSend sends texts to one contact, one after the other.
func BenchmarkSend(b *testing.B) {
	w := newWorld(b)
	s, _ := w.paired()
	for b.Loop() {
		m := &parley.Message{Channel: code, Chat: friendID, ID: parley.NewMessageID(), FromMe: true, Content: parley.Text{Body: "hello"}}
		if err := send(s, m); err != nil {
			b.Fatal(err)
		}
	}
	if n := len(w.Unsealed()); n != 0 {
		b.Errorf("%d reached nobody", n)
	}
}
