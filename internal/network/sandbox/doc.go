// Package sandbox is a chat network of its own with simulated phones, for developing and testing against the gateway
// without an account anywhere.
//
// Its database, sandbox.db, is written before a send is confirmed and in no transaction of the gateway. So a test that
// kills the gateway can compare what was accepted with what arrived, copies and order included.
//
// Every channel has a world of its own: the same number in two worlds is two phones. Any number is a phone; the first use
// of a number creates it. [Network] is the driver that the gateway uses. It is also the phones' side, which the HTTP API
// and tests use to look at phones, to act as them and to order faults.
//
// Invariants:
//
//   - One row per message. It is committed before Send confirms it.
//   - Positions (seq) are assigned by the database's writer, so they become visible in order.
//   - Memory holds only what is in progress: who waits, who types, which phones have something to report, receipts whose
//     cursors are not saved. Everything else about a phone is read from its row, so idle phones cost no memory.
//   - A session has one goroutine. It reports receipts and phone events to the sink, several phones at once but each phone
//     by one goroutine only, which keeps the order in a chat.
//   - A receipt writes no row: a phone has two cursors, delivered and read, saved once a second. After a crash the receipts
//     since then are reported again, which changes nothing.
//   - The purger, one goroutine per network, removes what is over the retention and the worlds of removed channels, in
//     small batches so that sends wait a moment at most.
package sandbox
