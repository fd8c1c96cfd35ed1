package app

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
)

// toy is the driver of a network without groups or pairing, which calls us over HTTP and gives messages ids that none of ours can be.
type toy struct {
	network.Credentials
	db       *sqldb.DB // with the table toy_message: the network's ids of messages, and ours
	sessions sync.Map  // *toySession by channel
}

type toyAccount struct{ URL, Number, Secret string } // the credentials of a channel

// toyEvent is what the network accepts, responds and reports. The zero status is that of a message.
type toyEvent struct {
	ID, Account, Contact, Text, ReplyTo, Code, Reason string
	Status                                            int
	At                                                time.Time
}

type toySession struct {
	network.Session // nil: it has no files
	*toy
	toyAccount
	channel parley.ChannelCode
	sink    network.Sink
	ctx     context.Context // until Close
	end     func()
	turn    sync.Mutex // events come one by one
}

func (d *toy) Info() network.Info {
	return network.Info{Name: "toy", Title: "Toy", Kinds: []parley.Kind{parley.KindText}}
}

func (d *toy) NewID() parley.MessageID { return network.RandomID("TOY-") }

func (d *toy) account(ctx context.Context, c parley.Channel) (a toyAccount, err error) {
	current, _, err := d.Credentials.Credentials(ctx, c)
	return a, errors.Join(err, json.Unmarshal(current, &a))
}

func (d *toy) Open(ctx context.Context, c parley.Channel, sink network.Sink) (network.Session, error) {
	a, err := d.account(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &toySession{toy: d, toyAccount: a, channel: c.Code, sink: sink}
	s.ctx, s.end = context.WithCancel(context.Background())
	d.sessions.Store(c.Code, s)
	return s, sink(ctx, network.State{Status: parley.ChannelWorking, Phone: network.Phone{Name: c.Name, Number: s.Number}})
}

func (d *toy) DeleteChannel(ctx context.Context, code parley.ChannelCode) error {
	return d.db.Write(ctx, func(tx *sqldb.Tx) error { return tx.Do(`DELETE FROM toy_message WHERE channel = $1`, string(code)) })
}

func (s *toySession) storeID(ctx context.Context, remote string, id parley.MessageID) error {
	const insert = `INSERT INTO toy_message VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	return s.db.Write(ctx, func(tx *sqldb.Tx) error { return tx.Do(insert, string(s.channel), remote, string(id)) })
}

// find returns both ids of a message by one of them; empty: it is not known.
func (s *toySession) find(ctx context.Context, column, value string) (remote string, id parley.MessageID, err error) {
	return remote, id, s.db.Read(ctx).QueryRow(`SELECT coalesce(max(remote), ''), coalesce(max(id), '') FROM toy_message
		WHERE channel = $1 AND `+column+` = $2`, []any{string(s.channel), value}, &remote, &id)
}

func (s *toySession) Limits() (burst, calls int) { return 16, 4 }

func (s *toySession) Send(ctx context.Context, ms []*parley.Message) []error {
	errs, failed := make([]error, len(ms)), map[parley.ContactID]bool{}
	for i, m := range ms {
		switch {
		case failed[m.Chat]:
			errs[i] = network.ErrHeldBack
		case s.ctx.Err() != nil:
			errs[i] = network.NotConnected(nil)
		default:
			errs[i] = s.send(ctx, m)
		}
		failed[m.Chat] = errs[i] != nil
	}
	return errs
}

func (s *toySession) send(ctx context.Context, m *parley.Message) error {
	sent, _, err := s.find(ctx, "id", string(m.ID))
	quoted, _, err2 := s.find(ctx, "id", string(m.ReplyTo))
	if err := errors.Join(err, err2); err != nil || sent != "" { // it was sent, and the process died before that was stored
		return err
	}
	body, _ := json.Marshal(toyEvent{Account: s.Number, Contact: m.Chat.Number(), Text: m.Content.Text(), ReplyTo: quoted})
	var accepted toyEvent
	resp, err := http.Post(s.URL, "application/json", bytes.NewReader(body))
	if err == nil {
		defer resp.Body.Close()
		err = json.NewDecoder(resp.Body).Decode(&accepted)
	}
	if err != nil {
		return network.OutcomeUnknown(err)
	} else if accepted.Code != "" {
		return network.Refuse(parley.FailureCode(accepted.Code), accepted.Reason)
	}
	return s.storeID(ctx, accepted.ID, m.ID)
}

func (s *toySession) Close() error {
	s.end()
	s.turn.Lock()
	defer s.turn.Unlock()
	return nil
}

func (*toy) Challenge(_ context.Context, _ parley.Channel, query url.Values) (string, error) {
	return query.Get("challenge"), nil
}

func (d *toy) Verify(ctx context.Context, c parley.Channel, header http.Header, body []byte) ([]network.Call, error) {
	a, err := d.account(ctx, c)
	if err == nil && !hmac.Equal([]byte(header.Get("Toy-Signature")), signToy(a.Secret, body)) {
		err = parley.Errorf(parley.Forbidden, "The signature is wrong.")
	}
	return []network.Call{{Channel: c.Code, Body: body}}, err
}

func (d *toy) Receive(_ context.Context, call network.Call) error {
	var e toyEvent
	open, ok := d.sessions.Load(call.Channel)
	if err := json.Unmarshal(call.Body, &e); err != nil || !ok {
		return errors.Join(err, errors.New("the channel is not open"))
	}
	s := open.(*toySession)
	s.turn.Lock()
	defer s.turn.Unlock()
	from := parley.NewContactID(e.Contact)
	if e.Status == 0 {
		id := parley.MessageID(fmt.Sprintf("TOY%x", sha256.Sum256([]byte(e.ID)))[:32])
		_, quoted, err := s.find(s.ctx, "remote", e.ReplyTo) // after Close it fails
		if err := errors.Join(err, s.storeID(s.ctx, e.ID, id)); err != nil {
			return err
		}
		return s.sink(s.ctx, network.Message{From: from, ID: id, Content: parley.Text{Body: e.Text}, ReplyTo: quoted, At: e.At})
	}
	_, id, err := s.find(s.ctx, "remote", e.ID)
	if err != nil || id == "" { // it overtook the response to its send: the network repeats it
		return errors.Join(err, errors.New("the receipt of an unknown message"))
	}
	r := network.Receipt{From: from, IDs: []parley.MessageID{id}, Status: parley.Status(e.Status), At: e.At}
	if e.Code != "" {
		r.Failure = &parley.Failure{Code: parley.FailureCode(e.Code), Message: e.Reason}
	}
	return s.sink(s.ctx, r)
}
