package network

import (
	"context"
	"net/http"
	"net/url"

	"parley"
)

// Receiver is a driver whose network calls us over HTTP, at /network/{network}/{channel}. Everybody can call that address: until Verify
// returns, a request is a stranger's, and nothing may be stored or remembered of it.
type Receiver interface {
	// Challenge returns the response to a GET, with which a network checks the address of a channel. A wrong one is parley.Forbidden.
	Challenge(ctx context.Context, channel parley.Channel, query url.Values) (string, error)
	// Verify checks that the network sent a POST, in constant time, and returns what it reports: one address can get reports about
	// several channels. A request of somebody else is parley.Unauthenticated. It is called on any node, and must not keep body.
	Verify(ctx context.Context, channel parley.Channel, header http.Header, body []byte) ([]Call, error)
	// Receive gives what a call reports to the sink of its channel, on the node that serves the channel. After an error the network
	// sends the whole request again, also the calls of it that were received.
	Receive(ctx context.Context, call Call) error
}

// Call is what a verified request reports about one channel, as the driver encodes it.
type Call struct {
	Channel parley.ChannelCode
	Body    []byte
}

// Proxy is the proxy of a channel as [Credentials] stores it. The key is that of the channel's settings, which say where the proxy is.
type Proxy struct {
	Key string `json:"key"`
	URL string `json:"url"` // with its credentials
}

// Credentials stores what a channel needs to log in at its network, or the network to sign with. It is encrypted, never shown, and
// deleted with the channel. A driver that needs it gets it when it is created.
type Credentials interface {
	// Credentials returns what was stored last; nil: nothing was. For a day after a change it also returns what was replaced: what the
	// network signed with it may still arrive.
	Credentials(ctx context.Context, channel parley.Channel) (current, old []byte, err error)
	SetCredentials(ctx context.Context, channel parley.Channel, credentials []byte) error
}
