package media

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"parley"
	"parley/internal/safehttp"
)

// Limits of what is fetched.
const (
	maxImage  = 16 << 20
	maxVoice  = 16 << 20
	maxVideo  = 64 << 20
	maxFile   = 100 << 20
	maxPixels = 40_000_000 // a decoded picture takes 4 to 8 bytes for each

	maxRedirects   = 3
	fetchTimeout   = 30 * time.Second
	previewTimeout = 3 * time.Second  // a text waits for its preview
	convertTimeout = 60 * time.Second // 16 minutes of sound take about 7 seconds of a core
	decodeTimeout  = 15 * time.Second // 40 million pixels take about a second of a core; the worst that is let in, about four

	// busyFor is how long to wait where there is no place for a picture or a sound.
	busyFor = 10 * time.Second

	// decodeAtOnce bounds the memory of pictures, each of which may take maxDecode. Pictures that strangers
	// send are not decoded.
	decodeAtOnce = 2
)

// Library is a folder of files, one for each message that carries one. Its methods may be called
// from several goroutines.
type Library struct {
	dir     string
	fetcher *safehttp.Client // for files
	glancer *safehttp.Client // for previews
	ffmpeg  string           // empty: what PATH has

	// Places for what takes memory and a core.
	working  chan struct{} // sounds
	decoding chan struct{} // pictures

	mu      sync.Mutex
	durable map[string]bool // folders known to be on disk
}

// Error is why a file cannot be sent, in a sentence for the caller. Any other error of this package
// is the server's own trouble; where that is only being busy, it is a [parley.Error].
type Error struct {
	Sentence string
	Cause    error // for the log; nil: the sentence is all
}

func (e *Error) Error() string { return e.Sentence }

func (e *Error) Unwrap() error { return e.Cause }

func errorf(format string, args ...any) *Error { return &Error{Sentence: fmt.Sprintf(format, args...)} }

// Open opens the library in a folder, which it makes if need be. It removes what a crash left half
// written, so only the one process that serves may open it.
func Open(dir string, policy safehttp.Policy) (*Library, error) {
	l := &Library{
		dir:     dir,
		fetcher: policy.Client(safehttp.Options{Timeout: fetchTimeout, MaxRedirects: maxRedirects, MaxBody: maxFile}),
		glancer: policy.Client(safehttp.Options{Timeout: previewTimeout, MaxRedirects: maxRedirects, MaxBody: maxFile}),
		working: make(chan struct{}, runtime.GOMAXPROCS(0)), decoding: make(chan struct{}, decodeAtOnce),
		durable: map[string]bool{},
	}
	if err := l.prepare(); err != nil {
		return nil, fmt.Errorf("open media library: %w", err)
	}
	return l, nil
}

// UseFFmpeg sets the path of the ffmpeg program. It is called before the library is used; without
// it, ffmpeg is looked for in PATH whenever it is needed.
func (l *Library) UseFFmpeg(path string) { l.ffmpeg = path }

// Open opens a file to read. An unknown key is an error for which os.IsNotExist holds.
func (l *Library) Open(key string) (*os.File, error) {
	path, err := l.path(key)
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// Remove removes a file. Removing one that is not there is no error.
func (l *Library) Remove(key string) error {
	path, err := pathIn(l.dir, key)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Close closes the connections that wait for another fetch.
func (l *Library) Close() {
	l.fetcher.CloseIdle()
	l.glancer.CloseIdle()
}

// work runs do once there is a place for it.
func (l *Library) work(ctx context.Context, places chan struct{}, do func() error) error {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		return unpanicked(do)
	case <-ctx.Done():
		return tooBusy(ctx.Err())
	}
}

// tooBusy says that it is not the file's fault: the same request may do well later.
func tooBusy(cause error) error {
	return &parley.Error{Code: parley.Unavailable, RetryAfter: busyFor, Message: "The server is too busy with other files. Try again.", Cause: cause}
}

// isForCaller reports whether an error says already what the caller is to be told.
func isForCaller(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok || parley.CodeOf(err) != parley.Internal
}

// isInterrupted reports whether something was not done because nobody waits for it any more.
func isInterrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// unpanicked turns a panic into an error: decoders get whatever strangers send, and none of it may
// end the process.
func unpanicked(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("decoder panicked: %v", r)
		}
	}()
	return do()
}
