package whatsapptest

import (
	"context"
	"slices"
)

type faultTarget int

const (
	faultMessage faultTarget = iota
	faultPeer
	faultReceipt
	faultIQ
	faultUpload
	faultDownload
)

type faultKind int

const (
	loseAck faultKind = iota + 1
	refuseMessage
	dropBefore
	dropAfter
	loseReceipt
	failIQ
	loseIQ
	holdIQ
	failHTTP
)

// Fault is something that goes wrong once, or as often as Times says, at the next opportunity that matches.
type Fault struct {
	target    faultTarget
	kind      faultKind
	code      int
	namespace string
	left      int
	from, to  *Phone
	held      *heldIQs
}

type heldIQs struct {
	until   int
	answers []func()
}

// LoseAck accepts the next message but never confirms it.
func LoseAck() *Fault { return &Fault{target: faultMessage, kind: loseAck, left: 1} }

// LosePeerAck is LoseAck for messages of a client to its own phone.
func LosePeerAck() *Fault { return &Fault{target: faultPeer, kind: loseAck, left: 1} }

// RefuseMessage rejects the next message with an error. 463 and 475 are the network's limits on writing to strangers.
func RefuseMessage(code int) *Fault {
	return &Fault{target: faultMessage, kind: refuseMessage, code: code, left: 1}
}

// DropBeforeAccept cuts the socket when the next message arrives: the network never saw it.
func DropBeforeAccept() *Fault { return &Fault{target: faultMessage, kind: dropBefore, left: 1} }

// DropAfterAccept passes the next message on, but cuts the socket instead of confirming it.
func DropAfterAccept() *Fault { return &Fault{target: faultMessage, kind: dropAfter, left: 1} }

// LoseReceipt drops the next receipt of a client, so that its message is delivered again.
func LoseReceipt() *Fault { return &Fault{target: faultReceipt, kind: loseReceipt, left: 1} }

// FailIQ responds to the next request in a namespace ("usync", "encrypt", "w:m", …) with an error such as 429.
func FailIQ(namespace string, code int) *Fault {
	return &Fault{target: faultIQ, kind: failIQ, namespace: namespace, code: code, left: 1}
}

// LoseIQ never responds to the next request in a namespace.
func LoseIQ(namespace string) *Fault {
	return &Fault{target: faultIQ, kind: loseIQ, namespace: namespace, left: 1}
}

// HoldIQ holds the responses in a namespace until that many requests have come.
func HoldIQ(namespace string, until int) *Fault {
	return &Fault{target: faultIQ, kind: holdIQ, namespace: namespace, left: until, held: &heldIQs{until: until}}
}

// FailUpload responds to the next upload of media with an HTTP status.
func FailUpload(status int) *Fault {
	return &Fault{target: faultUpload, kind: failHTTP, code: status, left: 1}
}

// FailDownload responds to the next download of media with an HTTP status.
func FailDownload(status int) *Fault {
	return &Fault{target: faultDownload, kind: failHTTP, code: status, left: 1}
}

func (f *Fault) Times(times int) *Fault {
	f.left = times
	return f
}

// From limits the fault to messages from one phone or its linked clients.
func (f *Fault) From(p *Phone) *Fault {
	f.from = p
	return f
}

// To limits the fault to messages to one phone.
func (f *Fault) To(p *Phone) *Fault {
	f.to = p
	return f
}

// is allows to ask a fault that did not happen.
func (f *Fault) is(k faultKind) bool { return f != nil && f.kind == k }

func (s *Server) Inject(faults ...*Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		own := *f
		s.faults = append(s.faults, &own)
	}
}

func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// AwaitFaults waits until every injected fault has happened.
func (s *Server) AwaitFaults(ctx context.Context) error {
	return s.await(ctx, func() bool { return len(s.faults) == 0 })
}

func (s *Server) nextFault(target faultTarget, from, to *account, namespace string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextFaultLocked(target, from, to, namespace)
}

// nextFaultLocked finds the first fault that matches and counts it. The caller holds the lock.
func (s *Server) nextFaultLocked(target faultTarget, from, to *account, namespace string) *Fault {
	for i, f := range s.faults {
		if f.target != target || f.namespace != namespace ||
			(f.from != nil && f.from.account != from) || (f.to != nil && f.to.account != to) {
			continue
		}
		if f.left--; f.left <= 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
			s.changed.notify()
		}
		return f
	}
	return nil
}
