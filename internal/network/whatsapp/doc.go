// Package whatsapp is the driver for WhatsApp. It uses whatsmeow, one client per connection, and implements the
// contract of package network.
//
// A Driver owns the key database. Each open channel is a session with two goroutines: run is the state machine
// (connect, hold, wait, pair), and publishStates passes states and pairing steps to the sink, in order. A connection
// wraps one whatsmeow client.
//
// Invariants:
//
//   - Only run starts and ends connections. A connection is ended by cancelling its context, never by Disconnect, and
//     a client never connects twice: whatsmeow writes some fields without a lock.
//   - Stanzas are handled one at a time on our own goroutine (stanzas.go). A panic there ends only that stanza.
//   - A message or receipt is acknowledged to the network only after the sink stored it. Receipts are delivered in
//     batches (receipts.go).
//   - One message of an account is encrypted at a time, and no lock is held while the network is queried (dispatch.go,
//     devices.go).
//   - Signal sessions are durable, ahead of every key that was used, before a message leaves (package keystore).
//   - Nothing is reported as sent unless a ciphertext for the recipient was confirmed (dispatch.go).
//   - A lost connection is dialled again at once (disconnection.go). A silently dead one is found by pings
//     (watchdog.go).
package whatsapp
