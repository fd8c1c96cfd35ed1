// Package keystore keeps the keys and states of WhatsApp devices, for whatsmeow, in one database for all
// channels. It knows nothing of messages, and of the network only the names that whatsmeow gives things.
//
// Sending a message moves the Signal session of every device that is to read it. A session that falls back
// to an earlier state encrypts with a key that was used before, and the recipient takes the message for a
// copy and shows nothing. So sessions are durable before anything leaves, in one commit per message that
// the channels share, and whoever reads one to move it on holds it until it is written back: see lease.go.
//
// What is read at every message is in memory too, within a bound that all channels share. The memory is
// written with the database, never before it.
package keystore
