// Package keystore keeps the keys and states of WhatsApp devices, for whatsmeow, in one database for all
// channels. It knows nothing of messages, and of the network only the names that whatsmeow gives things.
//
// Sending a message moves the Signal session of every device that is to read it. A session that falls back
// to an earlier state encrypts with a key that was used before, and the recipient takes the message for a
// copy and shows nothing. So before anything leaves the database has sessions that are past what was used,
// some keys ahead (reserve.go), in commits that all channels share; and whoever reads a session to move it on
// holds it until it is written back (lease.go).
//
// What is read at every message is in memory too, within a bound that all channels share.
package keystore
