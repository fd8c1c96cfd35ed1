package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"parley/internal/doctor"
)

// Lock keeps a data directory for one process. The system lets go of it when the process ends,
// however it ends.
type Lock struct {
	mu   sync.Mutex // held while the file is written
	file *os.File
}

// Running is what a server says of itself in the lock file.
type Running struct {
	PID int    `json:"pid"`
	URL string `json:"url,omitempty"` // empty: not listening yet
	// PublicURL is where links lead; empty: to URL.
	PublicURL string       `json:"public_url,omitempty"`
	Reach     doctor.Reach `json:"reach,omitzero"`
}

// InUseError says that another process has the data directory.
type InUseError struct {
	Dir Dir
	By  Running
}

func (e *InUseError) Error() string {
	who := "another parley"
	if e.By.PID != 0 {
		who = fmt.Sprintf("parley with pid %d", e.By.PID)
	}
	if e.By.URL != "" {
		who += " (" + e.By.URL + ")"
	}
	return fmt.Sprintf("%s is in use by %s. Stop it, or give another directory with --data.", e.Dir, who)
}

// Lock takes the directory, or tells who has it.
func (d Dir) Lock() (*Lock, error) {
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
	if err := l.Say(Running{PID: os.Getpid()}); err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// lockPatience is how long a server waits for somebody who only looks whether one runs.
const lockPatience = time.Second

func lockFile(f *os.File) error {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Since(began) > lockPatience {
			return err
		}
	}
}

// Running returns what the server on this directory says of itself; false: none runs. What a server said that
// was killed counts no more, because the lock ended with it.
func (d Dir) Running() (Running, bool) {
	f, err := os.Open(d.LockFile())
	if err != nil {
		return Running{}, false
	}
	defer f.Close() // and with it the lock
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return Running{}, false
	}
	r := readRunning(f)
	return r, r.PID != 0
}

func readRunning(f *os.File) (r Running) {
	data, err := io.ReadAll(f)
	if err != nil || json.Unmarshal(data, &r) != nil {
		return Running{}
	}
	return r
}

// Say tells others about this process.
func (l *Lock) Say(r Running) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return l.write(append(data, '\n'))
}

// Close lets go of the directory.
func (l *Lock) Close() error {
	return errors.Join(l.write(nil), l.file.Close())
}

func (l *Lock) write(data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("write the lock file: %w", err)
	}
	if _, err := l.file.WriteAt(data, 0); err != nil {
		return fmt.Errorf("write the lock file: %w", err)
	}
	return nil
}
