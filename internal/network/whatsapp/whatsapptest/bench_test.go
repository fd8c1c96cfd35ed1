package whatsapptest_test

import (
	"fmt"
	"testing"

	"go.mau.fi/whatsmeow/types/events"

	"parley/internal/network/whatsapp/whatsapptest"
)

// BenchmarkSend sends texts one after the other, each until it is confirmed, and waits until the last is read.
func BenchmarkSend(b *testing.B) {
	w := benchWorld(b)
	var last string
	for i := 0; b.Loop(); i++ {
		last = w.client.text(w.friend.JID(), fmt.Sprint("message ", i)).ID
	}
	w.friend.Expect(b, whatsapptest.ID(last))
}

// BenchmarkReceive lets the friend write and waits until the client has the last.
func BenchmarkReceive(b *testing.B) {
	w := benchWorld(b)
	ctx := b.Context()
	var last string
	for i := 0; b.Loop(); i++ {
		var err error
		if last, err = w.friend.Send(ctx, w.owner, fmt.Sprint("message ", i)); err != nil {
			b.Fatal(err)
		}
	}
	expect(w.client, func(e *events.Message) bool { return e.Info.ID == last })
}

func benchWorld(b *testing.B) *world {
	w := newWorld(b)
	w.greet()
	return w
}
