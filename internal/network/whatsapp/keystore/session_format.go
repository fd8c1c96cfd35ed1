package keystore

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"go.mau.fi/libsignal/kdf"
	"go.mau.fi/libsignal/keys/chain"
	"go.mau.fi/libsignal/keys/message"
	"go.mau.fi/libsignal/state/record"
	"go.mau.fi/libsignal/util/optional"
	"go.mau.fi/whatsmeow/store"
)

// UseCompactSessions replaces libsignal's JSON format, which costs more per message than the encryption. It is a
// process-wide setting and must be made before the first session is read. Sessions in JSON stay readable.
func UseCompactSessions() { store.SignalProtobufSerializer.Session = compact{} }

// compact writes a version byte, then the states, the current one first. Numbers are varints, and variable fields have
// a length prefix. Each state starts with its sending chain, for sendingChain.
type compact struct{}

var _ record.SessionSerializer = compact{}

const compactMark = 1 // JSON begins with a brace

var errRecord = errors.New("a session cannot be read")

func (compact) Serialize(s *record.SessionStructure) []byte {
	w := writer{make([]byte, 0, 512)}
	w.b = append(w.b, compactMark)
	w.state(s.SessionState)
	w.number(uint64(len(s.PreviousStates)))
	for _, state := range s.PreviousStates {
		w.state(state)
	}
	return w.b
}

func (compact) Deserialize(b []byte) (*record.SessionStructure, error) {
	if len(b) > 0 && b[0] == '{' {
		var s record.SessionStructure
		if err := json.Unmarshal(b, &s); err != nil {
			return nil, fmt.Errorf("%w: %w", errRecord, err)
		}
		return &s, nil
	}
	if len(b) == 0 || b[0] != compactMark {
		return nil, errRecord
	}
	r := reader{b: b[1:]}
	s := &record.SessionStructure{SessionState: r.state()}
	for range r.count() {
		s.PreviousStates = append(s.PreviousStates, r.state())
	}
	if r.bad || len(r.b) != 0 {
		return nil, errRecord
	}
	return s, nil
}

// sendingChain returns the public key of the sending chain, which names it, and the index of the next message. It
// returns false for other formats.
func sendingChain(b []byte) (name string, next uint32, ok bool) {
	if len(b) == 0 || b[0] != compactMark {
		return "", 0, false
	}
	r := reader{b: b[1:]}
	if !r.flag() {
		return "", 0, false
	}
	public := r.bytes()
	next = uint32(r.number())
	return string(public), next, !r.bad
}

// advanceSession is a session whose next message has a later number.
func advanceSession(b []byte, next uint32) ([]byte, error) {
	s, err := compact{}.Deserialize(b)
	if err != nil {
		return nil, err
	}
	sending := s.SessionState.SenderChain.ChainKey
	k := chain.NewKeyFromStruct(sending, kdf.DeriveSecrets)
	for k.Index() < next {
		k = k.NextKey()
	}
	s.SessionState.SenderChain.ChainKey = chain.NewStructFromKey(k)
	return compact{}.Serialize(s), nil
}

type writer struct{ b []byte }

func (w *writer) number(n uint64) { w.b = binary.AppendUvarint(w.b, n) }

func (w *writer) bytes(b []byte) {
	w.number(uint64(len(b)))
	w.b = append(w.b, b...)
}

// flag writes whether something is there, and reports it.
func (w *writer) flag(is bool) bool {
	var b byte
	if is {
		b = 1
	}
	w.b = append(w.b, b)
	return is
}

func (w *writer) state(s *record.StateStructure) {
	w.chain(s.SenderChain)
	w.bytes(s.LocalIdentityPublic)
	w.bytes(s.RemoteIdentityPublic)
	w.number(uint64(s.LocalRegistrationID))
	w.number(uint64(s.RemoteRegistrationID))
	w.bytes(s.RootKey)
	w.bytes(s.SenderBaseKey)
	w.number(uint64(s.PreviousCounter))
	w.number(uint64(s.SessionVersion))
	w.flag(s.NeedsRefresh)
	w.number(uint64(len(s.ReceiverChains)))
	for _, c := range s.ReceiverChains {
		w.chain(c)
	}
	if p := s.PendingPreKey; w.flag(p != nil) {
		if w.flag(p.PreKeyID != nil && !p.PreKeyID.IsEmpty) {
			w.number(uint64(p.PreKeyID.Value))
		}
		w.number(uint64(p.SignedPreKeyID))
		w.bytes(p.BaseKey)
	}
	if p := s.PendingKeyExchange; w.flag(p != nil) {
		w.number(uint64(p.Sequence))
		for _, b := range exchangeKeys(p) {
			w.bytes(*b)
		}
	}
}

func exchangeKeys(p *record.PendingKeyExchangeStructure) []*[]byte {
	return []*[]byte{&p.LocalBaseKeyPublic, &p.LocalBaseKeyPrivate, &p.LocalRatchetKeyPublic, &p.LocalRatchetKeyPrivate,
		&p.LocalIdentityKeyPublic, &p.LocalIdentityKeyPrivate}
}

func (w *writer) chain(c *record.ChainStructure) {
	if !w.flag(c != nil) {
		return
	}
	w.bytes(c.SenderRatchetKeyPublic)
	w.number(uint64(c.ChainKey.Index))
	w.bytes(c.ChainKey.Key)
	w.bytes(c.SenderRatchetKeyPrivate)
	w.number(uint64(len(c.MessageKeys)))
	for _, k := range c.MessageKeys {
		w.bytes(k.CipherKey)
		w.bytes(k.MacKey)
		w.bytes(k.IV)
		w.number(uint64(k.Index))
	}
}

// reader reads what a writer wrote. After an error, everything it returns is empty.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() { r.b, r.bad = nil, true }

func (r *reader) number() uint64 {
	n, length := binary.Uvarint(r.b)
	if length <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[length:]
	return n
}

// count reads the number of items that follow. Each takes at least a byte.
func (r *reader) count() int {
	n := r.number()
	if n > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) bytes() []byte {
	n := r.count()
	if n == 0 {
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) flag() bool {
	if len(r.b) == 0 {
		r.fail()
		return false
	}
	is := r.b[0] != 0
	r.b = r.b[1:]
	return is
}

func (r *reader) state() *record.StateStructure {
	s := &record.StateStructure{
		SenderChain:         r.chain(),
		LocalIdentityPublic: r.bytes(), RemoteIdentityPublic: r.bytes(),
		LocalRegistrationID: uint32(r.number()), RemoteRegistrationID: uint32(r.number()),
		RootKey: r.bytes(), SenderBaseKey: r.bytes(),
		PreviousCounter: uint32(r.number()), SessionVersion: int(r.number()),
		NeedsRefresh: r.flag(),
	}
	for range r.count() {
		s.ReceiverChains = append(s.ReceiverChains, r.chain())
	}
	if r.flag() {
		s.PendingPreKey = &record.PendingPreKeyStructure{PreKeyID: optional.NewEmptyUint32()}
		if r.flag() {
			s.PendingPreKey.PreKeyID = optional.NewOptionalUint32(uint32(r.number()))
		}
		s.PendingPreKey.SignedPreKeyID, s.PendingPreKey.BaseKey = uint32(r.number()), r.bytes()
	}
	if r.flag() {
		s.PendingKeyExchange = &record.PendingKeyExchangeStructure{Sequence: uint32(r.number())}
		for _, b := range exchangeKeys(s.PendingKeyExchange) {
			*b = r.bytes()
		}
	}
	return s
}

func (r *reader) chain() *record.ChainStructure {
	if !r.flag() {
		return nil
	}
	c := &record.ChainStructure{SenderRatchetKeyPublic: r.bytes(), ChainKey: &chain.KeyStructure{Index: uint32(r.number())}}
	c.ChainKey.Key, c.SenderRatchetKeyPrivate = r.bytes(), r.bytes()
	for range r.count() {
		c.MessageKeys = append(c.MessageKeys,
			&message.KeysStructure{CipherKey: r.bytes(), MacKey: r.bytes(), IV: r.bytes(), Index: uint32(r.number())})
	}
	return c
}
