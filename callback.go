package parley

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Webhook is an address that is told of events.
type Webhook struct {
	ID        WebhookID
	URL       string
	Channel   ChannelCode // empty: of every channel
	Types     []EventType // none: of every type
	CreatedAt time.Time

	// Cursor is the place in the event log up to which deliveries were planned.
	Cursor int64
	// DisabledAt is when it was switched off, by somebody or because it only failed; zero: it is on.
	DisabledAt time.Time
	Reason     string // why it is off, in a sentence
	// FailingSince is when the first of the attempts failed that have all failed since; zero: the last
	// one worked.
	FailingSince time.Time
	// FailingFor is how much of the time since then counts towards switching it off: the time in which the server
	// ran and made attempts.
	FailingFor time.Duration
	Failures   int // how many attempts in a row have failed
	// Lost is how many events were removed from the log before deliveries of them were planned, and LostAt when that was
	// last noticed.
	Lost   int64
	LostAt time.Time
}

// Filter says which events the webhook is told of.
func (w *Webhook) Filter() EventFilter { return EventFilter{Channel: w.Channel, Types: w.Types} }

// IsEnabled reports whether the webhook is told of anything now.
func (w *Webhook) IsEnabled() bool { return w.DisabledAt.IsZero() }

// Enable switches the webhook on, with a clean slate: what waited goes on.
func (w *Webhook) Enable() {
	w.DisabledAt, w.Reason = time.Time{}, ""
	w.Forgive()
}

// Forgive forgets that the webhook failed.
func (w *Webhook) Forgive() { w.FailingSince, w.FailingFor, w.Failures = time.Time{}, 0, 0 }

// Disable switches the webhook off. What waits for it, and what happens meanwhile, waits until it is
// switched on again.
func (w *Webhook) Disable(at time.Time, reason string) { w.DisabledAt, w.Reason = at, reason }

// WebhookID names a webhook.
type WebhookID string

// NewWebhookID chooses a webhook's id.
func NewWebhookID() WebhookID { return WebhookID("whk_" + randomHex(10)) }

// Delivery is an event on its way to one address: a webhook's, or the callback of a login link.
type Delivery struct {
	ID      DeliveryID
	Webhook WebhookID // empty: a callback
	URL     string    // of a callback; a webhook's is in the webhook
	Event   int64     // the place in the event log
	EventID EventID
	Type    EventType
	Channel ChannelCode
	Chat    ContactID // later ones of the same chat wait behind one that fails

	State     DeliveryState
	Attempts  int       // how many of the schedule's attempts were made
	NextAt    time.Time // when to try it, while it waits; zero: at once
	CreatedAt time.Time
	TriedAt   time.Time // the last attempt; zero: none was made
	EndedAt   time.Time // when it was delivered or failed for good; zero: it waits
	Took      time.Duration
	Code      int    // the HTTP status of the last attempt; zero: there was no answer
	Problem   string // why the last attempt failed, in a few words; empty: it did not
	Answer    string // the beginning of what was answered to a failed attempt

	// Earlier are the attempts before the last one, oldest first. There are at most so many, and a replay
	// keeps them.
	Earlier []DeliveryAttempt
}

// NewDelivery makes the delivery of an event, which is in the log already, to a webhook.
func NewDelivery(e *Event, to WebhookID) Delivery {
	return Delivery{Webhook: to, Event: e.Seq, EventID: e.ID, Type: e.Type, Channel: e.Channel, Chat: e.Chat, CreatedAt: time.Now()}
}

// NewCallback makes the delivery of an event, which is in the log already, to the address that the
// request of a login link named. The contact is spelled as in that request. It belongs into the transaction that adds the event.
func NewCallback(e *Event, address string, contact ContactID) Delivery {
	d := NewDelivery(e, "")
	d.URL, d.Chat = address, contact
	return d
}

// Endpoint is what the delivery burdens, and what answers it or does not.
func (d *Delivery) Endpoint() Endpoint {
	if d.Webhook != "" {
		return Endpoint(d.Webhook)
	}
	u, err := url.Parse(d.URL)
	if err != nil {
		return Endpoint(d.URL)
	}
	return Endpoint(u.Scheme + "://" + strings.ToLower(u.Host))
}

// Endpoint names something that deliveries go to: a webhook by its id, or the server that callbacks go
// to by scheme, host and port.
type Endpoint string

// DeliveryID names a delivery: "dlv_" and 16 hexadecimal digits of a number that the store chooses.
type DeliveryID string

// DeliveryIDOf makes the id of a number.
func DeliveryIDOf(n int64) DeliveryID { return DeliveryID(fmt.Sprintf("dlv_%016x", n)) }

// Number is what the id was made of, or -1 if it is none.
func (id DeliveryID) Number() int64 {
	hexits, ok := strings.CutPrefix(string(id), "dlv_")
	if n, err := strconv.ParseInt(hexits, 16, 64); ok && err == nil && len(hexits) == 16 && n >= 0 {
		return n
	}
	return -1
}

// DeliveryState is where a delivery stands. The numbers are stored and must not change.
type DeliveryState int

const (
	DeliveryWaiting DeliveryState = 0 // to be tried, or tried again
	DeliveryDone    DeliveryState = 1 // answered with a 2xx
	DeliveryFailed  DeliveryState = 2 // every attempt of the schedule failed; it can be replayed
)

var deliveryStates = []string{"waiting", "delivered", "failed"}

func (s DeliveryState) String() string { return deliveryStates[s] }

// ParseDeliveryState reads the name of a state.
func ParseDeliveryState(s string) (DeliveryState, bool) {
	i := slices.Index(deliveryStates, s)
	return DeliveryState(i), i >= 0
}

// DeliveryQuery says which deliveries are wanted. The zero value is all.
type DeliveryQuery struct {
	IDs     []DeliveryID
	Events  []int64 // places in the log
	Webhook WebhookID
	Channel ChannelCode
	State   *DeliveryState
	Tried   bool      // only those that were tried
	Since   time.Time // created at this time or later
	Until   time.Time // created before this time
	// EndedBefore leaves out what ended at this time or later, so that a replay in several steps does
	// not meet again what it had made again.
	EndedBefore time.Time
}

// SigningSecret is what signatures of one owner are made with, encrypted. After it was changed the
// old one signs beside it for a while.
type SigningSecret struct {
	Owner        SecretOwner
	Encrypted    []byte
	OldEncrypted []byte // nil: there is none
	OldUntil     time.Time
}

// SecretOwner names whose signatures a secret makes.
type SecretOwner string

// ListenSecret is the owner of the secret that signs what is forwarded to a developer's machine.
const ListenSecret SecretOwner = "listen"

// WebhookSecret is the owner of the secret that signs what a webhook is told.
func WebhookSecret(id WebhookID) SecretOwner { return SecretOwner("webhook:" + id) }

// ChannelSecret is the owner of the secret that signs a channel's callbacks.
func ChannelSecret(code ChannelCode) SecretOwner { return SecretOwner("channel:" + code) }

// Channel returns the channel whose secret it is; empty: it is no channel's.
func (o SecretOwner) Channel() ChannelCode {
	if code, ok := strings.CutPrefix(string(o), "channel:"); ok {
		return ChannelCode(code)
	}
	return ""
}

// Webhook returns the webhook whose secret it is; empty: it is no webhook's.
func (o SecretOwner) Webhook() WebhookID {
	if id, ok := strings.CutPrefix(string(o), "webhook:"); ok {
		return WebhookID(id)
	}
	return ""
}
