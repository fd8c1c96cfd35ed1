package whatsapptest

import (
	"maps"
	"slices"
)

// traceLog is the network's list of messages, to compare with a client's claims. Guarded by Server.mu.
type traceLog struct {
	byID  map[string]*Trace
	order []*Trace
}

// Trace is what the network knows of one message.
type Trace struct {
	ID   string
	From string // number of the sender
	To   string // number of the recipient, or the group's id
	Peer bool   // from a client to its own phone, about their common state

	Stanzas      int // stanzas that contained it
	Ciphertexts  int // ciphertexts in the first of them
	ForRecipient int // ciphertexts for devices of the recipient (in a group: of anyone else)
	Resent       int // retries for devices that could not read it
	Acked        int // positive acks that were sent
	accepted     bool

	Deliveries []*Delivery
}

type Delivery struct {
	Phone     string // number
	Device    uint16
	Given     int            // times that it was handed to the device
	Decrypted int            // times that the device could read it
	Failed    int            // times that the device could not read it
	Why       string         // why it could not, the last time
	Receipts  map[string]int // receipts by type; "" is delivery
}

func (l *traceLog) get(id, from, to string) *Trace {
	e := l.byID[id]
	if e == nil {
		e = &Trace{ID: id, From: from, To: to}
		l.byID[id] = e
		l.order = append(l.order, e)
	}
	return e
}

func (e *Trace) delivery(d *device) *Delivery {
	for _, x := range e.Deliveries {
		if x.Phone == d.owner.number && x.Device == d.id {
			return x
		}
	}
	x := &Delivery{Phone: d.owner.number, Device: d.id, Receipts: map[string]int{}}
	e.Deliveries = append(e.Deliveries, x)
	return x
}

// At returns the delivery to one device; empty if the message never came there.
func (e Trace) At(p *Phone, device uint16) Delivery {
	for _, d := range e.Deliveries {
		if d.Phone == p.number && d.Device == device {
			return *d
		}
	}
	return Delivery{Phone: p.number, Device: device}
}

func (e *Trace) clone() Trace {
	c := *e
	c.Deliveries = nil
	for _, d := range e.Deliveries {
		x := *d
		x.Receipts = maps.Clone(d.Receipts)
		c.Deliveries = append(c.Deliveries, &x)
	}
	return c
}

// Traces lists all messages in the order in which the network first saw them.
func (s *Server) Traces() []Trace {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Trace, 0, len(s.traces.order))
	for _, e := range s.traces.order {
		all = append(all, e.clone())
	}
	return all
}

func (s *Server) Trace(id string) (Trace, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.traces.byID[id]
	if e == nil {
		return Trace{}, false
	}
	return e.clone(), true
}

// Unencrypted lists messages without a ciphertext for their recipient: confirmed, but readable by none.
func (s *Server) Unencrypted() []Trace {
	return slices.DeleteFunc(s.Traces(), func(e Trace) bool { return e.ForRecipient > 0 || e.Peer })
}

// Unreadable lists messages that a device received and could never read. If the sender used a key twice, the device
// drops the second message as a duplicate and requests no retry.
func (s *Server) Unreadable() []Trace {
	return slices.DeleteFunc(s.Traces(), func(e Trace) bool {
		return !slices.ContainsFunc(e.Deliveries, func(d *Delivery) bool { return d.Failed > 0 && d.Decrypted == 0 })
	})
}
