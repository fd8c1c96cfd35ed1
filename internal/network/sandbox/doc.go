// Package sandbox is a chat network of its own, with simulated phones, so that anybody can develop
// and test against the gateway without an account anywhere.
//
// It is no mock: it keeps its own record of what reached which phone, in a database of its own that
// is written before a send is confirmed and in no transaction of the gateway's. So a test that kills
// the gateway can afterwards compare what was accepted with what arrived, copies and order included.
//
// Every channel has a world of its own: the same number in two worlds is two phones. Any number is a
// phone; naming one makes it. [Network] is the driver that the gateway uses and also the phones'
// side, which the HTTP API and tests use to look at phones, to act as them and to order faults.
//
// # What runs
//
// A session has one goroutine, which tells the channel everything through the sink: how the
// connection stands, receipts, and what phones did. It serves several phones at once, each by one
// goroutine only, so that the order in a chat is kept. Receipts cost no write each: a phone keeps
// only how far it was delivered and read, and those marks are saved every few seconds. After a crash
// the receipts since then are given again, which changes nothing.
//
// The network itself has one goroutine, the unpacker. A burst of plain messages is recorded as one
// row, a bundle, which costs a fifth of a row for each message. Whoever looks for a message unpacks
// what there is first, so that nobody can tell the difference; the unpacker does so when nothing is
// sent for a while.
package sandbox
