package parley

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Webhook is an address that events are delivered to.
type Webhook struct {
	ID      WebhookID
	URL     string
	Channel ChannelCode // empty: of every channel
	Types   []EventType // none: of every type
	// SignedMedia makes the links to files in its events work without a token.
	SignedMedia bool
	CreatedAt   time.Time

	// Cursor is the seq of the last event whose deliveries were planned.
	Cursor int64
	// DisabledAt is when it was disabled, by a user or after too many failures; zero: it is enabled.
	DisabledAt time.Time
	Reason     string // why it is disabled, in a sentence
	// FailingSince is when the current run of failures began; zero: the last attempt succeeded.
	FailingSince time.Time
	// FailingFor is how much of that time counts towards disabling it: while the server ran and made attempts.
	FailingFor time.Duration
	Failures   int // how many attempts in a row have failed
	// Lost counts events that were removed from the log before their deliveries were planned. LostAt is when that
	// last happened.
	Lost   int64
	LostAt time.Time
}

func (w *Webhook) Filter() EventFilter { return EventFilter{Channel: w.Channel, Types: w.Types} }

func (w *Webhook) IsEnabled() bool { return w.DisabledAt.IsZero() }

// Enable enables the webhook and clears its failures. Waiting deliveries continue.
func (w *Webhook) Enable() {
	w.DisabledAt, w.Reason = time.Time{}, ""
	w.ClearFailures()
}

func (w *Webhook) ClearFailures() { w.FailingSince, w.FailingFor, w.Failures = time.Time{}, 0, 0 }

// Disable disables the webhook. Its events wait until it is enabled again.
func (w *Webhook) Disable(at time.Time, reason string) { w.DisabledAt, w.Reason = at, reason }

type WebhookID string

func NewWebhookID() WebhookID { return WebhookID("whk_" + randomHex(10)) }

// Delivery is an event on its way to one address: a webhook's, or the callback of a login link.
type Delivery struct {
	ID      DeliveryID
	Webhook WebhookID // empty: a callback
	URL     string    // of a callback; a webhook's is in the webhook
	Event   int64     // the seq of the event
	EventID EventID
	Type    EventType
	Channel ChannelCode
	Chat    ContactID // later ones of the same chat wait behind one that fails

	State     DeliveryState
	Attempts  int       // how many of the schedule's attempts were made
	NextAt    time.Time // when to try it, while it waits; zero: at once
	CreatedAt time.Time
	TriedAt   time.Time // the last attempt; zero: none was made
	EndedAt   time.Time // when it was delivered or finally failed; zero: it waits
	Took      time.Duration
	Code      int    // the HTTP status of the last attempt; zero: no response
	Problem   string // why the last attempt failed, in a few words; empty: it did not
	Response  string // the beginning of the response to a failed attempt

	// Earlier are the attempts before the last one, oldest first: at most maxEarlier. A replay does not clear them.
	Earlier []DeliveryAttempt
}

// NewDelivery makes the delivery of a stored event to a webhook.
func NewDelivery(e *Event, to WebhookID) Delivery {
	return Delivery{Webhook: to, Event: e.Seq, EventID: e.ID, Type: e.Type, Channel: e.Channel, Chat: e.Chat, CreatedAt: time.Now()}
}

// NewCallback makes the delivery of a stored event to the callback address of a login link. The contact is spelled as in
// the request. Store it in the transaction that adds the event.
func NewCallback(e *Event, address string, contact ContactID) Delivery {
	d := NewDelivery(e, "")
	d.URL, d.Chat = address, contact
	return d
}

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

// Endpoint names what deliveries go to: a webhook by its id, or the server of callbacks by scheme, host and port.
type Endpoint string

// DeliveryID names a delivery: "dlv_" and 16 hexadecimal digits of a number that the store chooses.
type DeliveryID string

func NewDeliveryID(n int64) DeliveryID { return DeliveryID(fmt.Sprintf("dlv_%016x", n)) }

// Number is the number in the id, or -1 if it is not a delivery id.
func (id DeliveryID) Number() int64 {
	digits, ok := strings.CutPrefix(string(id), "dlv_")
	if n, err := strconv.ParseInt(digits, 16, 64); ok && err == nil && len(digits) == 16 && n >= 0 {
		return n
	}
	return -1
}

// DeliveryState is the state of a delivery. The numbers are stored and must not change.
type DeliveryState int

const (
	DeliveryWaiting DeliveryState = 0 // to be tried, or tried again
	DeliveryDone    DeliveryState = 1 // the response was 2xx
	DeliveryFailed  DeliveryState = 2 // every attempt of the schedule failed; it can be replayed
)

var deliveryStates = []string{"waiting", "delivered", "failed"}

func (s DeliveryState) String() string { return deliveryStates[s] }

func ParseDeliveryState(s string) (DeliveryState, bool) {
	i := slices.Index(deliveryStates, s)
	return DeliveryState(i), i >= 0
}

// DeliveryQuery selects deliveries. The zero value selects all.
type DeliveryQuery struct {
	IDs     []DeliveryID
	Events  []int64 // their seqs
	Webhook WebhookID
	Channel ChannelCode
	State   *DeliveryState
	Tried   bool      // only those that were tried
	Since   time.Time // created at this time or later
	Until   time.Time // created before this time
	// EndedBefore leaves out what ended at this time or later. A replay in several steps then does not find its own work.
	EndedBefore time.Time
	OldestFirst bool // the order of a list
}

// SigningSecret is the encrypted secret that signs for one owner, or the credentials of a channel. After a rotation the old one is
// also valid for a while.
type SigningSecret struct {
	Owner        SecretOwner
	Encrypted    []byte
	OldEncrypted []byte // nil: none
	OldUntil     time.Time
}

// SecretOwner names the owner of a signing secret or of credentials.
type SecretOwner string

// ListenSecret owns the secret that signs events forwarded by "parley listen".
const ListenSecret SecretOwner = "listen"

// WebhookSecret owns the secret that signs the deliveries of a webhook.
func WebhookSecret(id WebhookID) SecretOwner { return SecretOwner("webhook:" + id) }

// ChannelSecret owns the secret that signs a channel's callbacks.
func ChannelSecret(code ChannelCode) SecretOwner { return SecretOwner("channel:" + code) }

// NetworkSecret owns the credentials of a channel on its network. A channel's id is never used again, unlike its code.
func NetworkSecret(channel int64) SecretOwner { return SecretOwner(fmt.Sprint("network:", channel)) }

// Channel returns the channel that owns the secret; empty: none.
func (o SecretOwner) Channel() ChannelCode { return ChannelCode(o.after("channel:")) }

// Webhook returns the webhook that owns the secret; empty: none.
func (o SecretOwner) Webhook() WebhookID { return WebhookID(o.after("webhook:")) }

func (o SecretOwner) after(prefix string) string {
	if name, ok := strings.CutPrefix(string(o), prefix); ok {
		return name
	}
	return ""
}

const (
	// maxEarlier is how many attempts of a delivery are stored besides the last: a whole schedule and a replay.
	// A webhook that is down for days is tried more often, each minute, with the same delivery.
	maxEarlier = 20
	// maxExcerpt is how many bytes of the response are stored for an attempt that is not the last.
	maxExcerpt = 512
)

// DeliveryAttempt is how one attempt to make a delivery ended.
type DeliveryAttempt struct {
	Number   int // from 1 on; a replay counts on
	At       time.Time
	Took     time.Duration
	Code     int    // the HTTP status; zero: no response
	Problem  string // why it failed, in a few words; empty: it did not
	Response string // the beginning of the response, if it failed
}

// History lists the attempts that are known, oldest first.
func (d *Delivery) History() []DeliveryAttempt {
	if d.TriedAt.IsZero() {
		return d.Earlier
	}
	number := d.Attempts // more than are known, where a delivery is older than its history
	if n := len(d.Earlier); n > 0 {
		number = d.Earlier[n-1].Number + 1
	}
	last := DeliveryAttempt{max(number, 1), d.TriedAt, d.Took, d.Code, d.Problem, d.Response}
	return slices.Concat(d.Earlier, []DeliveryAttempt{last})
}

// SaveAttempt moves the last attempt to the earlier ones before another attempt. If there are too many, those after the
// first are dropped: the first and the newest say the most.
func (d *Delivery) SaveAttempt() {
	d.Earlier = d.History()
	if n := len(d.Earlier); n > 0 {
		last := &d.Earlier[n-1]
		if len(last.Response) > maxExcerpt {
			last.Response = strings.ToValidUTF8(last.Response[:maxExcerpt], "")
		}
	}
	if over := len(d.Earlier) - maxEarlier; over > 0 {
		d.Earlier = slices.Delete(d.Earlier, 1, 1+over)
	}
	d.TriedAt, d.Took, d.Code, d.Problem, d.Response = time.Time{}, 0, 0, "", ""
}

// ShortAddress is what those may see of an address who must not see secrets: scheme, host and the first part of the path. The rest
// often is a secret, such as the path of a chat webhook, or the query.
func ShortAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	first, rest, _ := strings.Cut(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	short := u.Scheme + "://" + u.Host + "/" + first
	if rest != "" {
		short += "/…"
	}
	return short
}
