// Package keystore stores the keys and states of WhatsApp devices for whatsmeow, in one database for all channels.
//
// Invariants:
//
//   - No key of a Signal session is used twice. A session that fell back would encrypt with a used key, and the
//     recipient would drop the message as a duplicate.
//   - Before a message leaves, the database has a session that is past the message's key (key_reserve.go).
//   - A session is locked from its read to its write (session_lock.go).
//   - A decrypted text, the moved session and the used prekey are committed together (decrypt_tx.go).
//   - Values that every message needs are cached, within one bound for all channels (cache.go).
//   - A device is used at one node at a time. When that changes, nothing of it stays in memory (release.go).
//   - Each device has its own LID mappings: one account cannot change where another one writes to (lid_map.go).
package keystore
