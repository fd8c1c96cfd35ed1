package whatsapptest

import (
	"context"
	"time"

	"go.mau.fi/whatsmeow/types"
)

// T is what a story needs of a test; *testing.T and *testing.B have it.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
	Context() context.Context
}

// patience is how long a story waits for a signal before it fails. Only a program that hangs reaches it.
const patience = 2 * time.Minute

// StartTest starts a server that ends with the test, and fails the test if a client sent something that the
// network does not know.
func StartTest(t T, cfg Config) *Server {
	t.Helper()
	s, err := Start(cfg)
	if err != nil {
		t.Fatalf("start loopback server: %v", err)
	}
	t.Cleanup(func() {
		s.Close()
		for _, v := range s.Violations() {
			t.Errorf("violation: %s", v)
		}
	})
	return s
}

// Expect waits for a message that matches everything, and fails the test without it.
func (p *Phone) Expect(t T, matches ...Match) Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m, err := p.Await(ctx, matches...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

// ExpectReceipt waits for a receipt of one of the types, and fails the test without it.
func (p *Phone) ExpectReceipt(t T, id string, kinds ...types.ReceiptType) Receipt {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := p.AwaitReceipt(ctx, id, kinds...)
	if err != nil {
		t.Fatalf("no receipt %q for %s: %v", kinds, id, err)
	}
	return r
}
