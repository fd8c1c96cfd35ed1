package cluster

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"slices"
	"time"
)

// ErrOtherPeer is the error of a connection to a program that is not a node of this cluster.
var ErrOtherPeer = errors.New("what answers there does not have the secret.key of this node")

// TLS is how nodes connect to each other, on both sides: each proves that it knows one of the seeds, which are derived from
// secret.key, one per line. A process makes a key of its own, and each seed signs a certificate for it. All of them are shown, and
// one that the other side can verify is enough: so a new line can be added, and an old one removed, node by node.
func TLS(seeds [][]byte) (*tls.Config, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	// A seed is valid as long as it is in the file. A wrong clock must not keep nodes apart.
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0),
		NotAfter: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
	shown := tls.Certificate{PrivateKey: private}
	var signers []ed25519.PublicKey
	for _, seed := range seeds {
		signer := ed25519.NewKeyFromSeed(seed)
		certificate, err := x509.CreateCertificate(rand.Reader, template, template, public, signer)
		if err != nil {
			return nil, err
		}
		shown.Certificate = append(shown.Certificate, certificate)
		signers = append(signers, signer.Public().(ed25519.PublicKey))
	}
	return &tls.Config{
		Certificates:       []tls.Certificate{shown},
		ClientAuth:         tls.RequireAnyClientCert,
		InsecureSkipVerify: true, // names and authorities mean nothing here: VerifyConnection decides
		VerifyConnection: func(state tls.ConnectionState) error {
			if !isCertified(state.PeerCertificates, signers) {
				return ErrOtherPeer
			}
			return nil
		},
		MinVersion:         tls.VersionTLS13,
		NextProtos:         []string{"http/1.1"},
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}, nil
}

// isCertified reports whether one of the signers signed a certificate for the key of the first one, which the other side has
// proved to hold.
func isCertified(shown []*x509.Certificate, signers []ed25519.PublicKey) bool {
	return slices.ContainsFunc(shown, func(c *x509.Certificate) bool {
		return c.SignatureAlgorithm == x509.PureEd25519 && bytes.Equal(c.RawSubjectPublicKeyInfo, shown[0].RawSubjectPublicKeyInfo) &&
			slices.ContainsFunc(signers, func(s ed25519.PublicKey) bool { return ed25519.Verify(s, c.RawTBSCertificate, c.Signature) })
	})
}
