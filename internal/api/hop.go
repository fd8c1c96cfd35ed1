package api

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/internal/doctor"
)

const (
	// hopHeader has the hop of a forwarded request and its signatures, in base64, with dots between. In the response of a node that
	// does not accept the hop, it is not empty.
	hopHeader = "Parley-Hop"

	// hopLife is how long a hop is valid. Its time is by the database's clock.
	hopLife = 30 * time.Second

	nonceSize = 16
	// maxNonces is how many requests are accepted in 2*hopLife, because their nonces are remembered: about 9,000 per second.
	maxNonces = 1 << 19
)

// forwardedHeaders are the header fields that a node may read of a forwarded request, in alphabetical order. All are signed, and no
// others are passed on. Tokens and cookies are not among them: the hop says who the caller is.
var forwardedHeaders = []string{"Accept", "Accept-Language", "Content-Disposition", "Content-Encoding", "Content-Type", "Idempotency-Key",
	"If-Range", "Last-Event-Id", "Prefer", "Range", "User-Agent", "X-Channel", "X-Request-Id"}

// hop is what a node says of a request that it forwards.
type hop struct {
	To    int64          `json:"to"`    // the node that it is for
	Nonce []byte         `json:"nonce"` // random: the request is accepted once
	Sent  int64          `json:"sent"`  // in Unix seconds, by the database's clock
	Body  []byte         `json:"body"`  // its SHA-256
	From  string         `json:"from"`  // the client's address
	Base  string         `json:"base"`  // of links that the client can use
	Token parley.TokenID `json:"token"` // verified; the other node reads the rest. Empty: there is none
	// Ticket is the hash of a console session or a pairing link; empty: there is none.
	Ticket []byte `json:"ticket"`
}

// newHop describes a request for another node.
func (s *server) newHop(r *request, to int64) hop {
	h := hop{To: to, Nonce: make([]byte, nonceSize), Sent: s.config.Cluster.Now().Unix(), Body: bodyHash(r.body.Bytes()),
		From: s.clientAddress(r.http).String(), Base: s.baseURL(r.http), Ticket: r.ticket}
	if r.token.Kind != console {
		h.Token = r.token.ID
	}
	rand.Read(h.Nonce) // never fails
	return h
}

func bodyHash(body []byte) []byte {
	sum := sha256.Sum256(body)
	return sum[:]
}

// forwardedHeader is the header of a forwarded request before it is signed.
func (s *server) forwardedHeader(r *request, to *otherNode) http.Header {
	header := http.Header{}
	for _, name := range forwardedHeaders {
		if values := r.http.Header[name]; len(values) > 0 {
			header[name] = values
		}
	}
	header["X-Request-Id"] = []string{r.id}
	if agent := r.http.UserAgent(); agent != "" { // only one is ever sent
		header["User-Agent"] = []string{agent}
	} else {
		delete(header, "User-Agent")
	}
	if to.channel != "" {
		header["X-Channel"] = []string{string(to.channel)}
	}
	return header
}

// hopSigner signs requests for other nodes, and verifies those of others, with keys that only nodes have.
type hopSigner struct {
	keys [][]byte // one for each line of secret.key: all sign, and one that the other node knows is enough
	seen nonces
}

// sign adds the hop to a request.
func (s *hopSigner) sign(req *http.Request, h hop) {
	text, _ := json.Marshal(h) // it has no value that JSON has not
	encoded := base64.RawURLEncoding.EncodeToString(text)
	signed := encoded
	for _, key := range s.keys {
		signed += "." + signHop(key, req.Method, req.URL.RequestURI(), req.Header, encoded)
	}
	req.Header.Set(hopHeader, signed)
}

// signHop signs everything that the other node may read, except the body, whose hash is in the hop. No part has a line break.
func signHop(key []byte, method, uri string, header http.Header, encoded string) string {
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, method+"\n"+uri+"\n"+encoded+"\n")
	for _, name := range forwardedHeaders {
		for _, value := range header[name] {
			io.WriteString(mac, name+": "+value+"\n")
		}
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

var (
	errHopRefused = errors.New("it does not accept the request: it has another id by now, another secret.key, or a clock that is off")
	errNoHop      = parley.Errorf(parley.Forbidden, "This address is only for other nodes of the cluster, with the same secret.key.")
	errStaleHop   = parley.Errorf(parley.Forbidden, "This request is for another node, too old, or was sent before.")
)

// receive returns the hop and the body of a request to this node, once.
func (s *hopSigner) receive(hr *http.Request, self int64, now time.Time) (h hop, body []byte, err error) {
	if h, err = s.verify(hr); err != nil {
		return h, nil, err
	}
	if h.To != self || self == 0 || now.Sub(time.Unix(h.Sent, 0)).Abs() > hopLife {
		return h, nil, errStaleHop
	}
	body, err = io.ReadAll(io.LimitReader(hr.Body, maxCall+1))
	if err != nil || !bytes.Equal(bodyHash(body), h.Body) {
		return h, nil, errNoHop
	}
	if !s.seen.add([nonceSize]byte(h.Nonce)) {
		return h, nil, errStaleHop
	}
	return h, body, nil
}

// verify returns the hop of a request, if a node signed it.
func (s *hopSigner) verify(hr *http.Request) (h hop, err error) {
	parts := strings.Split(readHeader(hr.Header, hopHeader), ".")
	encoded, signatures := parts[0], parts[1:]
	if !slices.ContainsFunc(s.keys, func(key []byte) bool {
		right := []byte(signHop(key, hr.Method, hr.RequestURI, hr.Header, encoded))
		return slices.ContainsFunc(signatures, func(s string) bool { return hmac.Equal([]byte(s), right) })
	}) {
		return h, errNoHop
	}
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err = errors.Join(err, json.Unmarshal(text, &h)); err != nil || len(h.Nonce) != nonceSize { // of another version of the program
		return h, errNoHop
	}
	return h, nil
}

// nonces remembers which requests were accepted, for longer than their hops are valid.
type nonces struct {
	mu           sync.Mutex
	newer, older map[[nonceSize]byte]struct{}
	newerSince   time.Time
}

// add reports whether a nonce is new. If too many are remembered, none is.
func (n *nonces) add(nonce [nonceSize]byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	// A hop is valid from hopLife before its time until hopLife after it.
	if age := time.Since(n.newerSince); age > 2*hopLife {
		n.older, n.newer, n.newerSince = n.newer, map[[nonceSize]byte]struct{}{}, time.Now()
		if age > 4*hopLife {
			n.older = nil
		}
	}
	_, isNewer := n.newer[nonce]
	_, isOlder := n.older[nonce]
	if isNewer || isOlder || len(n.newer) >= maxNonces {
		return false
	}
	n.newer[nonce] = struct{}{}
	return true
}

type hopKey struct{}

// FromNodes serves requests that other nodes forwarded, and refuses all others.
func (a *API) FromNodes(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		self := a.server.config.Cluster.ID()
		h, body, err := a.forwarder.hops.receive(hr, self, a.server.config.Cluster.Now())
		if err != nil {
			w.Header().Set(doctor.NodeHeader, strconv.FormatInt(self, 10))
			w.Header().Set(hopHeader, "refused")
			a.Refuse(w, hr, err)
			return
		}
		a.server.noteAuthenticated(hr)
		handler.ServeHTTP(w, asReceived(hr, h, body))
	})
}

// asReceived is a request as the other node received it, without what was not signed.
func asReceived(hr *http.Request, h hop, body []byte) *http.Request {
	header := http.Header{}
	for _, name := range forwardedHeaders {
		if values := hr.Header[name]; len(values) > 0 {
			header[name] = values
		}
	}
	hr = hr.WithContext(context.WithValue(hr.Context(), hopKey{}, h))
	hr.Body = io.NopCloser(bytes.NewReader(body))
	hr.Header, hr.Host, hr.TLS, hr.RemoteAddr = header, "", nil, ""
	if addr, err := netip.ParseAddr(h.From); err == nil {
		hr.RemoteAddr = netip.AddrPortFrom(addr, 0).String()
	}
	return hr
}

func hopFrom(ctx context.Context) (h hop, forwarded bool) {
	h, forwarded = ctx.Value(hopKey{}).(hop)
	return h, forwarded
}

// IsForwarded reports whether another node received the request, and checked where it comes from.
func IsForwarded(ctx context.Context) bool {
	_, forwarded := hopFrom(ctx)
	return forwarded
}

// ForwardedTicket is the hash of the ticket that another node received with the request; nil: none.
func ForwardedTicket(ctx context.Context) []byte {
	h, _ := hopFrom(ctx)
	return h.Ticket
}
