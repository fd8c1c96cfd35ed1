package sandbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
)

// A burst shares one commit, and bursts at the same time share one too. More gained nothing.
const (
	maxBurst = 256
	maxCalls = 2
)

func (s *session) Limits() (int, int) { return maxBurst, maxCalls }

// Send delivers messages and operations to the phones. A nil error means that one is committed.
func (s *session) Send(ctx context.Context, ms []*parley.Message) []error {
	b := burst{session: s, ms: ms, errs: make([]error, len(ms)), failed: map[parley.ContactID]bool{}}
	var next []int
	for i := range ms {
		if s.world.isCalm() {
			next = append(next, i)
			continue
		}
		b.write(ctx, next, 1) // a fault must not affect earlier messages
		next = next[:0]
		b.sendWithFault(ctx, i)
	}
	b.write(ctx, next, 1)
	return b.errs
}

type burst struct {
	session *session
	ms      []*parley.Message
	errs    []error
	failed  map[parley.ContactID]bool // chats with a failed message; later ones are held back
}

// fail sets the error of a message. Later ones of its chat are held back.
func (b *burst) fail(i int, err error) {
	chat := b.ms[i].Chat
	if b.failed[chat] {
		err = network.ErrHeldBack
	}
	b.failed[chat] = true
	b.errs[i] = err
}

func (b *burst) write(ctx context.Context, which []int, copies int) {
	if len(which) == 0 {
		return
	}
	w := b.session.world
	var t sendTx
	err := b.session.connected()
	if err == nil {
		err = w.tx(ctx, func(tx *sqldb.Tx) error {
			t = sendTx{world: w, tx: tx, at: time.Now(), phones: map[parley.ContactID]*phone{}, refused: map[int]error{}}
			tx.OnCommit(func() { w.arrived(t.deliveries()) })
			return t.writeAll(b, which, copies)
		})
	}
	for _, i := range which {
		switch {
		case err != nil:
			b.fail(i, err)
		case t.refused[i] != nil:
			b.fail(i, t.refused[i])
		}
	}
}

// sendTx is one run of the transaction that writes messages. The database may run it again.
type sendTx struct {
	world   *world
	tx      *sqldb.Tx
	at      time.Time
	phones  map[parley.ContactID]*phone
	refused map[int]error // by index
	written []*written
}

// written is a message for a phone. Whether it is new there is known after the commit.
type written struct {
	delivery
	isNew bool
}

// deliveries are the messages that were new to their phones.
func (t *sendTx) deliveries() (all []delivery) {
	for _, d := range t.written {
		if d.isNew {
			all = append(all, d.delivery)
		}
	}
	return all
}

func (t *sendTx) writeAll(b *burst, which []int, copies int) error {
	if err := t.readPhones(b, which); err != nil {
		return err
	}
	held := map[parley.ContactID]bool{}
	for _, i := range which {
		m := b.ms[i]
		if b.failed[m.Chat] || held[m.Chat] {
			t.refused[i] = network.ErrHeldBack
			continue
		}
		refusal, err := t.write(m, copies)
		if err != nil {
			return err
		}
		if refusal != nil {
			t.refused[i] = refusal
			held[m.Chat] = true
		}
	}
	return nil
}

// write writes a message or operation to a phone, or to all members of a group.
func (t *sendTx) write(m *parley.Message, copies int) (refusal, err error) {
	if m.Chat.IsGroup() {
		return t.writeToGroup(m, copies)
	}
	p, err := t.phone(m.Chat)
	if err != nil {
		return nil, err
	}
	if refusal := p.refusal(m); refusal != nil {
		return refusal, nil
	}
	if p.NumberHidden && m.Chat == p.contactID() { // who writes to the number knows it
		t.tx.OnCommit(t.world.clearPhones)
		if err := reveal(t.tx, p); err != nil {
			return nil, err
		}
	}
	if template, ok := m.Content.(parley.Template); ok {
		if refusal, err := t.templateRefusal(template); refusal != nil || err != nil {
			return refusal, err
		}
	}
	if m.Content.Kind().InHistory() {
		return nil, t.deliver(m, p, 0, p.Timer, copies)
	}
	return nil, t.applyOperation(m, p)
}

// readPhones reads the phones of messages at once, unless they are known.
func (t *sendTx) readPhones(b *burst, which []int) error {
	contacts, world, cache := map[string]parley.ContactID{}, t.world.id.Load(), &b.session.phones
	for _, i := range which {
		if !b.ms[i].Chat.IsGroup() {
			contacts[b.ms[i].Chat.Number()] = b.ms[i].Chat
		}
	}
	for number, p := range cache.take(world, slices.Collect(maps.Keys(contacts))) {
		t.phones[contacts[number]] = t.world.current(p)
		delete(contacts, number)
	}
	if len(contacts) == 0 {
		return nil
	}
	list := `number = ANY (string_to_array($2, ','))`
	if !t.tx.IsPostgres() {
		list = `number IN (SELECT value FROM json_each('["' || replace($2, ',', '","') || '"]'))`
	}
	found, err := sqldb.Collect(t.tx.Conn, scanPhone, `SELECT `+phoneColumns+` FROM phones WHERE world = $1 AND `+list,
		world, strings.Join(slices.Collect(maps.Keys(contacts)), ","))
	read := make([]phone, len(found))
	for i, p := range found {
		read[i] = *p
		t.phones[contacts[p.Number]] = t.world.current(p)
	}
	t.tx.OnCommit(func() { cache.add(read) })
	return err
}

func (t *sendTx) phone(contact parley.ContactID) (p *phone, err error) {
	p = t.phones[contact]
	if p == nil {
		p, err = t.world.phone(t.tx, contact.Number())
		t.phones[contact] = p
	}
	return p, err
}

// refusal returns why the network rejects a message or operation to a phone, or nil.
func (p *phone) refusal(m *parley.Message) error {
	kind := m.Content.Kind()
	switch m.Content.(type) {
	case parley.Seen, parley.Delete, parley.Star, parley.Archive, parley.ReadChat:
		return nil // the phone need not accept it
	}
	switch {
	case kind != parley.KindReaction && kind != parley.KindEdit && kind != parley.KindTimer && !kind.InHistory():
		return network.ErrUnsupported
	case !p.contactID().CanExist():
		return network.ErrImpossibleNumber
	case !p.OnNetwork:
		return network.Refuse(parley.NotOnNetwork, "This number is not on the network.")
	case p.Blocks:
		return network.Refuse(parley.Blocked, "The recipient blocks this channel.")
	}
	return nil
}

// The directions of a message, as a phone sees it.
const (
	fromChannel int64 = 0
	fromPhone   int64 = 1
	fromMember  int64 = 2 // another member of the group
)

// direction of a message whose author is given in groups only.
func (p *phone) direction(ref parley.MessageRef, author parley.ContactID) int64 {
	switch {
	case ref.FromMe:
		return fromChannel
	case author != "" && author != p.contactID() && author != hiddenID(p.id):
		return fromMember
	}
	return fromPhone
}

const (
	messageInserted = `seq, phone, from_phone, id, kind, body, data, reply_to, at, grp, author, timer`
	insertMessage   = `INSERT INTO messages (` + messageInserted + `)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
	oneMessage = ` WHERE phone = $1 AND id = $2 AND from_phone = $3`
)

// deliverMany adds messages, or counts another copy of those that are known, and returns whether each is new. A message is in it once.
// SQLite would copy pages for it if copies could not be NULL.
var deliverMany = sqldb.Many{
	Insert: `INSERT INTO messages (` + messageInserted + `) VALUES `,
	Row:    `($1, $2, $3, $4, $5, $6, CAST($7 AS BLOB), $8, $9, $10, $11, $12)`,
	Then:   countCopy,
	Postgres: `INSERT INTO messages (` + messageInserted + `)
		SELECT seq, phone, from_phone, id, kind, body, convert_to(data, 'UTF8'), reply_to, at, grp, author, timer
			FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
				$10::bigint[], $11::text[], $12::bigint[]) WITH ORDINALITY AS given (` + messageInserted + `, n) ORDER BY n` + countCopy,
}

const countCopy = ` ON CONFLICT (phone, id, from_phone) DO UPDATE SET copies = messages.copies + 1 RETURNING copies = 1`

// deliver writes a message to a phone, in the chat of a group unless that is zero, with the timer of the chat. A known id
// means another copy of that message.
func (t *sendTx) deliver(m *parley.Message, p *phone, group int64, timer, copies int) error {
	w, content := t.world, m.Content
	data, err := parley.EncodeContent(content)
	if err != nil {
		return err
	}
	seq, err := w.net.nextSeq(t.tx)
	if err != nil {
		return err
	}
	args := []any{seq, p.id, fromChannel, string(m.ID), string(content.Kind()), content.Text(), data, string(m.ReplyTo), t.at.UnixMilli(),
		group, "", int64(timer)}
	arrived := &written{delivery: delivery{p, arrival{seq: seq, id: m.ID, group: group, voice: content.Kind() == parley.KindVoice, at: t.at}}}
	again := slices.ContainsFunc(t.written, func(d *written) bool { return d.phone.id == p.id && d.id == m.ID })
	t.written = append(t.written, arrived)
	if copies == 1 && !again && !p.Replies { // nothing depends on whether it is new, so it need not wait
		args[6] = nil
		if len(data) > 0 {
			args[6] = string(data)
		}
		return t.tx.ManyThen(&deliverMany, args, &arrived.isNew)
	}
	added, err := t.tx.Exec(insertMessage+` ON CONFLICT (phone, id, from_phone) DO NOTHING`, args...)
	if err != nil {
		return err
	}
	arrived.isNew = added != 0
	more := copies
	if arrived.isNew {
		more--
		if p.Replies && p.Online && group == 0 {
			if err := w.addPhoneMessage(t.tx, p, replyTo(m, p)); err != nil {
				return err
			}
		}
	}
	if more > 0 {
		if err := t.tx.Do(`UPDATE messages SET copies = copies + $4`+oneMessage, p.id, string(m.ID), fromChannel, more); err != nil {
			return err
		}
	}
	if copies > 1 { // the network confirms each copy
		return w.addEvent(t.tx, p, event{Type: receiptEvent, Group: group, IDs: []parley.MessageID{m.ID}, Status: int(parley.Delivered)})
	}
	return nil
}

func replyTo(m *parley.Message, p *phone) *Message {
	text := fmt.Sprintf("I got your %s.", m.Content.Kind())
	if body := m.Content.Text(); body != "" {
		text = "You wrote: " + body
	}
	return p.newMessage(parley.Text{Body: text}, m.ID)
}

// applyOperation changes the message of an operation. A missing message is no error, as on the real network.
func (t *sendTx) applyOperation(m *parley.Message, p *phone) (err error) {
	switch c := m.Content.(type) {
	case parley.Reaction:
		err = t.tx.Do(`UPDATE messages SET reaction = $4`+oneMessage, p.id, string(c.Target.ID), p.direction(c.Target, c.Author), c.Emoji)
	case parley.Edit:
		err = t.edit(c, p)
	case parley.Seen:
		err = t.see(c, p)
	case parley.ReadChat:
		err = sqldb.Each(c.Seen, func(seen parley.Seen) error { return t.see(seen, p) })
	case parley.Delete:
		err = t.tx.Do(deleteMessage, p.id, string(c.Target.ID), fromChannel, int64(parley.Deleted))
	case parley.Timer:
		p.Timer = c.Seconds // for what follows in this burst
		t.tx.OnCommit(t.world.clearPhones)
		err = t.tx.Do(`UPDATE phones SET timer = $2, changed = 1 WHERE id = $1`, p.id, c.Seconds)
	case parley.Star, parley.Archive: // private to the channel: no phone sees it
	}
	return err
}

func (t *sendTx) see(c parley.Seen, p *phone) error {
	return t.tx.Do(`UPDATE messages SET status = $4`+oneMessage+` AND status = 0`, p.id, string(c.Target.ID), fromPhone, int64(parley.Read))
}

// edit changes the text of a message on a phone.
func (t *sendTx) edit(c parley.Edit, p *phone) error {
	text := parley.Text{Body: c.Body, Mentions: c.Mentions}
	data, err := parley.EncodeContent(text)
	if err != nil {
		return err
	}
	return t.tx.Do(editMessage, p.id, string(c.Target.ID), fromChannel, text.Body, data, t.at.UnixMilli(), int64(parley.Deleted))
}

const editMessage = `UPDATE messages SET body = $4, data = $5, edited_at = $6` + oneMessage + ` AND status <> $7`

const deleteMessage = `UPDATE messages SET status = $4, body = '', data = NULL` + oneMessage
