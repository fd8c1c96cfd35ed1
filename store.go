package parley

import (
	"context"
	"time"
)

// Store remembers everything. Reading is open to all; writing happens inside [Store.Tx] only.
type Store interface {
	Reader

	// Tx runs do in a transaction and returns once it is durable on disk. Many callers' transactions
	// may be committed together, so do may run more than once: its only effects outside the
	// transaction must be results that it sets anew at each run. Inside, only tx may be used.
	// If do fails, nothing of it is kept and Tx returns its error.
	Tx(ctx context.Context, do func(tx Tx) error) error
	// Begin is Tx for a caller that does something else meanwhile: then is told how it ended, once. All
	// others may wait for it, so it must be quick.
	Begin(ctx context.Context, do func(tx Tx) error, then func(error))
	// EventAdded returns a channel that is closed when this process next adds to the event log.
	EventAdded() <-chan struct{}

	Close() error
}

// Reader is what can be asked of a store. A row that is not there is [ErrNotFound].
type Reader interface {
	EventReader
	EventTracer
	MessageSearcher
	OTPReader
	OTPGuardReader
	CallbackReader
	MediaFetchReader
	TicketReader
	CounterReader

	// Channels lists all channels by code.
	Channels(ctx context.Context) ([]Channel, error)
	Channel(ctx context.Context, code ChannelCode) (Channel, error)

	// Tokens lists all tokens, revoked and expired ones too, oldest first.
	Tokens(ctx context.Context) ([]Token, error)
	Token(ctx context.Context, id TokenID) (Token, error)
	// SigningKeys lists all signing keys, newest first.
	SigningKeys(ctx context.Context) ([]SigningKey, error)

	// Message finds a message of a channel. A bare reference that fits several is [ErrAmbiguous].
	Message(ctx context.Context, channel ChannelCode, ref MessageRef) (Message, error)
	// Resend reads what [Tx.KeepResend] kept of a message, by its Seq.
	Resend(ctx context.Context, seq int64) ([]byte, error)
	// Messages reads messages of a channel by their Seqs. Those that are not there are left out.
	Messages(ctx context.Context, channel ChannelCode, seqs []int64) ([]Message, error)
	// Queue lists what a channel still has to send, in order, without what it says.
	Queue(ctx context.Context, channel ChannelCode) ([]Queued, error)
	// MessageFiles lists the keys of files that messages name whose Seq is above after, and the last Seq that it
	// looked at: one call looks at some thousands. Without further messages that is after.
	MessageFiles(ctx context.Context, after int64) (keys []string, last int64, err error)
	// History reads a chat's records, newest first, with their reactions, and how many there are.
	History(ctx context.Context, channel ChannelCode, chat ContactID, page Page) ([]Message, int64, error)
	// Chats lists a channel's chats, newest first, and how many there are.
	Chats(ctx context.Context, channel ChannelCode, page Page) ([]Chat, int64, error)
	Chat(ctx context.Context, channel ChannelCode, chat ContactID) (Chat, error)
	// LastChannelWith returns the channel among those given that last exchanged a message with the
	// contact.
	LastChannelWith(ctx context.Context, contact ContactID, among []ChannelCode) (ChannelCode, error)

	// Answer finds what was answered to a request with an idempotency key.
	Answer(ctx context.Context, scope, key string) (Answer, error)

	// Revision counts the changes to channels, tokens, keys and webhooks, and replays, by whatever
	// process, so that another one that remembers some can tell when to read them again.
	Revision(ctx context.Context) (int64, error)

	// TrustedTime is the newest time at which the clock of the machine was trusted; zero: it never was.
	TrustedTime(ctx context.Context) (time.Time, error)
}

// Tx is a transaction: it reads and writes.
type Tx interface {
	Reader
	EventWriter
	OTPWriter
	OTPGuardWriter
	CallbackWriter
	MediaFetchWriter
	TicketWriter

	// OnCommit has f called after the commit, before the next transaction begins and in the order of
	// the transactions. It must not block and must not use the store.
	OnCommit(f func())

	// AddChannel stores a new channel and gives it its ID; one with this code makes it [ErrExists].
	AddChannel(ctx context.Context, c Channel) error
	// UpdateChannel stores name, network, enabled and settings of a channel that is there.
	UpdateChannel(ctx context.Context, c Channel) error
	// SetChannelState stores what was seen of a channel's connection and account. It does not count
	// as a revision.
	SetChannelState(ctx context.Context, c Channel) error
	// CheckChannel makes sure that a channel is there: the one with this code and, unless it is zero, this
	// ID. Whoever adds something that belongs to a channel calls it in the same transaction.
	CheckChannel(ctx context.Context, code ChannelCode, id int64) error
	// ClearChannel forgets all messages of a channel, its codes and links, and the responses to its requests. They are out of
	// sight at once; PurgeChannels removes them.
	ClearChannel(ctx context.Context, code ChannelCode) error
	// MoveHistory moves the chats and messages of a channel, and the answers to its requests, to another one
	// that is stored, and ends its codes and links. Events stay where they happened. Nothing of the channel
	// may be pending.
	MoveHistory(ctx context.Context, from, to ChannelCode) error
	// DeleteChannel removes a channel with its messages, its tokens and all else that is its own. It is out of sight at once;
	// PurgeChannels removes what is left.
	DeleteChannel(ctx context.Context, code ChannelCode) error
	// PurgeChannels removes some rows of channels that were deleted or cleared. It returns the files of the messages among
	// them, and whether there is more to do.
	PurgeChannels(ctx context.Context) (files []Media, more bool, err error)

	AddToken(ctx context.Context, t Token) error
	// RevokeToken marks a token as revoked; revoking twice keeps the first time.
	RevokeToken(ctx context.Context, id TokenID, at time.Time) error
	// TouchToken stores how a token was last used; without an address only when. It does not count as a
	// revision.
	TouchToken(ctx context.Context, id TokenID, use TokenUse) error
	AddSigningKey(ctx context.Context, k SigningKey) error

	// AddMessage stores a new message and sets its Seq, and its ID where it has none. One by the same
	// sender with the same id makes it [ErrExists].
	AddMessage(ctx context.Context, m *Message) error
	// AdvanceMessage moves a message on to a status, if that can follow the one it has, and reports
	// whether it moved. A message that is not there is [ErrNotFound].
	AdvanceMessage(ctx context.Context, channel ChannelCode, ref MessageRef, to Status, why *Failure, at time.Time) (bool, error)
	// AdvanceMessages does so for several messages that the channel sent to one chat. It returns those
	// that moved, by their ids and their Seqs, and the ids that are not there.
	AdvanceMessages(ctx context.Context, channel ChannelCode, chat ContactID, ids []MessageID, to Status, at time.Time) (moved []MessageID, seqs []int64, unknown []MessageID, err error)
	// ConfirmMessages moves records of a channel on from Pending to Sent, named by their Seq. What is
	// not pending any more, or not there, stays as it is.
	ConfirmMessages(ctx context.Context, channel ChannelCode, seqs []int64, at time.Time) error
	// DelayMessage stores that sending failed for now and when to try again.
	DelayMessage(ctx context.Context, channel ChannelCode, ref MessageRef, attempts int, next time.Time) error
	// FailPool fails what is still pending of a pool and returns the messages' references.
	FailPool(ctx context.Context, channel ChannelCode, pool PoolID, why Failure, at time.Time) ([]MessageRef, error)
	// EraseMessage empties a message's text and data, keeping the record.
	EraseMessage(ctx context.Context, channel ChannelCode, ref MessageRef) error
	// EraseOlder erases up to limit settled messages of a channel that are older than before. It
	// returns how many those were, and the files that no message needs any more.
	EraseOlder(ctx context.Context, channel ChannelCode, before time.Time, limit int) (int, []Media, error)
	// KeepResend keeps, encrypted, what a message said whose channel keeps no text, for a device of its
	// recipient that could not read it and asks for it again.
	KeepResend(ctx context.Context, channel ChannelCode, ref MessageRef, sealed []byte, at time.Time) error
	// ForgetResends removes what was kept so before a time.
	ForgetResends(ctx context.Context, before time.Time) error
	// SetReaction stores who reacted to a message with what; an empty emoji takes it back. The
	// channel itself is the empty contact.
	SetReaction(ctx context.Context, channel ChannelCode, target MessageRef, by ContactID, emoji string) error
	SetStarred(ctx context.Context, channel ChannelCode, target MessageRef, starred bool) error
	SetArchived(ctx context.Context, channel ChannelCode, chat ContactID, archived bool) error

	// AddAnswer stores that a request with an idempotency key was taken; the same scope and key make
	// it [ErrExists].
	AddAnswer(ctx context.Context, a Answer) error
	// SetAnswer stores what the request was answered.
	SetAnswer(ctx context.Context, a Answer) error
	// RemoveAnswer removes what is kept of a request; nothing is no error.
	RemoveAnswer(ctx context.Context, scope, key string) error
	// ForgetAnswers removes up to limit answers from before the given time and returns how many.
	ForgetAnswers(ctx context.Context, before time.Time, limit int) (int, error)

	// CountSendTimes counts how long messages of a channel took from their acceptance to the network's confirmation.
	CountSendTimes(ctx context.Context, channel ChannelCode, took []time.Duration) error
	// ForgetCounters removes counters that are too old.
	ForgetCounters(ctx context.Context, now time.Time) error

	// SetTrustedTime stores that the clock was trusted at a time. It never moves back.
	SetTrustedTime(ctx context.Context, at time.Time) error
}

// Answer is what is kept of a request that carried an idempotency key.
type Answer struct {
	Scope       string // the channel's code, or the kind of the token where no channel is meant
	Key         string
	Fingerprint []byte // of method, path, query and body
	Channel     ChannelCode
	Messages    []MessageRef // what the request made, in order
	CreatedAt   time.Time

	// What was answered; zero and nil while the answer is not stored.
	StatusCode  int
	ContentType string
	Body        []byte
}

// IsComplete reports whether the answer itself is stored, not only that the request was taken.
func (a Answer) IsComplete() bool { return a.StatusCode != 0 }
