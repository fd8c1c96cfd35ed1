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
