package app

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
)

// TestCertificateIsRenewed replaces the files of a certificate while the server shows it.
func TestCertificateIsRenewed(t *testing.T) {
	dir := t.TempDir()
	cert, key, _ := selfSigned(t, dir)
	var log bytes.Buffer
	c, err := loadCertificate(Config{TLSCert: cert, TLSKey: key}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	shown := func() *tls.Certificate {
		t.Helper()
		got, err := c.get(nil)
		if err != nil || got == nil {
			t.Fatalf("no certificate: %v", err)
		}
		return got
	}
	later := func() { c.lookedAt = c.lookedAt.Add(-certificateLook) }
	first := shown()

	selfSigned(t, dir)
	for _, path := range []string{cert, key} { // not within what the file system's clock can tell apart
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if shown() != first {
		t.Error("the files are looked at for every connection")
	}
	later()
	second := shown()
	if bytes.Equal(second.Certificate[0], first.Certificate[0]) {
		t.Error("the old certificate is shown")
	}
	if !strings.Contains(log.String(), "is used from now on") {
		t.Errorf("logged: %s", log.String())
	}

	if err := os.WriteFile(key, []byte("not yet"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		later()
		if shown() != second {
			t.Error("a certificate that works was given up for one that does not")
		}
	}
	if n := strings.Count(log.String(), "the one before it stays"); n != 1 {
		t.Errorf("it was said %d times: %s", n, log.String())
	}
}
