package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

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
