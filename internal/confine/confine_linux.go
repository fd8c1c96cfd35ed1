//go:build linux && (amd64 || arm64)

package confine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Available reports whether programs are confined on this system.
const Available = true

// ourName is the name under which this binary confines itself and executes another program.
const ourName = "parley-confine"

// Command is exec.CommandContext for a confined program.
func Command(ctx context.Context, l Limits, program string, args ...string) *exec.Cmd {
	path, err := exec.LookPath(program)
	if err != nil {
		return exec.CommandContext(ctx, program, args...) // returns the error at its start
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = append([]string{ourName, strconv.FormatUint(l.Memory, 10), strconv.Itoa(int(l.CPU / time.Second)), l.Input, path}, args...)
	return cmd
}

func init() {
	if os.Args[0] != ourName || len(os.Args) < 5 {
		return
	}
	err := become(os.Args[1], os.Args[2], os.Args[3], os.Args[4:])
	fmt.Fprintf(os.Stderr, "the program cannot be run with limits: %v\n", err)
	os.Exit(Failed)
}

// become sets the limits and executes a program in this process. It returns only an error.
func become(memory, cpu, input string, program []string) error {
	runtime.LockOSThread() // the rules belong to this thread, and to the program that it executes
	bytes, err := strconv.ParseUint(memory, 10, 64)
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseUint(cpu, 10, 64)
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := hideFiles(program[0], input); err != nil {
		return fmt.Errorf("hide files: %w", err)
	}
	if err := denyCalls(); err != nil {
		return fmt.Errorf("deny system calls: %w", err)
	}
	// Its output goes through a pipe, so it needs no files.
	limits := map[int]uint64{syscall.RLIMIT_CORE: 0, syscall.RLIMIT_FSIZE: 0, syscall.RLIMIT_NOFILE: maxFiles}
	if seconds > 0 {
		limits[syscall.RLIMIT_CPU] = seconds
	}
	for resource, most := range limits {
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("limit %d: %w", resource, err)
		}
	}
	return limitMemoryAndExec(bytes, program)
}

// limitMemoryAndExec executes a program with a limit on its address space; zero: unlimited. This process already uses
// more than that, so nothing may be allocated in between: everything is prepared, and the calls are raw.
func limitMemoryAndExec(bytes uint64, program []string) error {
	path, err := syscall.BytePtrFromString(program[0])
	if err != nil {
		return err
	}
	argv, err := syscall.SlicePtrFromStrings(program)
	if err != nil {
		return err
	}
	env, err := syscall.SlicePtrFromStrings(os.Environ())
	if err != nil {
		return err
	}
	debug.SetGCPercent(-1)
	limit := &syscall.Rlimit{Cur: bytes, Max: bytes}
	if bytes > 0 {
		_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 0, syscall.RLIMIT_AS, uintptr(unsafe.Pointer(limit)), 0, 0, 0)
		if errno != 0 {
			return fmt.Errorf("limit the memory: %w", errno)
		}
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&argv[0])),
		uintptr(unsafe.Pointer(&env[0])))
	return errno
}

// HideMemory keeps other processes of this user from reading and writing the memory of this one, which holds keys. It also ends
// core dumps.
func HideMemory() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// readable are the places of programs and libraries, and devices without data. Nothing there is secret.
var readable = []string{
	"/bin", "/lib", "/lib32", "/lib64", "/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/local/bin",
	"/usr/local/lib", "/nix/store", "/etc/ld.so.cache", "/etc/ld.so.preload", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom",
}

// The rights of the first version of Landlock, and those that later versions added.
const (
	firstRights = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1
	fileRights  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
)

// rulesFor are the rules that a version of Landlock knows. Whatever they handle is denied unless a path allows it.
func rulesFor(version int) (rules unix.LandlockRulesetAttr) {
	rules.Handled_access_fs = firstRights
	if version >= 2 {
		rules.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		rules.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 5 {
		rules.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		rules.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	return rules
}

// landlockVersion is the version that the kernel has; 0: none.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// HidesFiles reports whether this kernel can keep a program from reading files.
func HidesFiles() bool { return landlockVersion() > 0 }

// hideFiles lets this thread, and what it executes, open nothing but a program, libraries and an input. Without Landlock it does
// nothing.
func hideFiles(program, input string) error {
	version := landlockVersion()
	if version == 0 {
		return nil
	}
	attr := rulesFor(version)
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(ruleset))
	resolved, err := filepath.EvalSymlinks(program)
	if err != nil {
		return err
	}
	// A program that is not among the others may have its libraries beside it: /opt/ffmpeg/bin and /opt/ffmpeg/lib.
	for _, path := range append([]string{resolved, filepath.Join(filepath.Dir(filepath.Dir(resolved)), "lib")}, readable...) {
		if err := allowReading(int(ruleset), path); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	if input != "" {
		if err := allowReading(int(ruleset), input); err != nil {
			return err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// allowReading adds a file, or a directory with all that is in it.
func allowReading(ruleset int, path string) error {
	file, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(file)
	var stat unix.Stat_t
	if err := unix.Fstat(file, &stat); err != nil {
		return err
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: fileRights, Parent_fd: int32(file)}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		rule.Allowed_access |= unix.LANDLOCK_ACCESS_FS_READ_DIR
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

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
