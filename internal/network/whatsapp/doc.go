// Package whatsapp is the driver of the real network. It speaks through whatsmeow, one client for each
// connection, and knows nothing of the gateway but the contract of package network.
//
// # Who does what
//
// A Driver owns the database with the keys of all devices. Each open channel is a session with two
// goroutines: run is its state machine (connect, hold, wait, pair), the only one that begins and ends
// connections; tell gives states and pairing steps to the sink, in order. A connection is a line: a
// whatsmeow client of its own. Its stanzas are handled on a goroutine of ours that lives while there are any, so
// that a panic ends nothing else (stanzas.go); some events arrive on whatsmeow's own goroutines. What concerns the
// connection is posted to run; what somebody said is given to the sink, one at a time, and whatsmeow
// acknowledges it to the network only after the sink took it. Receipts, of which there are most, are gathered
// and given by a goroutine that lives while there are any (receipts.go).
//
// Of the messages of an account one is encrypted at a time, but many are under way, of different chats
// (dispatch.go). No lock is held while the network is asked: devices and keys are there before one is taken
// (devices.go). The Signal sessions are durable, ahead of what was encrypted, before anything leaves: see
// package keystore.
//
// A connection that is lost is made again at once (reconnect.go), and one that died without a sign is found out
// (watch.go).
//
// whatsmeow has a few fields that it writes on one goroutine and reads on another. So a line is ended by
// cancelling its context, never by Disconnect; a client is never connected twice; a device is removed by the
// session, when its line is over; and names are read from the database.
package whatsapp
