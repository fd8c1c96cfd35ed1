package app

import (
	"net"
	"strings"
	"testing"
)

func TestListenNamesAFreePort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = listen(Config{Listen: taken.Addr().String(), Dev: true})
	if err == nil {
		t.Fatal("listened on a port that is taken")
	}
	message := err.Error()
	_, proposal, ok := strings.Cut(message, "parley dev --listen ")
	if !ok || !strings.Contains(message, taken.Addr().String()+" is in use") {
		t.Fatalf("message %q", message)
	}
	l, err := net.Listen("tcp", proposal)
	if err != nil {
		t.Fatalf("the proposed %q cannot be used: %v", proposal, err)
	}
	l.Close()
}

func TestListenerURL(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:0": "http://127.0.0.1:",
		"0.0.0.0:0":   "http://127.0.0.1:",
		":0":          "http://127.0.0.1:",
	} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if got := listenerURL(l, false); !strings.HasPrefix(got, want) || strings.HasSuffix(got, ":0") {
			t.Errorf("%s: %s, want %s…", address, got, want)
		}
		if got := listenerURL(l, true); !strings.HasPrefix(got, "https://") {
			t.Errorf("%s with TLS: %s", address, got)
		}
		l.Close()
	}
}
