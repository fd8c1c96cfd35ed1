package whatsapptest

import waBinary "go.mau.fi/whatsmeow/binary"

// Mangle passes every stanza for a client through a function from now on, to see what a client does with what
// no network sends; nil ends it.
func (s *Server) Mangle(f func(waBinary.Node) waBinary.Node) {
	if f == nil {
		s.mangler.Store(nil)
		return
	}
	s.mangler.Store(&f)
}

// Inject sends any stanza to the linked client. It reports false where that is not connected.
func (l *Link) Inject(stanza waBinary.Node) bool {
	s := l.phone.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.device.conn == nil {
		return false
	}
	l.device.conn.send(stanza, 0)
	return true
}

func (s *Server) mangle(stanza waBinary.Node) waBinary.Node {
	if f := s.mangler.Load(); f != nil {
		return (*f)(stanza)
	}
	return stanza
}
