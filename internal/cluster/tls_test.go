package cluster

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestConnectionsBetweenNodes lets nodes with different lines of secret.key connect, in both directions.
func TestConnectionsBetweenNodes(t *testing.T) {
	old, new, foreign := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32), bytes.Repeat([]byte{3}, 32)
	for name, c := range map[string]struct {
		one, other [][]byte
		connects   bool
	}{
		"the same key":             {[][]byte{old}, [][]byte{old}, true},
		"a new key at one":         {[][]byte{new, old}, [][]byte{old}, true},
		"a new key at both":        {[][]byte{new, old}, [][]byte{new, old}, true},
		"the old one went at one":  {[][]byte{new, old}, [][]byte{new}, true},
		"another key":              {[][]byte{old}, [][]byte{foreign}, false},
		"other keys":               {[][]byte{new, old}, [][]byte{foreign}, false},
		"not a line of one's own":  {[][]byte{new}, [][]byte{old}, false},
		"another order of the two": {[][]byte{old, new}, [][]byte{new, old}, true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, ends := range [][2][][]byte{{c.one, c.other}, {c.other, c.one}} {
				err := connect(t, ends[0], tlsWith(t, ends[1]))
				if c.connects && err != nil || !c.connects && !errors.Is(err, ErrOtherPeer) {
					t.Errorf("connected with %v", err)
				}
			}
		})
	}
}

// TestStrangersCannotConnect connects without a certificate, and with one that nobody signed, without looking at the server's.
func TestStrangersCannotConnect(t *testing.T) {
	seed := bytes.Repeat([]byte{1}, 32)
	foreign := tlsWith(t, [][]byte{bytes.Repeat([]byte{3}, 32)})
	foreign.VerifyConnection = nil
	// The own key of a stranger, with a certificate that a node showed to it.
	stolen := foreign.Clone()
	stolen.Certificates = []tls.Certificate{{PrivateKey: foreign.Certificates[0].PrivateKey, Certificate: [][]byte{
		foreign.Certificates[0].Certificate[0], tlsWith(t, [][]byte{seed}).Certificates[0].Certificate[0]}}}
	for name, stranger := range map[string]*tls.Config{
		"none": {InsecureSkipVerify: true}, "another": foreign, "one that was shown": stolen,
	} {
		if err := connect(t, [][]byte{seed}, stranger); err == nil {
			t.Errorf("a stranger with the certificate %s was served", name)
		}
	}
}

func tlsWith(t *testing.T, seeds [][]byte) *tls.Config {
	t.Helper()
	config, err := TLS(seeds)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// connect makes two requests of a client to a node with some seeds, each on a connection of its own: the second resumes a session.
func connect(t *testing.T, seeds [][]byte, client *tls.Config) error {
	t.Helper()
	node := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	node.TLS = tlsWith(t, seeds)
	node.Config.ErrorLog = log.New(io.Discard, "", 0)
	node.StartTLS()
	defer node.Close()
	transport := &http.Transport{TLSClientConfig: client, DisableKeepAlives: true}
	var resumed bool
	for range 2 {
		resp, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, node.URL, nil))
		if err != nil {
			return err
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		resumed = resp.TLS.DidResume
	}
	if !resumed {
		t.Error("the second connection did not resume the session of the first")
	}
	return nil
}
