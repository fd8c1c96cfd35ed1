//go:build linux && (amd64 || arm64)

package confine

import (
	"errors"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
