package whatsapp

import (
	"context"
	"errors"
	"strings"
	"sync"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// whatsmeow sends a message even where it could encrypt it for nobody: an error of the store, or keys that
// the server did not give, is logged, the recipient left out, and the network confirms the empty message.
// The stores of every device are therefore wrapped. While a message is being encrypted they watch, on the
// context of the send, whether a Signal session with the recipient moved on, which it does exactly when
// something was encrypted for it; without that, or after any error of the store, nothing leaves.

// errNothingEncrypted is why a send was stopped.
var errNothingEncrypted = errors.New("nothing could be encrypted for the recipient")

// encryptionCheck watches one send.
type encryptionCheck struct {
	user string // what the Signal addresses of the recipient's devices begin with

	mu        sync.Mutex
	encrypted bool  // something is encrypted for the recipient
	err       error // the first error of the store
}

type encryptionCheckKey struct{}

// withEncryptionCheck makes the context for one send to a recipient.
func withEncryptionCheck(ctx context.Context, to types.JID) (context.Context, *encryptionCheck) {
	s := &encryptionCheck{user: to.User}
	return context.WithValue(ctx, encryptionCheckKey{}, s), s
}

func encryptionCheckOf(ctx context.Context) *encryptionCheck {
	s, _ := ctx.Value(encryptionCheckKey{}).(*encryptionCheck)
	return s
}

// fail remembers an error of the store.
func (s *encryptionCheck) fail(err error) error {
	if s != nil && err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err == nil {
			s.err = err
		}
	}
	return err
}

// sessionsMoved is told which sessions moved on. It refuses the message if the recipient's is not among them.
func (s *encryptionCheck) sessionsMoved(sessions map[string][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	for address := range sessions {
		user := address[:strings.IndexAny(address+":", "_:")] // behind it stand the kind of server and the device
		if user == s.user {
			s.encrypted = true
			return nil
		}
	}
	s.err = errNothingEncrypted
	return errNothingEncrypted
}

// reset takes back what encrypted found: the sessions could not be stored, or nothing could be written.
func (s *encryptionCheck) reset(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.encrypted, s.err = false, err
}

// isEncrypted reports whether something was encrypted for the recipient, so that it may have left.
func (s *encryptionCheck) isEncrypted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.encrypted
}

// cause is the error behind a send that was stopped; nil: it was not stopped here.
func (s *encryptionCheck) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// wrapStores wraps the stores of a device that a send uses, leaves its removal to the session, and has the line
// told of numbers that become known.
func wrapStores(d *store.Device, learned func([]types.JID)) {
	d.LIDs = lidObserver{d.LIDs, learned}
	d.Container = undeletable{d.Container}
	d.Sessions = checkedSessions{d.Sessions}
	d.Identities = checkedIdentities{d.Identities}
}

// errDeviceKept is what whatsmeow is told when it wants to remove a device that was logged out. It would first
// remove the keys and then write the fields of the device, which others are reading; as it is, it gives up,
// and the session removes the keys once nothing uses them any more.
var errDeviceKept = errors.New("the session removes the device")

type undeletable struct{ store.DeviceContainer }

func (undeletable) DeleteDevice(context.Context, *store.Device) error { return errDeviceKept }

type checkedSessions struct{ store.SessionStore }

// PutManySessions is where whatsmeow keeps what it encrypted with, before it sends.
func (s checkedSessions) PutManySessions(ctx context.Context, all map[string][]byte) error {
	watch := encryptionCheckOf(ctx)
	if watch == nil {
		return s.SessionStore.PutManySessions(ctx, all)
	}
	if err := watch.sessionsMoved(all); err != nil {
		return err
	}
	err := s.SessionStore.PutManySessions(ctx, all)
	if err != nil {
		watch.reset(err)
	}
	return err
}

type checkedIdentities struct{ store.IdentityStore }

func (i checkedIdentities) PutIdentity(ctx context.Context, address string, key [32]byte) error {
	return encryptionCheckOf(ctx).fail(i.IdentityStore.PutIdentity(ctx, address, key))
}

func (i checkedIdentities) DeleteIdentity(ctx context.Context, address string) error {
	return encryptionCheckOf(ctx).fail(i.IdentityStore.DeleteIdentity(ctx, address))
}

func (i checkedIdentities) IsTrustedIdentity(ctx context.Context, address string, key [32]byte) (bool, error) {
	trusted, err := i.IdentityStore.IsTrustedIdentity(ctx, address, key)
	return trusted, encryptionCheckOf(ctx).fail(err)
}
