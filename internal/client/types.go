package client

import (
	"fmt"
	"strings"
	"time"

	"parley"
)

// The types below have the fields of the API's data that commands print and that differ from what is stored. They are
// separate from internal/api's own types, which clients must not import.

type Channel struct {
	Code      parley.ChannelCode     `json:"code"`
	Name      string                 `json:"name"`
	Network   parley.NetworkName     `json:"network"`
	Simulated bool                   `json:"simulated"`
	Number    string                 `json:"number"`
	Enabled   bool                   `json:"enabled"`
	Labels    []string               `json:"labels"`
	Status    parley.ChannelStatus   `json:"status"`
	Reason    string                 `json:"reason"`
	Since     time.Time              `json:"since"`
	CreatedAt time.Time              `json:"created_at"`
	Settings  parley.ChannelSettings `json:"settings"`
	Pace      struct {
		Least parley.Duration `json:"least"`
		Most  parley.Duration `json:"most"`
	} `json:"pace"`

	// Only from a running server.
	Evidence        *Evidence  `json:"evidence"`
	Pairing         *Pairing   `json:"pairing"`
	RestrictedUntil *time.Time `json:"restricted_until"`
}

// Network describes a network of the server.
type Network struct {
	Name      parley.NetworkName `json:"name"`
	Title     string             `json:"title"`
	Simulated bool               `json:"simulated"`
	Pairing   []string           `json:"pairing"` // ways to pair an account; empty: none is needed
}

// Evidence is when a channel last showed that it works; nil: not since its start.
type Evidence struct {
	Connected *time.Time `json:"connected_at"`
	Heard     *time.Time `json:"heard_at"`
	Confirmed *time.Time `json:"confirmed_at"`
	Received  *time.Time `json:"received_at"`
}

type Pairing struct {
	Step      parley.PairingStep `json:"step"`
	Code      string             `json:"code"`
	QR        []string           `json:"qr"`
	ExpiresAt time.Time          `json:"expires_at"`
	Reason    string             `json:"reason"`
	N         int                `json:"n"`
	Of        int                `json:"of"`
	At        time.Time          `json:"at"`
}

type Delivery struct {
	ID        parley.DeliveryID  `json:"id"`
	Webhook   parley.WebhookID   `json:"webhook"` // empty: a callback
	URL       string             `json:"url"`
	EventID   parley.EventID     `json:"event_id"`
	Type      parley.EventType   `json:"type"`
	Channel   parley.ChannelCode `json:"channel"`
	State     string             `json:"state"`
	Attempts  int                `json:"attempts"`
	NextAt    time.Time          `json:"next_at"`
	CreatedAt time.Time          `json:"created_at"`
	TriedAt   time.Time          `json:"tried_at"`
	Attempt

	// Only in a request for one delivery.
	History []struct {
		Number int       `json:"number"`
		At     time.Time `json:"at"`
		Attempt
	} `json:"history"`
	Body *string `json:"body"`
}

// Result is the result of the last attempt.
func (d *Delivery) Result() string {
	if d.TriedAt.IsZero() {
		return "-"
	}
	return d.Attempt.String()
}

// Attempt is the result of one attempt.
type Attempt struct {
	Code    *int   `json:"code"`
	TookMS  int64  `json:"took_ms"`
	Problem string `json:"problem"`
	Answer  string `json:"answer"`
}

// String is for example "200 in 84 ms" or "timeout in 10000 ms".
func (a Attempt) String() string {
	what, _, _ := strings.Cut(a.Problem, ":")
	if a.Code != nil {
		what = fmt.Sprint(*a.Code)
	}
	return fmt.Sprintf("%s in %d ms", what, a.TookMS)
}

type Secret struct {
	Secret string `json:"secret"`
}

// Node is a node of a cluster.
type Node struct {
	ID        string    `json:"id"`
	URL       string    `json:"url"`
	Version   string    `json:"version"`
	State     string    `json:"state"`
	Self      bool      `json:"self"`
	Shards    int       `json:"shards"`
	StartedAt time.Time `json:"started_at"`
	RenewedAt time.Time `json:"renewed_at"`
}

// Deletion is the deletion of a channel.
type Deletion struct {
	ID              string             `json:"id"`
	Code            parley.ChannelCode `json:"code"`
	State           string             `json:"state"` // running or finished
	StartedAt       time.Time          `json:"started_at"`
	FinishedAt      *time.Time         `json:"finished_at"`
	MessagesDeleted int64              `json:"messages_deleted"`
	MessagesLeft    *int64             `json:"messages_left"` // nil: not counted yet
	Problem         string             `json:"problem"`
}

// Finished reports whether nothing of the channel is left.
func (d *Deletion) Finished() bool { return d.FinishedAt != nil }
