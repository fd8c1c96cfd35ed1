package keystore

import "context"

// ForgetSessions removes the keys of all conversations, but not who the other side is: after an older copy of
// the database was put in its place, those that it has were used already.
func (s *Store) ForgetSessions(ctx context.Context) error {
	err := s.exec(ctx, "forget sessions", `DELETE FROM states WHERE kind IN ($1, $2)`, int64(sessionKind), int64(senderKeyKind))
	s.cache.forget(func(k key) bool { return k.kind == sessionKind || k.kind == senderKeyKind })
	return err
}
