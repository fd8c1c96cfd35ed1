//go:build linux

package confine

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// deniedHere are further names of denied calls on this architecture.
var deniedHere = []uint32{unix.SYS_RENAMEAT}

// opening are the calls that open files, with the argument that has the flags.
var opening = map[uint32]uint32{unix.SYS_OPENAT: 2}
