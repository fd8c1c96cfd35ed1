// Package whatsapptest is a chat network that speaks WhatsApp's wire protocol on 127.0.0.1, so that an
// unmodified client pairs, sends and receives against it with simulated phones that really encrypt and
// decrypt. It proves what a client does, not what the real network accepts. It keeps nothing on disk and
// knows nothing of the gateway.
//
// A story in a test:
//
//	s := whatsapptest.StartTest(t, whatsapptest.Config{})
//	owner := s.Phone("6281234567890", whatsapptest.Named("Shop"))
//	friend := s.Phone("6289876543210")
//	s.Trust().Apply(client)             // the three HTTP clients and the root of the certificates
//	link, err := owner.Scan(ctx, qr)    // what the client showed
//	…                                   // the client sends "hello" to the friend
//	friend.Expect(t, whatsapptest.Text("hello"))
//	friend.Send(ctx, owner, "hello yourself")
//
// # Who owns what
//
// One mutex of the Server guards accounts, devices, queues, groups and the ledger; it is never held while
// anything is encrypted. Each Phone has its own mutex for its keys and one goroutine that takes stanzas from
// the queue of its devices. A phone may lock the server, never the other way round. Each connection has one
// goroutine that reads and one that writes. All of them end with Server.Close.
package whatsapptest
