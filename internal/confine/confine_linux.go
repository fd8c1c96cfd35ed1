//go:build linux && (amd64 || arm64)

package confine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
	"unsafe"
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
	cmd.Args = append([]string{ourName, strconv.FormatUint(l.Memory, 10), strconv.Itoa(int(l.CPU / time.Second)), path}, args...)
	return cmd
}

func init() {
	if os.Args[0] != ourName || len(os.Args) < 4 {
		return
	}
	err := become(os.Args[1], os.Args[2], os.Args[3:])
	fmt.Fprintf(os.Stderr, "the program cannot be run with limits: %v\n", err)
	os.Exit(Failed)
}

// become sets the limits and executes a program in this process. It returns only an error.
func become(memory, cpu string, program []string) error {
	runtime.LockOSThread() // the filter belongs to this thread, and to the program that it executes
	bytes, err := strconv.ParseUint(memory, 10, 64)
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseUint(cpu, 10, 64)
	if err != nil {
		return err
	}
	if err := denyNetwork(); err != nil {
		return fmt.Errorf("deny the network: %w", err)
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

// From linux/prctl.h, linux/seccomp.h and linux/audit.h.
const (
	prSetNoNewPrivs   = 38
	prSetSeccomp      = 22
	seccompModeFilter = 2
	seccompAllow      = 0x7fff0000
	seccompErrno      = 0x00050000
	seccompKill       = 0x80000000
	ioURingSetup      = 425 // on every architecture
	x32Calls          = 0x40000000
)

// denied are the system calls that reach a network or other processes. io_uring could do so without a call.
var denied = []uint32{syscall.SYS_SOCKET, ioURingSetup, syscall.SYS_PTRACE, sysProcessVMReadv, sysProcessVMWritev}

// denyNetwork makes the kernel reject these calls in this thread and in what it executes.
func denyNetwork() error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	filter := filterOf(denied)
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetSeccomp, seccompModeFilter, uintptr(unsafe.Pointer(&program)), 0, 0, 0)
	runtime.KeepAlive(filter)
	if errno != 0 {
		return errno
	}
	return nil
}

// filterOf makes a seccomp filter. It rejects system calls with EPERM, and kills a process that uses the calls of
// another architecture, which have other numbers.
func filterOf(denied []uint32) []syscall.SockFilter {
	const (
		load  = syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS
		equal = syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K
		least = syscall.BPF_JMP | syscall.BPF_JGE | syscall.BPF_K
		end   = syscall.BPF_RET | syscall.BPF_K

		number, architecture = 0, 4 // offsets in struct seccomp_data
	)
	filter := []syscall.SockFilter{
		{Code: load, K: architecture},
		{Code: equal, K: auditArch, Jt: 1},
		{Code: end, K: seccompKill},
		{Code: load, K: number},
		{Code: least, K: x32Calls, Jf: 1},
		{Code: end, K: seccompKill},
	}
	for _, call := range denied {
		filter = append(filter,
			syscall.SockFilter{Code: equal, K: call, Jf: 1},
			syscall.SockFilter{Code: end, K: seccompErrno | uint32(syscall.EPERM)})
	}
	return append(filter, syscall.SockFilter{Code: end, K: seccompAllow})
}
