package socket

import (
	"errors"
	"syscall"
)

// userTimeout is the option TCP_USER_TIMEOUT, which package syscall does not name.
const userTimeout = 0x12

// endSilent limits how long sent data may stay unacknowledged.
func endSilent(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout, int(silence.Milliseconds()))
	})
	return errors.Join(err, failed)
}
