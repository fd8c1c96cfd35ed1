package keystore

import (
	"bytes"
	"encoding/json"
	"testing"

	"go.mau.fi/libsignal/keys/chain"
	"go.mau.fi/libsignal/keys/message"
	"go.mau.fi/libsignal/state/record"
	"go.mau.fi/libsignal/util/optional"
)

// fullSession has something in every field.
func fullSession() *record.SessionStructure {
	fill := func(b byte) []byte { return bytes.Repeat([]byte{b}, 33) }
	line := func(b byte) *record.ChainStructure {
		return &record.ChainStructure{SenderRatchetKeyPublic: fill(b), SenderRatchetKeyPrivate: fill(b + 1),
			ChainKey: &chain.KeyStructure{Key: fill(b + 2), Index: 70_000 + uint32(b)},
			MessageKeys: []*message.KeysStructure{{CipherKey: fill(b + 3), MacKey: fill(b + 4), IV: fill(b + 5), Index: 3},
				{CipherKey: fill(9), MacKey: fill(8), IV: fill(7), Index: 4_000_000_000}}}
	}
	state := func(b byte) *record.StateStructure {
		return &record.StateStructure{
			LocalIdentityPublic: fill(b), LocalRegistrationID: 4_000_000_000, NeedsRefresh: true,
			PendingKeyExchange: &record.PendingKeyExchangeStructure{Sequence: 5, LocalBaseKeyPublic: fill(1),
				LocalBaseKeyPrivate: fill(2), LocalRatchetKeyPublic: fill(3),
				LocalRatchetKeyPrivate: fill(4), LocalIdentityKeyPublic: fill(5), LocalIdentityKeyPrivate: fill(6)},
			PendingPreKey: &record.PendingPreKeyStructure{PreKeyID: optional.NewOptionalUint32(77), SignedPreKeyID: 1,
				BaseKey: fill(b + 1)},
			PreviousCounter: 12, ReceiverChains: []*record.ChainStructure{line(10), line(20)}, RemoteIdentityPublic: fill(b + 2),
			RemoteRegistrationID: 99,
			RootKey:              fill(b + 3), SenderBaseKey: fill(b + 4), SenderChain: line(30), SessionVersion: 3,
		}
	}
	return &record.SessionStructure{SessionState: state(40), PreviousStates: []*record.StateStructure{state(50), state(60)}}
}

// bareSession has nothing that may be missing.
func bareSession() *record.SessionStructure {
	s := fullSession()
	s.PreviousStates = nil
	s.SessionState.PendingKeyExchange, s.SessionState.ReceiverChains = nil, nil
	s.SessionState.PendingPreKey.PreKeyID = optional.NewEmptyUint32()
	s.SessionState.SenderChain.MessageKeys, s.SessionState.SenderChain.SenderRatchetKeyPrivate = nil, nil
	return s
}

// asJSON is everything that a session says, to compare.
func asJSON(t *testing.T, s *record.SessionStructure) string {
	t.Helper()
	text, err := json.Marshal(s)
	must(t, err)
	return string(text)
}

// TestSessionsAreWrittenWhole writes and reads sessions with everything and with little in them, and reads what
// libsignal writes by itself.
func TestSessionsAreWrittenWhole(t *testing.T) {
	for name, s := range map[string]*record.SessionStructure{"full": fullSession(), "bare": bareSession()} {
		want := asJSON(t, s)
		for form, b := range map[string][]byte{"compact": compact{}.Serialize(s), "JSON": []byte(want)} {
			got, err := compact{}.Deserialize(b)
			must(t, err)
			if text := asJSON(t, got); text != want {
				t.Errorf("%s, %s:\n%s, want\n%s", name, form, text, want)
			}
		}
		if short := len(compact{}.Serialize(s)); short*2 > len(want) {
			t.Errorf("%s: %d bytes instead of %d", name, short, len(want))
		}
	}
}

// TestAdvanced moves the sending chain and nothing else.
func TestAdvanced(t *testing.T) {
	s := fullSession()
	s.SessionState.SenderChain.ChainKey = &chain.KeyStructure{Key: make([]byte, 32), Index: 5}
	b, err := advanceSession(compact{}.Serialize(s), 7)
	must(t, err)
	name, next, ok := sendingChain(b)
	if !ok || next != 7 || name != string(s.SessionState.SenderChain.SenderRatchetKeyPublic) {
		t.Errorf("the chain is %x at %d", name, next)
	}
	k := chain.NewKeyFromStruct(s.SessionState.SenderChain.ChainKey, nil).NextKey().NextKey()
	s.SessionState.SenderChain.ChainKey = chain.NewStructFromKey(k)
	got, err := compact{}.Deserialize(b)
	must(t, err)
	if asJSON(t, got) != asJSON(t, s) {
		t.Errorf("it is %s", asJSON(t, got))
	}
}

// FuzzSession reads anything: it is refused, or it is what was written.
func FuzzSession(f *testing.F) {
	f.Add(compact{}.Serialize(fullSession()))
	f.Add(compact{}.Serialize(bareSession()))
	f.Add([]byte{compactMark, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		sendingChain(b)
		s, err := compact{}.Deserialize(b)
		if err != nil || b[0] == '{' {
			return
		}
		again, err := compact{}.Deserialize(compact{}.Serialize(s))
		must(t, err)
		if asJSON(t, again) != asJSON(t, s) {
			t.Errorf("%x is read as two things", b)
		}
	})
}

// BenchmarkSession compares both forms.
func BenchmarkSession(b *testing.B) {
	s := bareSession()
	text, err := json.Marshal(s)
	if err != nil {
		b.Fatal(err)
	}
	for name, raw := range map[string][]byte{"compact": compact{}.Serialize(s), "JSON": text} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := (compact{}).Deserialize(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
