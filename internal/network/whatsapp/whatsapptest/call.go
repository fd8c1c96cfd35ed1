package whatsapptest

import (
	"context"
	"maps"
	"slices"
)

// Call calls an account, and returns the id of the call.
func (p *Phone) Call(to *Phone, video bool) string {
	p.server.mu.Lock()
	id := p.server.nextID("CALL")
	p.server.mu.Unlock()
	children := []node{n("audio", attrs{"enc": "opus", "rate": "16000"})}
	if video {
		children = append(children, n("video", attrs{"enc": "vp8"}))
	}
	p.callStanza(to, "offer", id, nil, children...)
	return id
}

// HangUp ends a call.
func (p *Phone) HangUp(to *Phone, id, reason string) {
	extra := attrs{}
	if reason != "" {
		extra["reason"] = reason
	}
	p.callStanza(to, "terminate", id, extra)
}

func (p *Phone) callStanza(to *Phone, tag, id string, extra attrs, children ...node) {
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	from := p.account.publicJID(0)
	a := attrs{"call-id": id, "call-creator": from}
	if p.account.shown != OnlyLID {
		a["call-creator"], a["caller_pn"] = p.account.lidJID(0), p.account.pnJID(0)
	}
	maps.Copy(a, extra)
	for _, d := range to.account.devices {
		if d.sim == nil {
			s.deliver(d, n("call", attrs{"from": from, "id": s.nextID(""), "t": unix(), "platform": "android", "version": "2.26.1"},
				n(tag, a, children...)), nil)
		}
	}
}

// handleCall takes the rejection of a call.
func (s *Server) handleCall(_ *device, stanza *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	child, to := first(stanza), s.find(jid(stanza, "to"))
	if child.Tag != "reject" || to == nil || s.find(jid(&child, "call-creator")) != to {
		s.violateLocked("call %s", shape(stanza))
		return
	}
	p := to.phone
	p.view.Lock()
	p.rejected = append(p.rejected, str(&child, "call-id"))
	p.view.Unlock()
	p.changed.notify()
}

// AwaitRejected waits until a call of the phone is rejected.
func (p *Phone) AwaitRejected(ctx context.Context, id string) error {
	_, err := await(ctx, &p.changed, func() (struct{}, bool) {
		p.view.Lock()
		defer p.view.Unlock()
		return struct{}{}, slices.Contains(p.rejected, id)
	})
	return err
}
