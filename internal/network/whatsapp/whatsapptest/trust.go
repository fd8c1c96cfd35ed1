package whatsapptest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waCert"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

const (
	chatHost  = "web.whatsapp.com" // the host that the client dials for its websocket
	mediaHost = "mmg.whatsapp.net" // the host that we name for media
)

// Trust is what a client needs to accept this server as its network. Another process can get it as JSON.
type Trust struct {
	Address string   // host and port to dial whatever host a URL names
	Root    [32]byte // public key that signs the server's Noise certificates
	CA      []byte   // PEM of the authority behind its TLS certificate
}

// installRoot guards whatsmeow.WACertPubKey, which is a variable of the whole process.
var installRoot sync.Once

// Apply makes an unconnected client use the server. It sets all three HTTP clients: a missing one would dial the
// internet. A process can trust only one root, so all servers that it starts share theirs.
func (t Trust) Apply(cli *whatsmeow.Client) error {
	installRoot.Do(func() { whatsmeow.WACertPubKey = t.Root })
	if whatsmeow.WACertPubKey != t.Root {
		return errors.New("this process already trusts the root of another server")
	}
	h, err := t.HTTPClient()
	if err != nil {
		return err
	}
	cli.SetPreLoginHTTPClient(h)
	cli.SetWebsocketHTTPClient(h)
	cli.SetMediaHTTPClient(h)
	return nil
}

// HTTPClient returns a client that dials the server for every host.
func (t Trust) HTTPClient() (*http.Client, error) {
	var d net.Dialer
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(t.CA) {
		return nil, errors.New("the server's authority is not a certificate")
	}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, t.Address)
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: pool,
		MinVersion: tls.VersionTLS13}}}, nil
}

// Unreachable is the trust of a server that does not exist: a client that uses it connects to nothing.
func Unreachable() Trust { return Trust{Address: "127.0.0.1:1", Root: *processRoot().Pub} }

// processRoot signs the certificates of every server of this process, see Trust.Apply.
var processRoot = sync.OnceValue(keys.NewKeyPair)

// certificate is the server's Noise identity with the chain that proves it.
type certificate struct {
	static *keys.KeyPair
	chain  []byte
}

func newCertificate(root *keys.KeyPair, now time.Time) (*certificate, error) {
	const serial = 7 // any number that the leaf repeats
	intermediate, static := keys.NewKeyPair(), keys.NewKeyPair()
	from, until := uint64(now.Add(-time.Hour).Unix()), uint64(now.AddDate(1, 0, 0).Unix())
	upper, err := signDetails(root, &waCert.CertChain_NoiseCertificate_Details{
		Serial: proto.Uint32(serial), IssuerSerial: proto.Uint32(whatsmeow.WACertIssuerSerial),
		Key: intermediate.Pub[:], NotBefore: &from, NotAfter: &until,
	})
	if err != nil {
		return nil, err
	}
	leaf, err := signDetails(intermediate, &waCert.CertChain_NoiseCertificate_Details{
		Serial: proto.Uint32(serial + 1), IssuerSerial: proto.Uint32(serial),
		Key: static.Pub[:], NotBefore: &from, NotAfter: &until,
	})
	if err != nil {
		return nil, err
	}
	chain, err := proto.Marshal(&waCert.CertChain{Intermediate: upper, Leaf: leaf})
	if err != nil {
		return nil, fmt.Errorf("encode certificate chain: %w", err)
	}
	return &certificate{static: static, chain: chain}, nil
}

func signDetails(by *keys.KeyPair, d *waCert.CertChain_NoiseCertificate_Details) (*waCert.CertChain_NoiseCertificate, error) {
	raw, err := proto.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode certificate: %w", err)
	}
	return &waCert.CertChain_NoiseCertificate{Details: raw, Signature: sign(by, raw)}, nil
}

// sign makes the curve signature that certificates, device identities and prekeys carry.
func sign(by *keys.KeyPair, message []byte) []byte {
	sig := ecc.CalculateSignature(ecc.NewDjbECPrivateKey(*by.Priv), message)
	return sig[:]
}

// newTLS creates a self-signed authority that is also the server's certificate.
func newTLS(now time.Time) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("make TLS key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "loopback"},
		NotBefore:    now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		DNSNames: []string{chatHost, mediaHost},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		IsCA:     true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("make TLS certificate: %w", err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca, nil
}
