// Package network is the contract between the gateway and a chat network.
//
// A [Driver] opens a [Session] for each channel. The gateway calls the session to send and to ask;
// the session calls the [Sink] with what arrives. That function is the one upward path in the
// program, and it returns an error: nil means "safely kept, you may acknowledge it to the network",
// anything else means "give it to me again".
//
// Ids of a network are opaque outside its driver: sessions speak of contacts in the vocabulary of
// package parley only. The package networktest holds every driver to what is written here.
package network
