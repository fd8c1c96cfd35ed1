// Package parley is the vocabulary of a chat messaging gateway: channels, contacts, messages,
// tokens, and the rules that hold between them.
//
// It knows no transport, no database and no chat network, and imports only the standard library.
// Rules are plain methods on values ([Status.CanFollow], [Channel.Accepts], [ParseContactID]), so
// that they can be read and tested without starting anything. Packages under internal do the work:
//
//	api      the HTTP interface                 gateway  accepts, owns sessions, receives
//	outbox   one channel's queue                network  the contract of a chat network
//	store    messages and the rest, in SQLite   media    files that messages point at
//
// docs/architecture.md draws the picture.
//
// Invariants: the numbers of statuses, states and priorities are stored and never change their meaning. A status only
// moves forward ([Status.CanFollow]). An [Error] is the only error whose text reaches a caller.
package parley
