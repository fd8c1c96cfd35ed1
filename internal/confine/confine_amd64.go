//go:build linux

package confine

// From linux/audit.h and asm/unistd.h.
const (
	auditArch          = 0xc000003e
	sysProcessVMReadv  = 310
	sysProcessVMWritev = 311
)
