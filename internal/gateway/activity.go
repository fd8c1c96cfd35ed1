package gateway

import (
	"time"

	"parley"
)

// Activity is something that just happened, for whoever watches: a message moved, a channel's status
// changed, or its pairing got on. It is a view, not a record.
type Activity struct {
	At      time.Time
	Channel parley.ChannelCode

	// Of a message.
	Contact parley.ContactID
	Kind    parley.Kind // empty on a receipt
	FromMe  bool
	Text    string
	ID      parley.MessageID
	Status  parley.Status
	Failure *parley.Failure
	Took    time.Duration // since the message was accepted; zero: not known

	// Of a channel; empty on messages.
	State   parley.ChannelStatus
	Pairing parley.PairingStep // where a step of its pairing was taken; else empty
	Reason  string
}

// Activity returns what happens from now on. A watcher that falls far behind is cut off.
func (g *Gateway) Activity() (<-chan Activity, func()) {
	const buffer = 1024 // a burst; more than anybody can read
	return g.activity.Subscribe(buffer)
}

func activityOf(m *parley.Message) Activity {
	act := Activity{At: m.UpdatedAt, Channel: m.Channel, Contact: m.Chat, FromMe: m.FromMe, ID: m.ID, Status: m.Status, Failure: m.Failure}
	if m.Content != nil {
		act.Kind, act.Text = m.Content.Kind(), m.Content.Text()
		act.Took = m.UpdatedAt.Sub(m.CreatedAt)
	}
	return act
}
