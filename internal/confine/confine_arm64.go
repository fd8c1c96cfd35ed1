//go:build linux

package confine

// From linux/audit.h and asm/unistd.h.
const (
	auditArch          = 0xc00000b7
	sysProcessVMReadv  = 270
	sysProcessVMWritev = 271
)
