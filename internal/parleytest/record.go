package parleytest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
)

// recordTo is the variable that names a folder in which every request of a test and its response are recorded, to be
// compared with those of another version by internal/tools/compareapi.
const recordTo = "PARLEY_RECORD"

// recording is a line of a record.
type recording struct {
	Test   string `json:"test"`
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   string `json:"body,omitempty"`
	Status int    `json:"status"`
	Answer string `json:"answer"`
}

var recorder struct {
	sync.Mutex
	file *os.File
}

// record appends a request and its response to the record, if there is to be one. Each process has a file of its own.
func record(r recording) error {
	dir := os.Getenv(recordTo)
	if dir == "" {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	recorder.Lock()
	defer recorder.Unlock()
	if recorder.file == nil {
		if recorder.file, err = os.CreateTemp(dir, filepath.Base(os.Args[0])+"-*.jsonl"); err != nil {
			return err
		}
	}
	_, err = recorder.file.Write(append(line, '\n'))
	return err
}
