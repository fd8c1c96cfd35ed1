// Package network is the contract between the gateway and a chat network.
//
// A [Driver] describes its network as [Info] and opens a [Session] for each channel. The gateway calls the session to send
// and to query; the session calls the [Sink] with events. What only some networks have, such as [Groups] or pairing
// ([Pairer]), are interfaces that a session may implement too: the gateway asks for them. A driver whose network calls us
// over HTTP is also a [Receiver].
//
// Invariants:
//
//   - The Sink is the only path from a driver up to the gateway. nil means "stored, acknowledge it to the network"; an
//     error means "deliver it again".
//   - Events of one chat are delivered in order.
//   - A message is confirmed only when the network has it, and the same id is shown once.
//   - Ids of a network are opaque outside its driver: sessions use contacts of package parley.
//   - Package networktest tests every driver against this contract.
package network
