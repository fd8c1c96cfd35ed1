package whatsapp

import (
	"context"

	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network"
)

// maxCallers is how many calls can be rejected later.
const maxCallers = 100

// handleCall reports a call to the account, or its end. Calls that the owner makes are not reported.
func (conn *connection) handleCall(meta types.BasicCallMeta, c parley.PhoneCall) bool {
	if conn.isOwn(meta.CallCreator) || conn.isOwn(meta.CallCreatorAlt) {
		return true
	}
	from, known, err := conn.contactFor(conn.ctx, meta.CallCreator, meta.CallCreatorAlt)
	if err == nil && known {
		err = conn.storeMet(conn.ctx, from)
	}
	if err != nil {
		conn.log.Warnf("find out who calls: %v", err)
		return false
	}
	if !known || meta.CallID == "" {
		return true
	}
	if c.Ended == "" {
		conn.s.callers.put(meta.CallID, meta.CallCreator, maxCallers)
	}
	c.ID, c.From, c.At = meta.CallID, from, meta.Timestamp
	c.Group = groupChat(meta.GroupJID).Group()
	return conn.deliver(network.ToChat(from, c.Group), network.PhoneCall(c))
}

// toCallEnd says how a call ended.
func toCallEnd(reason string) parley.CallEnd {
	switch reason {
	case "accepted_elsewhere":
		return parley.CallAccepted
	case "rejected_elsewhere":
		return parley.CallRejected
	}
	return parley.CallOver
}

// RejectCall ends a call that rings. It waits for nothing of the network.
func (s *session) RejectCall(ctx context.Context, c network.PhoneCall) error {
	conn := s.current.Load()
	caller, known := s.callers.get(c.ID)
	if conn == nil || !known {
		return network.NotConnected(nil)
	}
	return conn.client.RejectCall(ctx, caller, c.ID)
}
