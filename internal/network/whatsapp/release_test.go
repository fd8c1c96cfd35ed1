package whatsapp

import (
	"testing"

	"parley/internal/network/whatsapp/whatsapptest"
)

// TestNobodyWaitsForAReconnect ends the stream while somebody waits for an answer on it: they are told by
// us, and not by whatsmeow, that there is nothing to wait for any more.
func TestNobodyWaitsForAReconnect(t *testing.T) {
	for name, end := range map[string]whatsapptest.End{"cut": whatsapptest.Cut, "restarted": whatsapptest.Restarted, "reconnect": whatsapptest.Reconnect, "unknown": whatsapptest.Unknown} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s, _ := w.paired()
			answer := s.(*session).up.Load().inner().WaitResponse("an answer that never comes")
			w.link.End(end)
			select {
			case node := <-answer:
				if code := node.Attrs["code"]; node.Tag != "stream:error" || code != "401" {
					t.Errorf("they were told <%s> with code %v", node.Tag, code)
				}
			case <-within(t).Done():
				t.Error("they wait on")
			}
		})
	}
}
