package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"

	"parley"
	"parley/internal/store"
)

// Config says where the files are stored.
type Config struct {
	// Dir is the folder of the files. With a bucket it holds temporary files only.
	Dir string
	// Shared means that other nodes use Dir too.
	Shared bool
	// Store knows the files of each channel, so that equal ones are stored once; nil: every file is stored.
	Store *store.DB
	// Limits bound what is stored. Those of a channel need Store.
	Limits store.StorageLimits
	// Bucket stores the files instead of Dir; nil: none.
	Bucket *Bucket
	// Installation names the installation that owns the files. The first name is the present one; earlier names are also
	// accepted. [Library.Check] rejects the files of others, because they would be removed as orphans. Empty: not checked.
	Installation []string
}

// storage holds complete files under names such as "ab/cd/abcd…". Its errors are [fs.ErrNotExist] for an unknown name and
// a [parley.Error] with the code Unavailable while it does not work.
type storage interface {
	// put stores a draft. When it returns nil, the file is complete and durable. It replaces a file of that name.
	put(ctx context.Context, name string, d *draft) error
	// get opens a file to read. The context must live until the file is closed.
	get(ctx context.Context, name string) (*File, error)
	// has reports whether there is a file of that name.
	has(ctx context.Context, name string) (bool, error)
	// remove removes a file. An unknown name is not an error.
	remove(ctx context.Context, name string) error
	// list calls visit with the files whose names begin with prefix and follow after, in order, until it returns false.
	list(ctx context.Context, prefix, after string, visit func(name string, changed time.Time) bool) error
	// describe turns an error of the storage into a sentence that says what to do.
	describe(err error) string
	// String names the storage for operators, without secrets.
	String() string
	close()
}

// File is a stored file that is open to read, from any position.
type File struct {
	io.ReadSeekCloser
	// Size is the size of the whole file.
	Size int64
}

// RemoveTimeout is how long a caller should wait for the removal of a file. What is not removed becomes an orphan.
const RemoveTimeout = 5 * time.Second

// unavailableFor is the suggested delay while the storage does not work.
const unavailableFor = 10 * time.Second

// unavailable says that the storage does not work now. The same request may succeed later.
func unavailable(cause error) error {
	return &parley.Error{Code: parley.Unavailable, RetryAfter: unavailableFor,
		Message: "The storage of files does not respond. Try again later.", Cause: cause}
}

// isOutage reports whether an error of a file system means that its server or its disk does not respond.
func isOutage(err error) bool {
	for _, number := range []syscall.Errno{syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
		syscall.ENOTCONN, syscall.ECONNREFUSED, syscall.ECONNRESET} {
		if errors.Is(err, number) {
			return true
		}
	}
	return false
}

// storedName returns the name of a file in the storage. It has two levels of folders, so that none grows too large.
func storedName(key string) (string, error) {
	if !keyForm.MatchString(key) {
		return "", fmt.Errorf("media key %q: %w", key, fs.ErrNotExist)
	}
	return key[:2] + "/" + key[2:4] + "/" + key, nil
}
