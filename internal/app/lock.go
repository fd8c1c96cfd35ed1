package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"parley/internal/doctor"
)

// Lock is the exclusive lock of a data directory: only its owner opens the databases. The system releases it when the
// process ends.
type Lock struct {
	mu   sync.Mutex // held while the file is written
	file *os.File
}

// Running is what the owner of the lock writes to the lock file. Only the owner of the directory can read it.
type Running struct {
	PID     int    `json:"pid"`
	Command string `json:"command,omitempty"`
	URL     string `json:"url,omitempty"` // empty: not a server, or not ready yet
	// AdminToken and GlobalToken are for the command line. They are valid while this server runs.
	AdminToken  string `json:"admin_token,omitempty"`
	GlobalToken string `json:"global_token,omitempty"`
	// PublicURL is where links lead; empty: to URL.
	PublicURL string `json:"public_url,omitempty"`
	// Media is where the files of messages are; empty: in the data directory.
	Media string       `json:"media,omitempty"`
	Reach doctor.Reach `json:"reach,omitzero"`
}

// IsDev reports whether it is a development server.
func (r Running) IsDev() bool { return r.Command == "parley dev" }

// InUseError means that another process owns the data directory.
type InUseError struct {
	Dir Dir
	By  Running
}

func (e *InUseError) Error() string {
	who := "another parley"
	if e.By.PID != 0 {
		who = fmt.Sprintf("%s with pid %d", cmp.Or(e.By.Command, "parley"), e.By.PID)
	}
	if e.By.URL != "" {
		who += " (" + e.By.URL + ")"
	}
	return fmt.Sprintf("%s is in use by %s. Stop it, or give another directory with --data.", e.Dir, who)
}

// Lock locks the directory for a command. It waits a while, then returns an [InUseError].
func (d Dir) Lock(command string) (*Lock, error) {
	f, err := os.OpenFile(d.LockFile(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := lockFile(f); err != nil {
		defer f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &InUseError{Dir: d, By: readRunning(f)}
		}
		return nil, fmt.Errorf("lock %s: %w", d.LockFile(), err)
	}
	l := &Lock{file: f}
	if err := l.Announce(Running{PID: os.Getpid(), Command: command}); err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// acquire prepares the directory and locks it for a command other than a server or a restore, which finish what was
// interrupted.
func (d Dir) acquire(command string, log *slog.Logger) (*Lock, error) {
	if err := errors.Join(d.checkRestored(), d.Prepare(log)); err != nil {
		return nil, err
	}
	return d.Lock(command)
}

const (
	// lockTimeout is how long a process waits for a command that has the lock.
	lockTimeout = 5 * time.Second
	// serverTimeout is how long it waits for a server, which will not end soon. A process that checks whether a server
	// runs holds the lock for a moment.
	serverTimeout = time.Second
)

func lockFile(f *os.File) error {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		waited := time.Since(began)
		if !errors.Is(err, syscall.EWOULDBLOCK) || waited > lockTimeout || waited > serverTimeout && readRunning(f).URL != "" {
			return err
		}
	}
}

// Running returns the owner of the lock; false: nobody has it. The text of a killed process does not count, because its
// lock ended.
func (d Dir) Running() (Running, bool) {
	f, err := os.Open(d.LockFile())
	if err != nil {
		return Running{}, false
	}
	defer f.Close() // releases the lock too
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return Running{}, false
	}
	r := readRunning(f)
	return r, r.PID != 0
}

func readRunning(f *os.File) (r Running) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	if err != nil || json.Unmarshal(data, &r) != nil {
		return Running{}
	}
	return r
}

// Announce writes what other processes need to know.
func (l *Lock) Announce(r Running) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return l.write(append(data, '\n'))
}

func (l *Lock) Close() error {
	return errors.Join(l.write(nil), l.file.Close())
}

func (l *Lock) write(data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.file.Truncate(0)
	if err == nil {
		_, err = l.file.WriteAt(data, 0)
	}
	if err != nil {
		return fmt.Errorf("write the lock file: %w", err)
	}
	return nil
}
