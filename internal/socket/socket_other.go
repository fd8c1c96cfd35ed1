//go:build !linux

package socket

import "syscall"

// endSilent does nothing: only Linux has the option. Connections end by their keep-alive, unless data waits.
func endSilent(string, string, syscall.RawConn) error { return nil }
