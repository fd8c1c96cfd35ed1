package whatsapp

import (
	"sync"
	"time"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
	"parley/internal/wait"
)

const (
	firstRetry = 10 * time.Millisecond
	lastRetry  = 5 * time.Second
	// hiddenFor is how long a message waits for the number of its sender to become known. It comes again
	// with every connection until then.
	hiddenFor = 7 * 24 * time.Hour
)

// retryPause is how long to wait after a sink refused a number of times.
func retryPause(tries int) time.Duration { return min(firstRetry<<min(tries-1, 10), lastRetry) }

// give hands an event of a chat to the sink, after what came of that chat before. It reports false when the
// line ended first: then the network, which was not told that we have it, gives it again.
func (l *line) give(chat parley.ContactID, e network.Event) bool {
	l.s.giving.Lock()
	defer l.s.giving.Unlock()
	return l.slips.await(chat, l.taking.Done()) && l.offer(e)
}

// offer hands an event to the sink until that has it.
func (l *line) offer(e network.Event) bool {
	for tries := 1; l.s.ctx.Err() == nil; tries++ {
		if err := l.s.sink(l.s.ctx, e); err == nil {
			return true
		}
		if !l.pause(retryPause(tries)) {
			return false
		}
	}
	return false
}

// pause waits for a while. It reports false when the line is being ended.
func (l *line) pause(d time.Duration) bool { return wait.Sleep(l.taking, d) }

// receive takes a message.
func (l *line) receive(e *events.Message) bool {
	if e.Info.IsFromMe { // by another device of the account
		l.s.foreign.add(e.Info.ID)
		return true
	}
	if e.Info.IsGroup || !isDirect(e.Info.Chat) {
		return true
	}
	from, known, err := l.person(l.ctx, e.Info.Sender, e.Info.SenderAlt)
	if err != nil {
		l.log.Warnf("find out who sent %s: %v", e.Info.ID, err)
		return false
	}
	if !known {
		l.log.Warnf("the number of the sender of %s is hidden: it cannot be published yet", e.Info.ID)
		l.hidden.note(e.Info.ID, e.Info.Sender.User)
		return time.Since(e.Info.Timestamp) > hiddenFor
	}
	l.reveal(e.Info.Sender)
	event, ok := l.event(e, from)
	return ok && (event == nil || l.give(from, event))
}

// event makes what the gateway is told of a message; nil where it means nothing to it. It reports false when
// the line ended before it was done.
func (l *line) event(e *events.Message, from parley.ContactID) (network.Event, bool) {
	m := e.Message
	if sealed := m.GetSecretEncryptedMessage(); sealed != nil {
		opened, err := l.client.DecryptSecretEncryptedMessage(l.ctx, e)
		if err != nil {
			l.log.Warnf("open a change of a message: %v", err)
			return nil, l.taking.Err() == nil
		}
		m = opened
	}
	at := e.Info.Timestamp
	switch {
	case m.GetReactionMessage() != nil:
		r := m.GetReactionMessage()
		// The key is as the sender sees it: what is from them is not from us.
		target := parley.MessageRef{FromMe: !r.GetKey().GetFromMe(), Chat: from, ID: parley.MessageID(r.GetKey().GetID())}
		return network.Reaction{From: from, Target: target, Emoji: r.GetText(), At: at}, true
	case m.GetPollUpdateMessage() != nil:
		return l.vote(e, from)
	case m.GetProtocolMessage() != nil:
		return l.change(m.GetProtocolMessage(), e, from)
	}
	p := parse(m)
	if p.content == nil {
		return nil, true
	}
	return l.message(e, p, from), true
}

// change makes an event of what alters an earlier message.
func (l *line) change(m *waE2E.ProtocolMessage, e *events.Message, from parley.ContactID) (network.Event, bool) {
	target := parley.MessageID(m.GetKey().GetID())
	switch m.GetType() {
	case waE2E.ProtocolMessage_REVOKE:
		return network.Deletion{From: from, Target: target, At: e.Info.Timestamp}, true
	case waE2E.ProtocolMessage_MESSAGE_EDIT:
		p := parse(m.GetEditedMessage())
		if p.content == nil {
			return nil, true
		}
		p.replyTo = target // an edit is kept as what it is: something said later about an earlier message
		said := l.message(e, p, from)
		said.Past = true
		return said, true
	}
	return nil, true // timers and keys between devices
}

// message makes the event of something that was said. Its file is not here yet: the gateway fetches it after
// it stored the message.
func (l *line) message(e *events.Message, p parsed, from parley.ContactID) network.Message {
	return network.Message{From: from, ID: parley.MessageID(e.Info.ID), Content: p.content, ReplyTo: p.replyTo,
		At: e.Info.Timestamp, File: l.reference(&e.Info, p)}
}

// vote makes the event of a choice in a poll.
func (l *line) vote(e *events.Message, from parley.ContactID) (network.Event, bool) {
	poll := parley.MessageID(e.Message.GetPollUpdateMessage().GetPollCreationMessageKey().GetID())
	choice, err := l.client.DecryptPollVote(l.ctx, e)
	if err != nil {
		l.log.Warnf("open a vote: %v", err)
		return nil, l.taking.Err() == nil
	}
	options, ok := l.options(from, poll)
	if !ok {
		l.log.Warnf("a vote in poll %s, whose options are not kept", poll)
		return nil, true
	}
	return network.Vote{From: from, Poll: poll, Options: chosen(options, choice.GetSelectedOptions()), At: e.Info.Timestamp}, true
}

// receiptStatus maps the receipts that say something about what we sent.
var receiptStatus = map[types.ReceiptType]parley.Status{
	types.ReceiptTypeDelivered: parley.Delivered,
	types.ReceiptTypeInactive:  parley.Delivered, // on a device that nobody looks at
	types.ReceiptTypeRead:      parley.Read,
	types.ReceiptTypePlayed:    parley.Played,
}

// receipt takes a receipt. Those between devices of the account, in groups, and for what another device
// sent are of no use to the gateway.
func (l *line) receipt(e *events.Receipt) bool {
	status, ok := receiptStatus[e.Type]
	if !ok || e.IsFromMe || e.IsGroup || !isDirect(e.Chat) {
		return true
	}
	from, known, err := l.person(l.ctx, e.Sender, e.SenderAlt)
	if err != nil {
		return false
	}
	ids := l.s.foreign.others(e.MessageIDs)
	if !known || len(ids) == 0 {
		return true
	}
	r := network.Receipt{From: from, IDs: ids, Status: status, At: e.Timestamp}
	if e.Sender.Device == hostedDevice {
		return l.giveReceipt(r)
	}
	l.later(slip{Receipt: r, ack: ackOf(e)})
	return false // we acknowledge it
}

// foreignMost is how many messages of other devices are remembered.
const foreignMost = 2048

// foreign remembers what other devices of the account sent, whose receipts come here too.
type foreign struct {
	mu   sync.Mutex
	ids  map[types.MessageID]bool
	ring []types.MessageID
}

func (f *foreign) add(id types.MessageID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ids == nil {
		f.ids = map[types.MessageID]bool{}
	}
	if f.ids[id] {
		return
	}
	f.ids[id] = true
	if f.ring = append(f.ring, id); len(f.ring) > foreignMost {
		delete(f.ids, f.ring[0])
		f.ring = f.ring[1:]
	}
}

// others returns the ids that are not among them.
func (f *foreign) others(ids []types.MessageID) []parley.MessageID {
	f.mu.Lock()
	defer f.mu.Unlock()
	var rest []parley.MessageID
	for _, id := range ids {
		if !f.ids[id] {
			rest = append(rest, parley.MessageID(id))
		}
	}
	return rest
}
