package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
	"parley/internal/wait"
)

const (
	maxAttempts     = 20
	firstRetryPause = time.Second
	maxRetryPause   = 5 * time.Minute
	// maxWait is the longest pause that a network can ask for.
	maxWait = 24 * time.Hour
	// maxStorePause is the longest pause between attempts to store the outcomes of a burst.
	maxStorePause = 30 * time.Second
)

type burst struct {
	lastSend    time.Time // before this one
	releases    int       // how often held messages had been released
	entries     []*entry
	messages    []*parley.Message // with their content
	connection  int               // the number of the connection that it is sent on
	ctx         context.Context
	cancel      context.CancelFunc
	unconfirmed int // messages without a receipt; owned by Run
	outcomes    []outcome
	stored      bool // confirmations are in the store; else the confirmWriter has them
}

// send gives messages to the network and stores the outcomes in one transaction. It retries that transaction until ctx
// ends: messages that the network confirmed must not be sent a second time.
func (w *Worker) send(ctx context.Context, s Sender, b *burst) {
	errs := make([]error, len(b.entries))
	if err := w.loadContent(ctx, b, errs); err != nil {
		w.config.Log.Error("read messages to send", "channel", w.config.Channel, "error", err)
		for i, e := range b.entries {
			b.outcomes[i] = outcome{attempts: e.Attempts, retryAt: w.config.Now().Add(shortPause)}
		}
		return
	}
	w.rejectVainEdits(ctx, b.messages, errs)
	w.check(ctx, b.messages, errs)
	if ms := w.sendable(b.messages, errs); len(ms) > 0 {
		results := w.sendOn(s, b, ms)
		for i := range errs {
			if errs[i] == nil {
				errs[i], results = results[0], results[1:]
			}
		}
	}
	w.markDone(ctx, b, errs, func(i int) bool {
		return errs[i] != nil && !errors.Is(errs[i], errDone) && !errors.Is(errs[i], network.ErrHeldBack)
	})
	for tries := 1; ; tries++ {
		err := w.storeOutcomes(ctx, b, errs)
		if err == nil {
			return
		}
		w.config.Log.Error("store the outcomes of a burst", "channel", w.config.Channel, "error", err)
		if !wait.Sleep(ctx, min(backOff(tries), maxStorePause)) { // they are PENDING in the store and are sent again under the same ids
			for i := range b.outcomes {
				b.outcomes[i] = outcome{retryAt: w.config.Now()}
			}
			return
		}
	}
}

// sendOn calls the sender, unless its connection has ended: the next one may be of another account.
func (w *Worker) sendOn(s Sender, b *burst, ms []*parley.Message) []error {
	w.mu.Lock()
	connected := w.sender != nil && w.connections == b.connection
	w.mu.Unlock()
	if connected {
		return s.Send(b.ctx, ms)
	}
	return slices.Repeat([]error{network.NotConnected(nil)}, len(ms))
}

// loadContent reads the content that is not in memory. It marks messages in errs that need not be sent: one that was
// attempted before may have arrived.
func (w *Worker) loadContent(ctx context.Context, b *burst, errs []error) error {
	b.messages = make([]*parley.Message, len(b.entries))
	var seqs []int64
	for i, e := range b.entries {
		if b.messages[i] = e.message; e.message == nil {
			seqs = append(seqs, e.Seq)
		}
	}
	w.markDone(ctx, b, errs, func(i int) bool { return b.messages[i] != nil && b.entries[i].Attempts > 0 })
	if len(seqs) == 0 {
		return nil
	}
	found, err := w.config.Store.Messages(ctx, w.config.Channel, seqs)
	if err != nil {
		return err
	}
	bySeq := make(map[int64]*parley.Message, len(found))
	for i := range found {
		bySeq[found[i].Seq] = &found[i]
	}
	for i, e := range b.entries {
		if b.messages[i] != nil {
			continue
		}
		m := bySeq[e.Seq]
		if m == nil {
			m = w.deletedMessage(e)
		}
		if m.Status.IsFinal() {
			errs[i] = errDone
		}
		b.messages[i] = m
	}
	return nil
}

// deletedMessage replaces a message whose channel was deleted.
func (w *Worker) deletedMessage(e *entry) *parley.Message {
	return &parley.Message{Seq: e.Seq, Channel: w.config.Channel, Chat: e.Chat, ID: e.ID, FromMe: true, Status: parley.Deleted}
}

// contentSize is about how much memory a content uses.
func contentSize(c parley.Content) int {
	size := 256 + len(c.Text())
	switch c := c.(type) {
	case parley.Text:
		if c.Preview != nil {
			size += len(c.Preview.Title) + len(c.Preview.Description) + len(c.Preview.Thumbnail)
		}
	case parley.Secret:
		size += len(c.Encrypted)
	case parley.Poll:
		for _, option := range c.Options {
			size += len(option)
		}
	case parley.Contacts:
		for _, card := range c.Cards {
			size += len(card.Name) + len(card.VCard)
		}
	}
	if media := parley.MediaIn(c); media != nil {
		size += len(media.Thumbnail) + len(media.Waveform) + len(media.Source)
	}
	return size
}

// rejectVainEdits sets an error for edits whose message was deleted or has failed meanwhile.
func (w *Worker) rejectVainEdits(ctx context.Context, ms []*parley.Message, errs []error) {
	for i, m := range ms {
		edit, ok := m.Content.(parley.Edit)
		if !ok || errs[i] != nil {
			continue
		}
		target, err := w.config.Store.Message(ctx, w.config.Channel, edit.Target)
		switch {
		case errors.Is(err, parley.ErrNotFound), err == nil && target.Status == parley.Deleted:
			errs[i] = network.Refuse(parley.Refused, "The message was deleted before its edit was sent.")
		case err == nil && target.Status == parley.Failed:
			errs[i] = network.Refuse(parley.Refused, "The message was not sent, so it cannot be edited.")
		case err != nil:
			errs[i] = err // temporary
		}
	}
}

// sendable returns the messages without an error, with secrets decrypted in copies. A secret that cannot be decrypted
// gets an error.
func (w *Worker) sendable(ms []*parley.Message, errs []error) []*parley.Message {
	live := make([]*parley.Message, 0, len(ms))
	for i, m := range ms {
		if secret, ok := m.Content.(parley.Secret); ok && errs[i] == nil {
			decrypted := *m
			decrypted.Content, errs[i] = w.config.DecryptSecret(secret)
			m = &decrypted
		}
		if errs[i] == nil {
			live = append(live, m)
		}
	}
	return live
}

// errDone marks a message that a receipt confirmed, or that was deleted, while it was queued or in flight.
var errDone = errors.New("confirmed or deleted meanwhile")

// markDone sets errDone for those selected messages that the store has confirmed or deleted.
func (w *Worker) markDone(ctx context.Context, b *burst, errs []error, selected func(i int) bool) {
	for i, m := range b.messages {
		if !selected(i) {
			continue
		}
		if now, err := w.config.Store.Message(ctx, w.config.Channel, m.Ref()); err == nil && now.Status.IsFinal() {
			m.Status, m.Failure, m.UpdatedAt = now.Status, now.Failure, now.UpdatedAt
			errs[i] = errDone
		}
	}
}

// storeOutcomes stores the outcome of each message and reports it. A burst that was sent completely and changes nothing
// else goes to the confirmWriter; everything else is durable before it is reported.
func (w *Worker) storeOutcomes(ctx context.Context, b *burst, errs []error) error {
	now := w.config.Now()
	var confirmed []int64
	var took []time.Duration
	for i, err := range errs {
		b.outcomes[i] = toOutcome(b.entries[i], err, now)
		if b.outcomes[i].status == parley.Sent && b.entries[i].Kind.InHistory() {
			confirmed = append(confirmed, b.entries[i].Seq)
			took = append(took, now.Sub(b.messages[i].CreatedAt))
		}
	}
	if len(confirmed) < len(errs) || slices.ContainsFunc(b.entries, w.hasEffect) {
		if err := w.storeBurst(ctx, b, confirmed, took, now); err != nil {
			return err
		}
		b.stored = true
	} else { // before OnDone: its reader may call Flush at once
		w.confirms.add(confirmed, took)
	}
	for i, e := range b.entries {
		o, m := b.outcomes[i], b.messages[i]
		e.Attempts, m.Attempts = o.attempts, o.attempts
		if !o.retryAt.IsZero() {
			continue
		}
		if o.status != parley.Pending { // else it is done already, with the status that it has
			m.Status, m.Failure, m.UpdatedAt = o.status, o.failure, now
		}
		if o.failure != nil && o.failure.Code == parley.Restricted && w.config.OnRestricted != nil {
			w.config.OnRestricted(o.failure.Until)
		}
		w.config.OnDone(m)
	}
	return nil
}

// storeBurst stores all outcomes of a burst. It flushes first: when a pool fails, the store must know which of its
// messages were sent before.
func (w *Worker) storeBurst(ctx context.Context, b *burst, confirmed []int64, took []time.Duration, now time.Time) error {
	if err := w.confirms.flush(ctx); err != nil {
		return err
	}
	var removed []parley.Media
	err := w.config.Store.Tx(ctx, func(tx *store.Tx) error {
		removed = removed[:0]
		err := errors.Join(tx.ConfirmMessages(ctx, w.config.Channel, confirmed, now),
			parley.IgnoreNotFound(tx.CountSendTimes(ctx, w.config.Channel, took)))
		if err != nil {
			return err
		}
		for i, m := range b.messages {
			if err := w.storeOutcome(ctx, tx, m, b.entries[i], b.outcomes[i], now, &removed); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, media := range removed {
		w.config.RemoveFile(media)
	}
	return nil
}

func (w *Worker) storeOutcome(
	ctx context.Context, tx *store.Tx, m *parley.Message, e *entry, o outcome, now time.Time, removed *[]parley.Media,
) error {
	switch {
	case o.status == parley.Sent:
		if !m.Content.Kind().InHistory() { // ConfirmMessages confirmed the others
			if _, err := tx.AdvanceMessage(ctx, w.config.Channel, m.Ref(), parley.Sent, nil, now); err != nil {
				return parley.IgnoreNotFound(err)
			}
		}
		return w.applyEffect(ctx, tx, m, now, removed)
	case o.status == parley.Failed:
		if _, err := Fail(ctx, tx, []parley.Message{*m}, o.failure, now); err != nil {
			return parley.IgnoreNotFound(err)
		}
		if m.Pool != "" {
			_, err := tx.FailPool(ctx, w.config.Channel, m.Pool, *poolFailed(), now)
			return err
		}
	case o.attempts != e.Attempts || o.waits:
		return parley.IgnoreNotFound(tx.DelayMessage(ctx, w.config.Channel, m.Ref(), o.attempts, o.retryAt))
	}
	return nil
}

type outcome struct {
	status           parley.Status // Pending: it is retried, or it is done already
	failure          *parley.Failure
	attempts         int
	retryAt          time.Time          // zero: no retry
	awaitsConnection bool               // a connection makes it due
	notReady         bool               // it waits aside
	unknown          bool               // the network may have it
	waits            bool               // the network said until when
	pausesChannel    bool               // and it wants nothing else meanwhile
	held             parley.FailureCode // it was not tried, and fails with this code if it expires meanwhile; empty: it was tried
}

// toOutcome decides about a retry. It holds all retry rules.
func toOutcome(e *entry, err error, now time.Time) outcome {
	if err == nil {
		return outcome{status: parley.Sent, attempts: e.Attempts}
	}
	if errors.Is(err, errDone) {
		return outcome{attempts: e.Attempts}
	}
	if errors.Is(err, network.ErrHeldBack) {
		return outcome{attempts: e.Attempts, retryAt: now} // the message before it decides when the chat continues
	}
	if held, ok := errors.AsType[*Held](err); ok {
		return outcome{attempts: e.Attempts, retryAt: held.Until, held: held.Code}
	}
	class := network.ToClass(err)
	detail, hasDetail := errors.AsType[*network.Error](err)
	switch class {
	case network.Permanent:
		return outcome{status: parley.Failed, failure: &detail.Failure, attempts: e.Attempts + 1}
	case network.Disconnected:
		return outcome{attempts: e.Attempts, retryAt: now.Add(shortPause), awaitsConnection: true}
	case network.NotReady:
		return outcome{attempts: e.Attempts, retryAt: now.Add(backOff(e.notReady + 1)), awaitsConnection: true, notReady: true}
	}
	if hasDetail && detail.RetryAfter > 0 {
		return outcome{attempts: e.Attempts, retryAt: now.Add(min(detail.RetryAfter, maxWait)), unknown: class == network.Unknown,
			waits: true, pausesChannel: detail.PauseChannel}
	}
	attempts := e.Attempts + 1 // Temporary and Unknown: the same id is sent again
	if attempts >= maxAttempts {
		return outcome{status: parley.Failed, attempts: attempts, failure: &parley.Failure{
			Code: parley.GaveUp, Message: fmt.Sprintf("Sending was tried %d times and failed each time.", maxAttempts)}}
	}
	o := outcome{attempts: attempts, retryAt: now.Add(backOff(attempts)), unknown: class == network.Unknown}
	if o.unknown && !e.unknownOutcome {
		o.retryAt = now // the response was lost with its connection; the next one reports it
	}
	return o
}

// backOff is the pause after failed attempts: it doubles, with 20 % jitter.
func backOff(attempts int) time.Duration {
	d := min(maxRetryPause, firstRetryPause<<min(attempts-1, 9))
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64()))
}

func poolFailed() *parley.Failure {
	return &parley.Failure{Code: parley.NotSent, Message: "An earlier message of the pool failed, so this one was not sent."}
}

// hasEffect reports whether a confirmation changes more than the status of its message.
func (w *Worker) hasEffect(e *entry) bool {
	return !e.Kind.InHistory() || !w.config.Current().Settings.StoresText()
}

// applyEffect stores what a confirmed message changes: the target of an operation, or the text that is not stored. It is
// idempotent.
func (w *Worker) applyEffect(ctx context.Context, tx *store.Tx, m *parley.Message, now time.Time, removed *[]parley.Media) error {
	var err error
	switch c := m.Content.(type) {
	case parley.Reaction:
		err = StoreReaction(ctx, tx, w.config.Channel, c.Target, "", c.Emoji, now)
	case parley.Edit:
		err = w.applyEdit(ctx, tx, m.Ref(), c, now)
	case parley.Seen:
		_, err = tx.AdvanceMessage(ctx, w.config.Channel, c.Target, parley.Read, nil, now)
	case parley.Delete:
		var file *parley.Media
		if file, err = DeleteMessage(ctx, tx, w.config.Channel, c.Target, now); file != nil && file.Key != "" {
			*removed = append(*removed, *file)
		}
	case parley.Star:
		err = tx.SetStarred(ctx, w.config.Channel, c.Target, c.Starred)
	case parley.Archive:
		err = tx.SetArchived(ctx, w.config.Channel, m.Chat, c.Archived)
	case parley.ReadChat:
		for _, seen := range c.Seen {
			if _, err = tx.AdvanceMessage(ctx, w.config.Channel, seen.Target, parley.Read, nil, now); parley.IgnoreNotFound(err) != nil {
				return err
			}
		}
	default:
		if w.config.Current().Settings.StoresText() {
			return nil
		}
		if encrypted := w.config.EncryptForResend(m); encrypted != nil {
			err = tx.SetResend(ctx, w.config.Channel, m.Ref(), encrypted, now)
		}
		if err == nil {
			err = w.erase(ctx, tx, m, removed)
		}
	}
	return parley.IgnoreNotFound(err)
}

// applyEdit stores the effect of a confirmed edit once: then the edit itself has no text any more.
func (w *Worker) applyEdit(ctx context.Context, tx *store.Tx, edit parley.MessageRef, c parley.Edit, now time.Time) error {
	stored, err := tx.Message(ctx, w.config.Channel, edit)
	if err != nil || stored.Content.Text() == "" {
		return err
	}
	if err := tx.EraseBodies(ctx, []int64{stored.Seq}); err != nil {
		return err
	}
	m, err := tx.Message(ctx, w.config.Channel, c.Target)
	if err != nil || m.Status == parley.Deleted {
		return err
	}
	edited, ok := parley.Edited(m.Content, parley.Text{Body: c.Body, Mentions: c.Mentions})
	if !ok {
		return nil
	}
	keep := w.config.Current().Settings.StoresText()
	if !keep {
		sent := m
		sent.Content = edited
		if encrypted := w.config.EncryptForResend(&sent); encrypted != nil {
			if err := tx.SetResend(ctx, w.config.Channel, m.Ref(), encrypted, now); err != nil {
				return err
			}
		}
	}
	return StoreEdit(ctx, tx, &m, edited, keep, nil, now)
}

// StoreEdit stores and publishes that a message has another content since a time. If the channel stores no text, only the time
// is stored; encrypted is then the content for the event, or nil.
func StoreEdit(
	ctx context.Context, tx *store.Tx, m *parley.Message, edited parley.Content, keep bool, encrypted []byte, at time.Time,
) error {
	if keep {
		m.Content = edited
	}
	m.EditedAt = at
	if err := tx.EditMessage(ctx, m); err != nil {
		return err
	}
	e := parley.Event{Type: parley.MessageEdited, Channel: m.Channel, At: at, Chat: m.Chat, Message: m, Encrypted: encrypted}
	return tx.AddEvent(ctx, &e)
}

// StoreReaction stores and publishes a reaction, unless its message is unknown; from is empty for the channel's own.
func StoreReaction(
	ctx context.Context, tx *store.Tx, channel parley.ChannelCode, to parley.MessageRef, from parley.ContactID, emoji string, at time.Time,
) error {
	target, err := tx.Message(ctx, channel, to)
	if err == nil {
		err = tx.SetReaction(ctx, channel, to, from, emoji)
	}
	if err == nil {
		err = tx.AddEvent(ctx, parley.NewReactionEvent(&target, from, emoji, at))
	}
	return parley.IgnoreNotFound(err)
}

// DeleteMessage erases a message that its sender deleted, if it is known. Its row stays. It returns the file; nil: none.
func DeleteMessage(
	ctx context.Context, tx *store.Tx, channel parley.ChannelCode, ref parley.MessageRef, at time.Time,
) (file *parley.Media, err error) {
	m, err := tx.Message(ctx, channel, ref)
	if err == nil {
		_, err = tx.AdvanceMessage(ctx, channel, ref, parley.Deleted, nil, at)
	}
	if err == nil {
		err = tx.EraseMessage(ctx, channel, ref)
	}
	return parley.MediaIn(m.Content), parley.IgnoreNotFound(err)
}

func (w *Worker) erase(ctx context.Context, tx *store.Tx, m *parley.Message, removed *[]parley.Media) error {
	if media := parley.MediaIn(m.Content); media != nil && media.Key != "" {
		*removed = append(*removed, *media)
	}
	return parley.IgnoreNotFound(tx.EraseMessage(ctx, w.config.Channel, m.Ref()))
}
