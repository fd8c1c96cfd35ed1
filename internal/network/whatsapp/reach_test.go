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
	"syscall"
	"testing"
)

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
		got := unreachable(err)
		if !strings.HasPrefix(got, "WhatsApp cannot be reached: ") || !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// TestReach finds a server, and says why when there is none.
func TestReach(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, Reach(t.Context(), l.Addr().String()))
	must(t, l.Close())
	if err := Reach(t.Context(), l.Addr().String()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("without a server: %v", err)
	}
}
