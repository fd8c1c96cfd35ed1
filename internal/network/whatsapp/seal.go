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

// errUnsealed is why a send was stopped.
var errUnsealed = errors.New("nothing could be encrypted for the recipient")

// seal watches one send.
type seal struct {
	user string // what the Signal addresses of the recipient's devices begin with

	mu     sync.Mutex
	sealed bool  // something is encrypted for the recipient
	failed error // the first error of the store
}

type sealKey struct{}

// withSeal makes the context for one send to a recipient.
func withSeal(ctx context.Context, to types.JID) (context.Context, *seal) {
	s := &seal{user: to.User}
	return context.WithValue(ctx, sealKey{}, s), s
}

func sealOf(ctx context.Context) *seal {
	s, _ := ctx.Value(sealKey{}).(*seal)
	return s
}

// note remembers an error of the store.
func (s *seal) note(err error) error {
	if s != nil && err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.failed == nil {
			s.failed = err
		}
	}
	return err
}

// encrypted is told which sessions moved on. It refuses the message if the recipient's is not among them.
func (s *seal) encrypted(sessions map[string][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	for address := range sessions {
		user := address[:strings.IndexAny(address+":", "_:")] // behind it stand the kind of server and the device
		if user == s.user {
			s.sealed = true
			return nil
		}
	}
	s.failed = errUnsealed
	return errUnsealed
}

// broken takes back what encrypted found: the sessions could not be stored, or nothing could be written.
func (s *seal) broken(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed, s.failed = false, err
}

// isSealed reports whether something was encrypted for the recipient, so that it may have left.
func (s *seal) isSealed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sealed
}

// why is the error behind a send that was stopped; nil: it was not stopped here.
func (s *seal) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// guard wraps the stores of a device that a send uses, leaves its removal to the session, and has the line
// told of numbers that become known.
func guard(d *store.Device, learned func([]types.JID)) {
	d.LIDs = people{d.LIDs, learned}
	d.Container = keeper{d.Container}
	d.Sessions = sessions{d.Sessions}
	d.Identities = identities{d.Identities}
}

// errKept is what whatsmeow is told when it wants to remove a device that was logged out. It would first
// remove the keys and then write the fields of the device, which others are reading; as it is, it gives up,
// and the session removes the keys once nothing uses them any more.
var errKept = errors.New("the session removes the device")

type keeper struct{ store.DeviceContainer }

func (keeper) DeleteDevice(context.Context, *store.Device) error { return errKept }

type sessions struct{ store.SessionStore }

// PutManySessions is where whatsmeow keeps what it encrypted with, before it sends.
func (s sessions) PutManySessions(ctx context.Context, all map[string][]byte) error {
	watch := sealOf(ctx)
	if watch == nil {
		return s.SessionStore.PutManySessions(ctx, all)
	}
	if err := watch.encrypted(all); err != nil {
		return err
	}
	err := s.SessionStore.PutManySessions(ctx, all)
	if err != nil {
		watch.broken(err)
	}
	return err
}

type identities struct{ store.IdentityStore }

func (i identities) PutIdentity(ctx context.Context, address string, key [32]byte) error {
	return sealOf(ctx).note(i.IdentityStore.PutIdentity(ctx, address, key))
}

func (i identities) DeleteIdentity(ctx context.Context, address string) error {
	return sealOf(ctx).note(i.IdentityStore.DeleteIdentity(ctx, address))
}

func (i identities) IsTrustedIdentity(ctx context.Context, address string, key [32]byte) (bool, error) {
	trusted, err := i.IdentityStore.IsTrustedIdentity(ctx, address, key)
	return trusted, sealOf(ctx).note(err)
}
