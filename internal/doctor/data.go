package doctor

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"parley"
)

// LittleDisk is the free space that a busy gateway can use up within a day.
const LittleDisk = 1 << 30

// NoDisk is less than a database needs to work.
const NoDisk = 1 << 20

// Directory checks the permissions of a data directory. It reports nothing if only the owner has access.
func Directory(dir string) []Finding {
	info, err := os.Stat(dir)
	if err != nil {
		return []Finding{{"data", Problem, err.Error(), ""}}
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return []Finding{{"data", Problem, fmt.Sprintf("%s is open to other users (mode %04o)", dir, mode), fmt.Sprintf("chmod 700 %s", dir)}}
	}
	return nil
}

// Broken is the finding for a database that does not work.
func Broken(err error) Finding {
	return Finding{"data", Problem, err.Error(), ""}
}

// Database checks the disk of a database without known damage. Unwritable is why a write failed, or nil.
func Database(path string, size int64, checked bool, unwritable error) Finding {
	free := FreeDisk(path)
	if free < NoDisk {
		return Finding{"data", Problem, fmt.Sprintf("the disk is full (%s free): nothing is accepted", Size(free)), "make room on the disk"}
	}
	if unwritable != nil {
		return Unwritable(unwritable)
	}
	state := "not checked for damage"
	if checked {
		state = "checked"
	}
	// Opening it made sure of synchronous=FULL.
	f := Finding{"data", Fine, fmt.Sprintf("sqlite %s %s, synchronous=FULL, free disk %s, %s", path, Size(size), Size(free), state), ""}
	if free < LittleDisk {
		f.Level, f.Remedy = Warning, "make room on the disk"
	}
	return f
}

// Unwritable says why writes fail.
func Unwritable(err error) Finding {
	return Finding{"data", Problem, "the database cannot be written to: " + Reason(err), ""}
}

// Reason is the text of an error for people, without its cause.
func Reason(err error) string {
	if e, ok := errors.AsType[*parley.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

// FreeDisk is the free space of the disk of a path.
func FreeDisk(path string) int64 {
	var fs syscall.Statfs_t
	if syscall.Statfs(path, &fs) != nil {
		return 0
	}
	return int64(fs.Bavail) * int64(fs.Bsize)
}
