//go:build linux && (amd64 || arm64)

package confine

import (
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denied are system calls that reach a network or other processes, change files by their names or modes, or mount. io_uring
// could do all of that without a call, and openat2 hides its flags from the filter.
var denied = slices.Concat(deniedHere, []uint32{
	unix.SYS_SOCKET, unix.SYS_IO_URING_SETUP, unix.SYS_OPENAT2, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
	unix.SYS_KCMP, unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO,
	unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_PIDFD_GETFD, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETSCHEDULER,
	unix.SYS_UNLINKAT, unix.SYS_RENAMEAT2, unix.SYS_TRUNCATE, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_MKDIRAT, unix.SYS_MKNODAT,
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
})

// writing are the flags of a file that is opened to be written or created.
const writing = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC | unix.O_APPEND

const (
	allow = unix.SECCOMP_RET_ALLOW
	deny  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	kill  = unix.SECCOMP_RET_KILL_PROCESS

	x32Calls = 0x40000000
)

// denyCalls makes the kernel reject these calls in this thread and in what it executes.
func denyCalls() error {
	filter := newFilter(uint32(os.Getpid())) // executing a program keeps the number of the process
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	runtime.KeepAlive(filter)
	return err
}

// newFilter makes a seccomp filter for a process. It rejects system calls with EPERM, and kills a process that uses the calls of
// another architecture, which have other numbers.
func newFilter(process uint32) []unix.SockFilter {
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		least = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		some  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		end   = unix.BPF_RET | unix.BPF_K

		number, architecture = 0, 4 // offsets in struct seccomp_data
	)
	argument := func(i uint32) uint32 { return 16 + 8*i } // its lower half
	filter := []unix.SockFilter{
		{Code: load, K: architecture},
		{Code: equal, K: auditArch, Jt: 1},
		{Code: end, K: kill},
		{Code: load, K: number},
		{Code: least, K: x32Calls, Jf: 1},
		{Code: end, K: kill},
	}
	for _, call := range denied {
		filter = append(filter, unix.SockFilter{Code: equal, K: call, Jf: 1}, unix.SockFilter{Code: end, K: deny})
	}
	for call, flags := range opening { // only to read
		filter = append(filter, unix.SockFilter{Code: equal, K: call, Jf: 4}, unix.SockFilter{Code: load, K: argument(flags)},
			unix.SockFilter{Code: some, K: writing, Jf: 1}, unix.SockFilter{Code: end, K: deny}, unix.SockFilter{Code: end, K: allow})
	}
	// Only for the process itself: a signal, as abort sends it, and limits.
	for call, target := range map[uint32]uint32{unix.SYS_TGKILL: process, unix.SYS_PRLIMIT64: 0, unix.SYS_SCHED_SETAFFINITY: 0} {
		filter = append(filter, unix.SockFilter{Code: equal, K: call, Jf: 4}, unix.SockFilter{Code: load, K: argument(0)},
			unix.SockFilter{Code: equal, K: target, Jf: 1}, unix.SockFilter{Code: end, K: allow}, unix.SockFilter{Code: end, K: deny})
	}
	return append(filter, unix.SockFilter{Code: end, K: allow})
}
