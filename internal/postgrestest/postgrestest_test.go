package postgrestest

import (
	"net"
	"os"
	"testing"
)

// TestTakenPort: another program takes the port before the server listens.
func TestTakenPort(t *testing.T) {
	if os.Getenv("PARLEY_POSTGRES") == "" {
		t.Skip("PARLEY_POSTGRES is not set")
	}
	s, err := New(Options{})
	must(t, err)
	t.Cleanup(s.Close)
	s.Kill()
	other, err := net.Listen("tcp", s.Host())
	must(t, err)
	defer other.Close()
	if err := s.runFirst(false); err == nil {
		t.Fatal("it runs on a port that is taken")
	}
	taken := s.Host()
	must(t, s.runFirst(true))
	if s.Host() == taken {
		t.Errorf("it runs on %s, which is taken", taken)
	}
	must(t, s.Exec("SELECT 1"))
}
