// Package whatsapptest is a chat network that speaks WhatsApp's wire protocol on 127.0.0.1. An unmodified client
// pairs, sends and receives against it, with simulated phones that really encrypt and decrypt.
//
//	s := whatsapptest.StartTest(t)
//	owner := s.Phone("6281234567890", whatsapptest.Named("Shop"))
//	friend := s.Phone("6289876543210")
//	s.Trust().Apply(client)             // the three HTTP clients and the root of the certificates
//	link, err := owner.Scan(ctx, qr)    // the code that the client shows
//	…                                   // the client sends "hello" to the friend
//	friend.Expect(t, whatsapptest.Text("hello"))
//	friend.Send(ctx, owner, "hello yourself")
//
// Invariants:
//   - It tests what a client does, not what the real network accepts.
//   - It stores nothing on disk and does not know the gateway.
//   - Server.mu guards accounts, devices, queues, groups and traces. It is never held during encryption.
//   - Each Phone has its own mutex for its keys. A phone may lock the server, never the other way round.
//   - Each phone has one goroutine, each connection one that reads and one that writes. All end with Server.Close.
package whatsapptest
