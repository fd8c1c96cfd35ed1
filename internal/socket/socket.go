// Package socket makes connections that end when the other side can no longer be reached. Without that, TCP tries for about
// 15 minutes, and a request in a connection that was used before hangs as long.
//
// Invariant: only silence of the other host ends a connection, never a program that responds slowly.
package socket

import (
	"net"
	"time"
)

// silence is how long the other side may leave packets unacknowledged. A host that works acknowledges them at once, however
// long its program takes to respond.
const silence = 5 * time.Second

// Dialer returns a dialer of such connections; 0: connecting has no limit.
func Dialer(connect time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: connect, Control: endSilent,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 3}}
}
