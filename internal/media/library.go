// Package media fetches the files of outgoing messages and stores the files of inbound ones.
//
// Invariants:
//   - A file's type comes from its content, never from its name or from a server's claim.
//   - A stored file is durable when the call returns.
//   - A file appears under its key whole or not at all; the next start removes drafts.
//   - The drafts of a node are in a folder of their own. Another node does not remove them while they may be in use.
//   - A storage that does not work is Unavailable, never a missing file: a missing file fails its message for good.
//   - Neither uploads nor downloads hold a file in memory.
//   - Decoders are bounded in memory and time. A stranger's picture is never decoded.
//   - ffmpeg runs confined, with a fixed input format.
package media

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"parley"
	"parley/internal/safehttp"
	"parley/internal/store"
	"parley/internal/wait"
)

// Limits on fetched files.
const (
	maxImage  = 16 << 20
	maxVoice  = 16 << 20
	maxVideo  = 64 << 20
	maxFile   = 100 << 20
	maxPixels = 40_000_000 // a decoded picture takes 4 to 8 bytes per pixel

	maxRedirects   = 3
	fetchTimeout   = 30 * time.Second
	previewTimeout = 3 * time.Second  // a text waits for its preview
	convertTimeout = 60 * time.Second // 16 minutes of sound take about 7 CPU seconds
	decodeTimeout  = 15 * time.Second // 40 million pixels take about one CPU second; the worst accepted picture about four

	// busyFor is the suggested delay when all slots are in use.
	busyFor = 10 * time.Second

	// decodeAtOnce bounds the memory of pictures, each up to maxDecode. Pictures from strangers are not decoded.
	decodeAtOnce = 2
)

// Library stores the files of messages and uploads. Its methods may be called from several goroutines.
type Library struct {
	dir     string // holds temporary files, and the files unless they are in a bucket
	temp    string // temporary files of this process
	files   storage
	config  Config
	fetcher *safehttp.Client
	ffmpeg  string // its path, for tests; empty: from PATH

	// Places for expensive work, which callers share fairly.
	working  *wait.Turns // sounds
	decoding *wait.Turns // pictures
}

// Error says why a file cannot be sent, in a sentence for the caller. Other errors of this package are the server's; if
// it is only busy, a [parley.Error].
type Error struct {
	Sentence string
	Cause    error // for the log; nil: the sentence is all
}

func (e *Error) Error() string { return e.Sentence }

func (e *Error) Unwrap() error { return e.Cause }

func errorf(format string, args ...any) *Error { return &Error{Sentence: fmt.Sprintf(format, args...)} }

// Open opens a library. It creates its folder if needed, and removes what a crash left incomplete, so only the serving
// process may open it. It does not contact a bucket: see [Library.Check].
func Open(config Config, policy safehttp.Policy) (*Library, error) {
	l := &Library{
		dir: config.Dir, temp: filepath.Join(TempDir(config.Dir), NewKey()[:16]), config: config,
		fetcher: policy.Client(safehttp.Options{Timeout: fetchTimeout, MaxRedirects: maxRedirects, MaxBody: maxFile}),

		working: wait.NewTurns(runtime.GOMAXPROCS(0)), decoding: wait.NewTurns(decodeAtOnce),
	}
	if config.Bucket == nil {
		l.files = newDirectory(l.dir, TempDir(l.dir))
	} else {
		objects, err := newObjects(*config.Bucket)
		if err != nil {
			return nil, fmt.Errorf("open media library: %w", err)
		}
		l.files = objects
	}
	if err := l.prepare(config.Shared); err != nil {
		if config.Shared {
			return nil, &Error{l.files.describe(err), err}
		}
		return nil, fmt.Errorf("open media library: %w", err)
	}
	return l, nil
}

// Open opens a file to read. An unknown key is an error for which errors.Is(err, fs.ErrNotExist) holds. The context must
// live until the file is closed.
func (l *Library) Open(ctx context.Context, key string) (*File, error) {
	name, err := storedName(key)
	if err != nil {
		return nil, err
	}
	return l.files.get(ctx, name)
}

// Remove removes a file. An unknown file is not an error.
func (l *Library) Remove(ctx context.Context, key string) error {
	name, err := storedName(key)
	if err != nil {
		return err
	}
	return l.files.remove(ctx, name)
}

// Close removes temporary files and closes the connections that wait for another fetch.
func (l *Library) Close() {
	l.fetcher.CloseIdle()
	l.files.close()
	_ = os.RemoveAll(l.temp) // the next start removes it
}

// work does expensive work of the caller, when it has a place.
func (l *Library) work(ctx context.Context, places *wait.Turns, do func() error) error {
	caller := store.Caller(ctx)
	if err := places.Take(ctx, caller); err != nil {
		return tooBusy(err)
	}
	defer places.Give(caller)
	return unpanicked(do)
}

// tooBusy says that it is not the file's fault: the same request may do well later.
func tooBusy(cause error) error {
	return &parley.Error{Code: parley.Unavailable, RetryAfter: busyFor, Message: "The server is too busy with other files. Try again.",
		Cause: cause}
}

// isForCaller reports whether an error already has a message for the caller.
func isForCaller(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok || parley.ToCode(err) != parley.Internal
}

func isInterrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// unpanicked turns a panic into an error: decoders read files of strangers.
func unpanicked(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("decoder panicked: %v", r)
		}
	}()
	return do()
}

// Image fetches a picture: JPEG, PNG, WebP or GIF.
func (l *Library) Image(ctx context.Context, src Source) (parley.Media, error) {
	return l.withFetched(ctx, src, "image", maxImage, func(f *fetched) (parley.Media, error) {
		if !isPicture(f.kind) {
			return parley.Media{}, wrongType(src, f.kind, "an image. Send the address of a JPEG, PNG, WebP or GIF file")
		}
		if err := l.work(ctx, l.decoding, func() error { return describePicture(ctx, f.File, f.kind, &f.media) }); err != nil {
			return parley.Media{}, pictureError(err)
		}
		if f.isTaken(src) {
			return l.finish(ctx, f, src, f.kind)
		}
		var made small
		err := l.work(ctx, l.decoding, func() (err error) {
			made, err = f.redraw(ctx, src)
			return err
		})
		switch {
		case errors.Is(err, errCostly): // it is refused as it is
			return l.finish(ctx, f, src, f.kind)
		case err != nil:
			return parley.Media{}, pictureError(err)
		}
		return l.finishMade(ctx, f, src, made.jpeg, mimeJPEG, image.Pt(made.width, made.height))
	})
}

// Video fetches a film: MP4, 3GP, WebM or QuickTime.
func (l *Library) Video(ctx context.Context, src Source) (parley.Media, error) {
	return l.withFetched(ctx, src, "video", maxVideo, func(f *fetched) (parley.Media, error) {
		if !films[f.kind] {
			return parley.Media{}, wrongType(src, f.kind, "a video. Send the address of an MP4, 3GP, WebM or MOV file")
		}
		describeVideo(f.File, f.kind, &f.media)
		return l.finish(ctx, f, src, f.kind)
	})
}

// films are the types that can be sent as a video.
var films = map[string]bool{"video/mp4": true, "video/3gpp": true, "video/webm": true, "video/quicktime": true}

// File fetches a document of any type. A picture among them gets its size and thumbnail too.
func (l *Library) File(ctx context.Context, src Source) (parley.Media, error) {
	return l.withFetched(ctx, src, "file", maxFile, func(f *fetched) (parley.Media, error) {
		l.describe(ctx, f.draft, f.kind, &f.media)
		name := chooseName(src.Filename, f.resp, f.kind)
		return l.finish(ctx, f, src, documentType(f.kind, src.MIME, name))
	})
}

func (l *Library) finish(ctx context.Context, f *fetched, src Source, kind string) (parley.Media, error) {
	m := f.media
	m.MIME, m.Filename = kind, chooseName(src.Filename, f.resp, kind)
	sum, err := m.SHA256, error(nil)
	if f.converted {
		sum, _, err = f.hash()
	}
	if err == nil {
		m.Key, err = l.store(ctx, src.Channel, f.draft, sum, m.Size)
	}
	return m, err
}

// describe adds properties of a file that is sent as a document. Errors are ignored. Pictures that are too large to
// send as such are not read.
func (l *Library) describe(ctx context.Context, d *draft, kind string, m *parley.Media) {
	described := *m
	var err error
	switch {
	case isPicture(kind) && m.Size <= maxImage:
		err = l.work(ctx, l.decoding, func() error { return describePicture(ctx, d.File, kind, &described) })
	case kind == mimeOpus:
		err = l.measureInto(ctx, d, &described)
	case films[kind]:
		describeVideo(d.File, kind, &described)
	}
	if err == nil {
		*m = described
	}
}

// hasVideo reports whether an MP4 or QuickTime file has a track to look at: many sound recorders name their files like films.
func (f *fetched) hasVideo() bool {
	m := parley.Media{Size: f.media.Size}
	describeMP4(f.File, &m)
	return m.Width > 0
}

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
