package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"parley"
)

// Text is a text that is null if it is empty.
type Text string

func (t Text) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	quoted, _ := jsontext.AppendQuote(nil, t) // the error only says that invalid UTF-8 was replaced
	return quoted, nil
}

// At is a time as JSON has it.
func At(t time.Time) Time { return Time{t} }

// Channel is a channel as the management API shows it.
type Channel struct {
	Code      parley.ChannelCode     `json:"code"`
	Name      string                 `json:"name"`
	Network   parley.NetworkName     `json:"network"`
	Simulated bool                   `json:"simulated"` // its phones are not real
	Number    string                 `json:"number"`
	Status    parley.ChannelStatus   `json:"status"`
	Reason    string                 `json:"reason"`
	Since     Time                   `json:"since"` // null: no server runs
	Enabled   bool                   `json:"enabled"`
	Labels    []string               `json:"labels"`
	Settings  parley.ChannelSettings `json:"settings"` // those that differ from the defaults
	Pace      Pace                   `json:"pace"`
	CreatedAt Time                   `json:"created_at"`

	ArchiveOf       parley.ChannelCode `json:"archive_of,omitempty"` // the channel whose sandbox history it holds
	Restricted      bool               `json:"restricted,omitzero"`
	RestrictedUntil Time               `json:"restricted_until,omitzero"`
	PairedAt        Time               `json:"paired_at"`       // when its account was first seen; null: not yet
	Today           *CarefulUse        `json:"today,omitempty"` // of a careful channel
	Evidence        *Evidence          `json:"evidence"`        // null: not running, or not provided by the network
	Pairing         *Pairing           `json:"pairing"`         // null: not paired lately

	LastInboundAt   Time  `json:"last_inbound_at"`   // null: nothing in the counted period
	LastConfirmedAt Time  `json:"last_confirmed_at"` // null: likewise
	Waiting         int   `json:"waiting"`
	Sent24h         int64 `json:"sent_24h"`
	Failed24h       int64 `json:"failed_24h"`
	Faults          int   `json:"faults"` // of the simulated network, waiting for a send

	Cloud any `json:"cloud,omitempty"` // the account of a channel on the official network, as its driver describes it
}

// CarefulUse is what left a careful channel today.
type CarefulUse struct {
	FirstContacts    int  `json:"first_contacts"`
	FirstContactsCap *int `json:"first_contacts_cap"` // null: there is no cap
	Messages         int  `json:"messages"`
	MessagesCap      *int `json:"messages_cap"` // null: there is no cap
	Until            Time `json:"until"`        // when the next day begins
}

// Pace is how long a channel waits between two sends, at least and at most.
type Pace struct {
	Least parley.Duration `json:"least"`
	Most  parley.Duration `json:"most"`
}

// Network describes a network of the server.
type Network struct {
	Name        parley.NetworkName `json:"name"`
	Title       string             `json:"title"`
	Simulated   bool               `json:"simulated"`
	Pairing     []string           `json:"pairing"` // ways to pair an account; none: it needs none
	Credentials []Credential       `json:"credentials"`
	Groups      bool               `json:"groups"`
	Kinds       []parley.Kind      `json:"kinds"`
	Pace        Pace               `json:"pace"` // of a channel that has none of its own
	ReplyWindow *parley.Duration   `json:"reply_window"`
	Client      *NetworkClient     `json:"client"` // null where the network has no versions of clients
}

// Credential is a value that the account of a channel needs.
type Credential struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"` // id, secret, url or choice
	Choices []string `json:"choices,omitempty"`
}

type NetworkClient struct {
	Version string `json:"version"` // empty: no channel needed it yet
	Since   Time   `json:"since"`   // when it was set or found; null: it is the one that is built in
}

// Evidence is when a channel last showed activity; null: not since it started.
type Evidence struct {
	ConnectedAt Time `json:"connected_at"`
	HeardAt     Time `json:"heard_at"`
	ConfirmedAt Time `json:"confirmed_at"`
	ReceivedAt  Time `json:"received_at"`
}

// Pairing is the latest step of a pairing, without its code.
type Pairing struct {
	Step      parley.PairingStep `json:"step"`
	ExpiresAt Time               `json:"expires_at"`
	Reason    string             `json:"reason"`
	N         int                `json:"n"`
	Of        int                `json:"of"`
	At        Time               `json:"at"`
}

// PairingCode adds the code, which only the account's owner may see.
type PairingCode struct {
	Pairing
	Code Text     `json:"code"`
	QR   []string `json:"qr"` // rows of 0 and 1 (black); none: nothing to scan
	// Passkey is what the account's passkey must sign; null: it is not asked for.
	Passkey *parley.PasskeyRequest `json:"passkey"`
}

// Deletion is the deletion of a channel.
type Deletion struct {
	ID              string             `json:"id"`
	Code            parley.ChannelCode `json:"code"`
	State           string             `json:"state"` // running or finished
	StartedAt       Time               `json:"started_at"`
	FinishedAt      Time               `json:"finished_at"` // null: something of the channel is left
	MessagesDeleted int64              `json:"messages_deleted"`
	MessagesLeft    *int64             `json:"messages_left"` // null: not counted yet
	Problem         string             `json:"problem"`
}

// Chat is a row of a channel's list of chats.
type Chat struct {
	ContactID parley.ContactID `json:"contact_id,omitempty"`
	GroupID   parley.GroupID   `json:"group_id,omitempty"` // in place of the contact
	Name      string           `json:"name"`               // of the contact or group; empty: not known
	Messages  int64            `json:"messages"`
	Archived  bool             `json:"archived"`
	Timestamp string           `json:"timestamp"`
	// WindowUntil is until when the contact can get more than templates. Null: only templates; nil: there is no such limit.
	WindowUntil *Time    `json:"window_until,omitempty"`
	Last        *Message `json:"last,omitempty"` // nil: it has no message any more
}

// Token is what is known of a token; it is never the token itself.
type Token struct {
	ID           parley.TokenID   `json:"id"`
	Name         string           `json:"name"`
	Kind         parley.TokenKind `json:"kind"`
	Channel      Text             `json:"channel"`
	Role         Text             `json:"role"` // null: not an admin token
	CreatedAt    Time             `json:"created_at"`
	ExpiresAt    Time             `json:"expires_at"`
	LastUsedAt   Time             `json:"last_used_at"`
	RevokedAt    Time             `json:"revoked_at"`
	Dev          bool             `json:"dev"`
	LastUsedFrom Text             `json:"last_used_from"`
	UserAgent    Text             `json:"user_agent"`
}

// NewToken is the only response that contains the token itself.
type NewToken struct {
	Token
	Secret string `json:"token"`
}

// Session is a console session.
type Session struct {
	ID           string      `json:"id"`
	Name         string      `json:"name"`
	Role         parley.Role `json:"role"`
	Token        Text        `json:"token"`  // that it goes back to; null: the command line
	Parent       Text        `json:"parent"` // the session in which its link was made; null: none
	CreatedAt    Time        `json:"created_at"`
	LastUsedAt   Time        `json:"last_used_at"`
	LastUsedFrom Text        `json:"last_used_from"`
	UserAgent    Text        `json:"user_agent"`
	ExpiresAt    Time        `json:"expires_at"` // unless it is used
	EndsAt       Time        `json:"ends_at"`    // even if it is used
	Current      bool        `json:"current"`
}

// AuditEntry is one act of management.
type AuditEntry struct {
	ID        int64           `json:"id"`
	At        Time            `json:"at"`
	ActorKind string          `json:"actor_kind"`
	Actor     string          `json:"actor"`
	ActorName string          `json:"actor_name"`
	Role      parley.Role     `json:"role"`
	Action    string          `json:"action"`
	Object    Text            `json:"object"`
	Address   Text            `json:"address"`
	RequestID string          `json:"request_id"`
	Before    json.RawMessage `json:"before"` // null: nothing
	After     json.RawMessage `json:"after"`
}

// LoggedRequest is a request of the request log.
type LoggedRequest struct {
	ID             int64          `json:"id"`
	At             Time           `json:"at"`
	Method         string         `json:"method"`
	Path           string         `json:"path"`
	Status         int            `json:"status"`
	Code           Text           `json:"code"`
	TookMS         float64        `json:"took_ms"`
	RequestID      string         `json:"request_id"`
	IdempotencyKey Text           `json:"idempotency_key"`
	Token          parley.TokenID `json:"token"`
}

// Webhook is a webhook as the management API shows it.
type Webhook struct {
	ID           parley.WebhookID   `json:"id"`
	URL          string             `json:"url"`
	Channel      Text               `json:"channel"`
	Events       []parley.EventType `json:"events"`
	MediaLinks   string             `json:"media_links"` // token or signed
	Enabled      bool               `json:"enabled"`
	Reason       string             `json:"reason"`
	DisabledAt   Time               `json:"disabled_at"`
	FailingSince Time               `json:"failing_since"`
	Failures     int                `json:"failures"`
	Warning      string             `json:"warning"`
	CreatedAt    Time               `json:"created_at"`
}

// NewWebhook is a webhook that was just created.
type NewWebhook struct {
	Webhook
	Secret string `json:"secret"`
}

// Secret is a secret that signs deliveries or callbacks.
type Secret struct {
	Secret   string `json:"secret"`
	OldUntil Time   `json:"old_until"` // until then the one before it signs too
}

// Result is how an attempt of a delivery ended.
type Result struct {
	Code    *int   `json:"code"` // null: there was no response
	TookMS  int64  `json:"took_ms"`
	Problem string `json:"problem"`
}

// String is for example "200 in 84 ms" or "timeout in 10000 ms".
func (r Result) String() string {
	what, _, _ := strings.Cut(r.Problem, ":")
	if r.Code != nil {
		what = fmt.Sprint(*r.Code)
	}
	return fmt.Sprintf("%s in %d ms", what, r.TookMS)
}

// Attempt is the result with what the other server said.
type Attempt struct {
	Result
	Answer string `json:"answer"`
}

// Delivery is a delivery with the result of its last attempt.
type Delivery struct {
	ID        parley.DeliveryID  `json:"id"`
	Webhook   Text               `json:"webhook"` // null: a callback
	URL       string             `json:"url"`
	EventID   parley.EventID     `json:"event_id"`
	Type      parley.EventType   `json:"type"`
	Channel   parley.ChannelCode `json:"channel"`
	ContactID Text               `json:"contact_id"`
	State     string             `json:"state"`
	Attempts  int                `json:"attempts"`
	NextAt    Time               `json:"next_at"`
	CreatedAt Time               `json:"created_at"`
	TriedAt   Time               `json:"tried_at"`
	Result
}

// DeliveryDetail adds what only a request for one delivery shows.
type DeliveryDetail struct {
	Delivery
	Answer  string            `json:"answer"`
	History []DeliveryAttempt `json:"history"`
	Body    *string           `json:"body"`
	Request *DeliveryRequest  `json:"request"`
}

type DeliveryAttempt struct {
	Number int  `json:"number"`
	At     Time `json:"at"`
	Attempt
}

type DeliveryRequest struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// Replayed is how many deliveries a request replayed.
type Replayed struct {
	Replayed    int    `json:"replayed"`
	More        bool   `json:"more"`
	EndedBefore string `json:"ended_before"`
}

// AlertRule says what is watched and who is notified.
type AlertRule struct {
	ID            parley.AlertRuleID `json:"id"`
	Name          string             `json:"name"`
	Kind          parley.AlertKind   `json:"kind"`
	Channel       Text               `json:"channel"`
	Share         *int               `json:"share"`
	WindowMinutes *int               `json:"window_minutes"`
	URL           Text               `json:"url"`
	Via           Text               `json:"via"`
	ContactID     Text               `json:"contact_id"`
	Quiet         *QuietHours        `json:"quiet"`
	Enabled       bool               `json:"enabled"`
	Warning       string             `json:"warning"`
	CreatedAt     Time               `json:"created_at"`
}

// NewAlertRule is a rule that was just created.
type NewAlertRule struct {
	AlertRule
	Secret Text `json:"secret"` // null: it notifies a contact, or was shown before
}

// QuietHours are when no notices are sent.
type QuietHours struct {
	From string `json:"from"`
	To   string `json:"to"`
	Zone string `json:"zone"`
}

// Alert is a problem that a rule found.
type Alert struct {
	ID         string             `json:"id"`
	Rule       parley.AlertRuleID `json:"rule"`
	Channel    Text               `json:"channel"`
	Sentence   string             `json:"sentence"`
	RaisedAt   Time               `json:"raised_at"`
	NotifiedAt Time               `json:"notified_at"`
	ResolvedAt Time               `json:"resolved_at"`
	Problem    string             `json:"problem"`
}

// Alerts are the rules, and alerts of the last days.
type Alerts struct {
	Rules  []AlertRule `json:"rules"`
	Alerts []Alert     `json:"alerts"`
}

// Node is a node of a cluster.
type Node struct {
	ID        string `json:"id"`
	URL       string `json:"url"`
	Version   string `json:"version"`
	State     string `json:"state"` // serving or draining
	Self      bool   `json:"self"`  // the node that responds
	Shards    int    `json:"shards"`
	StartedAt Time   `json:"started_at"`
	RenewedAt Time   `json:"renewed_at"`
	ExpiresAt Time   `json:"expires_at"`
}

// Finding is the result of a check of the doctor, and Findings are all of them.
type Finding struct {
	Name     string `json:"name"`
	Code     string `json:"code"`
	Level    string `json:"level"`
	Sentence string `json:"sentence"`
	Remedy   string `json:"remedy"`
	Channel  Text   `json:"channel"`
	Webhook  Text   `json:"webhook"`
	Since    Time   `json:"since"`
}

type Findings struct {
	Problems int       `json:"problems"`
	Warnings int       `json:"warnings"`
	Findings []Finding `json:"findings"`
}

// Phone is a simulated phone.
type Phone struct {
	Number    string           `json:"number"`
	ContactID parley.ContactID `json:"contact_id"`
	Name      string           `json:"name"`
	Online    bool             `json:"online"`
	Reads     string           `json:"reads"` // at_once, when_open or never
	DelayMS   int64            `json:"delay_ms"`
	Blocks    bool             `json:"blocks"`
	OnNetwork bool             `json:"on_network"`
	LIDOnly   bool             `json:"lid_only"`
	Hidden    bool             `json:"number_hidden"`
	Timer     int              `json:"disappearing_seconds"` // of its chat with the channel
}

// Arrived is a message that reached a simulated phone.
type Arrived struct {
	MessageID string       `json:"message_id"`
	GroupID   Text         `json:"group_id"`
	Type      parley.Kind  `json:"type"`
	Body      string       `json:"body"`
	Codes     []string     `json:"codes"`
	Links     []string     `json:"links"`
	Media     *ArrivedFile `json:"media"`
	ReplyTo   Text         `json:"reply_to"`
	Status    string       `json:"status"`
	Timestamp Time         `json:"timestamp"`
	EditedAt  Time         `json:"edited_at"`
	Copies    int          `json:"copies"`
	Timer     int          `json:"disappearing_seconds"`
	Cursor    string       `json:"cursor"`
}

type ArrivedFile struct {
	MIMEType string `json:"mimetype"`
	Filename string `json:"filename"`
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"` // hexadecimal
	Width    int    `json:"width"`  // 0: not known
	Height   int    `json:"height"`
	Seconds  int    `json:"seconds"`
}
