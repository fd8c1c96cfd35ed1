package whatsapp

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
)

// TestTextBothWays pairs a channel and lets it talk.
func TestTextBothWays(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	m := w.sent(s, w.text(friendID, "hello"))
	if got := w.friend.Expect(t, whatsapptest.ID(string(m.ID))); got.Text != "hello" || got.Copies != 1 {
		t.Errorf("the phone shows %+v", got)
	}
	in.got(parley.Delivered, m.ID)
	must(t, w.friend.Read(string(m.ID)))
	in.got(parley.Read, m.ID)
	id, err := w.friend.Send(within(t), w.owner, "hello yourself")
	must(t, err)
	if got := in.said("hello yourself"); got.From != friendID || got.ID != parley.MessageID(id) || got.Past {
		t.Errorf("there came %+v", got)
	}
	w.sealedAll()
	if e, ok := w.driver.Evidence(code); !ok || e.Heard.Before(e.Connected) || e.Confirmed.IsZero() || e.Received.IsZero() {
		t.Errorf("the evidence is %+v", e)
	}
}

// TestNobodyWaitsForAReconnect ends the stream while somebody waits for an answer on it: they get
// us, and not by whatsmeow, that there is nothing to wait for any more.
func TestNobodyWaitsForAReconnect(t *testing.T) {
	for name, end := range map[string]whatsapptest.End{"cut": whatsapptest.Cut, "restarted": whatsapptest.Restarted,
		"reconnect": whatsapptest.Reconnect, "unknown": whatsapptest.Unknown} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s, _ := w.paired()
			answer := s.current.Load().inner().WaitResponse("an answer that never comes")
			w.link.End(end)
			select {
			case node := <-answer:
				if code := node.Attrs["code"]; node.Tag != "stream:error" || code != "401" {
					t.Errorf("they got <%s> with code %v", node.Tag, code)
				}
			case <-within(t).Done():
				t.Error("they wait on")
			}
		})
	}
}

// TestUnreachableSaysWhy names what to look at for each way in which a connection fails, and nothing of the error.
func TestUnreachableSaysWhy(t *testing.T) {
	dial := func(err error) error {
		return fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Net: "tcp", Err: err})
	}
	for want, err := range map[string]error{
		"is not found":        dial(&net.DNSError{Err: "no such host", Name: "web.whatsapp.com", IsNotFound: true}),
		"DNS does not answer": dial(&net.DNSError{Err: "server misbehaving", Name: "web.whatsapp.com", IsTemporary: true}),
		"refused":             dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)),
		"no route":            dial(os.NewSyscallError("connect", syscall.ENETUNREACH)),
		"are cut":             fmt.Errorf("handshake: %w", io.EOF),
		"does not answer":     dial(context.DeadlineExceeded),
		"not trusted":         fmt.Errorf("handshake: %w", x509.UnknownAuthorityError{}),
		"the firewall":        errors.New("token=secret"),
	} {
		got := unreachableMessage(err)
		if !strings.HasPrefix(got, "WhatsApp cannot be reached: ") || !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// TestReach finds a server, and says why if it cannot.
func TestReach(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, CheckReachable(t.Context(), l.Addr().String()))
	must(t, l.Close())
	if err := CheckReachable(t.Context(), l.Addr().String()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("without a server: %v", err)
	}
}

// TestManyAccountsAtOnce sends on several accounts and in several chats at once, on one database: everything
// that is confirmed arrives, once, in order, and nothing left without a ciphertext.
func TestManyAccountsAtOnce(t *testing.T) {
	const accounts, chats, messages = 4, 3, 8
	w := newWorld(t)
	var phones []*whatsapptest.Phone
	for i := range chats {
		phones = append(phones, w.Phone(fmt.Sprintf("62899000000%02d", i)))
	}
	var sessions []*session
	for i := range accounts {
		in := newInbox(t)
		opened, err := w.driver.Open(t.Context(), parley.Channel{Code: parley.ChannelCode(fmt.Sprint("c", i))}, in.sink)
		must(t, err)
		s := opened.(*session)
		must(t, s.Pair(t.Context()))
		qr := expect(in, 0, func(p network.Pairing) bool { return p.Step == parley.QRStep })
		_, err = w.Phone(fmt.Sprintf("62811000000%02d", i)).Scan(within(t), qr.Code)
		must(t, err)
		in.status(parley.ChannelWorking)
		sessions = append(sessions, s)
	}
	var sending sync.WaitGroup
	for i, s := range sessions {
		for _, phone := range phones {
			sending.Go(func() {
				for n := range messages {
					m := w.text(parley.NewContactID(phone.Number()), fmt.Sprintf("%d %d", i, n))
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
		m := &parley.Message{Channel: code, Chat: friendID, ID: network.RandomID("3EB0"), FromMe: true, Content: parley.Text{Body: "hello"}}
		if err := send(s, m); err != nil {
			b.Fatal(err)
		}
	}
	if n := len(w.Unencrypted()); n != 0 {
		b.Errorf("%d reached nobody", n)
	}
}
