// Package gateway is the heart of the program: it accepts messages, owns the sessions of all channels
// and receives what comes back.
//
// Going out: [Gateway.Send] stores messages in one transaction and hands them to the channel's
// outbox worker, which gives them to the network through the channel's session and reports back to the
// request that waits (sending.go). Coming in: a session calls the sink in inbound.go, which stores what
// arrived before it lets the network forget it.
//
// The store is the truth. What is kept in memory (a channel's state, its queue, who waits for an
// answer) can be lost at any moment and is made again from the store by [Gateway.Run].
package gateway
