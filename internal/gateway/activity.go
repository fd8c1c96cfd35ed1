package gateway

import (
	"time"

	"parley"
)

// Activity is a change of a message's or channel's status, or a pairing step, for live views. It is not stored.
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
	Took    time.Duration // since the message was accepted; zero: unknown

	// Of a channel; empty on messages.
	State   parley.ChannelStatus
	Pairing parley.PairingStep // of a pairing step; else empty
	Reason  string
}

// Activity subscribes to activity. A subscriber that falls far behind is cut off.
func (g *Gateway) Activity() (<-chan Activity, func()) {
	const buffer = 1024
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
