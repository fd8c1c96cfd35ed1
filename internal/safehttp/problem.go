package safehttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// ProblemCode says in one word why a request did not succeed. These are all there are.
type ProblemCode string

const (
	BlockedAddress ProblemCode = "blocked_address" // the host leads to an address that the policy refuses
	DNS            ProblemCode = "dns"             // the host's name could not be looked up
	Connect        ProblemCode = "connect"         // no connection, or it broke
	TLS            ProblemCode = "tls"             // no trusted TLS connection
	Timeout        ProblemCode = "timeout"         // too slow
	TooLarge       ProblemCode = "too_large"       // the body is over the limit
	BadType        ProblemCode = "bad_type"        // the body has an unexpected type
	HTTPStatus     ProblemCode = "http_status"     // a status that is not success
)

// Problem is why a request failed. Its text may be shown to the caller who provided the URL: it contains nothing from
// the other end but a status. The cause is for the log only.
type Problem struct {
	Code     ProblemCode
	Sentence string
	Status   int // the response status (HTTPStatus only; 0: a redirect was not followed)
	Cause    error
}

func (p *Problem) Error() string { return p.Sentence }

func (p *Problem) Unwrap() error { return p.Cause }

// errSlow is the cause with which a request is cancelled whose body comes too slowly.
var errSlow = errors.New("body too slow")

type tlsError struct{ error }

func (e tlsError) Unwrap() error { return e.error }

// toProblem classifies an error of net/http. Blocked wins: if some addresses of a name are blocked and the others fail,
// the caller must learn that.
func toProblem(ctx context.Context, err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if errors.Is(err, errBlocked) {
		return &Problem{BlockedAddress,
			"The address leads to a private or reserved network, which this server does not reach. " +
				"Use a public address, or have the operator allow its range.", 0, err}
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return &Problem{DNS, "The host name could not be looked up. Check that it is spelled right.", 0, err}
	}
	if e, ok := errors.AsType[net.Error](err); ctx.Err() != nil || ok && e.Timeout() {
		return &Problem{Timeout, "The server did not answer in time, or too slowly.", 0, errors.Join(err, context.Cause(ctx))}
	}
	if _, ok := errors.AsType[tlsError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return &Problem{TLS, "No trusted TLS connection could be made. " +
			"Check the server's certificate and that it speaks TLS 1.2 or newer.", 0, err}
	}
	return &Problem{Connect, "The server could not be reached, or broke the connection.", 0, err}
}

func redirectProblem(sentence string) *Problem {
	return &Problem{Code: HTTPStatus, Sentence: sentence}
}

func tooLarge(limit int64) *Problem {
	return &Problem{Code: TooLarge, Sentence: "The answer is larger than " + Size(limit) + "."}
}

// Size formats a number of bytes in full mebibytes, kibibytes or bytes.
func Size(bytes int64) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d bytes", bytes)
}
