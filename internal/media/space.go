package media

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"parley"
)

// MayStore fails if a channel may not store a file of a size now: it stored too much today, or there is no room.
func (l *Library) MayStore(ctx context.Context, channel parley.ChannelCode, size int64) error {
	if err := l.checkSpace(); err != nil || l.config.Store == nil {
		return err
	}
	return l.config.Store.MayStore(ctx, channel, size, time.Now(), l.config.Limits.PerDay)
}

// Free returns the free space of the directory of files, and below how much no file is stored. ok is false for a bucket and
// without such a limit.
func (l *Library) Free() (free, least int64, ok bool) {
	least = l.config.Limits.MinFree
	if l.config.Bucket != nil || least == 0 {
		return 0, 0, false
	}
	var fs syscall.Statfs_t
	if syscall.Statfs(l.dir, &fs) != nil {
		return 0, 0, false // the storage says what is wrong with it
	}
	return int64(fs.Bavail) * int64(fs.Bsize), least, true
}

func (l *Library) checkSpace() error {
	free, least, ok := l.Free()
	if !ok || free >= least {
		return nil
	}
	return &parley.Error{Code: parley.StorageFull, Message: fmt.Sprintf("The server has no room for files: less than %d MiB are free. "+
		"Messages without a file are sent. Free space on its disk, or lower --media-min-free-mib.", least>>20)}
}

// spaceEvery is after how many bytes of a file the free space is checked again.
const spaceEvery = 4 << 20

// spaceWriter fails when a file that is being written leaves too little space.
type spaceWriter struct {
	l    *Library
	left int
}

func (w *spaceWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		w.left = spaceEvery
		if err := w.l.checkSpace(); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
