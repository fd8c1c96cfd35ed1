package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"parley"
)

var typeTar = []string{"application/x-tar"}

// errNoBackup is the answer where there is nothing to fetch.
var errNoBackup = parley.Errorf(parley.NotFound, "There is no backup on this server yet. Make one first.")

// readBackup answers with the newest backup, which is read as the caller takes it: it may be large.
func (s *server) readBackup(context.Context, *request) (answer, error) {
	b, made := s.Program.LastBackup()
	if !made {
		return answer{}, errNoBackup
	}
	f, err := os.Open(b.Path)
	if errors.Is(err, fs.ErrNotExist) { // somebody has just removed it
		return answer{}, errNoBackup
	}
	if err != nil {
		return answer{}, fmt.Errorf("open the backup: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return answer{}, fmt.Errorf("look at the backup: %w", err)
	}
	return answer{status: http.StatusOK, contentType: typeTar, file: f, size: info.Size(),
		header: []field{{"Content-Disposition", fmt.Sprintf("attachment; filename=%q", filepath.Base(b.Path))}, {"Content-Security-Policy", sandboxed}}}, nil
}

// streamBackup answers with a backup of this moment, which is made as the caller takes it and kept nowhere. One that
// fails on the way ends without the end that a complete answer has.
func (s *server) streamBackup(ctx context.Context, _ *request) (answer, error) {
	if !s.backup.TryLock() {
		return answer{}, errBackupRuns()
	}
	out, in := io.Pipe()
	go func() { // ends with the backup, or when the answer is closed
		defer s.backup.Unlock()
		in.CloseWithError(s.Program.WriteBackup(ctx, in))
	}()
	buffered := bufio.NewReaderSize(out, 64<<10)
	if _, err := buffered.Peek(1); err != nil { // an error before the first byte can still be told as one
		out.Close()
		return answer{}, err
	}
	name := time.Now().UTC().Format("parley-20060102T150405Z.tar")
	return answer{status: http.StatusOK, contentType: typeTar, file: &piped{buffered, out}, size: sizeUnknown,
		header: []field{{"Content-Disposition", fmt.Sprintf("attachment; filename=%q", name)}, {"Content-Security-Policy", sandboxed}}}, nil
}

// piped is a pipe that is read through a buffer.
type piped struct {
	io.Reader
	io.Closer
}
