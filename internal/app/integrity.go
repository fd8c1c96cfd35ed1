package app

import "context"

// smallDatabase is the size up to which all of the database is checked before the server is ready: that takes a few
// milliseconds. Of a larger one the start is, and the rest while the server works already.
const smallDatabase = 8 << 20

// CheckDatabase looks for damage and says what to do about it.
func CheckDatabase(ctx context.Context, data *Data) error {
	return data.Dir.explain(data.Store.Check(ctx))
}

// checkBefore looks for damage before the first request, and reports whether that was all of it.
func (s *server) checkBefore(ctx context.Context) (all bool, err error) {
	size, err := s.data.Store.Size(ctx)
	if err != nil {
		return false, err
	}
	if size <= smallDatabase {
		return true, s.data.Store.Check(ctx)
	}
	return false, s.data.Store.CheckStart(ctx)
}

// checkRest looks for damage while the server works.
func (s *server) checkRest(ctx context.Context) {
	err := s.data.Store.CheckSlowly(ctx)
	if err != nil && ctx.Err() == nil && s.data.Store.Damage() == nil { // damage is reported where it is noted
		s.log.Warn("the database could not be checked for damage", "error", err)
	}
}

// reportDamage waits until somebody meets damage in the database, be it the check or a request. Nothing is accepted from
// then on, but what can be read is.
func (s *server) reportDamage(ctx context.Context) {
	select {
	case <-s.data.Store.Damaged():
		s.log.Error("nothing is accepted any more: " + s.data.Dir.explain(s.data.Store.Damage()).Error())
	case <-ctx.Done():
	}
}
