package doctor

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"parley"
)

// littleDisk is the free space that a busy gateway can use up within a day, fullDisk the one below which writes may fail.
const (
	littleDisk = 1 << 30
	fullDisk   = 100 << 20
)

// NoDisk is less than a database needs to work.
const NoDisk = 1 << 20

// Directory checks the permissions of a data directory. It reports nothing if only the owner has access.
func Directory(dir string) []Finding {
	info, err := os.Stat(dir)
	if err != nil {
		return []Finding{{Check: "data", Level: Problem, Found: err.Error()}}
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return []Finding{{Check: "data", Level: Problem, Found: fmt.Sprintf("%s is open to other users (mode %04o)", dir, mode),
			Remedy: fmt.Sprintf("chmod 700 %s", dir)}}
	}
	return nil
}

// Broken is the finding for a database that does not work.
func Broken(err error) Finding {
	return Finding{Check: "data", Level: Problem, Found: err.Error()}
}

// Database checks the disk of a database without known damage. Unwritable is why a write failed, or nil.
func Database(path string, size int64, checked bool, unwritable error) Finding {
	free := FreeDisk(path)
	if free < NoDisk {
		return Finding{Check: "data", Level: Problem, Code: "disk_full", Remedy: "make room on the disk",
			Found: fmt.Sprintf("the disk is full (%s free): nothing is accepted", Size(free))}
	}
	if unwritable != nil {
		return Unwritable(unwritable)
	}
	state := "not checked for damage"
	if checked {
		state = "checked"
	}
	// Opening it made sure of synchronous=FULL.
	f := Finding{Check: "data", Level: Fine,
		Found: fmt.Sprintf("sqlite %s %s, synchronous=FULL, free disk %s, %s", path, Size(size), Size(free), state)}
	if free < littleDisk {
		f.Level, f.Code, f.Remedy = Warning, "disk_low", "make room on the disk"
		f.Sentence = fmt.Sprintf("The disk has %s left. When it is full, no messages are accepted.", Size(free))
	}
	if free < fullDisk {
		f.Level = Problem
	}
	return f
}

// Unwritable says why writes fail.
func Unwritable(err error) Finding {
	return Finding{Check: "data", Level: Problem, Found: "the database cannot be written to: " + Reason(err)}
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

// Media reports whether the storage of files outside the data directory can be used. failed is why not; its text is a
// sentence.
func Media(where, endpoint string, failed error) Finding {
	switch {
	case failed != nil:
		return Finding{Check: "media", Level: Problem, Found: "files cannot be stored in " + where + ": " + failed.Error()}
	case IsUnencrypted(endpoint):
		return Finding{Check: "media", Level: Warning, Found: "files are in " + where + ", and reach it unencrypted",
			Remedy: "set --media-endpoint to an https address"}
	}
	return Finding{Check: "media", Level: Fine, Found: "files are in " + where + ", which is not part of a backup"}
}

// FilesDisk checks the free space of the directory of files, below the least of which none is stored.
func FilesDisk(free, least int64) []Finding {
	f := Finding{Check: "media", Level: Warning, Code: "files_low", Remedy: "make room on the disk, or lower --media-min-free-mib",
		Found: "the disk of files has " + Size(free) + " left: below " + Size(least) + " no file is accepted or fetched"}
	switch {
	case free >= 2*least:
		return nil
	case free < least:
		f.Level, f.Code = Problem, "files_full"
	}
	return []Finding{f}
}
