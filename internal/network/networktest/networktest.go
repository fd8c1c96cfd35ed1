// Package networktest holds every driver of a chat network to the contract of package network. A
// driver's test calls [Run] with a [Harness], which lends the suite phones on the other side of the
// network; it knows nothing else of the network.
package networktest

import (
	"testing"

	"parley"
	"parley/internal/network"
)

// Harness is a network under test.
type Harness struct {
	Driver  network.Driver
	Channel parley.Channel // paired, not opened

	// Phone returns a phone of the test: online, on the network, reading only on request. The same number is the same
	// phone. At least 0 and 1 are contacts of the channel.
	Phone  func(t *testing.T, number int) Phone
	Absent parley.ContactID
	// Keep stores a file where the driver looks for media and returns its description.
	Keep func(t *testing.T, data []byte, m parley.Media) parley.Media
	// Pair does what an owner does to pair the channel again.
	Pair func(t *testing.T, s network.Session)
	// SilentBlocks says that the network hides who blocks the channel: messages to them are confirmed and never arrive.
	SilentBlocks bool
	// Disconnect breaks the connection of a session; the driver must reconnect.
	Disconnect func(t *testing.T, s network.Session)
}

// Phone is a contact of the channel.
type Phone interface {
	Contact() parley.ContactID
	// Shows returns the messages from the channel that the phone shows, oldest first.
	Shows(t *testing.T) []Shown
	// Send sends a message to the channel and returns its id.
	Send(t *testing.T, content parley.Content, media []byte, replyTo parley.MessageID) parley.MessageID
	// WasSeen reports whether the phone got a read receipt.
	WasSeen(t *testing.T, id parley.MessageID) bool
	// ReactionTo returns the channel's reaction to a message that the phone sent.
	ReactionTo(t *testing.T, id parley.MessageID) string
	React(t *testing.T, target parley.MessageRef, emoji string)
	Vote(t *testing.T, poll parley.MessageID, options ...string)
	Delete(t *testing.T, id parley.MessageID)
	Read(t *testing.T) // everything
	SetOnline(t *testing.T, online bool)
	Block(t *testing.T)
	SeesTyping(t *testing.T) bool
}

// Shown is a message as a phone shows it.
type Shown struct {
	ID       parley.MessageID
	Content  parley.Content // as the network carries it
	ReplyTo  parley.MessageID
	Reaction string // the channel's own
	Deleted  bool
}

// Run runs the suite. open makes a network of its own for each test.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"every kind of message arrives once and intact", testKinds},
		{"a reply names what it answers", testReply},
		{"the same id twice is shown once", testSameID},
		{"order is kept in a chat", testOrder},
		{"a burst keeps order in each chat", testBurst},
		{"a failure holds back the rest of its chat", testHeldBack},
		{"receipts come", testReceipts},
		{"a phone that was offline gets what waited", testOffline},
		{"a refused receipt comes again", testReceiptRetry},
		{"inbound messages come intact", testInbound},
		{"a file can be fetched later", testFetchLater},
		{"inbound messages come in order, and again when refused", testInboundRetry},
		{"what came while the session was closed comes later", testInboundLater},
		{"reactions go both ways", testReactions},
		{"deletions go both ways", testDeletions},
		{"votes come", testVotes},
		{"seen messages are told to their sender", testSeen},
		{"what concerns only oneself is confirmed", testOwnOperations},
		{"typing is shown", testTyping},
		{"states are told at open, logout and pairing", testStates},
		{"a logout outlives the session", testLogoutStays},
		{"a broken connection comes back", testReconnect},
		{"nothing comes after close", testClose},
		{"refusals are permanent", testRefusals},
		{"impossible numbers are refused", testImpossibleNumbers},
		{"without a connection nothing is sent", testDisconnected},
		{"contacts are listed by name", testContacts},
		{"numbers can be checked", testNumbers},
		{"groups can be made and read", testGroups},
		{"a channel can be forgotten, twice", testDeleteChannel},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}
