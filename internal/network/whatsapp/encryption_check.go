package whatsapp

import (
	"context"
	"errors"
	"strings"
	"sync"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// whatsmeow sends a message even if it could not encrypt it for the recipient: it logs the error, leaves the recipient
// out, and the network confirms an empty message. Therefore the stores of every device are wrapped. During a send they
// check that a Signal session with the recipient moved, which happens only when something was encrypted for it. Without
// that, or after any store error, nothing leaves.

// errNothingEncrypted is why a send was stopped.
var errNothingEncrypted = errors.New("nothing could be encrypted for the recipient")

// encryptionCheck watches one send.
type encryptionCheck struct {
	user string // prefix of the Signal addresses of the recipient's devices

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

// fail stores the first error of the store.
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

// sessionsMoved gets the sessions that moved. It fails if none belongs to the recipient.
func (s *encryptionCheck) sessionsMoved(sessions map[string][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	for address := range sessions {
		user := address[:strings.IndexAny(address+":", "_:")] // the kind of server and the device follow
		if user == s.user {
			s.encrypted = true
			return nil
		}
	}
	s.err = errNothingEncrypted
	return errNothingEncrypted
}

// reset marks the message as not encrypted: its sessions could not be stored, or it could not be written.
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

// wrapStores wraps the stores that a send uses, prevents the removal of the device, and reports new LID mappings.
func wrapStores(d *store.Device, learned func([]types.JID)) {
	d.LIDs = lidObserver{d.LIDs, learned}
	d.Container = undeletable{d.Container}
	d.Sessions = checkedSessions{d.Sessions}
	d.Identities = checkedIdentities{d.Identities}
}

// errDeviceKept stops whatsmeow from removing a logged-out device. It would write fields of the device while others
// read them. The session removes the keys when the connection is closed.
var errDeviceKept = errors.New("the session removes the device")

type undeletable struct{ store.DeviceContainer }

func (undeletable) DeleteDevice(context.Context, *store.Device) error { return errDeviceKept }

type checkedSessions struct{ store.SessionStore }

// PutManySessions is called after encryption and before the send.
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
