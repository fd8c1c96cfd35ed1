// Package parley is the vocabulary of a chat messaging gateway: channels, contacts, messages,
// tokens, and the rules that hold between them.
//
// It knows no transport, no database and no chat network, and imports only the standard library.
// Rules are plain methods on values ([Status.CanFollow], [Channel.Accepts], [ParseContactID]), so
// that they can be read and tested without starting anything. Packages under internal do the work:
//
//	cmd/parley   the commands                        app      puts the program together
//	api          the HTTP interface                  console  the pages in a browser
//	gateway      accepts, owns sessions, receives    otp      codes and login links
//	outbox       the queue of one channel            callback webhooks and callbacks
//	network      the contract of a chat network      media    files that messages point at
//	store        rows, in SQLite or PostgreSQL       cluster  nodes that share a database
//
// docs/architecture.md lists the others and follows a message through them.
//
// Invariants: the numbers of statuses, states and priorities are stored and never change their meaning. A status only
// moves forward ([Status.CanFollow]). An [Error] is the only error whose text reaches a caller.
package parley
