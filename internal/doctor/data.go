package doctor

import (
	"context"
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

// Database is a database to check.
type Database struct {
	Path string
	// Writable is why writes fail; nil: not tested.
	Writable func(context.Context) error
	Size     func(context.Context) (int64, error)
	// Check looks for damage; nil: skip it.
	Check func(context.Context) error
}

// Look checks the database and its disk.
func (d Database) Look(ctx context.Context) (Finding, error) {
	checked := "not checked for damage"
	if d.Check != nil {
		if err := d.Check(ctx); err != nil {
			return Finding{}, err
		}
		checked = "checked"
	}
	size, err := d.Size(ctx)
	if err != nil {
		return Finding{}, err
	}
	free := FreeDisk(d.Path)
	if free < NoDisk {
		return Finding{"data", Problem, fmt.Sprintf("the disk is full (%s free): nothing is accepted", Size(free)), "make room on the disk"}, nil
	}
	if d.Writable != nil {
		if err := d.Writable(ctx); err != nil {
			return unwritable(err), nil
		}
	}
	// Opening it made sure of synchronous=FULL.
	f := Finding{"data", Fine, fmt.Sprintf("sqlite %s %s, synchronous=FULL, free disk %s, %s", d.Path, Size(size), Size(free), checked), ""}
	if free < LittleDisk {
		f.Level, f.Remedy = Warning, "make room on the disk"
	}
	return f, nil
}

// unwritable says why writes fail.
func unwritable(err error) Finding {
	reason := err.Error()
	if e, ok := errors.AsType[*parley.Error](err); ok {
		reason = e.Message
	}
	return Finding{"data", Problem, "the database cannot be written to: " + reason, ""}
}

// FreeDisk is the free space of the disk of a path.
func FreeDisk(path string) int64 {
	var fs syscall.Statfs_t
	if syscall.Statfs(path, &fs) != nil {
		return 0
	}
	return int64(fs.Bavail) * int64(fs.Bsize)
}
